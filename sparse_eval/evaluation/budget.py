"""Budgets of memory: how many users a block may have."""

from __future__ import annotations

from ..core.arguments import check_whole
from ..errors import InvalidDataError

#: Bytes that evaluating a block takes at its peak for each entry of its matrices and for each of
#: its users: measured, see benchmarks/SCALE.md.
PER_ENTRY, PER_USER = 64, 400

#: Bytes that a value of a user takes for good, and what is kept of a user beside them.
PER_VALUE, PER_KEPT = 8, 41

#: A smaller budget has no room for a block worth evaluating.
MINIMUM = 1 << 24


def check_memory(memory: int | None) -> int | None:
    """Return a budget in bytes, or raise `InvalidDataError` if it is too small."""
    return None if memory is None else check_whole("memory", memory, MINIMUM)


def check_values_fit(memory: int, n_users: int, n_metrics: int) -> int:
    """Return the bytes that the users' values take, or raise if they exceed half of the budget."""
    n_bytes = n_users * (PER_VALUE * n_metrics + PER_KEPT) * 2  # twice while they are joined
    if n_bytes > memory // 2:
        raise InvalidDataError(
            f"the values of {n_users:,} users take {n_bytes:,} bytes, more than half of memory="
            f"{memory:,} bytes; keep none of them with keep='totals', or give more memory"
        )
    return n_bytes


def users_within(
    memory: int, n_entries: int, n_users: int, n_metrics: int, *, per_user: bool
) -> int:
    """Return how many users a block may have, for the evaluation to stay within a budget.

    Raises
    ------
    InvalidDataError
        If the values of all users, which are kept if `per_user`, do not fit into it.
    """
    kept = check_values_fit(memory, n_users, n_metrics) if per_user else 0
    each = PER_ENTRY * n_entries / max(n_users, 1) + PER_USER + 3 * PER_VALUE * n_metrics
    return max(int((memory - kept) / each), 1)
