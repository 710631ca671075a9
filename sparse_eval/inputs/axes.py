"""`Axis`: the labels of users or items, how ids are encoded, and how labels are matched.

Text is kept and compared in Arrow, whole numbers in NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from copy import copy
from functools import cached_property, partial
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..core.arrays import as_array, describe, is_frame, of_arrow, to_arrow
from ..core.csr import gather
from ..core.hashing import hash_labels
from ..errors import InvalidDataError
from .column_values import as_ids, decoded, is_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from ..core.types import AnyArray, Booleans, Hashes, Integers, Items

#: Whole numbers are numbered by a table of all numbers between the smallest and the largest. These
#: may be at most so many times as many as there are rows.
_SPARSE = 8


class Axis:
    """Axis of users or items: distinct, none missing, in a fixed order.

    It is a sequence of labels, and converts to a `pandas.Index` by `index` and to an array by
    `numpy.asarray`. `Axis.of` makes one of any labels.

    Parameters
    ----------
    values : pyarrow.Array of large_string, or ndarray of int64
    are_numbers : bool
        Whether the labels are only the numbers of the rows or columns, from 0 on.
    by_id : bool
        Whether this package numbered the rows or columns from ids, as for a table. Their numbers
        then mean nothing elsewhere.
    written : bool
        Whether whole numbers were read from a text file, where they may be text as well.

    Examples
    --------
    >>> axis = Axis.of(["ann", "bob"])
    >>> axis.locate(["bob", "eve"])
    array([ 1, -1])
    >>> axis.index.tolist()
    ['ann', 'bob']
    """

    def __init__(
        self,
        values: pa.Array | AnyArray,
        *,
        are_numbers: bool = False,
        by_id: bool = False,
        written: bool = False,
    ) -> None:
        self._values = values
        self.are_numbers = are_numbers
        self.by_id = by_id
        self.written = written

    @classmethod
    def numbers(cls, n: int) -> Axis:
        """Return the labels 0 to n − 1 of rows or columns that have no other labels."""
        return cls(np.arange(n), are_numbers=True)

    @classmethod
    def unchecked(cls, labels: Any) -> Axis:
        """Return labels that are known to be distinct and complete."""
        return labels if isinstance(labels, Axis) else cls(as_labels(labels))

    @classmethod
    def of(cls, labels: Any, name: str = "labels", n: int | None = None) -> Axis:
        """Check `n` labels, called `name` in messages.

        Raises `InvalidDataError` if labels are missing, repeated or cannot be hashed, or their
        number differs.
        """
        if isinstance(labels, Axis):
            axis = labels
        else:
            expected = "a label for each of them, in order"
            if isinstance(labels, str | bytes | Mapping | Set) or is_frame(labels):
                raise InvalidDataError(
                    f"{name} is {describe(labels)}; expected {expected}", argument=name
                )
            if hasattr(labels, "__dlpack__"):
                labels = as_array(labels, name, expected)
            axis = _checked(labels, name)
            # A range from 0 on is the index of a frame without ids.
            axis.are_numbers = hasattr(labels, "step") and (labels.start, labels.step) == (0, 1)
        if n is not None and len(axis) != n:
            raise InvalidDataError(
                f"{name} has {len(axis)} labels; the matrix has {n} {name}", argument=name
            )
        return axis

    @property
    def is_text(self) -> bool:
        """Whether all labels are text."""
        return not isinstance(self._values, np.ndarray)

    @property
    def is_integer(self) -> bool:
        """Whether all labels are whole numbers."""
        return not self.is_text

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the labels as an array; object for text."""
        return self._values.dtype if isinstance(self._values, np.ndarray) else np.dtype(object)

    @property
    def _column(self) -> Any:
        """The labels as an array of Arrow."""
        return self._values if self.is_text else to_arrow(self._values)

    @cached_property
    def index(self) -> pd.Index[Any]:
        """The labels as an index of pandas."""
        import pandas as pd

        if self.are_numbers:
            return pd.RangeIndex(len(self))
        values: Any = self._values
        index: pd.Index[Any] = pd.Index(values.to_pandas() if self.is_text else values)
        return index

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.to_numpy(), dtype=dtype, copy=copy)

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> Any: ...
    @overload
    def __getitem__(self, rows: slice | AnyArray | Sequence[int]) -> Axis: ...
    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            if step == 1:
                values = self._values[first : max(first, last)]
                return Axis(values, by_id=self.by_id, written=self.written)
            return self.take(np.arange(first, last, step))
        if isinstance(rows, int | np.integer):
            label = self._values[int(rows)]
            label = label.as_py() if self.is_text else label
            return label.item() if isinstance(label, np.generic) else label
        rows = np.asarray(rows)
        return self.take(np.flatnonzero(rows) if rows.dtype == bool else rows)

    def __reduce__(self) -> tuple[Any, ...]:
        values = self._values
        if not isinstance(values, np.ndarray):
            import pyarrow as pa

            values = pa.concat_arrays([values])  # a slice would take its whole buffers along
        flags = {name: getattr(self, name) for name in ("are_numbers", "by_id", "written")}
        return Axis, (values,), flags

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3].tolist()))
        return f"<Axis: {len(self)} labels{f': {shown}' if shown else ''}{', …' * (len(self) > 3)}>"

    def tolist(self) -> list[Any]:
        """Return the labels as objects of Python."""
        values = self._values
        return list(values.tolist() if isinstance(values, np.ndarray) else values.to_pylist())

    def to_numpy(self) -> AnyArray:
        """Return the labels as an array, text as one of objects."""
        values = self._values
        if isinstance(values, np.ndarray):
            return values
        texts: AnyArray = values.to_numpy(zero_copy_only=False)
        return texts

    def take(self, rows: AnyArray) -> Axis:
        """Return the labels of some rows, which are distinct."""
        rows = np.asarray(rows)
        values = self._values.take(to_arrow(rows) if self.is_text else rows)
        return Axis(values, by_id=self.by_id, written=self.written)

    def marked(self, by_id: bool) -> Axis:
        """Return the same labels with another `by_id`."""
        if by_id == self.by_id:
            return self
        axis = copy(self)
        axis.by_id = by_id
        return axis

    def as_text(self) -> Axis:
        """Return whole numbers from a text file as text, and any other labels as they are."""
        if not (self.written and self.is_integer):
            return self
        import pyarrow as pa

        return Axis(self._column.cast(pa.large_string()), by_id=self.by_id)

    def equals(self, other: Any) -> bool:
        """Return whether another has the same labels in the same order."""
        if other is self:
            return True
        other = other if isinstance(other, Axis) else Axis.of(other)
        if len(other) != len(self) or other.is_text != self.is_text:
            return False
        values: Any = self._values
        same = values.equals if self.is_text else partial(np.array_equal, values)
        return bool(same(other._values))

    def locate(self, labels: Any) -> Integers:
        """Return the position of each given label, which may be repeated; -1 if there is none."""
        other = Axis.unchecked(labels)
        if other is self:
            return np.arange(len(self))
        if self.is_text != other.is_text or not len(self):
            return np.full(len(other), -1, np.int64)
        import pyarrow.compute as pc

        # Not by the index of pandas, which threads may not build at the same time.
        found = pc.index_in(other._column, value_set=self._column)
        positions = np.full(len(found), -1, np.int64)
        positions[of_arrow(found.is_valid())] = of_arrow(found.drop_null())
        return positions

    get_indexer = locate

    def get_loc(self, label: Hashable) -> int:
        """Return the position of one label, or raise KeyError."""
        position = int(self.locate([label])[0])
        if position < 0:
            raise KeyError(label)
        return position

    def isin(self, other: Axis) -> Booleans:
        """Return a mask of the labels that another axis has too."""
        return np.asarray(other.locate(self) >= 0)

    def append(self, other: Axis) -> Axis:
        """Return the labels of both; no label of `other` may occur here.

        Raises `InvalidDataError` if only one of them has text.
        """
        if not len(other):
            return self
        if not len(self):
            return other
        if self.is_text != other.is_text:
            raise InvalidDataError(
                f"labels are text on one side only ({self[0]!r}, …, and {other[0]!r}, …); convert "
                "one of them"
            )
        if self.is_integer:
            return Axis(np.concatenate((self._values, other._values)), by_id=self.by_id)
        import pyarrow as pa

        return Axis(pa.concat_arrays([self._values, other._values]), by_id=self.by_id)

    def union(self, other: Axis) -> tuple[Integers, Axis]:
        """Return the positions of other labels in the union, where new ones come last; and that."""
        positions = self.locate(other)
        unknown = positions < 0
        positions[unknown] = len(self) + np.arange(np.count_nonzero(unknown))
        return positions, self.append(other[unknown])

    @cached_property
    def order(self) -> Integers | None:
        """The positions that sort the labels, as `order_of` does; None if they are sorted."""
        order = order_of(self)
        return None if (order[1:] > order[:-1]).all() else order

    @property
    def blank(self) -> Booleans:
        """Which labels of text are empty or white space."""
        import pyarrow.compute as pc

        texts = self._values
        blank: Booleans = of_arrow(pc.utf8_is_space(texts)) | (
            of_arrow(pc.binary_length(texts)) == 0
        )
        return blank

    @cached_property
    def hashes(self) -> Hashes:
        """A hash of each label, the same on every machine."""
        return hash_labels(self.to_numpy())

    @cached_property
    def item_keys(self) -> Hashes:
        """The key of each item in the fingerprints of users; whole numbers are their own keys."""
        if self.is_integer:
            return self.to_numpy().astype(np.int64).view(np.uint64)
        return np.array(
            [
                int.from_bytes(blake2b(str(label).encode(), digest_size=8).digest(), "little")
                for label in self.tolist()
            ],
            np.uint64,
        )


def label_of(axis: Axis | None, number: int) -> Any:
    """Return the label of a row or column, or its number if it has none."""
    return number if axis is None or number >= len(axis) else axis[number]


def encode(
    columns: Sequence[Any], given: Axis | None = None, first: Axis | None = None
) -> tuple[list[Items], Axis]:
    """Encode the ids of several columns together.

    Parameters
    ----------
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
        Text, whole numbers or floats, or dictionaries of them, without nulls.
    given : Axis, optional
        The labels to number by; any other id has the code -1.
    first : Axis, optional
        The labels that come first, even if they have no rows.

    Returns
    -------
    list of ndarray of int32
        The code of each row of each column.
    Axis
        The labels: `given`; or all ids in order, numbers by value, text by code points, after the
        labels of `first` if these are of the same type.
    """
    import pyarrow as pa

    chunks = [
        chunk
        for column in columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    ]
    bounds = np.cumsum([0, *map(len, columns)])
    tabulated = _by_table(chunks)
    if tabulated is not None:
        codes, found = tabulated
        if given is None and first is None:
            return [codes[a:b] for a, b in pairwise(bounds)], found
        used = np.ones(len(found), bool)
    else:
        encoded = [_plain(chunk).dictionary_encode() for chunk in chunks]
        if not encoded:
            encoded = [pa.array([], pa.large_string()).dictionary_encode()]
        if len(encoded) > 1:
            encoded = pa.chunked_array(encoded).unify_dictionaries().chunks
        distinct = encoded[0].dictionary
        codes = np.concatenate([of_arrow(chunk.indices) for chunk in encoded])
        used = np.bincount(codes, minlength=len(distinct)) > 0
        found = Axis(_of_arrow(distinct))
    if given is not None:
        places = given.locate(found).astype(np.int32)
    else:
        if first is None or first.is_text != found.is_text:
            first = found[:0]
        places = first.locate(found).astype(np.int32)
        rows = np.flatnonzero(used & (places < 0))
        rows = rows[order_of(found.take(rows) if len(rows) < len(found) else found)]
        places[rows] = len(first) + np.arange(len(rows), dtype=np.int32)
        given = first.append(found.take(rows)) if len(rows) else first
    codes = places[codes]
    return [codes[a:b] for a, b in pairwise(bounds)], given


def union_of(axes: Sequence[Axis]) -> tuple[list[Items], Axis]:
    """Return the positions of each axis's labels in the sorted union of all, and the union."""
    if all(axis.are_numbers for axis in axes):
        return [axis.to_numpy().astype(np.int32) for axis in axes], max(axes, key=len)
    codes, union = encode([axis._column for axis in axes])
    union.by_id, union.written = axes[0].by_id, all(axis.written for axis in axes)
    return codes, union


def _by_table(chunks: Sequence[Any]) -> tuple[Items, Axis] | None:
    """Return the codes of whole numbers, and the ids in order, by a table of all possible ones.

    Returns None if ids are something else, or too far apart.
    """
    from pyarrow import types

    kinds = {chunk.type for chunk in chunks}
    is_signed = all(types.is_integer(kind) and not types.is_uint64(kind) for kind in kinds)
    n_rows = sum(map(len, chunks))
    if not n_rows or not is_signed:
        return None
    places = np.empty(n_rows, np.int64)
    np.concatenate([of_arrow(chunk) for chunk in chunks if len(chunk)], out=places)
    least, most = int(places.min()), int(places.max())
    if most - least >= 2**63:
        return None
    places -= least
    step = max(int(np.gcd.reduce(places[:1000])), 1)  # of ids that are dealt out by remainders
    if step > 1 and (places % step).any():
        step = 1
    size = (most - least) // step + 1
    if size > _SPARSE * n_rows:
        return None
    if step > 1:
        places //= step
    is_used = np.zeros(size, bool)
    is_used[places] = True
    used = np.flatnonzero(is_used)
    codes = np.empty(len(is_used), np.int32)  # of the ids that are used; others are never read
    codes[used] = np.arange(len(used), dtype=np.int32)
    return gather(codes, places), Axis(used * step + least)


def order_of(axis: Axis) -> NDArray[np.intp]:
    """Return the order that sorts labels: numbers by value, text by code points."""
    if axis.is_integer:
        return np.argsort(axis.to_numpy(), kind="stable")
    import pyarrow.compute as pc

    order: NDArray[np.intp] = of_arrow(pc.sort_indices(axis._values)).astype(np.intp)
    return order


def _plain(chunk: Any) -> Any:
    """Return text as large_string and whole numbers as int64, or dictionaries of these."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(chunk.type):
        dictionary = _plain(chunk.dictionary)
        return pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), dictionary)
    return chunk.cast(pa.int64() if types.is_integer(chunk.type) else pa.large_string())


def _of_arrow(labels: Any) -> Any:
    """Return an Arrow array in the form that an `Axis` keeps."""
    from pyarrow import types

    return of_arrow(labels) if types.is_integer(labels.type) else labels


def _checked(labels: Any, name: str) -> Axis:
    """Return an axis of labels that are distinct and none of them missing."""
    axis = Axis(as_labels(labels, name))
    import pyarrow.compute as pc

    values: Any = axis._values
    n_distinct = pc.count_distinct(values).as_py() if axis.is_text else len(np.unique(values))
    if n_distinct < len(axis):
        index = axis.index
        repeated = index[index.duplicated()].tolist()[0]
        raise InvalidDataError(
            f"{name}: the label {repeated!r} occurs twice; each may occur only once", argument=name
        )
    return axis


def as_labels(labels: Any, name: str = "labels") -> Any:
    """Return labels as an `Axis` keeps them: Arrow text, or int64.

    Raises `InvalidDataError` if they are neither text nor whole numbers of 64 bits.
    """
    import pyarrow as pa
    from pyarrow import types

    if isinstance(labels, range):
        return np.arange(labels.start, labels.stop, labels.step)
    is_plain = type(labels) is np.ndarray and labels.ndim == 1 and labels.dtype.kind in "iu"
    if is_plain and np.can_cast(labels.dtype, np.int64):
        return labels.astype(np.int64)
    try:
        if not isinstance(labels, pa.Array | pa.ChunkedArray):
            labels = labels if hasattr(labels, "dtype") else list(labels)
            labels = pa.array(labels, from_pandas=True)
        if isinstance(labels, pa.ChunkedArray):
            labels = labels.combine_chunks()
        labels = decoded(labels)
        labels.validate(full=True)  # ids of a damaged file may be no text in UTF-8
    except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError, ValueError) as error:
        raise InvalidDataError(
            f"{name}: expected text or whole numbers ({error}); convert the labels, for example "
            "with pandas.Index(labels).astype(str)",
            argument=name,
        ) from None
    if labels.null_count:
        missing = labels.is_null(nan_is_null=True).index(True).as_py()
        raise InvalidDataError(f"{name}: label {missing} is missing", argument=name)
    if types.is_null(labels.type):  # there are none
        labels = labels.cast(pa.large_string())
    try:
        labels = _plain(as_ids(labels, name, "pandas.Index(labels).astype(str)"))
    except InvalidDataError as error:
        raise InvalidDataError(str(error), argument=name) from None
    return labels if is_text(labels.type) else of_arrow(labels).copy()
