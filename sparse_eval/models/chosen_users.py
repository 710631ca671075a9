"""`ChosenUsers`: the users asked for, by id or by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.csr import row_numbers
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import ArrayLike

    from ..core.types import Integers, Labels


class ChosenUsers(NamedTuple):
    """The users asked for, by id or by row; everyone if neither is given."""

    users: Iterable[Hashable] | None = None
    user_rows: ArrayLike | None = None

    @property
    def is_everyone(self) -> bool:
        """Whether no choice is made."""
        return self.users is None and self.user_rows is None

    def rows(self, labels: Labels | None, n_users: int, who_knows: str) -> Integers:
        """Return their rows among the first `n_users`, whom labels name.

        `who_knows` begins the message about a user who is not among them.

        Raises
        ------
        InvalidDataError
            If a user is not among them, ids are given where there are none, or both kinds are.
        """
        if self.users is not None and self.user_rows is not None:
            raise InvalidDataError("give users= (ids) or user_rows= (rows), not both")
        if self.users is not None:
            return _rows_of_ids(self.users, labels, n_users, who_knows)
        if self.user_rows is not None:
            return row_numbers(self.user_rows, "user_rows", n_users, "users")
        return np.arange(n_users)


def _rows_of_ids(ids: Any, labels: Labels | None, n_users: int, who_knows: str) -> Integers:
    """Return the rows of users by id, or raise `InvalidDataError`."""
    import pandas as pd

    if labels is None:
        raise InvalidDataError(
            "users are ids, and neither the model nor train has ids; give user_rows= (rows of "
            "train), or train with ids, such as Interactions"
        )
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise InvalidDataError(f"users is {ids!r}; expected a list of ids, such as [{ids!r}]")
    given = list(ids)
    try:
        index: Labels = pd.Index(given, tupleize_cols=False)
        rows = labels[:n_users].get_indexer(index)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"users cannot be ids: {error}") from None
    if (rows < 0).any():
        unknown = given[int((rows < 0).argmax())]
        example = labels[0] if n_users else "none"
        raise InvalidDataError(
            f"{who_knows} no user {unknown!r}; the {n_users} users are {example!r}, …"
        )
    return rows.astype(np.int64)
