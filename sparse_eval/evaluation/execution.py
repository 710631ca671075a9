"""`Execution`: how users are evaluated; one block of them, and all blocks of a source."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeGuard, get_args

import numpy as np

from ..core.arguments import check_bytes, check_choice, check_whole
from ..core.progress import progress_bar
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.axes import label_of
from ..inputs.candidates import check_judged_listed, condense, judged_candidates
from ..metrics.aligned import Aligned
from ..results import Evaluation
from ..results.explain import row_of_user
from ..results.measured_block import Measured
from ..results.partial_results import merge_parts
from .runners import ExecutorRunner, LocalRunner

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterator

    from pyspark.sql import SparkSession

    from ..core.types import Booleans
    from ..inputs.data import SideData
    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..metrics.conventions import Convention
    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from ..results.partial_results import Part
    from .runners import ClientLike, Runner
    from .sources import Block, Loader, Source

#: Users in a block, if nothing limits them.
USERS_PER_BLOCK = 1 << 18

#: Bytes that evaluating a block takes at its peak for each entry of its matrices and for each of
#: its users: measured, see benchmarks/SCALE.md.
PER_ENTRY, PER_USER = 64, 400

#: Bytes of each kept value of a user, and of everything else that is kept of a user.
PER_VALUE, PER_KEPT = 8, 41

#: Users in a task for workers, at most.
USERS_PER_TASK = 1 << 16

#: The fewest tasks: the fewer, the longer the other workers wait for the last one.
FEWEST_TASKS = 16

#: A smaller budget has no room for a block worth evaluating.
MINIMUM = 1 << 24


#: The values that an evaluation keeps, see `evaluate`.
Keep: TypeAlias = Literal["values", "lists", "totals"]


@dataclass(frozen=True)
class Execution:
    """How an evaluation is done; the options of `evaluate`.

    Raises `InvalidDataError` if `memory` is too small or `keep` does not fit the options.
    """

    keep: Keep = "values"
    memory: Any = None
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

    def __post_init__(self) -> None:
        if self.memory is not None:
            n_bytes = check_whole("memory", check_bytes("memory", self.memory), MINIMUM)
            object.__setattr__(self, "memory", n_bytes)
        check_choice("keep", self.keep, get_args(Keep))
        if self.keep == "lists" and not self.whole:
            raise InvalidDataError(
                "keep='lists' keeps the lists of all users in this process; omit memory= and "
                "client=, or use keep='values'"
            )


def check_values_fit(memory: int, n_users: int, n_metrics: int) -> int:
    """Return the bytes that the users' values take, or raise if they exceed half of the budget."""
    n_bytes = n_users * (PER_VALUE * n_metrics + PER_KEPT) * 2  # twice while they are joined
    if n_bytes > memory // 2:
        raise InvalidDataError(
            f"the values of {n_users:,} users take {n_bytes:,} bytes, more than half of memory="
            f"{memory:,} bytes; increase memory=, or keep no values with keep='totals'",
            argument="memory",
        )
    return n_bytes


def users_per_block(
    execution: Execution, n_entries: int, n_users: int, n_metrics: int, fixed: int = 0
) -> int:
    """Return the number of users per block that stays within the memory limit.

    Raises `InvalidDataError` if the values of all users do not fit into the budget, and are kept.

    Parameters
    ----------
    n_entries, n_users, n_metrics : int
        In total.
    fixed : int
        Bytes that are needed for any number of users.
    """
    n_rows, memory = USERS_PER_BLOCK, execution.memory
    if memory is not None:
        kept = check_values_fit(memory - fixed, n_users, n_metrics) if execution.per_user else 0
        each = PER_ENTRY * n_entries / max(n_users, 1) + PER_USER + 3 * PER_VALUE * n_metrics
        n_rows = max(int((memory - fixed - kept) / each), 1)
    if execution.client is not None:
        n_rows = min(n_rows, max(min(USERS_PER_TASK, -(-n_users // FEWEST_TASKS)), 1))
    return n_rows


def evaluate_block(request: Request, block: Block, num_threads: int | None = None) -> Measured:
    """Evaluate the users of a block: the one function for every source and every engine.

    Raises
    ------
    InvalidMetricError
        If a metric is undefined for lists with ``ties="average"``.
    InvalidDataError
        If judged items or gains are not what the metrics or the convention take.
    """
    rankings, relevance = block.rankings, block.relevance
    if rankings.last_positions is not None:
        is_tied = (rankings.last_positions > rankings.positions).any()
        for plan in request.plans:
            if not plan.definition.formula.averages_ties(plan.arguments):
                if is_tied:
                    raise InvalidMetricError(
                        f"{plan.metric} has no expectation over tied items; make the lists with "
                        'ties="item"',
                        argument="ties",
                    )
                rankings = replace(rankings, gapped_positions=None, last_positions=None)
    if request.uses_judged and not block.knows_judged:
        check_judged_listed(rankings, relevance)
    _check_gains(request.convention, block)
    aligned = _aligned(request, rankings, relevance, block.side_data)
    about = block.first_row, block.retrieval, block.items_digest
    return Measured.compute(request, aligned, num_threads, *about)


def _check_gains(convention: Convention, block: Block) -> None:
    """Raise if the library of a convention counts a stored gain as another one."""
    relevance, library = block.relevance, convention.library
    faults: list[tuple[Booleans, str]] = []
    if convention.zeros == "error" and not relevance.states_irrelevant:
        remedy = (
            "counts every stored pair as relevant. Drop such pairs with "
            "Interactions.filter(min_value=…), above 0, before the split, or with "
            "matrix.eliminate_zeros(). Or pass se.Relevance.from_csr(matrix, threshold=…)"
        )
        faults.append((relevance.gains == 0, remedy))
    if convention.cuts_gains and not relevance.binary:
        remedy = "truncates gains to whole numbers. Pass numpy.floor(gains) to count as it does"
        faults.append((relevance.gains != np.floor(relevance.gains), remedy))
    for is_fault, remedy in faults:
        for entry in np.flatnonzero(is_fault)[:1]:
            row = int(np.searchsorted(relevance.indptr, entry, side="right")) - 1
            first_row = block.first_row if relevance.users is None else 0
            user = label_of(relevance.users, first_row + row)
            item = label_of(relevance.items_index, int(relevance.items[entry]))
            gain = f"{relevance.gains[entry]:g}" if relevance.gains[entry] else "a zero"
            raise InvalidDataError(
                f"validation stores {gain} for user {user!r} and item {item!r}, which the "
                f"convention {convention.name} does not accept: {library} {remedy}"
            )


def one_user(request: Request, block: Block, user: Hashable) -> Aligned:
    """Return the list and the relevant items of one user of a block.

    Raises `InvalidDataError` if there is no such user.

    Parameters
    ----------
    user : hashable
        The label, or the row of the block if users have no labels.
    """
    relevance = block.relevance
    row = row_of_user(user, relevance.users, relevance.shape[0])
    return _aligned(
        request,
        block.rankings.part(row, row + 1),
        relevance.part(row, row + 1),
        block.side_data.of_users(row, row + 1),
    )


def _aligned(
    request: Request, rankings: Rankings, relevance: Relevance, side_data: SideData
) -> Aligned:
    """Return the input of the formulas, given both sides with the same rows and columns."""
    listed = None
    if request.judged_only:
        listed = rankings.lengths > 0
        rankings = condense(rankings, relevance)
        side_data = replace(side_data, candidates=judged_candidates(relevance))
    if request.seen == "allow":
        side_data = side_data.allowing_seen()
    return Aligned.in_label_order(rankings, relevance, side_data, request.convention, listed)


class Shared(NamedTuple):
    """What all tasks of an evaluation share; small, as it is sent to every worker."""

    request: Request
    load: Loader
    per_user: bool
    random: bool
    num_threads: int | None


def evaluate_task(shared: Shared, task: Any) -> Part:
    """Load a block and evaluate it, in a worker."""
    result = evaluate_block(shared.request, shared.load(task), shared.num_threads)
    part = result.computed(per_user=shared.per_user)
    if not shared.random:
        return part
    return replace(part, random=result.random_totals(all_users=False))


def evaluate_source(request: Request, execution: Execution, source: Source) -> Evaluation:
    """Evaluate the users of a source, and keep the lists of a single block if values are kept."""
    run = Run(request, execution, source)
    if not source.is_whole:
        return Evaluation(run.merged(), again=run)
    measured = run.measured()
    if execution.per_user:
        return Evaluation(measured)
    return Evaluation(measured.computed(per_user=False), again=run)


@dataclass(frozen=True)
class Run:
    """The evaluation of a source, which can be done again for numbers that were not kept."""

    request: Request
    execution: Execution
    source: Source

    def measured(self) -> Measured:
        """Evaluate all users at once."""
        return evaluate_block(self.request, self.source.everybody(), self.execution.num_threads)

    def merged(self, *, random: bool = False) -> Part:
        """Evaluate the users block by block, or only their random baseline."""
        request, execution, source = self.request, self.execution, self.source
        # The client may be gone when the random baseline is asked for.
        client = source.client or (None if random else execution.client)
        kept = execution.per_user and not random
        with (
            progress_bar(
                execution.progress,
                total=source.total,
                desc="random baseline" if random else "evaluate",
                unit=source.unit,
                unit_scale=source.unit == " rows",
            ) as bar,
            closing(source),
            open_runner(client, execution.num_threads, source.n_at_once) as runner,
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

    def random_totals(self) -> RandomTotals | None:
        """Return the random baseline, None if the source cannot be read again."""
        if self.source.is_whole:
            return self.measured().random_totals(all_users=True)
        return self.merged(random=True).random if self.source.repeatable else None

    def one_user(self, user: Hashable) -> Aligned | None:
        """Return the list and the relevant items of a user, None unless all are one block."""
        if not self.source.is_whole:
            return None
        return one_user(self.request, self.source.everybody(), user)


def is_spark(client: object) -> TypeGuard[SparkSession]:
    """Return whether a client is a session of Spark, without importing Spark."""
    return any(kind.__module__.partition(".")[0] == "pyspark" for kind in type(client).__mro__)


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
