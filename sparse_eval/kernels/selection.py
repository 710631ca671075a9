"""Selecting entries of sparse rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array


@kernel
def select(
    bounds: Array,
    starts: Array,
    columns: Array,
    values: Array,
    chosen: Array,
    out_bounds: Array,
    out_starts: Array,
    out_columns: Array,
    out_values: Array,
) -> int:
    """Copy the chosen entries of rows that are sorted by pair, and return the number of pairs.

    Parameters
    ----------
    bounds : ndarray of int64, shape (n_rows + 1,)
        Where each row starts and ends.
    starts : ndarray of int64
        Where the entries of each pair of row and column start; empty if each entry is a pair.
    columns, values, chosen : ndarray, shape (n,)
        The entries, and which of them to copy.
    out_bounds : ndarray of int64, shape (n_rows + 1,)
        Where the pairs of each row start and end, of those with a chosen entry.
    out_starts, out_columns, out_values : ndarray
        As `starts` (not written if that is empty), the columns of the pairs, and the values of the
        entries.
    """
    distinct = len(starts) == 0
    n_values = 0
    n_pairs = 0
    next_pair = 0
    begins = False
    for row in range(len(bounds) - 1):
        for entry in range(bounds[row], bounds[row + 1]):
            if distinct:
                begins = True
            elif next_pair < len(starts) and starts[next_pair] == entry:
                begins = True
                next_pair += 1
            if chosen[entry]:
                if begins:
                    if not distinct:
                        out_starts[n_pairs] = n_values
                    out_columns[n_pairs] = columns[entry]
                    n_pairs += 1
                    begins = False
                out_values[n_values] = values[entry]
                n_values += 1
        out_bounds[row + 1] = n_pairs
    return n_pairs
