"""The ids of a model's users and items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.messages import warn
from ..datasets.interactions import label_array
from ..errors import InvalidDataError
from ..inputs.alignment import Known
from ..inputs.axes import Axis
from ..inputs.labelled import labels_of

if TYPE_CHECKING:
    from ..core.types import AnyArray

#: Attributes of a model, and arrays of its checkpoint, which implicit makes attributes again when
#: it loads one.
USER_IDS, ITEM_IDS = "user_ids", "item_ids"

#: Attributes of a model that have a row for each user or item.
_ROWS = {USER_IDS: ("user_factors",), ITEM_IDS: ("item_factors", "similarity", "weights")}


def ids_of(model: object, users: Any = None, items: Any = None) -> tuple[Axis | None, Axis | None]:
    """Return the ids of a model's users and items, None if it only numbers them.

    `users` and `items`, if given, replace the ids that the model has.

    Raises `InvalidDataError` if there are more or fewer ids than users or items, as after another
    training.
    """
    model = getattr(model, "trained", None) or model
    users = getattr(model, USER_IDS, None) if users is None else users
    items = getattr(model, ITEM_IDS, None) if items is None else items
    return _checked(model, users, USER_IDS), _checked(model, items, ITEM_IDS)


def known_to(model: Any) -> Known:
    """Return the users and items of a model from `as_model`."""
    return Known(*ids_of(model), *model.shape)


def _checked(model: object, ids: Any, name: str) -> Axis | None:
    if ids is None:
        return None
    ids = ids if hasattr(ids, "__len__") else list(ids)
    side = _ROWS[name][0]
    rows = [matrix for one in _ROWS[name] if (matrix := getattr(model, one, None)) is not None]
    n = rows[0].shape[0] if rows else getattr(model, f"n_{name.replace('_ids', 's')}", None)
    if n is not None and len(ids) != n:
        raise InvalidDataError(
            f"there are {len(ids)} {name} for a model with {n} {side}; expected one for each. A "
            f"model has them as its attribute {name}; set it to None to remove them"
        )
    return Axis.of(ids, name.replace("_ids", "s"), n)


def keep_ids(model: Any, users: Axis | None, items: Axis | None) -> None:
    """Store the ids of its users and items in a model, or remove them."""
    for name, labels in ((USER_IDS, users), (ITEM_IDS, items)):
        if labels is not None or getattr(model, name, None) is not None:
            setattr(model, name, labels)


def id_arrays(users: Axis | None, items: Axis | None) -> dict[str, AnyArray]:
    """Return ids as arrays, by name, that are saved without pickle.

    Raises `InvalidDataError` if they are neither all text nor all whole numbers.
    """
    return {
        name: label_array(name, labels)
        for name, labels in ((USER_IDS, users), (ITEM_IDS, items))
        if labels is not None
    }


#: How to add ids to a model.
_REMEDY = (
    "train it with se.train_als or se.train_model and save it with se.save_model in place of "
    "model.save, or give the ids as users=… and items=… to se.save_model, se.factor_model or "
    "se.Scorer"
)


def warn_without_ids(model: Any, *data: object, of_users: bool = True) -> None:
    """Warn if a model has no ids, so that it is matched with data by row and column number.

    If `of_users` is False, only the ids of items matter.
    """
    if lacks_ids(model, *data, of_users=of_users):
        warn_of_numbers("the model")


def warn_of_numbers(name: str) -> None:
    """Warn about models without ids, which the message calls `name`."""
    warn(
        f"{name} has no ids, but the data have, so users and items are matched by row and column "
        f"number. Metrics are wrong if it was trained on a different order; {_REMEDY}"
    )


def lacks_ids(model: Any, *data: object, of_users: bool = True) -> bool:
    """Return whether a model lacks ids of users or items that the data have.

    A function lacks none: by definition it uses the row and column numbers of the training data.
    """
    users, items = zip(*map(labels_of, data), strict=True)
    known_users, known_items = ids_of(model)
    return bool(model.needs_ids) and (
        (known_items is None and any(items))
        or (known_users is None and any(users) and of_users and not model.takes_any_user)
    )
