"""Blocks of users from rows of two Arrow tables: recommendations and relevant items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from ..core.hashing import digest_labels
from ..errors import InvalidDataError
from ..inputs.axes import Axis
from ..inputs.list_rows import last_positions, order_rows, repeated_item
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from ..inputs.side_data import SideData
from .sources import Block

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from ..core.types import AnyArray, Floats, Integers, Items
    from ..inputs.propensity import KeyedPropensity
    from ..inputs.scan import RankingsScan, RelevanceScan
    from ..inputs.tables import Table

#: What ids are.
IdKind: TypeAlias = Literal["integer", "text"]

_MAX_RANK = np.iinfo(np.int32).max

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

    @classmethod
    def of(
        cls,
        rankings: RankingsScan,
        relevance: RelevanceScan,
        recs: Table,
        truth: Table,
    ) -> Columns:
        """Choose from the columns of both tables.

        Raises
        ------
        InvalidDataError
            As `choose_columns`.
        """
        lists, gains = rankings.choose(recs).names, relevance.choose(truth).names
        return cls(
            tuple(map(str, lists.values())), "rank" in lists, tuple(map(str, gains.values()))
        )


@dataclass(frozen=True)
class RowsLoader:
    """Turn all rows of some users, in two tables, into a block.

    Attributes
    ----------
    columns : Columns
    catalogue : ndarray or None
        Every item of both tables, sorted, where metrics depend on it.
    largest_gain : float or None
        Where metrics depend on it.
    propensity : KeyedPropensity or None
        Where metrics weight hits by it.
    """

    columns: Columns
    catalogue: AnyArray | None = None
    largest_gain: float | None = None
    propensity: KeyedPropensity | None = None

    @cached_property
    def digest(self) -> str | None:
        """A digest of the catalogue."""
        return None if self._items is None else digest_labels(self._items)

    @cached_property
    def _items(self) -> AnyArray | None:
        """The catalogue with all items that have a propensity, as in memory."""
        if self.catalogue is None or self.propensity is None:
            return self.catalogue
        return self.propensity.union(self.catalogue)

    def __call__(self, tables: tuple[pa.Table, pa.Table]) -> Block:
        """Return the block of all users who have rows in either table, in any order.

        Raises
        ------
        InvalidDataError
            If a row cannot be used: user and item are named.
        """
        recs, truth = tables
        columns = self.columns
        users, items = check_id_kinds(recs.schema, truth.schema, columns)
        user_ids, list_users, relevant_users = _encode(recs, truth, columns, 0, users)
        item_ids, list_items, relevant_items = _encode(
            recs,
            truth,
            columns,
            1,
            items,
            self._items,
            largest=max(1 << 20, 4 * (len(recs) + len(truth))),
        )
        labels, list_rows, relevant_rows = _number_users(list_users, relevant_users)
        names = _Names(labels if user_ids is None else user_ids[labels], item_ids)
        n_items = 1 + max(int(list_items.max(initial=-1)), int(relevant_items.max(initial=-1)))
        if self._items is not None:
            n_items = len(self._items)
        shape = (len(labels), n_items)
        rankings = _rankings(recs, columns, shape, list_rows, list_items, names)
        relevance = _relevance(truth, columns, shape, relevant_rows, relevant_items, names)
        if items == "text":  # a user's fingerprint is made of labels, as that of a frame is
            relevance = replace(relevance, items_index=Axis.unchecked(item_ids))
        largest = self.largest_gain
        if largest is not None and relevance.gains.max(initial=0.0) > largest:
            entry = int(relevance.gains.argmax())
            raise InvalidDataError(
                f"{names.pair(relevance.indptr, relevance.items, entry)} is in several rows of "
                f"{TRUTH}, with a sum of {relevance.gains[entry]:g}, and one of the metrics "
                f"depends on the largest gain, which is {largest:g} in a single row; add up the "
                "rows of each user and item first"
            )
        side_data = SideData(n_items, largest_gain=largest)
        if self.propensity is not None:
            used = np.zeros(n_items, bool)
            used[list_items] = used[relevant_items] = True
            ids = np.arange(n_items) if item_ids is None else item_ids
            side_data = replace(
                side_data,
                propensity=self.propensity.of_items(ids, used),
                propensity_digest=self.propensity.digest,
            )
        digest = self.digest
        return Block(0, rankings, relevance, side_data, item_ids=item_ids, items_digest=digest)


def id_kind(dtype: Any, name: str, where: str) -> IdKind:
    """Return what ids of an Arrow type are, or raise `InvalidDataError`."""
    import pyarrow as pa

    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if pa.types.is_integer(dtype):
        return "integer"
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return "text"
    if hasattr(pa.types, "is_string_view") and pa.types.is_string_view(dtype):
        return "text"
    raise InvalidDataError(
        f"{where}: column {name!r} holds {dtype}; expected ids that are whole numbers or text, so "
        "cast it",
        column=name,
    )


def check_id_kinds(recs: pa.Schema, truth: pa.Schema, columns: Columns) -> tuple[IdKind, IdKind]:
    """Return what users and items are in two schemas, or raise if they differ."""
    kinds: list[IdKind] = []
    for number in (0, 1):
        names = columns.recs[number], columns.truth[number]
        ours = id_kind(recs.field(names[0]).type, names[0], RECS)
        theirs = id_kind(truth.field(names[1]).type, names[1], TRUTH)
        if ours != theirs:
            raise InvalidDataError(
                f"column {names[0]!r} holds {recs.field(names[0]).type} in {RECS} and column "
                f"{names[1]!r} {truth.field(names[1]).type} in {TRUTH}, so that none would be "
                "found in the other; cast one of them"
            )
        kinds.append(ours)
    return kinds[0], kinds[1]


class _Names(NamedTuple):
    """What rows and columns are called in the tables."""

    users: AnyArray
    items: AnyArray | None

    def pair(self, indptr: Integers, items: Items, entry: int) -> str:
        """Return the user and item of an entry of a CSR."""
        row = int(np.searchsorted(indptr, entry, side="right")) - 1
        return f"user {np.asarray(self.users[row]).item()!r}, {self.item(items[entry])}"

    def item(self, column: int) -> str:
        """Return the item of a column."""
        label = column if self.items is None else self.items[column]
        return f"item {np.asarray(label).item()!r}"


def _encode(
    recs: pa.Table,
    truth: pa.Table,
    columns: Columns,
    number: int,
    kind: IdKind,
    catalogue: AnyArray | None = None,
    largest: int | None = None,
) -> tuple[AnyArray | None, Integers, Integers]:
    """Return the ids that codes stand for, None if for themselves, and the codes of both tables.

    Codes are from 0 to `largest`, if that is given.
    """
    import pyarrow as pa

    name = columns.recs[number]
    sides = [
        whole_column(table, names[number])
        for table, names in ((recs, columns.recs), (truth, columns.truth))
    ]
    if kind == "text":
        sides = [side.cast(pa.large_string()) for side in sides]
        both = pa.concat_arrays(sides).dictionary_encode()
        distinct = to_texts(both.dictionary)
        if any(not text or text.isspace() for text in distinct.tolist()):
            raise InvalidDataError(
                f"column {name!r} holds an id that is empty or blank; every row needs one",
                column=name,
            )
        ids = distinct[np.argsort(distinct)] if catalogue is None else catalogue
        codes = np.searchsorted(ids, distinct)[both.indices.to_numpy()]
    else:
        codes = np.concatenate([to_integers(side, name) for side in sides])
        ids = None
        if catalogue is not None:
            ids, codes = catalogue, np.searchsorted(catalogue, codes)
        elif (
            largest is not None and len(codes) and not (codes.min() >= 0 and codes.max() <= largest)
        ):
            ids, codes = np.unique(codes, return_inverse=True)
    return ids, codes[: len(sides[0])], codes[len(sides[0]) :]


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
    return column if isinstance(column, pa.Array) else column.combine_chunks()


def to_texts(column: Any) -> AnyArray:
    """Return a column of text as an array of str."""
    return np.array(column.to_pylist(), object)


def to_integers(column: Any, name: str) -> Integers:
    """Return a column of whole numbers as int64, or raise if one does not fit."""
    numbers = column.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.uint64 and len(numbers) and numbers.max() >= 2**63:
        raise InvalidDataError(
            f"column {name!r} holds {numbers.max()}; expected whole numbers below 2^63", column=name
        )
    return np.asarray(numbers, np.int64)


def union_of_items(batches: Iterable[tuple[Any, str]], kind: IdKind) -> AnyArray:
    """Return every item in the named column of some batches or tables, sorted."""
    import pyarrow.compute as pc

    texts: set[str] = set()
    numbers = np.empty(0, np.int64)
    for batch, name in batches:
        distinct = pc.unique(whole_column(batch, name))
        if kind == "text":
            texts.update(to_texts(distinct))
        else:
            numbers = np.union1d(numbers, to_integers(distinct, name))
    return np.array(sorted(texts), object) if kind == "text" else numbers


def _number_users(listed: Integers, relevant: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the users on either side, sorted, and the position of each row's user among them."""
    sides = []
    for ids in (listed, relevant):  # the rows of a user are mostly beside each other
        starts = np.flatnonzero(np.append(np.ones(min(len(ids), 1), bool), ids[1:] != ids[:-1]))
        sides.append((ids[starts], np.diff(np.append(starts, len(ids)))))
    users = np.union1d(sides[0][0], sides[1][0])
    rows = [np.repeat(np.searchsorted(users, ids), lengths) for ids, lengths in sides]
    return users, rows[0], rows[1]


def _by_user(rows: Integers, n_users: int) -> tuple[Integers, Integers | slice]:
    """Return the bounds of each user's rows, and an order that brings them together."""
    indptr = np.zeros(n_users + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=n_users), out=indptr[1:])
    if (rows[1:] >= rows[:-1]).all():
        return indptr, slice(None)
    return indptr, np.argsort(rows, kind="stable")


def _rankings(
    recs: pa.Table,
    columns: Columns,
    shape: tuple[int, int],
    rows: Integers,
    items: Integers,
    names: _Names,
) -> Rankings:
    name = columns.recs[2]
    values = _numbers(recs, name, exact=not columns.ranked)
    indptr, order = _by_user(rows, shape[0])
    listed, values = items[order].astype(np.int32), values[order]
    if columns.ranked:
        bad = ~((values >= 1) & (values <= _MAX_RANK) & (values == np.floor(values)))
        expected = "a whole number of at least 1"
    else:
        bad = ~np.isfinite(values)
        expected = "a finite number"
    if bad.any():
        entry = int(bad.argmax())
        raise InvalidDataError(
            f"column {name!r} of {RECS} ({names.pair(indptr, listed, entry)}): expected "
            f"{expected}, found {values[entry]:g}",
            column=name,
        )
    positions = None
    if columns.ranked:
        listed, positions, fault = order_rows(indptr, listed, values.astype(np.int32))
        if fault is not None:
            entry = fault[1]
            raise InvalidDataError(
                f"rank {positions[entry]} is given twice ({names.pair(indptr, listed, entry)}, and "
                f"{names.item(listed[entry - 1])}); a rank can be taken once"
            )
    else:
        users = np.repeat(np.arange(shape[0]), np.diff(indptr))
        listed = listed[np.lexsort((listed, -values, users))]
    repeated = repeated_item(indptr, listed)
    if repeated is not None:
        raise InvalidDataError(
            f"{names.pair(indptr, listed, repeated[1])} is twice in {RECS}; remove the "
            "repetition, because a repeated hit would be counted twice"
        )
    lengths = np.diff(indptr)
    if positions is not None:
        lengths = last_positions(indptr, positions)
        if (lengths == np.diff(indptr)).all():  # distinct, and as many as the last one
            positions = None
    return Rankings(shape, indptr, listed, positions, lengths)


def _relevance(
    truth: pa.Table,
    columns: Columns,
    shape: tuple[int, int],
    rows: Integers,
    items: Integers,
    names: _Names,
) -> Relevance:
    name = columns.truth[2] if len(columns.truth) > 2 else None
    indptr, order = _by_user(rows, shape[0])
    relevant = items[order].astype(np.int32)
    gains = np.ones(len(items)) if name is None else _numbers(truth, name)[order]
    bad = ~(np.isfinite(gains) & (gains >= 0))
    if bad.any():
        entry = int(bad.argmax())
        raise InvalidDataError(
            f"column {name!r} of {TRUTH} ({names.pair(indptr, relevant, entry)}): expected a "
            f"finite number of at least 0, found {gains[entry]:g}",
            column=name,
        )
    if repeated_item(indptr, relevant) is not None:
        # In ascending order of the gains, so that the order of the rows does not show.
        users = np.repeat(np.arange(shape[0]), np.diff(indptr))
        order = np.lexsort((gains, relevant, users))
        users, relevant, gains = users[order], relevant[order], gains[order]
        is_new = np.ones(len(relevant), bool)
        is_new[1:] = (relevant[1:] != relevant[:-1]) | (users[1:] != users[:-1])
        starts = np.flatnonzero(is_new)
        with np.errstate(over="ignore"):
            gains = np.add.reduceat(gains, starts)
        indptr, relevant = np.searchsorted(starts, indptr), relevant[starts]
        if not np.isfinite(gains).all():
            entry = int(np.isinf(gains).argmax())
            raise InvalidDataError(
                f"the sum of the gains of {names.pair(indptr, relevant, entry)} is beyond float64; "
                f"scale column {name!r} down",
                column=name,
            )
    matrix = sparse.csr_matrix((gains, relevant, indptr), shape=shape)
    return Relevance.from_csr(matrix, users=Axis.unchecked(names.users))


def _numbers(table: pa.Table, name: str, *, exact: bool = False) -> Floats:
    """Return a column of ranks, scores or gains; if `exact`, raise if float64 rounds one."""
    column = whole_column(table, name)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf":
        raise InvalidDataError(f"column {name!r} holds {column.type}; expected numbers")
    if exact and values.dtype.kind in "iu" and values.dtype.itemsize == 8 and len(values):
        for value in (int(values.min()), int(values.max())):
            if abs(value) > 2**53:
                raise InvalidDataError(
                    f"column {name!r} holds {value}, a whole number beyond 2^53, which float64 "
                    "cannot tell from its neighbours; give ranks, or scores as floats",
                    column=name,
                )
    return np.asarray(values, np.float64)
