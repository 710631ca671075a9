"""`Source`: inputs of any kind as blocks of users.

A new kind of input is a subclass of `Source`, in its own module, which `evaluate` chooses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..inputs.data import SideData
    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..results.counts import Retrieval


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
    is_whole : bool
        Whether all users are one block, which this process evaluates and whose lists can be kept.
    """

    load: Loader
    total: int
    unit: str
    client: Any = None
    n_at_once: int = 1
    is_whole: bool = False

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
        """Return all users as one block, if `is_whole`."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove what the tasks needed, once all are done."""
