"""Read the rows of a table as arrays: codes and labels of users and items, values and times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import of_arrow, to_arrow
from ..core.threads import for_each
from ..errors import InvalidDataError
from .axes import Axis, encode
from .column_values import (
    Times,
    are_floats,
    as_ids,
    as_numbers,
    at,
    bad_row,
    cast_codes,
    codes_of,
    event_gains,
    gains_of,
    is_list,
    is_missing,
    is_text,
    orders_of,
    plain_type,
)
from .formats import Field
from .input_files import naming

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from ..core.types import Floats, Integers, Items
    from .columns import TableColumns
    from .formats import Batch, TablePart
    from .tables import InputTable

_KINDS: dict[str, Any] = {
    "user": "id", "item": "id", "value": "number", "gain": "number", "rank": "number",
    "score": "number", "timestamp": "time", "event": "text",
}  # fmt: skip


@dataclass(slots=True)
class EncodedRows:
    """The rows of a table.

    Attributes
    ----------
    users, items : Axis
        The labels: those given, or else all ids in order.
    user_codes, item_codes : ndarray of int32
        The position of each row's user and item in these.
    numbers : ndarray of float64 or None
        The values, gains, ranks or scores; or the gains of events.
    times : ndarray of int64 or None
    time_kind : str
        As of `Times.kind`.
    types : ndarray of int32 or None
        The position of each row's event among the types to keep, -1 for other types.
    """

    users: Axis
    items: Axis
    user_codes: Items
    item_codes: Items
    numbers: Floats | None = None
    times: Integers | None = None
    time_kind: str = ""
    types: Items | None = None


def read_rows(
    table: InputTable,
    columns: TableColumns,
    *,
    users: Axis | None = None,
    items: Axis | None = None,
    order: tuple[Axis | None, Axis | None] = (None, None),
    keep: Sequence[str] | None = None,
    gains: Mapping[Any, float] | None = None,
) -> EncodedRows:
    """Read the columns of a table.

    A row with a list of items becomes one row for each item. Without scores, the position in the
    list is the rank.

    Raises `InvalidDataError, InvalidFileError` if there is no row, or a row has a missing or
    unknown id or event, or an invalid number or time. The first such row, from 0 on, is named.

    Parameters
    ----------
    columns : TableColumns
        Of users, items, one of values, gains, ranks and scores, times, and events.
    users, items : Axis, optional
        The labels to number by.
    order : tuple of Axis or None
        Users and items that come before all others.
    keep : sequence of str, optional
        The types of events to keep, compared as text.
    gains : mapping, optional
        The gain of each type of event.
    """
    names = columns.names
    fields = [Field(role, name, _KINDS[role]) for role, name in names.items()]
    ids = {role: _Ids(role, names[role]) for role in ("user", "item")}
    times = Times(names.get("timestamp"))
    numbers: list[Floats] = []
    types: list[Items] = []
    events: set[str] = set()
    starts: list[tuple[int, Any]] = []
    n_rows = 0

    def add(batch: Batch, first: int, part: TablePart, role: str) -> None:
        """Add a column of a batch; `first` is the number of its first row."""
        column, name = batch[role], names.get(role)
        if role in ids:
            untyped = part.is_text or name not in part.names  # from the name of a folder
            ids[role].add(column, first, untyped=untyped)
        elif role == "timestamp":
            times.add(column, first)
        elif role in ("rank", "score"):
            numbers.append(orders_of(column, name, first, ranks=role == "rank"))
        elif role != "event":
            numbers.append(gains_of(column, name, first))
        elif gains is not None:
            numbers.append(event_gains(column, name, gains, first))
        elif keep is not None:
            codes, found = codes_of(column)
            texts = list(map(str, found))
            events.update(texts)
            places = [keep.index(text) if text in keep else -1 for text in texts]
            types.append(np.array([*places, -1], np.int32)[codes])

    for part in table.parts:
        starts.append((n_rows, part.where))
        with naming(part.where):
            for rows in part.batches(fields):
                batch = _one_item_per_row(rows, ranked=columns.is_ranked)
                first = n_rows - starts[-1][0]
                n_rows += len(batch["user"])
                for_each(partial(add, batch, first, part), list(ids))
                for role in batch.keys() - ids.keys():
                    try:
                        add(batch, first, part, role)
                    except InvalidDataError as error:
                        raise InvalidDataError(
                            f"{error}{columns.remedy(role)}",
                            argument=error.argument or role,
                            row=error.row,
                            column=error.column,
                        ) from None
    with naming(table.where):
        if not n_rows:
            raise InvalidDataError(table.empty)
        for name in keep or ():
            if name not in events:
                listed = ", ".join(map(repr, sorted(events)))
                raise InvalidDataError(
                    f"events: there is no event {name!r}; there are {listed}", argument="events"
                )

    def finish(role: str) -> tuple[Items, Axis]:
        given = users if role == "user" else items
        first = order[0] if role == "user" else order[1]
        codes, labels = ids[role].encode(given, first)
        bad = codes < 0
        if labels.is_text and labels.blank.any():
            bad |= labels.blank[codes]
        if bad.any():
            row = int(np.argmax(bad))
            start, where = next(place for place in reversed(starts) if place[0] <= row)
            with naming(where):
                raise ids[role].fault(row, row - start, given)
        return codes, labels

    (user_codes, user_labels), (item_codes, item_labels) = for_each(finish, list(ids))
    encoded = (user_labels, item_labels, user_codes, item_codes)
    return EncodedRows(
        *encoded, _joined(numbers), _joined(times.blocks), times.kind, _joined(types)
    )


def _one_item_per_row(batch: Batch, *, ranked: bool) -> Batch:
    """Return a row for each item of lists; `ranked` adds the ranks in the lists as "rank"."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = {role: column for role, column in batch.items() if is_list(column.type)}
    if not lists:
        return batch
    views = {role: column for role, column in batch.items() if pa.types.is_string_view(column.type)}
    batch |= {role: column.cast(pa.large_string()) for role, column in views.items()}  # for `take`
    sizes = [pc.fill_null(pc.list_value_length(column), 0) for column in lists.values()]
    if "item" not in lists or not all(size.equals(sizes[0]) for size in sizes):
        raise InvalidDataError(
            f"{' and '.join(lists)} are lists, but not of one length in each row; expected a list "
            "of items, and for each item one number or none"
        )
    counts = of_arrow(sizes[0])
    rows = to_arrow(np.repeat(np.arange(len(counts)), counts))
    result = {
        role: pc.list_flatten(column) if role in lists else column.take(rows)
        for role, column in batch.items()
    }
    if ranked:
        ends = np.cumsum(counts)
        result["rank"] = to_arrow(np.arange(1, len(rows) + 1) - np.repeat(ends - counts, counts))
    return result


def _joined(blocks: list[NDArray[Any]]) -> Any:
    """Return the rows of all blocks, None if there are no blocks, and forget the blocks."""
    if not blocks:
        return None
    result = np.empty(sum(map(len, blocks)), blocks[0].dtype)
    end = len(result)
    while blocks:  # one after the other, or rows would take their memory twice
        block = blocks.pop()
        result[end - len(block) : end] = block
        end -= len(block)
    return result


class _Ids:
    """A column of ids before it is encoded, as Arrow dictionaries of text or whole numbers."""

    def __init__(self, role: str, name: Hashable) -> None:
        self.role, self.name = role, name
        self.kinds: set[str] = set()
        self.chunks: list[Any] = []

    def add(self, column: Any, first: int, *, untyped: bool) -> None:
        """Add the rows of a batch; `first` is the number of its first row."""
        missing = is_missing(column)
        if missing.any():
            row = int(np.argmax(missing))
            raise self._missing(at(column, row), first + row)
        try:
            column = as_ids(column, f"column {self.name!r}", f"frame[{self.name!r}].astype(str)")
        except InvalidDataError as error:
            raise InvalidDataError(str(error), column=self.name) from None
        kind = "text" if is_text(plain_type(column.type)) else "whole numbers"
        # In text files, whole numbers are text, too.
        self.kinds.add("untyped text" if untyped else kind)
        if {"text", "whole numbers"} <= self.kinds:
            raise InvalidDataError(
                f"column {self.name!r} holds text and whole numbers; write all rows with the same "
                "type",
                column=self.name,
            )
        self.chunks += [chunk.dictionary_encode() for chunk in getattr(column, "chunks", [column])]

    def encode(self, given: Axis | None, first: Axis | None) -> tuple[Items, Axis]:
        """Return codes and labels; untyped ids that are all whole numbers become such."""
        chunks, untyped = self.chunks, "untyped text" in self.kinds and "text" not in self.kinds
        if "whole numbers" in self.kinds and untyped:
            chunks = cast_codes(chunks, "large_string")
        if untyped and (given is None or given.is_integer):
            chunks = as_numbers(chunks)
            if are_floats(chunks):
                raise InvalidDataError(
                    f"column {self.name!r} holds whole numbers like '1.0', as pandas writes them "
                    "next to missing values. Write them as whole numbers, or pass the frame of "
                    "pandas.read_csv, with dtype=str if they are text",
                    column=self.name,
                )
        codes, axis = encode(chunks, given, first)
        if untyped and given is None and axis is not first:
            axis.written = True
        return codes[0] if len(codes) == 1 else np.concatenate(codes), axis

    def fault(self, row: int, place: int, given: Axis | None) -> InvalidDataError:
        """Return the error about a row, which is number `place` of its file."""
        for chunk in self.chunks:
            if row < len(chunk):
                break
            row -= len(chunk)
        found = at(chunk, row)
        if given is None or (isinstance(found, str) and not found.strip()):
            return self._missing(found, place)
        kind = "text" if given.is_text else given.dtype
        return bad_row(
            place,
            self.name,
            f"{found!r} is not one of the {len(given):,} given {self.role}s ({kind} labels); "
            "remove the row or add the label",
        )

    def _missing(self, found: object, row: int) -> InvalidDataError:
        message = f"the {self.role} id is missing ({found!r}); every row needs one"
        return bad_row(row, self.name, message)


def encode_texts(texts: Any, *, numbers: bool = False) -> tuple[Items, Axis]:
    """Return the codes of texts and their labels, which may be `numbers` if all are whole ones."""
    import pyarrow as pa

    chunks = [pa.array(texts, pa.large_string()).dictionary_encode()]
    (codes,), axis = encode(as_numbers(chunks) if numbers else chunks)
    axis.written = numbers
    return codes, axis
