"""Tasks for others: a few at once, in any order, given again where they are lost with a worker."""

from __future__ import annotations

import concurrent.futures
from contextlib import contextmanager
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InvalidDataError, MissingExtraError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Work = Callable[[Any, Any], Any]

Given = TypeVar("Given")

__all__ = ["DaskWorkers", "ExecutorWorkers", "told_of_dead", "workers_of"]

#: Tasks given out for each thread of the workers: one that is done, and one that waits there.
_AHEAD = 2

#: Seconds to wait for a scheduler.
PATIENCE = 5

#: How often a task is given out whose data were lost with a worker.
_ATTEMPTS = 4


class ExecutorWorkers:
    """The workers of a `concurrent.futures.Executor`."""

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self.executor = executor
        self.at_once = _AHEAD * getattr(executor, "_max_workers", 8)

    def run(self, work: Work, shared: Any, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each task and ``work(shared, task)``, as they are done."""
        waiting = iter(tasks)
        running: dict[concurrent.futures.Future[Any], Any] = {}
        try:
            while True:
                for task in islice(waiting, self.at_once - len(running)):
                    running[self.executor.submit(work, shared, task)] = task
                if not running:
                    return
                done, _ = concurrent.futures.wait(
                    running, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for future in done:
                    yield running.pop(future), future.result()
        except concurrent.futures.BrokenExecutor as error:
            raise WorkerError(
                f"a worker of the executor died ({error}), perhaps because it ran out of memory; "
                "use fewer workers, or give them more"
            ) from error
        finally:
            for future in running:
                future.cancel()


class DaskWorkers:
    """The workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._check_versions()

    def _check_versions(self) -> None:
        found = self.client.run(version, "sparse_eval", on_error="return")
        if not found:
            raise WorkerError("the scheduler has no workers; start some: dask worker ADDRESS")
        ours = version("sparse_eval")
        for worker, theirs in found.items():
            if isinstance(theirs, BaseException):
                raise WorkerError(
                    f"worker {worker} has no sparse_eval ({theirs}); install version {ours} there"
                )
            if theirs != ours:
                raise WorkerError(
                    f"worker {worker} has sparse_eval {theirs}, and this process {ours}; install "
                    "the same version everywhere"
                )

    @property
    def at_once(self) -> int:
        """Tasks given out at the same time: workers may come and go."""
        return _AHEAD * max(int(sum(self.client.nthreads().values())), 1)

    def run(self, work: Work, shared: Any, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each task and ``work(shared, task)``, as they are done.

        What is shared goes to each worker once, and a task to one of them, both past the scheduler
        where that is possible. What was lost with a worker is sent again.
        """
        from dask.distributed import KilledWorker, as_completed

        waiting = iter(tasks)
        sent = self._send(shared)
        running: dict[Any, tuple[Any, Any, int]] = {}
        done = as_completed(loop=self.client.loop)

        def give(task: Any, attempt: int) -> None:
            data = self.client.scatter([task], hash=False)[0]
            future = self.client.submit(work, sent, data, pure=False)
            running[future] = task, data, attempt
            done.add(future)

        try:
            for task in islice(waiting, self.at_once):
                give(task, 1)
            for future in done:
                task, _, attempt = running.pop(future)
                try:
                    result = future.result()
                except KilledWorker as error:
                    raise WorkerError(told_of_dead(error)) from error
                except concurrent.futures.CancelledError as error:
                    if attempt == _ATTEMPTS:
                        raise WorkerError(told_of_dead(error)) from error
                    sent = self._send(shared)
                    give(task, attempt + 1)
                    continue
                for other in islice(waiting, max(self.at_once - len(running), 0)):
                    give(other, 1)
                yield task, result
        finally:
            self.client.cancel(list(running))

    def _send(self, shared: Any) -> Any:
        return self.client.scatter([shared], broadcast=True, hash=False)[0]


def told_of_dead(error: BaseException) -> str:
    """Say what to do when workers die of what they are given."""
    return (
        f"a task killed several workers, one after the other ({error}), perhaps because they ran "
        "out of memory; give workers more memory, or fewer threads"
    )


@contextmanager
def workers_of(client: Any) -> Iterator[DaskWorkers | ExecutorWorkers]:
    """Give the workers of an executor, of a Dask client, or of the scheduler at an address.

    Raises
    ------
    WorkerError
        If nobody answers at the address, there are no workers, or they have another version.
    MissingExtraError
        If distributed is not installed.
    InvalidDataError
        If `client` is something else, or None without a current one.
    """
    if isinstance(client, concurrent.futures.Executor):
        yield ExecutorWorkers(client)
        return
    try:
        from dask.distributed import Client, get_client
    except ImportError:
        raise MissingExtraError(
            'a Dask cluster needs distributed: pip install "sparse_eval[dask]"'
        ) from None
    wanted = (
        "a distributed.Client, the address of a scheduler, or an executor of concurrent.futures"
    )
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise InvalidDataError(
                f"there is no current Dask client; give client=, {wanted}"
            ) from None
    if isinstance(client, Client):
        yield DaskWorkers(client)
        return
    if not isinstance(client, str):
        raise InvalidDataError(f"client is a {type(client).__name__}; expected {wanted}")
    try:
        connected = Client(client, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        raise WorkerError(
            f"no scheduler answers at {client!r} within {PATIENCE} seconds ({error}); expected an "
            "address such as tcp://10.0.0.1:8786"
        ) from None
    with connected:
        yield DaskWorkers(connected)
