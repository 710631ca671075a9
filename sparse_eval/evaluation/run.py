"""The one loop: blocks of a source, evaluated by a runner, merged into an `Evaluation`.

`open_runner` chooses the runner by the client.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from ..core.progress import progress_bar
from ..results import Evaluation
from ..results.parts import Part, merge_parts
from .runners import ExecutorRunner, LocalRunner, check_values_fit
from .sources import evaluate_block, one_user

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from pyspark.sql import SparkSession

    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from .runners import ClientLike, Execution, Runner
    from .sources import Loader, Source


class Shared(NamedTuple):
    """What all tasks of an evaluation share; small, as it is sent to every worker."""

    request: Request
    load: Loader
    per_user: bool
    random: bool
    num_threads: int | None


def evaluate_task(shared: Shared, task: Any) -> Part:
    """Load a block and evaluate it: what a worker does."""
    result = evaluate_block(shared.request, shared.load(task), shared.num_threads)
    part = result.part(per_user=shared.per_user)
    if not shared.random:
        return part
    return replace(part, random=result.random_totals(all_users=False))


def evaluate_source(
    request: Request,
    execution: Execution,
    source: Source,
) -> Evaluation:
    """Evaluate the users of a source, block by block; or at once, with the lists if they are kept.

    Parameters
    ----------
    request : Request
    execution : Execution
    source : Source
    """
    per_user, num_threads = execution.per_user, execution.num_threads
    if source.whole:
        result = evaluate_block(request, source.everybody(), num_threads)
        if per_user:
            result.overall  # noqa: B018 - what they refuse is told now, not when they are read
            return Evaluation(request, result)
        return Evaluation(
            request,
            parts=[result.part(per_user=False)],
            random_totals=lambda: evaluate_block(
                request, source.everybody(), num_threads
            ).random_totals(all_users=True),
            relist=lambda user: one_user(request, source.everybody(), user),
        )

    def merged(*, random: bool = False) -> Part:
        # The client may be gone when the random baseline is asked for.
        client = source.client or (None if random else execution.client)
        kept = per_user and not random
        with (
            progress_bar(
                execution.progress,
                total=source.total,
                desc="random baseline" if random else "evaluate",
                unit=source.unit,
                unit_scale=source.unit == " rows",
            ) as bar,
            closing(source),
            open_runner(client, num_threads, source.n_at_once) as runner,
        ):
            shared = Shared(request, source.load, kept, random, runner.num_threads)

            def parts(done: Any) -> Generator[Part]:
                n_users = 0
                for amount, part in done:
                    n_users += part.span.n
                    if kept and execution.memory is not None:
                        check_values_fit(execution.memory, n_users, len(request.metrics))
                    bar.update(amount)
                    yield part

            done: Any = runner.run(evaluate_task, shared, source.tasks())
            with closing(done):
                return merge_parts(parts(done))

    def random_totals() -> RandomTotals | None:
        return merged(random=True).random if source.repeatable else None

    return Evaluation(request, parts=[merged()], random_totals=random_totals)


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
    client: ClientLike | None = None, num_threads: int | None = None, n_at_once: int = 1
) -> Iterator[Runner]:
    """Yield the runner for a client: without one this process, with tasks in several threads.

    Raises
    ------
    WorkerError
        If the scheduler cannot be reached or has no workers.
    MissingExtraError
        If `client` is for Dask, and distributed is not installed.
    InvalidDataError
        If `client` is something else.
    """
    if client is None and n_at_once > 1:
        with ThreadPoolExecutor(n_at_once) as executor:
            yield ExecutorRunner(executor)
    elif client is None:
        yield LocalRunner(num_threads)
    elif isinstance(client, Executor):
        yield ExecutorRunner(client)
    elif is_spark(client):
        from .spark import SparkRunner

        yield SparkRunner(client)
    else:
        from .dask import connect

        with connect(client) as runner:
            yield runner
