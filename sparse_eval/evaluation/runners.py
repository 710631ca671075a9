"""Runners do the tasks of an evaluation: in this process, or on the workers of a client.

A new engine is a class with the attribute and the method of `Runner`, in its own module, and a
branch in `run.open_runner`.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from distributed import Client
    from pyspark.sql import SparkSession

#: A function that does a task, called with the shared data and the task.
Work: TypeAlias = "Callable[[Any, Any], Any]"

#: Where to run: a Dask client, the address of its scheduler, an executor or a Spark session.
ClientLike: TypeAlias = "Client | str | Executor | SparkSession"

#: Tasks submitted for each thread of the workers: one is running, and one waits there.
TASKS_PER_THREAD = 2

#: Tasks submitted to an executor while none is running. Its number of workers is not known; some
#: executors never report that a task is running.
AT_FIRST = 16


class Runner(Protocol):
    """Does tasks, in this process or elsewhere, a few at once."""

    @property
    def num_threads(self) -> int | None:
        """Threads that each task may use, None for as many as there are cores."""

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the tag of each task and ``work(shared, task)``, as they are done.

        Only a few tasks wait at a time. An error that `work` raises keeps its class; `WorkerError`
        is raised if a worker died.

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

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Do tasks on the workers, no more than a few waiting there.

        Results come in the order of the tasks, so the first of several errors is raised.
        """
        remaining = iter(tasks)
        given: deque[tuple[Future[Any], Any]] = deque()
        try:
            while True:
                n_running = sum(future.running() for future, _ in given)
                n_more = AT_FIRST + TASKS_PER_THREAD * n_running - len(given)
                for task, tag in islice(remaining, max(n_more, 0)):
                    try:
                        given.append((self.executor.submit(work, shared, task), tag))
                    except BrokenExecutor:
                        raise
                    except RuntimeError as error:  # it was shut down
                        raise WorkerError(
                            f"the executor takes no tasks ({error}); give another"
                        ) from None
                if not given:
                    return
                future, tag = given[0]
                result = future.result()
                given.popleft()
                yield tag, result
        except BrokenExecutor as error:
            raise WorkerError(
                f"a worker of the executor died ({error}), perhaps because it ran out of memory; "
                "use fewer workers, or give them more"
            ) from error
        finally:
            for future, _ in given:
                future.cancel()
