"""Blocks of users from rows of two Arrow tables: recommendations and relevant items."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.csr import summed_csr
from ..core.hashing import digest_labels
from ..errors import InvalidDataError
from ..inputs.axes import Axis, encode, order_of
from ..inputs.column_values import gains_of, is_text, orders_of
from ..inputs.data import SideData
from ..inputs.encoded_rows import EncodedRows
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from .sources import Block, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from ..core.types import AnyArray, Items
    from ..inputs.item_data import KeyedPropensity
    from ..inputs.rankings import Ties
    from ..inputs.tables import InputTable, RankingsScan, RelevanceScan
    from ..metrics.request import Request

RECS, TRUTH = "the recommendations", "the relevant items"


class Columns(NamedTuple):
    """The columns of both tables that are read.

    Attributes
    ----------
    recs : tuple of str
        User, item, and the column that orders the lists.
    ranked : bool
        Whether that column holds ranks, not scores.
    truth : tuple of str
        User, item and, if there is one, gain.
    """

    recs: tuple[str, ...]
    ranked: bool
    truth: tuple[str, ...]


@dataclass(frozen=True)
class RowsLoader:
    """Turn all rows of some users, in two tables, into a block.

    Attributes
    ----------
    columns : Columns
    catalogue : ndarray or None
        Every item of both tables, sorted, if metrics depend on it.
    largest_gain : float or None
        Where metrics depend on it.
    propensity : KeyedPropensity or None
        Where metrics weight hits by it.
    ties : {"item", "item_descending", "average", "pessimistic"}
        The order of equal scores.
    """

    columns: Columns
    catalogue: AnyArray | None = None
    largest_gain: float | None = None
    propensity: KeyedPropensity | None = None
    ties: Ties = "item"

    @cached_property
    def digest(self) -> str | None:
        """A digest of the catalogue."""
        return None if self._items is None else digest_labels(self._items.to_numpy())

    @cached_property
    def _items(self) -> Axis | None:
        """The catalogue with all items that have a propensity, as in memory."""
        if self.catalogue is None:
            return None
        items = Axis.unchecked(self.catalogue)
        if self.propensity is not None:
            _, items = items.union(self.propensity.labels)
        return items.take(order_of(items))

    def __call__(self, tables: tuple[pa.Table, pa.Table]) -> Block:
        """Return the block of all users who have rows in either table, in any order.

        Raises `InvalidDataError` if a row cannot be used: user and item are named.
        """
        recs, truth = tables
        columns = self.columns
        (list_users, relevant_users), users = _encode(tables, columns, 0)
        (list_items, relevant_items), items = _encode(tables, columns, 1, self._items)
        shape = (len(users), len(items))
        with _naming_row(recs, columns.recs, RECS):
            name = columns.recs[2]
            values = orders_of(whole_column(recs, name), name, 0, ranks=columns.ranked)
            rows = EncodedRows(users, items, list_users, list_items, values)
            rankings = Rankings.of_rows(rows, ranked=columns.ranked, ties=self.ties)
        gains = np.ones(len(truth))
        with _naming_row(truth, columns.truth, TRUTH):
            for name in columns.truth[2:]:
                gains = gains_of(whole_column(truth, name), name, 0)
        matrix = summed_csr(relevant_users, relevant_items, gains, shape)
        relevance = Relevance.from_csr(matrix, users=users, items=items)
        largest = self.largest_gain
        if largest is not None and relevance.gains.max(initial=0.0) > largest:
            entry = int(relevance.gains.argmax())
            row = int(np.searchsorted(relevance.indptr, entry, side="right")) - 1
            raise InvalidDataError(
                f"user {users[row]!r}, item {items[relevance.items[entry]]!r} is in several rows "
                f"of {TRUTH}, with the sum {relevance.gains[entry]:g}, and one of the metrics "
                f"depends on the largest gain, which is {largest:g} in a single row; add up the "
                "rows of each user and item first"
            )
        side_data = SideData(len(items), largest_gain=largest)
        if self.propensity is not None:
            used = np.zeros(len(items), bool)
            used[list_items] = used[relevant_items] = True
            side_data = replace(
                side_data,
                propensity=self.propensity.of_items(items, used),
                propensity_digest=self.propensity.digest,
            )
        return Block(0, rankings, relevance, side_data, items_digest=self.digest)


@contextmanager
def _naming_row(table: pa.Table, names: tuple[str, ...], content: str) -> Iterator[None]:
    """Name the user and item in errors about a row, whose number means nothing to the caller."""
    try:
        yield
    except InvalidDataError as error:
        text = re.sub(r"^rows [0-9]+ and [0-9]+", "two rows", str(error))
        if error.row is not None:
            user, item = (table.column(name)[error.row].as_py() for name in names[:2])
            text = f"user {user!r}, item {item!r}{text.removeprefix(f'row {error.row}')}"
        raise InvalidDataError(f"{content}: {text}", column=error.column) from None


def check_ids(recs: pa.Schema, truth: pa.Schema, columns: Columns) -> tuple[bool, bool]:
    """Return whether users and items are text in both schemas, or raise if they differ."""
    import pyarrow as pa

    are_text = []
    for names in list(zip(columns.recs, columns.truth, strict=False))[:2]:
        kinds = []
        for schema, name, content in zip((recs, truth), names, (RECS, TRUTH), strict=True):
            dtype = schema.field(name).type
            dtype = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
            if not (pa.types.is_integer(dtype) or is_text(dtype)):
                raise InvalidDataError(
                    f"{content}: column {name!r} has type {dtype}; expected ids that are whole "
                    "numbers or text, so cast it",
                    column=name,
                )
            kinds.append("text" if is_text(dtype) else "whole numbers")
        if kinds[0] != kinds[1]:
            raise InvalidDataError(
                f"column {names[0]!r} holds {kinds[0]} in {RECS}, but column {names[1]!r} holds "
                f"{kinds[1]} in {TRUTH}, so no ids would match. Cast one of the columns"
            )
        are_text.append(kinds[0] == "text")
    return are_text[0], are_text[1]


def _encode(
    tables: tuple[pa.Table, pa.Table], columns: Columns, number: int, given: Axis | None = None
) -> tuple[list[Items], Axis]:
    """Return the codes of the users or items of both tables, and their labels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sides = []
    for table, names in zip(tables, (columns.recs, columns.truth), strict=True):
        side = whole_column(table, names[number])
        sides.append(signed(side, names[number]))
    if number == 0 and not pa.types.is_integer(sides[0].type):
        # The rows of a user are mostly next to each other.
        runs = [pc.run_end_encode(side) for side in sides]
        codes, axis = encode([side.values for side in runs])
        ends = [side.run_ends.to_numpy() for side in runs]
        pairs = zip(codes, ends, strict=True)
        codes = [np.repeat(side, np.diff(end, prepend=0)) for side, end in pairs]
    else:
        codes, axis = encode(sides, given)
    name = columns.recs[number]
    if any(side.min(initial=0) < 0 for side in codes):
        raise InvalidDataError(
            f"column {name!r} contains an id that was not there on the first pass. The table must "
            "not change during the evaluation",
            column=name,
        )
    if axis.is_text and axis.blank.any():
        raise InvalidDataError(
            f"column {name!r} contains an id that is empty or blank; every row needs one",
            column=name,
        )
    return codes, axis


def whole_column(table: Any, name: str) -> Any:
    """Return a column of a table or batch in one chunk, or raise if it holds a null."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise InvalidDataError(
            f"column {name!r} is empty (null) in {column.null_count} of {len(column)} rows; "
            "expected an id, a rank or a number in each",
            column=name,
        )
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def signed(column: Any, name: str) -> Any:
    """Return whole numbers of 64 bits without sign as int64, or raise if one does not fit."""
    import pyarrow as pa

    if not pa.types.is_uint64(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        most = column.to_numpy(zero_copy_only=False).max()
        raise InvalidDataError(
            f"column {name!r} holds {most}; expected whole numbers below 2^63", column=name
        ) from None


class TableSource(Source):
    """Two tables, whose rows are brought together by user.

    Parameters
    ----------
    rankings : RankingsScan
    relevance : RelevanceScan
    recs, truth : InputTable
        Their columns.

    Attributes
    ----------
    columns : Columns
    """

    def __init__(
        self, rankings: RankingsScan, relevance: RelevanceScan, recs: InputTable, truth: InputTable
    ) -> None:
        lists, gains = rankings.choose(recs).names, relevance.choose(truth).names
        names = (tuple(map(str, side.values())) for side in (lists, gains))
        self.columns = Columns(next(names), "rank" in lists, next(names))

    def rows_loader(self, request: Request, propensity: KeyedPropensity | None) -> RowsLoader:
        """Return the loader of blocks, with the facts about all rows that metrics depend on."""
        import pyarrow.compute as pc

        catalogue = largest = None
        if request.needs_catalogue:
            axis = None
            for batch, name in self.item_columns():
                _, axis = encode([signed(pc.unique(whole_column(batch, name)), name)], None, axis)
            assert axis is not None  # noqa: S101 - there are two tables
            catalogue = axis.take(order_of(axis)).to_numpy()
        if request.needs_largest_gain:
            largest = 1.0
            if len(self.columns.truth) > 2:
                largest = self.largest_gain()
        self.knows_items = catalogue is not None
        ties = request.convention.ties
        return RowsLoader(self.columns, catalogue, largest, propensity, ties)

    def item_columns(self) -> Iterable[tuple[Any, str]]:
        """Yield tables or batches with all items, and the name of their column."""
        raise NotImplementedError

    def largest_gain(self) -> float:
        """Return the largest gain in a row."""
        raise NotImplementedError
