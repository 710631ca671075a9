"""The one loop: blocks of a source, evaluated by a runner, merged into an `Evaluation`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from ..core.arguments import check_choice
from ..core.progress import display
from ..errors import InvalidDataError
from ..results import Evaluation
from ..results.totals import Part, merge_parts
from .budget import check_memory, check_values_fit
from .clients import open_runner
from .sources import evaluate_block, one_user

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from typing import Any

    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from .runners import ClientLike, Runner
    from .sources import Block, Loader, Source

#: What an evaluation keeps of each user, see `evaluate`.
Keep: TypeAlias = Literal["values", "lists", "totals"]


class Execution(NamedTuple):
    """How an evaluation is done; the options of `evaluate`."""

    keep: Keep = "values"
    memory: int | None = None
    client: ClientLike | None = None
    num_threads: int | None = None
    progress: bool | None = None

    @property
    def whole(self) -> bool:
        """Whether all users are evaluated at once in this process."""
        return self.memory is None and self.client is None

    @property
    def per_user(self) -> bool:
        """Whether the values of users are kept."""
        return self.keep != "totals"

    def check(self) -> None:
        """Raise `InvalidDataError` if there is too little memory, or nothing that can be kept."""
        check_memory(self.memory)
        check_choice("keep", self.keep, get_args(Keep))
        if self.keep == "lists" and not self.whole:
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
    random = result.random_totals(all_users=False)
    return Part(replace(part.totals, random=random))


def evaluate_source(
    request: Request,
    execution: Execution,
    source: Source,
    runner: Callable[[], AbstractContextManager[Runner]] | None = None,
) -> Evaluation:
    """Evaluate the users of a source, block by block; or at once, with the lists if they are kept.

    Parameters
    ----------
    request : Request
    execution : Execution
    source : Source
    runner : callable, optional
        Returns the context of a runner other than that of the client.
    """
    per_user, num_threads = execution.per_user, execution.num_threads
    if source.whole:

        def everybody() -> Block:
            ((task, _),) = source.tasks()
            return source.load(task)

        result = evaluate_block(request, everybody(), num_threads)
        if per_user:
            result.overall  # noqa: B018 - what they refuse is told now, not when they are read
            return Evaluation(request, result)
        return Evaluation(
            request,
            parts=[result.part(per_user=False)],
            random_totals=lambda: evaluate_block(request, everybody(), num_threads).random_totals(
                all_users=True
            ),
            relist=lambda user: one_user(request, everybody(), user),
        )

    def parts(bar: Any, *, random: bool = False) -> Generator[Part]:
        n_users = 0
        # The client may be gone when the random baseline is asked for.
        given = None if random else execution.client
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
                    if kept and execution.memory is not None:
                        check_values_fit(execution.memory, n_users, len(request.metrics))
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
                **display(execution.progress),
            ) as bar,
            closing(parts(bar, random=random)) as each,
        ):
            return merge_parts(each)

    def random_totals() -> RandomTotals | None:
        return merged(random=True).totals.random if source.repeatable else None

    return Evaluation(request, parts=[merged()], random_totals=random_totals)
