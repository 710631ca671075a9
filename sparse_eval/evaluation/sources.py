"""`Source`: inputs of any kind as blocks of users.

A new kind of input is a subclass of `Source`, in its own module, which `evaluate` chooses. A model
with its training data is a source too, see `sparse_eval.models.source`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..core.arrays import is_array
from ..errors import InvalidDataError
from ..inputs.labelled import UserRows
from ..inputs.npy import release, slice_rows
from ..inputs.relevance import Relevance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.types import CSRMatrix
    from ..inputs.rankings import Rankings
    from ..inputs.side_data import SideData
    from ..results.counts import Retrieval


#: Users in a block, if nothing limits them.
USERS_PER_BLOCK = 1 << 18


class Block(NamedTuple):
    """Some users: their lists, their relevant items, and the side data that belong to them.

    Attributes
    ----------
    first_row : int
        The number of the first user, if users have no labels.
    rankings : Rankings
    relevance : Relevance
        With the same rows and columns.
    side_data : SideData
        For these users and all items.
    retrieval : Retrieval or None
        How the rankings were made, if by a model.
    items_digest : str or None
        A digest of the catalogue, if a block does not contain all of its items.
    knows_judged : bool
        Whether the positions of all listed judged items are known, even if lists have gaps.
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
    """Users in blocks, from any input; each user is in one block.

    Attributes
    ----------
    load : Loader
        Turns a task into a block; sent to each worker once.
    total, unit
        The total and the unit of the progress bar.
    client
        The client whose workers its tasks need, None for any workers.
    n_at_once : int
        The tasks that this process may do at once, each in its own thread.
    """

    load: Loader
    total: int
    unit: str
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

    def close(self) -> None:
        """Remove what the tasks needed, once all are done."""


def largest_gain(relevance: Relevance | CSRMatrix, n_rows: int = USERS_PER_BLOCK) -> float:
    """Return the largest gain, read `n_rows` users at a time."""
    if isinstance(relevance, Relevance):
        return float(relevance.gains.max(initial=0.0))
    largest = 0.0
    for first in range(0, int(relevance.shape[0]), n_rows):
        rows = slice_rows(relevance, first, min(first + n_rows, int(relevance.shape[0])))
        with in_block(first):
            largest = max(largest, float(Relevance.from_csr(rows).gains.max(initial=0.0)))
    return largest


@contextmanager
def in_block(first: int) -> Iterator[None]:
    """Name the block whose rows an `InvalidDataError` counts."""
    try:
        yield
    except InvalidDataError as error:
        if first == 0:
            raise
        raise InvalidDataError(
            f"{error} (rows are counted from row {first}, where this block of users starts)"
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
        """Yield rows of all sides."""
        for first in range(0, self.total, self.n_rows):
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
