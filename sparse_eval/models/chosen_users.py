"""The rows of the users asked for, by id or by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.csr import row_numbers
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from ..core.types import Integers
    from ..inputs.axes import Axis


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
