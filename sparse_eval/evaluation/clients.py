"""Which runner a client is: an engine is chosen by the type of what the caller gives."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

from .runners import ExecutorRunner, LocalRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from .runners import ClientLike, Runner


def is_spark(client: object) -> TypeGuard[SparkSession]:
    """Return whether a client is a session of Spark."""
    return _is_of("pyspark", client)


def is_dask(client: object) -> bool:
    """Return whether a client is that of Dask, or the address of a scheduler."""
    return isinstance(client, str) or _is_of("distributed", client)


def _is_of(library: str, client: object) -> bool:
    """Return whether an object is of a library, which is not imported to find out."""
    return any(kind.__module__.partition(".")[0] == library for kind in type(client).__mro__)


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
    elif is_spark(client):
        from .spark import spark_runner

        with spark_runner(client) as spark:
            yield spark
    else:
        from .dask import connect

        with connect(client) as runner:
            yield runner
