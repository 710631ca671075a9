"""Runners do the tasks of an evaluation: in this process, or on the workers of a client.

A new engine is a class with the attribute and the method of `Runner`, in its own module, and a
branch in `loop.open_runner`.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from itertools import islice
from os import getpid
from socket import gethostname
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..core.versions import installed_version
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

    def n_at_once(self, given: Iterable[Future[Any]]) -> int:
        """Return the number of tasks to submit at once."""
        return AT_FIRST + TASKS_PER_THREAD * sum(future.running() for future in given)

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Do tasks on the workers, no more than a few waiting there.

        Results come in the order of the tasks, so the first of several errors is raised.
        """
        remaining = iter(tasks)
        given: deque[tuple[Future[Any], Any]] = deque()
        version = installed_version()
        try:
            while True:
                n_more = self.n_at_once(future for future, _ in given) - len(given)
                for task, tag in islice(remaining, max(n_more, 0)):
                    try:
                        given.append((self.executor.submit(_do, version, work, shared, task), tag))
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
        except CancelledError as error:
            raise WorkerError(
                "a task was cancelled, because the executor or the cluster was shut down. Run the "
                "evaluation again"
            ) from error
        finally:
            for future, _ in given:
                future.cancel()


def _do(version: str, work: Work, shared: Any, task: Any) -> Any:
    """Do a task in a worker, if it has the caller's version."""
    check_version(version)
    return work(shared, task)


def check_version(version: str) -> None:
    """Raise `WorkerError` unless this process has that version of the package."""
    installed = installed_version()
    if installed != version:
        raise WorkerError(
            f"worker {gethostname()} (process {getpid()}) has sparse_eval {installed}, but the "
            f"client has {version}",
            hint="install the same version on both",
            may_pass=False,
        )
