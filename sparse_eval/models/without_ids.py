"""Warn if a model without ids is evaluated on data with ids."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..core.warning import warn
from ..inputs.labelled import labels_of
from .identifiers import ids_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .model import Model

_is_silent: ContextVar[bool] = ContextVar("_is_silent", default=False)


@contextmanager
def without_warning() -> Iterator[None]:
    """Suppress the warning: the model was trained here, or the caller warns once for many."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


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
    if not _is_silent.get() and lacks_ids(model, *data, of_users=of_users):
        _warn("the model")


def warn_of_checkpoints(paths: Sequence[Path]) -> None:
    """Warn of checkpoints without ids, if there are any."""
    if paths:
        others = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
        _warn(f"{paths[0]}{others}")


def _warn(name: str) -> None:
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
