"""Users' rows of tables, as columns of Arrow: recommendations and what is relevant, evaluated.

What is known of a table is its columns; where the rows come from, and which users they are about,
is the business of those who read them: `parquet` here, and the engines of `scale`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.hashing import fingerprints
from ..errors import InvalidDataError
from ..inputs.rankings import Rankings, last_positions, order_rows, repeated_item
from ..inputs.relevance import Relevance
from ..inputs.side_data import Context
from ..metrics.measure import needs_catalogue, needs_largest_gain
from ..results.once import Question, terms_of
from ..results.parts import digest_of_labels
from .blocks import Block, evaluate_block

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..results.parts import Part

    Integers = NDArray[np.int64]

__all__ = [
    "Columns",
    "Known",
    "check_types",
    "evaluate_rows",
    "integers_of",
    "kind_of",
    "texts_of",
    "whole_column",
]

#: Items whose numbers are at most this stand for themselves: arrays may be as long.
_DENSE = 1 << 20

_MAX_RANK = np.iinfo(np.int32).max


class Columns(NamedTuple):
    """The names of the columns of both tables.

    Attributes
    ----------
    user, item : str
        Of both.
    rank, score : str or None
        Of the recommendations; one of them.
    gain : str or None
        Of what is relevant; without it every row counts 1.
    """

    user: str
    item: str
    rank: str | None
    score: str | None
    gain: str | None

    @property
    def of_recs(self) -> list[str]:
        """What is read of the recommendations."""
        return [self.user, self.item, self.order]

    @property
    def of_truth(self) -> list[str]:
        """What is read of what is relevant."""
        return [self.user, self.item] + ([] if self.gain is None else [self.gain])

    @property
    def order(self) -> str:
        """The column that recommendations are ordered by."""
        name = self.score if self.rank is None else self.rank
        assert name is not None  # noqa: S101 - `settled` makes it so
        return name

    def settled(self, recs: list[str], truth: list[str]) -> Columns:
        """Choose what was left open by the columns there are, or raise `InvalidDataError`."""
        if self.rank is not None and self.score is not None:
            raise InvalidDataError("give one of rank= and score=, the column to order by")
        found = self
        if self.rank is None and self.score is None:
            given = [name for name in ("rank", "score") if name in recs]
            if len(given) != 1:
                raise InvalidDataError(
                    f"the recommendations have {'both' if given else 'none of'} the columns 'rank' "
                    f"and 'score', among {', '.join(recs)}; say rank= or score="
                )
            found = found._replace(**{given[0]: given[0]})
        if self.gain is None and "gain" in truth:
            found = found._replace(gain="gain")
        for wanted in (found.of_recs, found.of_truth):
            if len(set(wanted)) < len(wanted):
                raise InvalidDataError(
                    f"columns {', '.join(wanted)} are to be read, one of them twice; name another "
                    "for each of user, item, and rank, score or gain"
                )
        for name, wanted, there in (
            ("the recommendations", found.of_recs, recs),
            ("what is relevant", found.of_truth, truth),
        ):
            for column in wanted:
                if there.count(column) != 1:
                    n = "several columns" if column in there else "no column"
                    raise InvalidDataError(
                        f"{name}: expected one column {column!r}, found {n} of this name among "
                        f"{', '.join(there)}"
                    )
        return found


@dataclass(frozen=True)
class Known:
    """What is known of all users before a block of them is evaluated.

    Attributes
    ----------
    catalogue : ndarray or None
        Every item of both tables, sorted, where metrics depend on it.
    largest_gain : float or None
        Where metrics depend on it.
    """

    catalogue: NDArray[Any] | None = None
    largest_gain: float | None = None

    @cached_property
    def digest(self) -> str | None:
        """16 hexadecimal digits that tell the catalogue."""
        return None if self.catalogue is None else digest_of_labels(self.catalogue)

    @staticmethod
    def needed(question: Question) -> tuple[bool, bool]:
        """Say whether the catalogue and the largest gain have to be known."""
        plans = terms_of(question).plans
        return needs_catalogue(plans), needs_largest_gain(plans)


def kind_of(column: Any, name: str, where: str) -> str:
    """Return "integer" or "text", what the ids of an Arrow column are, or raise."""
    import pyarrow as pa

    dtype = column.type if hasattr(column, "type") else column
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
        "cast it"
    )


def check_types(recs: Any, truth: Any, columns: Columns) -> dict[str, str]:
    """Return what users and items are in two Arrow schemas, or raise where they differ."""
    kinds = {}
    for name in (columns.user, columns.item):
        found = [
            kind_of(schema.field(name).type, name, where)
            for schema, where in ((recs, "the recommendations"), (truth, "what is relevant"))
        ]
        if found[0] != found[1]:
            raise InvalidDataError(
                f"column {name!r} holds {recs.field(name).type} in the recommendations and "
                f"{truth.field(name).type} in what is relevant, so that none would be found in the "
                "other; cast one of them"
            )
        kinds[name] = found[0]
    return kinds


def evaluate_rows(
    question: Question,
    columns: Columns,
    recs: Any,
    truth: Any,
    known: Known,
    per_user: bool,
    num_threads: int | None = None,
) -> Part:
    """Evaluate all users who have rows in two Arrow tables.

    Parameters
    ----------
    question : Question
    columns : Columns
        Settled.
    recs, truth : pyarrow.Table
        All rows of these users, in any order.
    known : Known
    per_user : bool
    num_threads : int, optional

    Raises
    ------
    InvalidDataError
        If a row cannot be used: user and item are named.
    """
    import pandas as pd

    kinds = check_types(recs.schema, truth.schema, columns)
    users, listed, held = _encoded(recs, truth, columns.user, kinds[columns.user])
    items, list_items, held_items = _encoded(
        recs,
        truth,
        columns.item,
        kinds[columns.item],
        known.catalogue,
        most=max(_DENSE, 4 * (len(recs) + len(truth))),
    )
    labels, list_rows, held_rows = _numbered(listed, held)
    named = _Named(columns, labels if users is None else users[labels], items)
    n_items = 1 + max(int(list_items.max(initial=-1)), int(held_items.max(initial=-1)))
    if known.catalogue is not None:
        n_items = len(known.catalogue)
    shape = (len(labels), n_items)
    rankings = _rankings(recs, columns, shape, list_rows, list_items, named)
    relevance = _relevance(truth, columns, shape, held_rows, held_items, named)
    if kinds[columns.item] == "text":  # a user's fingerprint is made of labels, as of a frame
        relevance = replace(relevance, items_index=pd.Index(items, dtype=object))
    _check_largest(relevance, columns, known.largest_gain, named)
    context = Context(n_items, largest_gain=known.largest_gain)
    part = evaluate_block(
        terms_of(question), Block(0, rankings, relevance), context, per_user, num_threads
    )
    part = replace(part, terms=part.terms._replace(items=known.digest))
    if part.rows is None or items is None or kinds[columns.item] == "text":
        return part
    # Of the ids, whose columns are others in each block.
    prints = fingerprints(relevance.indptr, items[relevance.items], relevance.gains, None)
    return replace(part, rows=replace(part.rows, fingerprints=prints))


def _check_largest(
    relevance: Relevance, columns: Columns, largest: float | None, named: _Named
) -> None:
    """Refuse rows of one pair whose gains are together more than the largest of any row."""
    if largest is None or relevance.gains.max(initial=0.0) <= largest:
        return
    entry = int(relevance.gains.argmax())
    pair = named.at(relevance.indptr, relevance.items, entry)
    raise InvalidDataError(
        f"{pair} is in several rows of what is relevant, with a sum of "
        f"{relevance.gains[entry]:g}, and one of the metrics depends on the largest gain, "
        f"which is {largest:g} in a single row; add up the rows of each {columns.user!r} and "
        f"{columns.item!r} first"
    )


class _Named(NamedTuple):
    """What rows and columns are called in the tables."""

    columns: Columns
    users: NDArray[Any]
    items: NDArray[Any] | None

    def at(self, indptr: Integers, items: NDArray[np.int32], entry: int) -> str:
        """Name user and item of an entry of a CSR."""
        row = int(np.searchsorted(indptr, entry, side="right")) - 1
        return self.pair(row, items[entry])

    def pair(self, row: int, item: int) -> str:
        label = item if self.items is None else self.items[item]
        user = np.asarray(self.users[row]).item()
        return f"user {user!r}, item {np.asarray(label).item()!r}"


def _encoded(
    recs: Any,
    truth: Any,
    name: str,
    kind: str,
    catalogue: NDArray[Any] | None = None,
    most: int | None = None,
) -> tuple[NDArray[Any] | None, Integers, Integers]:
    """Return ids of both tables as whole numbers, and what these stand for: None, themselves.

    They are from 0 to `most`, if that is given.
    """
    sides = [whole_column(table, name) for table in (recs, truth)]
    if kind == "text":
        import pyarrow as pa

        sides = [side.cast(pa.large_string()) for side in sides]
        both = pa.concat_arrays(sides).dictionary_encode()
        distinct = texts_of(both.dictionary, name)
        if any(not text or text.isspace() for text in distinct.tolist()):
            raise InvalidDataError(
                f"column {name!r} holds an id that is empty or blank; every row needs one"
            )
        labels = distinct[np.argsort(distinct)] if catalogue is None else catalogue
        codes = np.searchsorted(labels, distinct)[both.indices.to_numpy()]
    else:
        codes = np.concatenate([integers_of(side, name) for side in sides])
        labels = None
        if catalogue is not None:
            labels, codes = catalogue, np.searchsorted(catalogue, codes)
        elif most is not None and len(codes) and not (codes.min() >= 0 and codes.max() <= most):
            labels, codes = np.unique(codes, return_inverse=True)
    return labels, codes[: len(sides[0])], codes[len(sides[0]) :]


def whole_column(table: Any, name: str) -> Any:
    """Return a column of a table or batch in one piece, which has something in every row."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise InvalidDataError(
            f"column {name!r} is empty (null) in {column.null_count} of {len(column)} rows; "
            "expected an id, a rank or a number in each"
        )
    return column if isinstance(column, pa.Array) else column.combine_chunks()


def texts_of(column: Any, name: str) -> NDArray[Any]:
    """Return a column of text as an array of str, or raise where it is none."""
    try:
        return np.array(column.to_pylist(), object)
    except UnicodeDecodeError as error:
        raise InvalidDataError(
            f"column {name!r} holds text that is not UTF-8 ({error}); expected ids in UTF-8"
        ) from None


def integers_of(column: Any, name: str) -> Integers:
    """Return a column of whole numbers as int64, or raise where one does not fit."""
    numbers = column.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.uint64 and len(numbers) and numbers.max() >= 2**63:
        raise InvalidDataError(
            f"column {name!r} holds {numbers.max()}; expected whole numbers below 2^63"
        )
    return np.asarray(numbers, np.int64)


def _numbered(listed: Integers, held: Integers) -> tuple[Integers, Integers, Integers]:
    """Return who there is on either side, sorted, and the place of each row's user among them."""
    sides = [_runs(side) for side in (listed, held)]
    labels = np.union1d(sides[0][0], sides[1][0])
    rows = [np.repeat(np.searchsorted(labels, ids), lengths) for ids, lengths in sides]
    return labels, rows[0], rows[1]


def _runs(ids: Integers) -> tuple[Integers, Integers]:
    """Return ids, each of a stretch of rows once, and how long the stretches are.

    The rows of a user are mostly beside each other.
    """
    starts = np.flatnonzero(np.concatenate((np.ones(min(len(ids), 1), bool), ids[1:] != ids[:-1])))
    return ids[starts], np.diff(np.append(starts, len(ids)))


def _by_user(rows: Integers, n_users: int) -> tuple[Integers, Any]:
    """Return the bounds of each user's rows, and an order that brings them together."""
    indptr = np.zeros(n_users + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=n_users), out=indptr[1:])
    if (rows[1:] >= rows[:-1]).all():
        return indptr, slice(None)
    return indptr, np.argsort(rows, kind="stable")


def _rankings(
    recs: Any,
    columns: Columns,
    shape: tuple[int, int],
    rows: Integers,
    items: Integers,
    named: _Named,
) -> Rankings:
    values = _numbers(recs, columns.order, exact=columns.rank is None)
    indptr, order = _by_user(rows, shape[0])
    listed, values = items[order].astype(np.int32), values[order]
    if columns.rank is None:
        bad = ~np.isfinite(values)
        expected = "a finite number"
    else:
        bad = ~((values >= 1) & (values <= _MAX_RANK) & (values == np.floor(values)))
        expected = "a whole number of at least 1"
    if bad.any():
        entry = int(bad.argmax())
        raise InvalidDataError(
            f"column {columns.order!r} of the recommendations ({named.at(indptr, listed, entry)}): "
            f"expected {expected}, found {values[entry]:g}"
        )
    if columns.rank is None:
        owners = np.repeat(np.arange(shape[0]), np.diff(indptr))
        listed = listed[np.lexsort((listed, -values, owners))]
        positions = None
    else:
        listed, positions, fault = order_rows(indptr, listed, values.astype(np.int32))
        if fault is not None:
            row, entry = fault
            raise InvalidDataError(
                f"rank {positions[entry]} is given twice ({named.pair(row, listed[entry])}, and "
                f"item {named.pair(row, listed[entry - 1]).partition('item ')[2]}); a rank can be "
                "taken once"
            )
    fault = repeated_item(indptr, listed)
    if fault is not None:
        row, entry = fault
        raise InvalidDataError(
            f"{named.pair(row, listed[entry])} is twice in the recommendations; remove the "
            "repetition, because a repeated hit would be counted twice"
        )
    lengths = np.diff(indptr)
    if positions is not None:
        lengths = last_positions(indptr, positions)
        if (lengths == np.diff(indptr)).all():  # distinct, and as many as the last one
            positions = None
    return Rankings(shape, indptr, listed, positions, lengths)


def _relevance(
    truth: Any,
    columns: Columns,
    shape: tuple[int, int],
    rows: Integers,
    items: Integers,
    named: _Named,
) -> Relevance:
    import pandas as pd

    indptr, order = _by_user(rows, shape[0])
    held = items[order].astype(np.int32)
    gains = np.ones(len(items)) if columns.gain is None else _numbers(truth, columns.gain)[order]
    bad = ~(np.isfinite(gains) & (gains >= 0))
    if bad.any():
        entry = int(bad.argmax())
        raise InvalidDataError(
            f"column {columns.gain!r} of what is relevant ({named.at(indptr, held, entry)}): "
            f"expected a finite number of at least 0, found {gains[entry]:g}"
        )
    if repeated_item(indptr, held) is not None:
        indptr, held, gains = _summed(indptr, held, gains)
        if not np.isfinite(gains).all():
            entry = int(np.isinf(gains).argmax())
            raise InvalidDataError(
                f"the sum of the gains of {named.at(indptr, held, entry)} is beyond float64; scale "
                f"column {columns.gain!r} down"
            )
    matrix = sparse.csr_matrix((gains, held, indptr), shape=shape)
    return Relevance.from_csr(matrix, users=pd.Index(named.users))


def _summed(
    indptr: Integers, items: NDArray[np.int32], gains: NDArray[np.float64]
) -> tuple[Integers, NDArray[np.int32], NDArray[np.float64]]:
    """Add up the gains of each pair, in ascending order: the order of the rows does not show."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((gains, items, rows))
    items, gains = items[order], gains[order]
    new = np.ones(len(items), bool)
    new[1:] = (items[1:] != items[:-1]) | (rows[1:] != rows[:-1])
    starts = np.flatnonzero(new)
    with np.errstate(over="ignore"):
        gains = np.add.reduceat(gains, starts)
    return np.searchsorted(starts, indptr), items[starts], gains


def _numbers(table: Any, name: str, *, exact: bool = False) -> NDArray[np.float64]:
    """Return a column of ranks, scores or gains, or raise if `exact` and float64 rounds one."""
    column = whole_column(table, name)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf":
        raise InvalidDataError(f"column {name!r} holds {column.type}; expected numbers")
    if exact and values.dtype.kind in "iu" and values.dtype.itemsize == 8 and len(values):
        for value in (int(values.min()), int(values.max())):
            if abs(value) > 2**53:
                raise InvalidDataError(
                    f"column {name!r} holds {value}, a whole number beyond 2^53, which float64 "
                    "cannot tell from its neighbours; give ranks, or scores as floats"
                )
    return np.asarray(values, np.float64)
