"""Sources: inputs of any kind as blocks of users; and `evaluate_block`, which evaluates one.

A new kind of input is a subclass of `Source`, in a module of its own.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..core.arrays import is_array
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.axes import label_of
from ..inputs.candidates import check_judged_listed, condense, judged_candidates
from ..inputs.labelled import UserRows
from ..inputs.npy import release, slice_rows, sliceable_csr
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from ..inputs.side_data import SideData, align, match
from ..metrics.lists import Aligned
from ..results.details import row_of_user
from ..results.measured import Measured
from .runners import USERS_PER_BLOCK, users_per_block

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from ..core.types import CSRMatrix
    from ..metrics.request import Request
    from ..results.parts import Retrieval
    from .runners import Execution


class Block(NamedTuple):
    """Some users: their lists, their relevant items, and the side data that belong to them.

    Attributes
    ----------
    first_row : int
        The number of the first user, where users have no labels.
    rankings : Rankings
    relevance : Relevance
        With the same rows and columns.
    side_data : SideData
        Of these users, and of all items.
    retrieval : Retrieval or None
        How the rankings were made, if by a model.
    items_digest : str or None
        A digest of the catalogue, where a block does not hold all of its items.
    knows_judged : bool
        Whether the positions of all judged items are known that are in the lists, although these
        may have gaps.
    """

    first_row: int
    rankings: Rankings
    relevance: Relevance
    side_data: SideData
    retrieval: Retrieval | None = None
    items_digest: str | None = None
    knows_judged: bool = False


#: Turns a task of a source into a block, on any machine; it can be pickled.
Loader: TypeAlias = "Callable[[Any], Block]"


class Source:
    """Users in blocks, whatever they come from; each user is in one block.

    Attributes
    ----------
    load : Loader
        Turns a task into a block; sent to each worker once.
    total, unit
        What the progress bar counts to, and what it counts.
    whole : bool
        Whether it has one block of all users, which stays in this process.
    client
        Whose workers its tasks need, None if any do.
    n_at_once : int
        The tasks that this process may do at once, each in its own thread.
    """

    load: Loader
    total: int
    unit: str
    whole: bool = False
    client: Any = None
    n_at_once: int = 1

    @property
    def repeatable(self) -> bool:
        """Whether `tasks` can be called again for the random baseline.

        It depends on the whole catalogue, which not every block shows.
        """
        return True

    def tasks(self) -> Iterator[tuple[Any, int]]:
        """Yield descriptions of blocks that can be pickled, and how far each moves the progress."""
        raise NotImplementedError

    def everybody(self) -> Block:
        """Return the one block of all users."""
        ((task, _),) = self.tasks()
        return self.load(task)

    def close(self) -> None:
        """Remove what the tasks needed, once all are done."""


def evaluate_block(request: Request, block: Block, num_threads: int | None = None) -> Measured:
    """Evaluate the users of a block: the one function for every source and every engine.

    Raises
    ------
    InvalidMetricError
        If a metric is undefined for lists with ``ties="average"``.
    InvalidDataError
        If judged items or zeros are not what the metrics or the convention take.
    """
    rankings, relevance = block.rankings, block.relevance
    if rankings.last_positions is not None:
        for plan in request.plans:
            if not plan.definition.formula.averages_ties(plan.arguments):
                raise InvalidMetricError(
                    f"{plan.metric} has no expectation over tied items; make the lists with "
                    'ties="item"'
                )
    if request.uses_judged and not block.knows_judged:
        check_judged_listed(rankings, relevance)
    if request.convention.zeros == "error" and not relevance.states_irrelevant:
        for entry in np.flatnonzero(relevance.gains == 0)[:1]:
            row = int(np.searchsorted(relevance.indptr, entry, side="right")) - 1
            first_row = block.first_row if relevance.users is None else 0
            user = label_of(relevance.users, first_row + row)
            item = label_of(relevance.items_index, int(relevance.items[entry]))
            raise InvalidDataError(
                f"validation stores a zero for user {user!r} and item {item!r}, and "
                f"{request.convention.library} counts every stored pair as relevant; drop such "
                "pairs with min_value= above 0 before the split, or with "
                "matrix.eliminate_zeros(), or define what is relevant with threshold= (of "
                "se.Relevance.from_csr)"
            )
    aligned = _aligned(request, rankings, relevance, block.side_data)
    about = block.first_row, block.retrieval, block.items_digest
    return Measured.compute(request, aligned, num_threads, *about)


def one_user(request: Request, block: Block, user: Hashable) -> Aligned:
    """Return the list and the relevant items of one user of a block.

    Parameters
    ----------
    request : Request
    block : Block
    user : hashable
        The label, or the row of the block where users have no labels.

    Raises
    ------
    InvalidDataError
        If there is no such user.
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
    """Return what formulas are applied to, given both sides with the same rows and columns."""
    listed = None
    if request.judged_only:
        listed = rankings.lengths > 0
        rankings = condense(rankings, relevance)
        side_data = replace(side_data, candidates=judged_candidates(relevance))
    if request.seen == "allow":
        side_data = side_data.allowing_seen()
    return Aligned(rankings, relevance, side_data, request.convention, listed=listed)


def largest_gain(
    request: Request, relevance: Relevance | CSRMatrix, n_rows: int = USERS_PER_BLOCK
) -> float | None:
    """Return the largest gain, read `n_rows` users at a time; None if no metric depends on it."""
    if not request.needs_largest_gain:
        return None
    if isinstance(relevance, Relevance):
        return float(relevance.gains.max(initial=0.0))
    n_users = int(relevance.shape[0])
    gains = (
        checked(Relevance, slice_rows(relevance, first, min(first + n_rows, n_users)), first).gains
        for first in range(0, n_users, n_rows)
    )
    return max((float(one.max(initial=0.0)) for one in gains), default=0.0)


def checked(kind: type[Rankings] | type[Relevance], side: Any, first_row: int = 0) -> Any:
    """Return lists or relevance, made of rows of a matrix: errors count them from the first row."""
    if isinstance(side, kind):
        return side
    with in_block(first_row):
        return Rankings.from_positions(side) if kind is Rankings else Relevance.from_csr(side)


@contextmanager
def in_block(first: int) -> Iterator[None]:
    """Name the block whose rows an `InvalidDataError` counts."""
    try:
        yield
    except InvalidDataError as error:
        if first == 0:
            raise
        raise InvalidDataError(
            f"in the block that begins at row {first}, which is its row 0: {error}"
        ) from None


class Rows(NamedTuple):
    """A task: the rows of some users of each side, or references to files that have them."""

    first: int
    last: int
    sides: dict[str, Any]


class RowSource(Source):
    """Sides with the same rows, in memory or on disk, cut into blocks of rows.

    Attributes
    ----------
    sides : dict
        CSR matrices, `Rankings`, `Relevance`, `Candidates` and arrays by user.
    references : dict
        What tasks have in place of the rows of a side.
    n_rows : int
        Users in a block.
    """

    unit = " users"
    sides: dict[str, Any]
    references: dict[str, Any]
    n_rows: int

    def tasks(self) -> Iterator[tuple[Rows, int]]:
        """Yield rows of all sides; of the whole also if there are none."""
        for first in range(0, self.total or int(self.whole), self.n_rows or 1):
            last = min(first + self.n_rows, self.total)
            rows = {
                name: self.references.get(name) or _rows(side, first, last)
                for name, side in self.sides.items()
            }
            yield Rows(first, last, rows), last - first
            release(*self.sides.values())


def _rows(side: Any, first: int, last: int) -> Any:
    if isinstance(side, UserRows):
        return side if (first, last) == (0, side.shape[0]) else side.part(first, last)
    return side[first:last] if is_array(side) else slice_rows(side, first, last)


def load_rows(side_data: SideData, task: Rows) -> Block:
    """Check both sides of some rows, and put the side data of these users beside them."""
    rankings = checked(Rankings, task.sides["rankings"], task.first)
    relevance = checked(Relevance, task.sides["relevance"], task.first)
    rankings, relevance = align(rankings, relevance, *match(rankings, relevance))
    return Block(task.first, rankings, relevance, side_data.of_users(task.first, task.last))


class MatrixSource(RowSource):
    """Two matrices of users × items, cut into blocks that fit into a budget or that workers share.

    Parameters
    ----------
    request : Request
    execution : Execution
    rankings : Rankings or SparseInput
    relevance : Relevance or SparseInput
    inputs : dict
        The arguments of `SideData.of`.
    """

    def __init__(
        self,
        request: Request,
        execution: Execution,
        rankings: Any,
        relevance: Any,
        inputs: dict[str, Any],
    ) -> None:
        self.whole = execution.whole
        self.references = {}
        if self.whole:
            rankings, relevance = checked(Rankings, rankings), checked(Relevance, relevance)
        if not isinstance(rankings, Rankings):
            rankings = sliceable_csr(rankings, "the position matrix", sum_duplicates=False)
        if not isinstance(relevance, Relevance):
            relevance = sliceable_csr(relevance, "the validation matrix")
        users, items = match(rankings, relevance)
        if isinstance(rankings, Rankings) and isinstance(relevance, Relevance):
            rankings, relevance = align(rankings, relevance, users, items)
        self.sides = {"rankings": rankings, "relevance": relevance}
        self.side_data = SideData.of(users, items, **inputs)
        self.total = users.size
        if not self.whole:
            n_entries = sum(int(side.indptr[-1]) for side in self.sides.values())
            self.n_rows = users_per_block(execution, n_entries, users.size, len(request.metrics))
            largest = largest_gain(request, relevance, self.n_rows)
            self.load = partial(load_rows, replace(self.side_data, largest_gain=largest))

    def everybody(self) -> Block:
        """Return the lists and relevance of all users as they are."""
        return Block(0, self.sides["rankings"], self.sides["relevance"], self.side_data)
