"""How an evaluation is done: `Execution`, and the runners, which do its tasks.

A new engine is a class with the method of `Runner`, in its own module, and a line in
`run.open_runner`.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from ..core.arguments import check_choice, check_whole
from ..errors import InvalidDataError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from distributed import Client
    from pyspark.sql import SparkSession


#: What a task is done by: it is given what all tasks share, and the task.
Work: TypeAlias = "Callable[[Any, Any], Any]"

#: Who does the work: a Dask client, the address of its scheduler, an executor or a Spark session.
ClientLike: TypeAlias = "Client | str | Executor | SparkSession"

#: Tasks given out for each thread of the workers: one that is done, and one that waits there.
TASKS_PER_THREAD = 2


class Runner(Protocol):
    """Does tasks, here or elsewhere, a few at once."""

    @property
    def num_threads(self) -> int | None:
        """Threads that each task may use, None for as many as there are cores."""

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the tag of each task and ``work(shared, task)``, as they are done.

        Only a few tasks wait at a time. An error that `work` raises keeps its class; `WorkerError`
        tells that a worker died.

        Parameters
        ----------
        work : callable
            It can be pickled, as can all the rest.
        shared : object
            Sent to each worker once, or with each task: it is small.
        tasks : iterable of (task, tag)
        """


class LocalRunner:
    """Does tasks one after the other in this process."""

    def __init__(self, num_threads: int | None = None) -> None:
        self.num_threads = num_threads

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Do each task when its result is asked for."""
        for task, tag in tasks:
            yield tag, work(shared, task)


class ExecutorRunner:
    """Gives tasks to an executor of `concurrent.futures`."""

    num_threads = 1

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.n_at_once = TASKS_PER_THREAD * getattr(executor, "_max_workers", 8)

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Do tasks on the workers, no more than a few waiting there.

        Results come in the order of the tasks, so that of several errors it is always the first.
        """
        waiting = iter(tasks)
        running: deque[tuple[Future[Any], Any]] = deque()
        try:
            while True:
                for task, tag in islice(waiting, self.n_at_once - len(running)):
                    try:
                        running.append((self.executor.submit(work, shared, task), tag))
                    except BrokenExecutor:
                        raise
                    except RuntimeError as error:  # it was shut down
                        raise WorkerError(
                            f"the executor takes no tasks ({error}); give another"
                        ) from None
                if not running:
                    return
                future, tag = running[0]
                result = future.result()
                running.popleft()
                yield tag, result
        except BrokenExecutor as error:
            raise WorkerError(
                f"a worker of the executor died ({error}), perhaps because it ran out of memory; "
                "use fewer workers, or give them more"
            ) from error
        finally:
            for future, _ in running:
                future.cancel()


#: Bytes that evaluating a block takes at its peak for each entry of its matrices and for each of
#: its users: measured, see benchmarks/SCALE.md.
PER_ENTRY, PER_USER = 64, 400

#: Bytes that a value of a user takes for good, and what is kept of a user beside them.
PER_VALUE, PER_KEPT = 8, 41

#: Users in a block, if nothing limits them; and in a task for workers, at most.
USERS_PER_BLOCK, USERS_PER_TASK = 1 << 18, 1 << 16

#: The tasks that there should be at least: the slowest of the last ones decides when all are done.
FEWEST_TASKS = 16

#: A smaller budget has no room for a block worth evaluating.
MINIMUM = 1 << 24


#: What an evaluation keeps of each user, see `evaluate`.
Keep: TypeAlias = Literal["values", "lists", "totals"]


@dataclass(frozen=True)
class Execution:
    """How an evaluation is done; the options of `evaluate`.

    Raises
    ------
    InvalidDataError
        If `memory` is too small or `keep` does not fit the options.
    """

    keep: Keep = "values"
    memory: int | None = None
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
            check_whole("memory", self.memory, MINIMUM)
        check_choice("keep", self.keep, get_args(Keep))
        if self.keep == "lists" and not self.whole:
            raise InvalidDataError(
                "keep='lists' keeps the lists of all users in this process; leave out memory= and "
                "client=, or give keep='values'"
            )


def check_values_fit(memory: int, n_users: int, n_metrics: int) -> int:
    """Return the bytes that the users' values take, or raise if they exceed half of the budget."""
    n_bytes = n_users * (PER_VALUE * n_metrics + PER_KEPT) * 2  # twice while they are joined
    if n_bytes > memory // 2:
        raise InvalidDataError(
            f"the values of {n_users:,} users take {n_bytes:,} bytes, more than half of memory="
            f"{memory:,} bytes; increase memory=, or keep no values with keep='totals'"
        )
    return n_bytes


def users_per_block(
    execution: Execution, n_entries: int, n_users: int, n_metrics: int, fixed: int = 0
) -> int:
    """Return how many users a block may have, for the evaluation to stay within its budget.

    Parameters
    ----------
    execution : Execution
    n_entries, n_users, n_metrics : int
        In total.
    fixed : int
        Bytes that are needed for any number of users.

    Raises
    ------
    InvalidDataError
        If the values of all users do not fit into the budget, and are kept.
    """
    n_rows, memory = USERS_PER_BLOCK, execution.memory
    if memory is not None:
        kept = check_values_fit(memory - fixed, n_users, n_metrics) if execution.per_user else 0
        each = PER_ENTRY * n_entries / max(n_users, 1) + PER_USER + 3 * PER_VALUE * n_metrics
        n_rows = max(int((memory - fixed - kept) / each), 1)
    if execution.client is not None:
        n_rows = min(n_rows, max(min(USERS_PER_TASK, -(-n_users // FEWEST_TASKS)), 1))
    return n_rows
