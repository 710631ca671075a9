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

    from ..core.types import Integers
    from ..inputs.axes import Axis


class ChosenUsers(NamedTuple):
    """The users asked for, by id, or by row if there are no ids; everyone if none are given."""

    users: Iterable[Hashable] | ArrayLike | None = None

    @property
    def is_everyone(self) -> bool:
        """Whether no choice is made."""
        return self.users is None

    def rows(self, labels: Axis | None, n_users: int, who_knows: str) -> Integers:
        """Return their rows among the first `n_users`, whom labels name.

        `who_knows` begins the message about a user who is not among them.

        Raises
        ------
        InvalidDataError
            If a user is not among them, or ids are given where there are none.
        """
        if self.users is None:
            return np.arange(n_users)
        if labels is not None:
            return _rows_of_ids(self.users, labels, n_users, who_knows)
        try:
            return row_numbers(self.users, "users", n_users, "users")  # type: ignore[arg-type]
        except InvalidDataError as error:
            raise InvalidDataError(
                f"{error}; neither the model nor train has ids, so users= takes rows of train; "
                "train with ids, such as Interactions, to give ids"
            ) from None


def _rows_of_ids(ids: Any, labels: Axis, n_users: int, who_knows: str) -> Integers:
    """Return the rows of users by id, or raise `InvalidDataError`."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise InvalidDataError(f"users is {ids!r}; expected a list of ids, such as [{ids!r}]")
    given = list(ids)
    rows = labels[:n_users].locate(given)
    if (rows < 0).any():
        unknown = given[int((rows < 0).argmax())]
        example = labels[0] if n_users else "none"
        raise InvalidDataError(
            f"{who_knows} no user {unknown!r}; the {n_users} users are {example!r}, …", user=unknown
        )
    return rows
