"""Rows of lists in CSR form: ordered by position, and checked for repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.csr import MAX_ITEMS, check_entries, find_fault, raise_repeated_item
from ..errors import InvalidDataError
from ..kernels.rows import find_repeat, order_by_position

if TYPE_CHECKING:
    from ..core.types import AnyArray, CSRMatrix, Integers, Items

#: What errors about positions say, because they may be something else.
MAY_BE_SCORES = "; if the matrix holds scores, give Rankings.from_scores(matrix)"


def order_rows(
    indptr: Integers, columns: Items, positions: Items
) -> tuple[Items, Items, tuple[int, int] | None]:
    """Put the entries of each row in the order of their positions.

    Returns the columns, the positions, and the row and entry of one whose position is not the
    first of its kind in the row, or None.
    """
    items, ordered = np.empty((2, len(positions)), np.int32)

    def order(first: int, last: int, fault: Integers) -> None:
        order_by_position(first, last, indptr, columns, positions, items, ordered, fault)

    fault = find_fault(order, len(indptr) - 1)
    return items, ordered, None if fault is None else fault[1:]


def repeated_item(indptr: Integers, items: Items) -> tuple[int, int] | None:
    """Return the row and entry of an item that is in its row twice, or None."""
    longest = int(np.diff(indptr).max(initial=0))

    def check(first: int, last: int, fault: Integers) -> None:
        scratch = np.empty(longest, items.dtype)
        find_repeat(first, last, indptr, items, scratch, fault)

    fault = find_fault(check, len(indptr) - 1)
    return None if fault is None else fault[1:]


def last_positions(indptr: Integers, positions: Items) -> Integers:
    """Return each row's last position, 0 for an empty row."""
    lengths = np.zeros(len(indptr) - 1, np.int64)
    filled = indptr[1:] > indptr[:-1]
    lengths[filled] = positions[indptr[1:][filled] - 1]
    return lengths


def check_ids(table: AnyArray, rows: Integers, n_items: int) -> bool:
    """Raise if a table of ids has one that there is not, or twice in a list.

    `rows` has the user of each list. Return whether lists are padded, with -1.
    """
    least = table.min(initial=0)
    if least < -1 or table.max(initial=-1) >= n_items:
        row, column = np.argwhere((table < -1) | (table >= n_items))[0]
        raise InvalidDataError(
            f"ids[{row}, {column}] (user {rows[row]}) is {table[row, column]}, but there are "
            f"{n_items} items (0 to {n_items - 1}, and -1 for padding)",
            user=rows[row],
        )

    repeated = repeated_item(np.arange(len(table) + 1) * table.shape[1], table.ravel())
    if repeated is not None:
        raise_repeated_item(rows[repeated[0]], table.ravel()[repeated[1]])
    return bool(least < 0)


def check_positions(matrix: CSRMatrix) -> None:
    """Raise if a matrix of positions holds something else."""
    data = matrix.data
    valid = (data == np.floor(data)) & (data >= 1) & (data <= MAX_ITEMS)
    expected = f"a whole number from 1 to {MAX_ITEMS} (add 1 to 0-based positions){MAY_BE_SCORES}"
    check_entries(matrix, valid, "the position", expected)


def check_users_once(rows: Integers, order: Integers) -> None:
    """Raise if a user has two lists; `order` sorts the users."""
    ordered = rows[order]
    repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(repeated):
        first, second = order[repeated[0]], order[repeated[0] + 1]
        raise InvalidDataError(
            f"user {rows[first]} has two lists (rows {first} and {second} of ids); expected one "
            "list for each user",
            user=rows[first],
        )
