"""Interactions from a table that arrives in blocks, in little more memory than they take.

Blocks are Arrow's: ids are numbered as they come, and only distinct ids become objects of Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..core.threads import for_each
from .columns import events_kept
from .interactions import Interactions, keep_events
from .labels import check_labels, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from ..core.types import AnyArray, Floats, Integers
    from ..inputs.axes import Axis
    from .labels import Column
    from .times import TimeUnit

#: The distinct ids of new blocks are joined with all others once there are so many times as many
#: of them, and not just a few: joining looks at all again, and until then they take memory.
_JOINED = 4
_FEW = 2**20


class UnusualError(Exception):
    """A table in blocks has something that only readers of whole tables understand, or refuse."""


class Codes:
    """A column of ids as it comes: codes of the distinct ids of each block."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.int32]] = []
        self._numbers: list[NDArray[np.int32]] = []  # of each id of a block among all ids
        self._ids: list[Any] = []  # all ids so far, then those of the blocks without numbers

    def add(self, column: Any) -> None:
        """Add the rows of a block: an Arrow array, or a chunked one of plain values."""
        if column.null_count:
            raise UnusualError
        encoded = column.dictionary_encode()
        chunks = getattr(encoded, "chunks", [encoded])  # which share the ids
        # Copies, as those of values.
        codes = np.concatenate([chunk.indices.to_numpy() for chunk in chunks], dtype=np.int32)
        if not len(codes):
            return
        ids = chunks[0].dictionary
        used = np.bincount(codes, minlength=len(ids)) > 0
        if not used.all():  # the ids of a file, of which a batch has some
            codes = (np.cumsum(used, dtype=np.int32) - 1)[codes]
            ids = ids.take(np.flatnonzero(used))
        self._blocks.append(codes)
        self._ids.append(ids)
        if sum(map(len, self._ids[1:])) > max(_JOINED * len(self._ids[0]), _FEW):
            self._join()

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(map(len, self._blocks))

    def _join(self) -> None:
        """Give numbers to the ids of the blocks that have none yet."""
        import pyarrow as pa

        of_blocks = [
            pa.DictionaryArray.from_arrays(pa.array(np.arange(len(ids), dtype=np.int32)), ids)
            for ids in self._ids
        ]
        try:
            # Ids that have numbers keep them, as they come first.
            joined = pa.chunked_array(of_blocks).unify_dictionaries().chunks
        except pa.ArrowException as error:  # more text than one array holds
            raise UnusualError from error
        n_new = len(self._blocks) - len(self._numbers)
        self._numbers += [chunk.indices.to_numpy() for chunk in joined[len(joined) - n_new :]]
        self._ids = [joined[0].dictionary]

    @property
    def ids(self) -> Any:
        """The distinct ids as an Arrow array."""
        if len(self._blocks) > len(self._numbers):
            self._join()
        return self._ids[0]

    def take(self, array: AnyArray) -> NDArray[Any]:
        """Return for each row what `array` has for its id, and forget the rows."""
        result = np.empty(self.n_rows, array.dtype)
        end = len(result)
        while self._blocks:
            codes = self._blocks.pop()
            np.take(
                array[self._numbers.pop()], codes, out=result[end - len(codes) : end], mode="clip"
            )
            end -= len(codes)
        return result


class BlockTable:
    """A table of events as it comes.

    Attributes
    ----------
    ids : dict of str to Codes
        By role: user, item and, if they are wanted, event.
    """

    def __init__(self, *, events: bool) -> None:
        self.ids = {role: Codes() for role in ("user", "item", *(["event"] * events))}
        self._values: list[Floats] = []
        self._times: list[Integers] = []
        self._unit: TimeUnit | None = None

    def add_values(self, values: Floats) -> None:
        """Add the values of a block, which are valid."""
        # A copy: Arrow keeps what it frees, and by then needs it for the next block.
        self._values.append(values.copy())

    def add_times(self, times: Integers, unit: TimeUnit | None) -> None:
        """Add the times of a block, and their unit if they are dates."""
        if self._times and unit != self._unit:
            raise UnusualError
        self._times.append(times.copy())
        self._unit = unit

    def add_ids(self, columns: Mapping[str, Any]) -> None:
        """Add the rows of a block to the ids of each role, which threads share."""
        for_each(lambda role: self.ids[role].add(columns[role]), list(self.ids))

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.ids["user"].n_rows

    def interactions(
        self,
        column: Callable[[str, Any], Column],
        users: Axis | Sequence[Hashable] | None,
        items: Axis | Sequence[Hashable] | None,
        keep: Sequence[object] | None,
    ) -> tuple[Interactions, Floats]:
        """Return what `Interactions.from_frame` makes of the table, and the values of all rows.

        `column` makes a column of pandas of a role and its distinct ids. Raise `InvalidDataError`
        if anything is not valid; the rows in its messages are none of the table.
        """
        codes, labels = {}, {}
        for role, given in (("user", users), ("item", items)):
            index = None if given is None else check_labels(given, role)
            positions, labels[role] = encode(column(role, self.ids[role].ids), role, index)
            codes[role] = self.ids[role].take(positions)
        kept = None
        if keep is not None:
            names = pd.Series(self.ids["event"].ids.to_pylist(), dtype=object)
            kept = self.ids["event"].take(events_kept(names, keep))
        values = _joined(self._values)
        if values is None:
            values = np.ones(len(codes["user"]))
        result = Interactions(
            user_codes=codes["user"],
            item_codes=codes["item"],
            values=values,
            timestamps=_joined(self._times),
            users=labels["user"],
            items=labels["item"],
            time_unit=self._unit,
        )
        if kept is not None:
            result = keep_events(result, kept, users=users is None, items=items is None)
        return result, values


def _joined(blocks: list[NDArray[Any]]) -> NDArray[Any] | None:
    """Return the rows of all blocks, None if there are no blocks, and forget them."""
    if not blocks:
        return None
    result = np.empty(sum(map(len, blocks)), blocks[0].dtype)
    end = len(result)
    while blocks:
        block = blocks.pop()
        result[end - len(block) : end] = block
        end -= len(block)
    return result
