"""The ids of a model's users and items, kept on the model and in its checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.csr import row_numbers
from ..core.warning import warn
from ..datasets.interactions import label_array
from ..errors import InvalidDataError
from ..inputs.axes import Axis
from ..inputs.labelled import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.types import AnyArray, Integers
    from .model import Model

#: Attributes of a model, and arrays of its checkpoint, which implicit makes attributes again when
#: it loads one.
USER_IDS, ITEM_IDS = "user_ids", "item_ids"
#: Likewise what identifies its training data, see `TrainedOn`.
TRAINED_ON = "trained_on"

_is_silent: ContextVar[bool] = ContextVar("_is_silent", default=False)

#: Attributes of a model that have a row for each user or item.
_ROWS = {USER_IDS: ("user_factors",), ITEM_IDS: ("item_factors", "similarity", "weights")}


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
    side = _ROWS[name][0]
    rows = [matrix for one in _ROWS[name] if (matrix := getattr(model, one, None)) is not None]
    n = rows[0].shape[0] if rows else getattr(model, f"n_{name.replace('_ids', 's')}", None)
    if n is not None and len(ids) != n:
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
    """Let another form of a model know the same ids and training data, and return it."""
    keep_ids(other, getattr(model, USER_IDS, None), getattr(model, ITEM_IDS, None))
    setattr(other, TRAINED_ON, getattr(model, TRAINED_ON, None))
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


def rows_of_users(users: Any, labels: Axis | None, n_users: int, who_knows: str) -> Integers:
    """Return the rows of users among the first `n_users`, whom labels name; all rows for None.

    `who_knows` begins the message about a user who is not among them.

    Raises
    ------
    InvalidDataError
        If a user is not among them, or ids are given where there are none.
    """
    if users is None:
        return np.arange(n_users)
    if labels is None:
        try:
            return row_numbers(users, "users", n_users, "users")
        except InvalidDataError as error:
            raise InvalidDataError(
                f"{error}; neither the model nor train has ids, so users= takes rows of train; "
                "train with ids, such as Interactions, to give ids"
            ) from None
    if isinstance(users, str | bytes) or not isinstance(users, Iterable):
        raise InvalidDataError(f"users is {users!r}; expected a list of ids, such as [{users!r}]")
    given = list(users)
    rows = labels[:n_users].locate(given)
    if (rows < 0).any():
        unknown = given[int((rows < 0).argmax())]
        example = labels[0] if n_users else "none"
        raise InvalidDataError(
            f"{who_knows} no user {unknown!r}; the {n_users} users are {example!r}, …", user=unknown
        )
    return rows


@contextmanager
def without_warning() -> Iterator[None]:
    """Suppress warnings about a model: it was trained here, or the caller warns once for many."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


def is_silent() -> bool:
    """Return whether warnings about the origin of a model are suppressed."""
    return _is_silent.get()


#: How to add ids to a model.
_REMEDY = (
    "train it with se.train_als or se.train_model and save it with se.save_model in place of "
    "model.save, or give the ids as users=… and items=… to se.save_model, se.factor_model or "
    "se.Scorer"
)


def warn_without_ids(model: Model, *data: object, of_users: bool = True) -> None:
    """Warn if a model has no ids, so that it is matched with data by row and column number.

    If `of_users` is False, only the ids of items matter.
    """
    if not is_silent() and lacks_ids(model, *data, of_users=of_users):
        warn_of_numbers("the model")


def warn_of_numbers(name: str) -> None:
    """Warn of models without ids, which the message calls `name`."""
    warn(
        f"{name} has no ids, and the data have: users and items are matched by row and column "
        f"number, and metrics are wrong if it was trained on them in another order; {_REMEDY}"
    )


def lacks_ids(model: Model, *data: object, of_users: bool = True) -> bool:
    """Return whether a model lacks ids of users or items that the data have.

    A function lacks none: by definition it uses the row and column numbers of the training data.
    """
    if not model.needs_ids:
        return False
    numbers_users = of_users and not model.takes_any_user
    labels = [labels_of(side) for side in data]
    users, items = ids_of(model)
    return any(
        known is None and numbered and any(given[axis] is not None for given in labels)
        for axis, (known, numbered) in enumerate(((users, numbers_users), (items, True)))
    )
