"""Numbers, times and events in Arrow columns, as arrays."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ..core.arrays import check_exact, of_arrow
from ..core.csr import MAX_ITEMS
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ..core.types import AnyArray, Booleans, Floats, Integers

#: Units of timestamps since 1970 (UTC).
TimeUnit = Literal["s", "ms", "us", "ns"]
UNITS: tuple[TimeUnit, ...] = get_args(TimeUnit)

# From 1995 to 2032 the numbers of the four units are far apart. None of them could be a date
# written in digits (2019111409), or a count of 100 ns from a year other than 1970.
FIRST_YEAR, LAST_YEAR = 1995, 2032

#: The time of an event that has none, as of MIND's histories. It is before all others, and pandas'
#: NaT.
UNDATED = int(np.iinfo(np.int64).min)

#: Text is a whole number only if nothing is lost: "007" and "7" are different ids.
_INTEGER = "^(0|-?[1-9][0-9]{0,18})$"

_TIME = "a whole number, a date or ISO 8601 text"


def at(column: Any, row: int) -> object:
    """Return one cell as an object of Python."""
    try:
        return column[row].as_py()
    except (OverflowError, ValueError):  # a date that Python does not have
        return str(column[row].cast("int64"))


def is_missing(column: Any) -> Booleans:
    """Return a mask of the cells that are null or NaN."""
    return of_arrow(column.is_null(nan_is_null=True))


def codes_of(column: Any) -> tuple[Integers, list[Any]]:
    """Return a code for each cell, -1 if it is missing, and the value of each code."""
    import pandas as pd

    codes, values = pd.factorize(column.to_pandas(integer_object_nulls=True))
    return codes, list(values)


def is_number(dtype: Any) -> bool:
    """Return whether an Arrow type is one of numbers or booleans."""
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return dtype is not None and any(kind(dtype) for kind in kinds)


def is_text(dtype: Any) -> bool:
    """Return whether an Arrow type is one of text."""
    from pyarrow import types

    return bool(
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    )


def is_list(dtype: Any) -> bool:
    """Return whether an Arrow type is one of lists."""
    from pyarrow import types

    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view)
    return dtype is not None and any(kind(dtype) for kind in kinds)


def plain_type(dtype: Any) -> Any:
    """Return the type of the values of a dictionary, and any other type as it is."""
    from pyarrow import types

    return dtype.value_type if types.is_dictionary(dtype) else dtype


def kind_of_type(dtype: Any) -> str:
    """Return what messages call the values of a type; types of one kind can be read together."""
    from pyarrow import types

    dtype = plain_type(dtype)
    if types.is_timestamp(dtype) or types.is_date(dtype):
        return f"times with{'' if getattr(dtype, 'tz', None) else 'out'} a time zone"
    if is_text(dtype):
        return "text"
    return (
        "numbers" if is_number(dtype) or types.is_null(dtype) else f"{name_of_type(dtype)} values"
    )


def name_of_type(dtype: Any) -> str:
    """Return the name that NumPy has for a type of numbers, and Arrow's for any other."""
    from pyarrow import types

    name = f"float{dtype.bit_width}" if types.is_floating(dtype) else str(dtype)
    return name.partition("[")[0]  # without the unit of times


def decoded(column: Any) -> Any:
    """Return a dictionary as its values, and any other column as it is."""
    dtype = plain_type(column.type)
    return column if dtype == column.type else column.cast(dtype)


def bad_row(row: int, name: Hashable, message: str) -> InvalidDataError:
    """Return an error about a cell."""
    return InvalidDataError(f"row {row}, column {name!r}: {message}", row=row, column=name)


def _check(valid: Booleans, column: Any, name: Hashable, expected: str, first: int) -> None:
    """Raise an error about the first cell that is not valid; `first` is the number of its row."""
    if not valid.all():
        row = int(np.argmin(valid))
        raise bad_row(first + row, name, f"expected {expected}, found {at(column, row)!r}")


def _cast(column: Any, dtype: Any, name: Hashable, expected: str, first: int) -> Any:
    """Return a column as another type, or raise an error about the first cell that has no such."""
    import pyarrow as pa

    try:
        if isinstance(column.type, pa.BaseExtensionType):  # such as the numbers of pandas' periods
            raise pa.ArrowNotImplementedError
        return column.cast(dtype)
    except pa.ArrowNotImplementedError:
        raise InvalidDataError(
            f"column {name!r}: expected {expected}, found {kind_of_type(column.type)}", column=name
        ) from None
    except pa.ArrowInvalid as error:
        for row, cell in enumerate(column):
            try:
                cell.cast(dtype)
            except pa.ArrowInvalid:
                message = f"expected {expected}, found {at(column, row)!r}"
                raise bad_row(first + row, name, message) from None
        raise InvalidDataError(f"column {name!r}: {error}", column=name) from None


def _exact_below(dtype: Any) -> int:
    """Return the bound below which a type of floats has every whole number."""
    return int(2 ** (np.finfo(name_of_type(dtype)).nmant + 1))


def as_ids(column: Any, what: str, remedy: str) -> Any:
    """Return ids as text or whole numbers, or as dictionaries of these.

    Raises `InvalidDataError` if they are neither text nor exactly whole numbers of 64 bits. `what`
    names them, `remedy` is the call that converts them.
    """
    import pyarrow as pa
    from pyarrow import types

    dtype = plain_type(column.type)
    if is_text(dtype) or (types.is_integer(dtype) and not types.is_uint64(dtype)):
        return column
    reason = f"holds {name_of_type(dtype)} values"
    if is_number(dtype) and not types.is_boolean(dtype):
        column = decoded(column)
        if types.is_floating(dtype):
            largest = np.abs(of_arrow(column)).max(initial=0)
            if largest >= _exact_below(dtype):
                raise InvalidDataError(
                    f"{what} holds ids as {name_of_type(dtype)}, and {largest:.0f} is so large "
                    "that neighbouring ids are no longer different. Read or join the ids as whole "
                    "numbers or text"
                )
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.int64())
        reason += " that are not all whole numbers of 64 bits"
    raise InvalidDataError(
        f"{what} {reason}; expected ids that are text or whole numbers. Convert them, for example "
        f"with {remedy}"
    )


def numbers_of(column: Any, name: Hashable, expected: str, first: int = 0) -> Floats:
    """Return a column of numbers, booleans or text of numbers as float64, with NaN for nulls.

    Raises `InvalidDataError` if it holds something else, or text that is no number.
    """
    import pyarrow as pa
    from pyarrow import types

    column = decoded(column)
    if types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if types.is_integer(column.type) or types.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)  # to the nearest, as NumPy does
    column = _cast(column, pa.float64(), name, expected, first)
    return np.array(of_arrow(column), np.float64)


def gains_of(column: Any, name: Hashable, first: int) -> Floats:
    """Return a column of values or gains, or raise an error about the first that is none."""
    expected = "a finite number of at least 0"
    values = numbers_of(column, name, expected, first)
    _check(np.isfinite(values) & (values >= 0), column, name, expected, first)
    return values


def orders_of(column: Any, name: Hashable, first: int, *, ranks: bool) -> AnyArray:
    """Return a column of ranks or scores, or raise an error about the first that is none."""
    from pyarrow import types

    if ranks and types.is_integer(column.type) and not column.null_count:
        whole = of_arrow(column)
        if whole.min(initial=1) >= 1 and whole.max(initial=1) <= MAX_ITEMS:
            return whole
    expected = "a whole number of at least 1" if ranks else "a finite number"
    values = numbers_of(column, name, expected, first)
    valid = np.isfinite(values)
    if ranks:
        valid &= (values >= 1) & (values <= MAX_ITEMS) & (values == np.floor(values))
        expected += " (add 1 if ranks begin at 0)" if (values == 0).any() else ""
    _check(valid, column, name, expected, first)
    if not ranks and str(column.type) in ("int64", "uint64"):
        check_exact(of_arrow(column))
    return values


class Times:
    """A column of times; its first batch decides their kind and unit.

    Attributes
    ----------
    blocks : list of ndarray of int64
        Whole numbers in their unit, or nanoseconds since 1970 (UTC).
    kind : str
        "whole numbers", "times with a time zone" or "times without a time zone"; "" before the
        first batch.
    """

    def __init__(self, name: Hashable) -> None:
        self.name = name
        self.blocks: list[Integers] = []
        self.kind = ""
        self._unit: TimeUnit | None = None

    def add(self, column: Any, first: int) -> None:
        """Add the rows of a batch; `first` is the number of its first row."""
        column = decoded(column)
        _check(~is_missing(column), column, self.name, _TIME, first)
        dates = self._dates(column, first)
        if dates is None:
            kind, times = "whole numbers", self._numbers(column, first)
        else:
            kind, times = kind_of_type(dates.type), np.array(of_arrow(dates.cast("int64")))
        if self.kind not in ("", kind):
            message = f"expected {self.kind} as before, found {at(column, 0)}"
            if "whole numbers" not in (kind, self.kind):
                message += (
                    ". Give all times a zone, or none: a time without one is not UTC if it was "
                    "written on a local clock"
                )
            raise bad_row(first, self.name, message)
        self.kind = kind
        self.blocks.append(times)

    def _dates(self, column: Any, first: int) -> Any:
        """Return a column of dates or text in nanoseconds, None for numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import types

        dtype = column.type
        if types.is_timestamp(dtype) or types.is_date(dtype):
            zone = getattr(dtype, "tz", None)
        elif is_text(dtype):
            zone = "UTC" if self.kind == "times with a time zone" else None
            if not self.kind:  # the first text decides
                with suppress(pa.ArrowInvalid):
                    column[0].cast(pa.timestamp("ns", "UTC"))
                    zone = "UTC"
        else:
            return None
        expected = (
            f"a time from 1678 to 2261 in ISO 8601{' with' if zone else ' without'} a time zone "
            "(pandas.to_datetime reads other forms)"
        )
        if is_text(dtype) and re.match(_INTEGER, column[0].as_py()):
            wrong = pc.invert(pc.match_substring_regex(column, _INTEGER)).index(True).as_py()
            message = "whole numbers are text here; convert them, for example to int64"
            if wrong >= 0:
                message = f"expected a whole number, found {at(column, wrong)!r}"
            raise bad_row(first + max(wrong, 0), self.name, message)
        return _cast(column, pa.timestamp("ns", zone), self.name, expected, first)

    def _numbers(self, column: Any, first: int) -> Integers:
        import pyarrow as pa
        from pyarrow import types

        if not is_number(column.type):
            raise InvalidDataError(
                f"column {self.name!r}: expected {_TIME}, found {kind_of_type(column.type)}",
                column=self.name,
            )
        if types.is_floating(column.type):
            numbers = of_arrow(column).astype(np.float64)
            remedy = "for seconds with fractions, pass whole milliseconds: (1000 * t).round()"
            is_whole = np.floor(numbers) == numbers
            _check(is_whole, column, self.name, f"{_TIME} ({remedy})", first)
            most = _exact_below(column.type)
            expected = (
                f"a time below {most}, because {name_of_type(column.type)} cannot represent "
                "every larger whole number (read or compute the times as int64)"
            )
            _check(np.abs(numbers) < most, column, self.name, expected, first)
            times: Integers = numbers.astype(np.int64)
        else:
            whole = _cast(column, pa.int64(), self.name, _TIME, first)
            times = np.array(of_arrow(whole), np.int64)
        for unit in map(unit_of, (times.min(), times.max())):
            self._unit = self._unit or unit
            if unit not in (None, self._unit):
                row = next(row for row, time in enumerate(times) if unit_of(time) == unit)
                raise bad_row(
                    first + row,
                    self.name,
                    f"{times[row]} is a time in {unit}, and times before it are in {self._unit}; "
                    "write all times in one unit",
                )
        return times


def unit_of(time: Any) -> TimeUnit | None:
    """Return the only unit in which a number is a time from 1995 to 2032, None if there is none."""
    for unit in UNITS:
        begin, end = (
            int(np.datetime64(f"{year}-01-01", unit).astype(np.int64))
            for year in (FIRST_YEAR, LAST_YEAR + 1)
        )
        if begin <= time < end:
            return unit
    return None


def nanoseconds(text: str) -> int:
    """Return the time in an ISO 8601 text as nanoseconds since 1970; UTC without a time zone.

    Raises `pyarrow.ArrowInvalid` if it is no such text.
    """
    import pyarrow as pa

    given = pa.scalar(text)
    try:
        found = given.cast(pa.timestamp("ns"))
    except pa.ArrowInvalid:
        found = given.cast(pa.timestamp("ns", "UTC"))
    return int(found.value)


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


def are_floats(chunks: list[Any]) -> bool:
    """Return whether codes of text are whole numbers, but some have a decimal place, as "1.0"."""
    import pyarrow.compute as pc

    texts = [chunk.dictionary for chunk in chunks if is_text(chunk.dictionary.type)]
    are_whole = (pc.all(pc.match_substring_regex(text, r"^-?[0-9]+(\.0)?$")) for text in texts)
    return (
        bool(texts)
        and all(whole.as_py() for whole in are_whole)
        and any(pc.any(pc.ends_with(text, ".0")).as_py() for text in texts)
    )


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
