"""The ids of a model's users and items, kept on the model and in its checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..datasets.labels import label_array
from ..errors import InvalidDataError
from ..inputs.axes import Axis

if TYPE_CHECKING:
    from ..core.types import AnyArray

#: Attributes of a model, and arrays of its checkpoint, which implicit makes attributes again when
#: it loads one.
USER_IDS, ITEM_IDS = "user_ids", "item_ids"

#: Attributes of a model without factors that have a row for each item.
_OF_ITEMS = ("similarity", "weights")


def ids_of(model: object, users: Any = None, items: Any = None) -> tuple[Axis | None, Axis | None]:
    """Return the ids of a model's users and items, None where it only numbers them.

    `users` and `items` that are given are taken instead of those that the model knows.

    Raises
    ------
    InvalidDataError
        If there are more or fewer ids than users or items, as after another training.
    """
    model = getattr(model, "trained", None) or model
    users = getattr(model, USER_IDS, None) if users is None else users
    items = getattr(model, ITEM_IDS, None) if items is None else items
    return _checked(model, users, USER_IDS), _checked(model, items, ITEM_IDS)


def _checked(model: object, ids: Any, name: str) -> Axis | None:
    if ids is None:
        return None
    ids = ids if hasattr(ids, "__len__") else list(ids)
    of_users = name == USER_IDS
    side = "user_factors" if of_users else "item_factors"
    given = (getattr(model, one, None) for one in (side, *(() if of_users else _OF_ITEMS)))
    matrix = next((one for one in given if one is not None), None)
    n = getattr(model, "n_users" if of_users else "n_items", None)  # of a `Scorer`
    n = n if matrix is None else matrix.shape[0]
    n = len(ids) if n is None else n
    if len(ids) != n:
        raise InvalidDataError(
            f"there are {len(ids)} {name} for a model with {n} {side}; give one for each (a model "
            f"keeps them as its attribute {name}; None forgets them)"
        )
    return Axis.of(ids, name.replace("_ids", "s"), n)


def keep_ids(model: Any, users: Axis | None, items: Axis | None) -> None:
    """Let a model know the ids of its users and items, or forget what they were."""
    for name, labels in ((USER_IDS, users), (ITEM_IDS, items)):
        if labels is not None or getattr(model, name, None) is not None:
            setattr(model, name, labels)


def copy_ids(model: Any, other: Any) -> Any:
    """Let another form of a model know the same ids, and return it."""
    keep_ids(other, getattr(model, USER_IDS, None), getattr(model, ITEM_IDS, None))
    return other


def id_arrays(users: Axis | None, items: Axis | None) -> dict[str, AnyArray]:
    """Return ids as arrays, by name, that are saved without pickle.

    Raises
    ------
    InvalidDataError
        If they are neither all text nor all whole numbers.
    """
    return {
        name: label_array(name, labels)
        for name, labels in ((USER_IDS, users), (ITEM_IDS, items))
        if labels is not None
    }
