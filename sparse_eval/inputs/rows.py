"""Read the rows of a table as arrays: codes and labels of users and items, values and times."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.threads import for_each
from ..errors import InvalidDataError
from .axes import Axis, encode, order_of
from .cells import (
    Times,
    as_numbers,
    at,
    bad_row,
    cast_codes,
    codes_of,
    event_gains,
    gains_of,
    is_missing,
    is_text,
    orders_of,
)
from .text import Field, naming

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ..core.types import Floats, Integers, Items
    from .columns import Columns
    from .tables import Batch, Table

_KINDS: dict[str, Any] = {
    "user": "id", "item": "id", "value": "gain", "gain": "gain", "rank": "number",
    "score": "number", "timestamp": "time", "event": "text",
}  # fmt: skip


@dataclass(slots=True)
class Rows:
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
    unit : {"ns"} or None
        The unit of times that are dates.
    types : ndarray of int32 or None
        The position of each row's event among the types to keep, -1 for other types.
    """

    users: Axis
    items: Axis
    user_codes: Items
    item_codes: Items
    numbers: Floats | None = None
    times: Integers | None = None
    unit: Any = None
    types: Items | None = None


def read_rows(
    table: Table,
    columns: Columns,
    *,
    users: Axis | None = None,
    items: Axis | None = None,
    order: tuple[Axis | None, Axis | None] = (None, None),
    keep: Sequence[str] | None = None,
    gains: Mapping[Any, float] | None = None,
) -> Rows:
    """Read the columns of a table.

    Parameters
    ----------
    table : Table
    columns : Columns
        Of users, items, one of values, gains, ranks and scores, times, and events.
    users, items : Axis, optional
        The labels to number by.
    order : tuple of Axis or None
        Users and items that come before all others.
    keep : sequence of str, optional
        The types of events to keep, compared as text.
    gains : mapping, optional
        The gain of each type of event.

    Raises
    ------
    InvalidDataError, InvalidFileError
        If there is no row, or a row has a missing or unknown id or event, or an invalid number or
        time. The first such row, from 0 on, is named.
    """
    names = columns.names
    fields = [Field(role, name, _KINDS[role], columns.remedy(role)) for role, name in names.items()]
    ids = {role: _Ids(role, names[role]) for role in ("user", "item")}
    times = Times(names.get("timestamp"))
    numbers: list[Floats] = []
    types: list[Items] = []
    events: set[str] = set()
    starts: list[tuple[int, Path | None]] = []
    n_rows = 0

    def add(batch: Batch, first: int, untyped: bool, role: str) -> None:
        """Add a column of a batch; `first` is the number of its first row."""
        column, name, kind = batch[role], names[role], _KINDS[role]
        if kind == "id":
            ids[role].add(column, first, untyped=untyped)
        elif kind == "time":
            times.add(column, first)
        elif kind == "number":
            numbers.append(orders_of(column, name, first, ranks=role == "rank"))
        elif kind == "gain":
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
            for batch in part.batches(fields):
                first = n_rows - starts[-1][0]
                n_rows += len(batch["user"])
                for_each(partial(add, batch, first, part.is_text), list(ids))
                for field in fields:
                    if field.role in ids:
                        continue
                    try:
                        add(batch, first, part.is_text, field.role)
                    except InvalidDataError as error:
                        if not field.remedy:
                            raise
                        about: Any = {"row": error.row, "column": error.column}
                        raise InvalidDataError(f"{error}{field.remedy}", **about) from None
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
        blank = np.zeros(1, bool)
        if labels.dtype == object:
            blank = labels.blank if labels.is_text else np.array([*map(_is_blank, labels)], bool)
        if blank.any():
            bad |= blank[codes]
        if bad.any():
            row = int(np.argmax(bad))
            start, where = next(place for place in reversed(starts) if place[0] <= row)
            with naming(where):
                raise ids[role].fault(row, row - start, given)
        return codes, labels

    (user_codes, user_labels), (item_codes, item_labels) = for_each(finish, list(ids))
    encoded = (user_labels, item_labels, user_codes, item_codes)
    return Rows(*encoded, _joined(numbers), _joined(times.blocks), times.unit, _joined(types))


def _is_blank(label: object) -> bool:
    return isinstance(label, str) and not label.strip()


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


#: Kinds of ids that may be mixed: in text files, whole numbers are text too.
_TOGETHER = ({"untyped text", "text"}, {"untyped text", "whole numbers"})


class _Ids:
    """A column of ids before it is encoded: Arrow dictionaries, or Python objects.

    Ids are Python objects if Arrow or pandas cannot compare them or tell them apart: ids of mixed
    types, tuples, dates, booleans. They take a second for a million rows.
    """

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
        column, kind = _classified(column)
        self.kinds.add("untyped text" if untyped and kind == "text" else kind)
        if len(self.kinds) > 1 and self.kinds not in _TOGETHER:
            raise InvalidDataError(
                f"column {self.name!r} holds {' and '.join(sorted(self.kinds))}; write all rows "
                "with the same type",
                column=self.name,
            )
        for chunk in getattr(column, "chunks", [column]):
            is_array = isinstance(chunk, np.ndarray)
            self.chunks.append(chunk if is_array else chunk.dictionary_encode())

    def encode(self, given: Axis | None, first: Axis | None) -> tuple[Items, Axis]:
        """Return codes and labels; untyped ids that are all whole numbers become such."""
        if "objects" in self.kinds:
            numbers, found = self._factorize(np.concatenate(self.chunks))
            axis = found.take(order_of(found)) if given is None else given
            return axis.locate(found)[numbers].astype(np.int32), axis
        chunks, text = self.chunks, self.kinds & {"text", "untyped text"} == {"untyped text"}
        if text and "whole numbers" in self.kinds:
            chunks = cast_codes(chunks, "large_string")
        if text and (given is None or given.is_integer):
            chunks = as_numbers(chunks)
        elif self.kinds == {"whole numbers"}:
            chunks = cast_codes(chunks, "int64", "uint64")
        codes, axis = encode(chunks, given, first)
        if text and given is None and axis is not first:
            axis.written = True
        return codes[0] if len(codes) == 1 else np.concatenate(codes), axis

    def fault(self, row: int, place: int, given: Axis | None) -> InvalidDataError:
        """Return the error about a row, which is number `place` of its file."""
        for chunk in self.chunks:
            if row < len(chunk):
                break
            row -= len(chunk)
        found = at(chunk, row)
        if given is None or _is_blank(found):
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

    def _factorize(self, column: NDArray[np.object_]) -> tuple[NDArray[np.intp], Axis]:
        """Factorize ids of any types, among which pandas does not tell 1, 1.0 and True apart."""
        import pandas as pd

        values = [x.item() if isinstance(x, np.generic) else x for x in column.tolist()]
        objects = np.empty(len(values), object)
        objects[:] = values
        try:
            codes, labels = pd.factorize(objects)
        except TypeError as error:
            raise InvalidDataError(
                f"column {self.name!r}: {error}; expected text or numbers as ids, in a row for "
                f"each of them, as df.explode({self.name!r}) makes of lists",
                column=self.name,
            ) from None
        for code, value in zip(codes.tolist(), values, strict=True):
            if type(value) is not type(labels[code]):
                raise InvalidDataError(
                    f"column {self.name!r}: the {self.role} ids {labels[code]!r} and {value!r} are "
                    "equal but of different types; convert the column to one type",
                    column=self.name,
                )
        return codes, Axis(labels)


def vocabulary() -> defaultdict[str, int]:
    """Return a dict that numbers its keys 0, 1, … in order of first look-up."""
    return defaultdict(count().__next__)


def encode_texts(texts: list[str], *, numbers: bool = False) -> tuple[Items, Axis]:
    """Return the codes of texts and their labels; with `numbers` whole numbers if all are such."""
    import pyarrow as pa

    chunks = [pa.array(texts, pa.large_string()).dictionary_encode()]
    (codes,), axis = encode(as_numbers(chunks) if numbers else chunks)
    return codes, axis


def union_of(axes: Sequence[Axis]) -> tuple[list[Items], Axis]:
    """Return the positions of each axis's labels in the sorted union of all, and the union.

    Whole numbers on one axis become text if another axis has text.
    """
    if all(axis.are_numbers for axis in axes):
        return [axis.to_numpy().astype(np.int32) for axis in axes], max(axes, key=len)
    if any(axis.is_text for axis in axes):
        axes = [Axis.of(list(map(str, axis))) if axis.is_integer else axis for axis in axes]
    union = axes[0]
    for axis in axes[1:]:
        _, union = union.union(axis)
    union = union.take(order_of(union))
    return [union.locate(axis).astype(np.int32) for axis in axes], union


def _classified(column: Any) -> tuple[Any, str]:
    """Return ids in a form that can be encoded, and a name for it."""
    import pyarrow.compute as pc
    from pyarrow import types

    if isinstance(column, np.ndarray):
        return column, "objects"
    dtype = column.type.value_type if types.is_dictionary(column.type) else column.type
    if is_text(dtype):
        return column, "text"
    if types.is_integer(dtype):
        return column, "whole numbers"
    if types.is_floating(dtype):
        if types.is_dictionary(column.type):
            column = column.cast(dtype)
        return pc.add(column, 0.0), "fractions"  # -0.0 and 0.0 are one id
    objects = np.empty(len(column), object)
    objects[:] = column.to_pylist() if types.is_nested(dtype) else column.to_pandas().tolist()
    return objects, "objects"
