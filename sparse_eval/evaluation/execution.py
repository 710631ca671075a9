"""`Execution`: how an evaluation is done, and the number of users whose block fits into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ..core.arguments import check_bytes, check_choice, check_whole
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from .runners import ClientLike

#: Users in a block, if nothing limits them.
USERS_PER_BLOCK = 1 << 18

#: Bytes that evaluating a block takes at its peak for each entry of its matrices and for each of
#: its users: measured, see benchmarks/SCALE.md.
PER_ENTRY, PER_USER = 64, 400

#: Bytes of each kept value of a user, and of everything else that is kept of a user.
PER_VALUE, PER_KEPT = 8, 41

#: Users in a task for workers, at most.
USERS_PER_TASK = 1 << 16

#: The fewest tasks: the fewer, the longer the other workers wait for the last one.
FEWEST_TASKS = 16

#: A smaller budget has no room for a block worth evaluating.
MINIMUM = 1 << 24


#: The values that an evaluation keeps, see `evaluate`.
Keep: TypeAlias = Literal["values", "lists", "totals"]


@dataclass(frozen=True)
class Execution:
    """How an evaluation is done; the options of `evaluate`.

    Raises `InvalidDataError` if `memory` is too small or `keep` does not fit the options.
    """

    keep: Keep = "values"
    memory: Any = None
    client: ClientLike | None = None
    num_threads: int | None = None
    progress: bool | None = None

    @property
    def whole(self) -> bool:
        """Whether all users are evaluated at once in this process."""
        return self.memory is None and self.client is None

    @property
    def per_user(self) -> bool:
        """Whether the values of users are kept."""
        return self.keep != "totals"

    def __post_init__(self) -> None:
        if self.memory is not None:
            n_bytes = check_whole("memory", check_bytes("memory", self.memory), MINIMUM)
            object.__setattr__(self, "memory", n_bytes)
        check_choice("keep", self.keep, get_args(Keep))
        if self.keep == "lists" and not self.whole:
            raise InvalidDataError(
                "keep='lists' keeps the lists of all users in this process; omit memory= and "
                "client=, or use keep='values'"
            )


def check_values_fit(memory: int, n_users: int, n_metrics: int) -> int:
    """Return the bytes that the users' values take, or raise if they exceed half of the budget."""
    n_bytes = n_users * (PER_VALUE * n_metrics + PER_KEPT) * 2  # twice while they are joined
    if n_bytes > memory // 2:
        raise InvalidDataError(
            f"the values of {n_users:,} users take {n_bytes:,} bytes, more than half of memory="
            f"{memory:,} bytes; increase memory=, or keep no values with keep='totals'",
            argument="memory",
        )
    return n_bytes


def users_per_block(
    execution: Execution, n_entries: int, n_users: int, n_metrics: int, fixed: int = 0
) -> int:
    """Return the number of users per block that stays within the memory limit.

    Raises `InvalidDataError` if the values of all users do not fit into the budget, and are kept.

    Parameters
    ----------
    n_entries, n_users, n_metrics : int
        In total.
    fixed : int
        Bytes that are needed for any number of users.
    """
    n_rows, memory = USERS_PER_BLOCK, execution.memory
    if memory is not None:
        kept = check_values_fit(memory - fixed, n_users, n_metrics) if execution.per_user else 0
        each = PER_ENTRY * n_entries / max(n_users, 1) + PER_USER + 3 * PER_VALUE * n_metrics
        n_rows = max(int((memory - fixed - kept) / each), 1)
    if execution.client is not None:
        n_rows = min(n_rows, max(min(USERS_PER_TASK, -(-n_users // FEWEST_TASKS)), 1))
    return n_rows
