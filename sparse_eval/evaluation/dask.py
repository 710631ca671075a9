"""`DaskRunner`: run the tasks of an evaluation on the workers of a Dask cluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError, MissingExtraError, WorkerError
from .runners import AT_FIRST, TASKS_PER_THREAD, ExecutorRunner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .runners import ClientLike, Work

#: Seconds to wait for a scheduler and for its workers.
PATIENCE = 5


class DaskRunner(ExecutorRunner):
    """Gives tasks to the workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        super().__init__(client.get_executor(pure=False))
        self.client = client
        if client.status != "running":
            raise InvalidDataError(f"the client is {client.status}; pass a connected client")
        try:  # workers may be starting
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise WorkerError(
                "the scheduler has no workers; start some: dask worker ADDRESS"
            ) from None

    def n_at_once(self, given: Iterable[Any]) -> int:
        """Return the number of tasks to submit at once."""
        n_threads = int(sum(self.client.nthreads().values()))  # workers may come and go
        return max(AT_FIRST, TASKS_PER_THREAD * n_threads)

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Do tasks on the workers, which get the shared data once each.

        The shared data are the result of a task, because the scheduler does a task again if its
        worker is lost. Scattered data would be lost.
        """
        import dask
        from dask.distributed import KilledWorker

        # Large tasks are intended: only a few are under way at once.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            sent = self.client.submit(_keep, shared, pure=False)
            try:
                yield from super().run(work, sent, tasks)
            except KilledWorker as error:
                raise WorkerError(
                    f"a task killed several workers, one after the other ({error}), perhaps "
                    "because they ran out of memory; give workers more memory, or fewer threads"
                ) from error


def _keep(shared: Any) -> Any:
    return shared


@contextmanager
def connect(client: ClientLike) -> Iterator[DaskRunner]:
    """Yield the runner of a client, or of the scheduler at an address.

    Raises
    ------
    WorkerError
        If the scheduler cannot be reached, or has no workers.
    MissingExtraError
        If distributed is not installed.
    InvalidDataError
        If `client` is something else.
    """
    try:
        from dask.distributed import Client
        from distributed.comm.addressing import resolve_address
    except ImportError:
        raise MissingExtraError(
            'a Dask cluster needs distributed: pip install "sparse_eval[dask]"'
        ) from None
    if isinstance(client, Client):
        yield DaskRunner(client)
        return
    if not isinstance(client, str):
        raise InvalidDataError(
            f"client is a {type(client).__name__}; expected a distributed.Client, the address of "
            "a scheduler, or an executor of concurrent.futures"
        )
    try:
        resolve_address(client)  # because a client of a malformed address waits at exit
        connected = Client(client, timeout=PATIENCE, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:
        raise WorkerError(
            f"no scheduler answers at {client!r} ({error}); expected the address of one, such as "
            "tcp://10.0.0.1:8786",
            may_pass=isinstance(error, OSError),
        ) from error
    with connected:
        yield DaskRunner(connected)
