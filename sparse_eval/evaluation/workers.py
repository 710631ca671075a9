"""Tasks for others: a few at once, in any order."""

from __future__ import annotations

import concurrent.futures
from contextlib import contextmanager
from itertools import islice
from os import getpid
from socket import create_connection, gethostname
from typing import TYPE_CHECKING, Any

from ..core.versions import installed_version
from ..errors import InvalidDataError, MissingExtraError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Work = Callable[[Any, Any], Any]

__all__ = ["DaskWorkers", "ExecutorWorkers", "check_version", "result_of", "workers_of"]

#: Tasks given out for each thread of the workers: one that is done, and one that waits there.
_AHEAD = 2

#: Seconds to wait for a scheduler.
PATIENCE = 5


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
                    running[self._submit(work, shared, task)] = task
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

    def _submit(self, *given: Any) -> concurrent.futures.Future[Any]:
        try:
            return self.executor.submit(*given)
        except concurrent.futures.BrokenExecutor:
            raise
        except RuntimeError as error:  # it was shut down
            raise WorkerError(f"the executor takes no tasks ({error}); give another") from None


class DaskWorkers:
    """The workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self.client = client
        if client.status != "running":
            raise InvalidDataError(f"the client is {client.status}; give one that is connected")
        try:  # workers may be starting
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise WorkerError(
                "the scheduler has no workers; start some: dask worker ADDRESS"
            ) from None

    @property
    def at_once(self) -> int:
        """Tasks given out at the same time: workers may come and go."""
        return _AHEAD * max(int(sum(self.client.nthreads().values())), 1)

    def run(self, work: Work, shared: Any, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each task and ``work(shared, task)``, as they are done.

        What is shared goes to each worker once. It and the tasks are given to the scheduler, which
        gives them out again when a worker is lost: what is scattered to workers is lost with them,
        and one that dies while it is scattered to was seen to keep the client waiting for ever.
        """
        import dask
        from dask.distributed import as_completed

        waiting = iter(tasks)
        running: dict[Any, Any] = {}
        done = as_completed(loop=self.client.loop)

        def submit(function: Callable[..., Any], *given: Any) -> Any:
            # That a task is large is known: no more than a few are under way at once.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                return self.client.submit(function, *given, pure=False)

        def give_out() -> None:
            for task in islice(waiting, max(self.at_once - len(running), 0)):
                future = submit(_do, installed_version(), work, sent, task)
                running[future] = task
                done.add(future)

        try:
            sent = submit(_keep, shared)
            give_out()
            for future in done:
                task = running.pop(future)
                result = result_of(future)
                give_out()
                yield task, result
        finally:
            if self.client.status == "running":
                self.client.cancel(list(running))


def _keep(shared: Any) -> Any:
    return shared


def _do(wanted: str, work: Work, shared: Any, task: Any) -> Any:
    """Do a task, in a worker that has the version of who gave it."""
    check_version(wanted)
    return work(shared, task)


def check_version(wanted: str) -> None:
    """Raise `WorkerError` unless this process has that version of the package."""
    found = installed_version()
    if found != wanted:
        raise WorkerError(
            f"worker {gethostname()} (process {getpid()}) has sparse_eval {found}, and who gave it "
            f"the task {wanted}; install the same version everywhere"
        )


def result_of(future: Any) -> Any:
    """Return what a worker of Dask returned, or say what happened to it."""
    from dask.distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise WorkerError(
            f"a task killed several workers, one after the other ({error}), perhaps because they "
            "ran out of memory; give workers more memory, or fewer threads"
        ) from error
    except concurrent.futures.CancelledError as error:
        raise WorkerError(
            f"a task was cancelled ({error}): the scheduler was lost, or the client closed; begin "
            "again"
        ) from error
    except (ImportError, RuntimeError) as error:  # the second is raised from the first
        causes = f"{error} {error.__cause__}"
        if "No module named" not in causes:
            raise
        raise WorkerError(
            f"a worker lacks what it needs ({causes}); install sparse_eval "
            f"{installed_version()} there, as it is here"
        ) from error


def _knock(address: str) -> None:
    """Raise unless somebody is there: a client that fails to connect goes on trying at exit."""
    scheme, _, rest = address.rpartition("://")
    host, _, port = rest.rpartition(":")
    if not host or not port.isdecimal():
        raise WorkerError(_told_of_nobody(address, "it is no address"))
    if scheme in ("", "tcp", "tls"):
        try:
            create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
        except (OSError, OverflowError) as error:
            raise WorkerError(_told_of_nobody(address, error)) from None


def _told_of_nobody(address: str, why: object) -> str:
    return (
        f"no scheduler answers at {address!r} ({why}); expected the address of one, such as "
        "tcp://10.0.0.1:8786"
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
    _knock(client)
    try:
        connected = Client(client, timeout=PATIENCE, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:  # a TimeoutError is an OSError
        raise WorkerError(_told_of_nobody(client, error)) from None
    with connected:
        yield DaskWorkers(connected)
