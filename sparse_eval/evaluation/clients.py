"""Which runner a client is: an engine is chosen by the type of what the caller gives."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .runners import ExecutorRunner, LocalRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .runners import ClientLike, Runner


@contextmanager
def open_runner(
    client: ClientLike | None = None, num_threads: int | None = None
) -> Iterator[Runner]:
    """Yield the runner for a client: this process without one.

    Raises
    ------
    WorkerError
        If the scheduler cannot be reached or has no workers.
    MissingExtraError
        If `client` is for Dask, and distributed is not installed.
    InvalidDataError
        If `client` is something else.
    """
    if client is None:
        yield LocalRunner(num_threads)
    elif isinstance(client, Executor):
        yield ExecutorRunner(client)
    elif type(client).__module__.startswith("pyspark."):
        from .spark import spark_runner

        with spark_runner(client) as spark:  # type: ignore[arg-type]
            yield spark
    else:
        from .dask import connect

        with connect(client) as runner:
            yield runner
