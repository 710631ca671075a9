"""The one loop: blocks of a source, evaluated by a runner, merged into an `Evaluation`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from ..core.arguments import check_choice
from ..core.progress import display
from ..errors import InvalidDataError
from ..results import Evaluation
from ..results.totals import Part, RunningTotals
from .budget import check_values_fit
from .clients import open_runner
from .sources import evaluate_block, one_user

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from ..metrics.aligned import Aligned
    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from .runners import ClientLike, Runner
    from .sources import Block, Loader, Source

Value = TypeVar("Value")

#: What an evaluation keeps of each user, see `evaluate`.
Keep: TypeAlias = Literal["values", "lists", "totals"]


def check_keep(keep: Keep, *, in_memory: bool) -> Keep:
    """Return what is to be kept, or raise `InvalidDataError`."""
    check_choice("keep", keep, get_args(Keep))
    if keep == "lists" and not in_memory:
        raise InvalidDataError(
            "keep='lists' keeps the lists of all users in this process; leave out memory= and "
            "client=, or give keep='values'"
        )
    return keep


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
    random = result.random_totals(all_users=False)
    return Part(replace(part.totals, random=random))


def evaluate_whole(
    request: Request,
    make_block: Callable[[bool | None], Block],
    *,
    per_user: bool,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Evaluate the one block of all users.

    Parameters
    ----------
    request : Request
    make_block : callable
        Given `progress`; called again, without any, for what needs the lists if they are not kept.
    per_user, num_threads, progress
        As in `evaluate`.

    Returns
    -------
    Evaluation
        With the lists if `per_user`.
    """
    result = evaluate_block(request, make_block(progress), num_threads)
    if per_user:
        result.overall  # noqa: B018 - what they refuse is told now, not when they are read
        return Evaluation(request, result)

    def random_totals() -> RandomTotals | None:
        again = evaluate_block(request, make_block(False), num_threads)
        return again.random_totals(all_users=True)

    def relist(user: Hashable) -> Aligned:
        return one_user(request, make_block(False), user)

    part = result.part(per_user=False)
    return Evaluation(request, parts=[part], random_totals=random_totals, relist=relist)


def evaluate_source(
    request: Request,
    source: Source,
    *,
    per_user: bool,
    client: ClientLike | None = None,
    num_threads: int | None = None,
    memory: int | None = None,
    progress: bool | None = None,
    runner: Callable[[], AbstractContextManager[Runner]] | None = None,
) -> Evaluation:
    """Evaluate the users of a source, block by block.

    Parameters
    ----------
    request : Request
    source : Source
    per_user, client, num_threads, memory, progress
        As in `evaluate`.
    runner : callable, optional
        Returns the context of a runner other than that of `client`.

    Returns
    -------
    Evaluation
        Without the lists.
    """

    def parts(bar: Any, *, random: bool = False) -> Iterator[Part]:
        n_users = 0
        # The client may be gone when the random baseline is asked for.
        given = None if random else client
        with (
            runner() if runner is not None else open_runner(given, num_threads) as opened,
            _closing(source.tasks()) as tasks,
        ):
            kept = per_user and not random
            shared = Shared(request, source.load, kept, random, opened.num_threads)
            with _closing(opened.run(evaluate_task, shared, tasks)) as done:
                for amount, part in done:
                    n_users += part.span.n
                    if kept and memory is not None:
                        check_values_fit(memory, n_users, len(request.metrics))
                    bar.update(amount)
                    yield part

    def merged(*, random: bool = False) -> Part:
        from ..core.bars import tqdm  # it loads asyncio, which importing the package need not do

        with (
            tqdm(
                total=source.total,
                desc="random baseline" if random else "evaluate",
                unit=source.unit,
                unit_scale=source.unit == " rows",
                **display(progress),
            ) as bar,
            _closing(parts(bar, random=random)) as each,
        ):
            return merge(each)

    def random_totals() -> RandomTotals | None:
        return merged(random=True).totals.random if source.repeatable else None

    return Evaluation(request, parts=[merged()], random_totals=random_totals)


@contextmanager
def _closing(values: Iterator[Value]) -> Iterator[Iterator[Value]]:
    """Close what yields values, if it can be closed, also after an error that ends the loop."""
    try:
        yield values
    finally:
        close = getattr(values, "close", None)
        if close is not None:
            close()


def merge(parts: Iterable[Part]) -> Part:
    """Merge the parts of different users."""
    running = RunningTotals()
    for part in parts:
        running.add(part)
    return running.part()
