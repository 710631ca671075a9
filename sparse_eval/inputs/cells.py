"""Numbers, times and events in the columns of a table, as arrays.

Columns are Arrow arrays, or arrays of objects if Arrow has no common type for the values.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import check_exact
from ..core.csr import MAX_ITEMS
from ..errors import InvalidDataError
from .text import MalformedLineError, nanoseconds, parse_number, parser_of, whole

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ..core.types import AnyArray, Booleans, Floats, Integers

#: The time of a row that has none. It is before all others, and pandas' NaT.
UNDATED = int(np.iinfo(np.int64).min)

#: Text is a whole number only if nothing is lost: "007" and "7" are different ids.
_INTEGER = "^(0|-?[1-9][0-9]{0,18})$"

_TIME = "a whole number or a date"


def at(column: Any, row: int) -> object:
    """Return one cell as an object of Python."""
    cell = column[row]
    return cell.as_py() if hasattr(cell, "as_py") else cell


def is_missing(column: Any) -> Booleans:
    """Return a mask of the cells that are null, None, NaN or NaT."""
    if isinstance(column, np.ndarray):
        import pandas as pd

        return np.asarray(pd.isna(column))
    return np.asarray(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))


def codes_of(column: Any) -> tuple[Integers, list[Any]]:
    """Return a code for each cell, -1 if it is missing, and the value of each code."""
    import pandas as pd

    codes, values = pd.factorize(
        column if isinstance(column, np.ndarray) else column.to_pandas(integer_object_nulls=True)
    )
    return codes, list(values)


def numbers_of(column: Any, name: Hashable, expected: str) -> Floats:
    """Return a column as float64, with NaN for cells that are no numbers.

    Raises
    ------
    InvalidDataError
        If its type is neither one of numbers nor one of text.
    """
    import pyarrow as pa
    from pyarrow import types

    dtype = column.type
    if types.is_dictionary(dtype):
        column = column.cast(dtype := dtype.value_type)
    if is_text(dtype):
        codes, texts = codes_of(column)
        return np.array([*map(parse_number, texts), np.nan])[codes]
    if not (is_number(dtype) or types.is_null(dtype)):
        raise _wrong_type(name, expected, dtype)
    if types.is_boolean(dtype):
        column = column.cast(pa.int8())
    column = column.cast(pa.float64(), safe=False)
    return np.array(column.to_numpy(zero_copy_only=False), np.float64)


def _wrong_type(name: Hashable, expected: str, found: object) -> InvalidDataError:
    return InvalidDataError(
        f"column {name!r}: expected {expected}, found {found} values", column=name
    )


def is_number(dtype: Any) -> bool:
    """Return whether an Arrow type is one of numbers or booleans."""
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(kind(dtype) for kind in kinds)


def is_text(dtype: Any) -> bool:
    """Return whether an Arrow type is one of text."""
    from pyarrow import types

    return bool(
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    )


def bad_row(row: int, name: Hashable, message: str) -> InvalidDataError:
    """Return an error about a cell."""
    return InvalidDataError(f"row {row}, column {name!r}: {message}", row=row, column=name)


def _check(valid: Booleans, column: Any, name: Hashable, expected: str, first: int) -> None:
    """Raise an error about the first cell that is not valid; `first` is the number of its row."""
    if not valid.all():
        row = int(np.argmin(valid))
        raise bad_row(first + row, name, f"expected {expected}, found {at(column, row)!r}")


def gains_of(column: Any, name: Hashable, first: int) -> Floats:
    """Return a column of values or gains, or raise an error about the first that is none."""
    expected = "a finite number of at least 0"
    values = numbers_of(column, name, expected)
    _check(np.isfinite(values) & (values >= 0), column, name, expected, first)
    return values


def orders_of(column: Any, name: Hashable, first: int, *, ranks: bool) -> AnyArray:
    """Return a column of ranks or scores, or raise an error about the first that is none."""
    from pyarrow import types

    expected = "a whole number of at least 1" if ranks else "a finite number"
    if is_text(column.type):
        raise _wrong_type(name, expected, "text")
    if ranks and types.is_integer(column.type) and not column.null_count:
        whole: AnyArray = column.to_numpy()
        if whole.min(initial=1) >= 1 and whole.max(initial=1) <= MAX_ITEMS:
            return whole
    values = numbers_of(column, name, expected)
    valid = np.isfinite(values)
    if ranks:
        valid &= (values >= 1) & (values <= MAX_ITEMS) & (values == np.floor(values))
    _check(valid, column, name, expected, first)
    if not ranks and str(column.type) in ("int64", "uint64"):
        check_exact(column.to_numpy(zero_copy_only=False))
    return values


class Times:
    """A column of times; its first batch decides their type and unit.

    Attributes
    ----------
    blocks : list of ndarray of int64
    unit : {"ns"} or None
        The unit of dates.
    """

    def __init__(self, name: Hashable, *, undated: bool = False) -> None:
        self.name, self.undated = name, undated
        self.blocks: list[Integers] = []
        self.unit: Any = None
        self._is_known = False  # whether a row had a time

    def add(self, column: Any, first: int) -> None:
        """Add the rows of a batch; `first` is the number of its first row."""
        missing = is_missing(column)
        if not self.undated:
            _check(~missing, column, self.name, _TIME, first)
        if missing.all():
            self.blocks.append(np.full(len(column), UNDATED, np.int64))
            return
        times, unit = self._times(column, missing, first)
        if self._is_known and unit != self.unit:
            expected = "whole numbers" if self.unit is None else "dates"
            found = at(column, int(np.argmin(missing)))
            raise bad_row(first, self.name, f"expected {expected} as before, found {found!r}")
        self.unit, self._is_known = unit, True
        times[missing] = UNDATED
        self.blocks.append(times)

    def _times(self, column: Any, missing: Booleans, first: int) -> tuple[Integers, str | None]:
        import pyarrow as pa
        from pyarrow import types

        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        dtype = column.type
        if is_text(dtype):
            return self._of_text(column, first)
        try:
            if types.is_timestamp(dtype) or types.is_date(dtype):
                dates = column.cast(pa.timestamp("ns", getattr(dtype, "tz", None)))
                return _whole(dates.cast(pa.int64())), "ns"
            if types.is_integer(dtype):
                return _whole(column.cast(pa.int64())), None
        except pa.ArrowInvalid as error:  # dates outside 1677..2262, numbers beyond 64 bits
            raise InvalidDataError(f"column {self.name!r}: {error}", column=self.name) from None
        numbers = numbers_of(column, self.name, _TIME)
        # 2**63 is the smallest positive float64 that int64 cannot hold.
        valid = missing | ((np.abs(numbers) < 2.0**63) & (np.floor(numbers) == numbers))
        remedy = "for seconds with fractions, pass whole milliseconds: (1000 * t).round()"
        _check(valid, column, self.name, f"{_TIME} ({remedy})", first)
        times = np.where(missing, 0, numbers).astype(np.int64)
        if types.is_floating(dtype) and dtype.bit_width < 64:  # they were rounded before
            most = 2 ** (np.finfo(f"float{dtype.bit_width}").nmant + 1)
            expected = (
                f"less than {most}, as float{dtype.bit_width} rounds larger whole numbers (read "
                "or compute the times as int64)"
            )
            _check(np.abs(times) < most, column, self.name, expected, first)
        return times, None

    def _of_text(self, column: Any, first: int) -> tuple[Integers, str | None]:
        codes, texts = codes_of(column)  # the first text stays the first
        parse = parser_of(texts[codes[codes >= 0][0]])
        if self._is_known:
            parse = whole if self.unit is None else nanoseconds
        times = np.zeros(len(texts) + 1, np.int64)
        for code, text in enumerate(texts):
            try:
                times[code] = parse(text)
            except MalformedLineError as error:
                row = first + int(np.argmax(codes == code))
                message = f"{error}; pandas.to_datetime reads other dates"
                raise bad_row(row, self.name, message) from None
        return times[codes], "ns" if parse is nanoseconds else None


def _whole(column: Any) -> Integers:
    return np.array(column.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def event_gains(column: Any, name: Hashable, gains: Mapping[Any, float], first: int) -> Floats:
    """Return the gain of each row's event, or raise an error about the first without one."""
    codes, events = codes_of(column)
    worth = np.array([*(gains.get(event, np.nan) for event in events), np.nan])[codes]
    if np.isnan(worth).any():
        row = int(np.argmax(np.isnan(worth)))
        message = (
            f"the event {at(column, row)!r} has no gain; add it to gains, with 0 if it is worth "
            "nothing, or remove such rows"
        )
        raise bad_row(first + row, name, message)
    return worth


def as_numbers(chunks: list[Any]) -> list[Any]:
    """Return codes of text as codes of whole numbers if all texts are whole numbers."""
    import pyarrow.compute as pc

    for chunk in chunks:
        if not pc.all(pc.match_substring_regex(chunk.dictionary, _INTEGER)).as_py():
            return chunks
    return cast_codes(chunks, "int64")


def cast_codes(chunks: list[Any], *dtypes: str) -> list[Any]:
    """Return codes as codes of the first dtype that has room for all values, or as they are."""
    import pyarrow as pa

    for dtype in dtypes:
        with suppress(pa.ArrowInvalid):
            return [
                pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(dtype))
                for chunk in chunks
            ]
    return chunks
