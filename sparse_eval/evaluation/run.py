"""The one loop: blocks of a source, evaluated by a runner, merged into an `Evaluation`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from ..core.arguments import check_choice
from ..core.progress import display
from ..errors import InvalidDataError
from ..results import Evaluation
from ..results.parts import Part, merge_parts
from .budget import check_values_fit
from .clients import open_runner
from .sources import evaluate_block, one_user

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable
    from contextlib import AbstractContextManager
    from typing import Any

    from ..metrics.aligned import Aligned
    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from .runners import ClientLike, Runner
    from .sources import Block, Loader, Source

#: What an evaluation keeps of each user, see `evaluate`.
Keep: TypeAlias = Literal["values", "lists", "totals"]


def check_keep(keep: Keep, *, in_memory: bool) -> None:
    """Raise `InvalidDataError` if that is nothing that can be kept."""
    check_choice("keep", keep, get_args(Keep))
    if keep == "lists" and not in_memory:
        raise InvalidDataError(
            "keep='lists' keeps the lists of all users in this process; leave out memory= and "
            "client=, or give keep='values'"
        )


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

    def parts(bar: Any, *, random: bool = False) -> Generator[Part]:
        n_users = 0
        # The client may be gone when the random baseline is asked for.
        given = None if random else client
        tasks: Any = source.tasks()
        with (
            runner() if runner is not None else open_runner(given, num_threads) as opened,
            closing(tasks),
        ):
            kept = per_user and not random
            shared = Shared(request, source.load, kept, random, opened.num_threads)
            done: Any = opened.run(evaluate_task, shared, tasks)
            with closing(done):
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
            closing(parts(bar, random=random)) as each,
        ):
            return merge_parts(each)

    def random_totals() -> RandomTotals | None:
        return merged(random=True).random if source.repeatable else None

    return Evaluation(request, parts=[merged()], random_totals=random_totals)
