"""Numbers, times and events in the columns of a table, as arrays.

Columns are those of Arrow, or arrays of objects where Arrow has no common type for the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.csr import MAX_ITEMS
from ..errors import InvalidDataError
from .lines import MalformedLineError, parse_number
from .scores import check_exact
from .written_times import nanoseconds, parser_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from ..core.types import AnyArray, Booleans, Floats, Integers

#: The time of a row that has none. It is before all others, and pandas' NaT.
UNDATED = int(np.iinfo(np.int64).min)

_TIME = "a whole number or a date"
_UNDATED_HINT = (
    f"{_TIME} (Interactions.from_frame(..., missing_times='undated') takes it as before all dates)"
)


def at(column: Any, row: int) -> object:
    """Return one cell as an object of Python."""
    cell = column[row]
    if isinstance(column, np.ndarray):
        return cell.item() if isinstance(cell, np.generic) else cell
    return cell.as_py()


def is_missing(column: Any) -> Booleans:
    """Return which cells are null, None, NaN or NaT."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, np.ndarray):
        import pandas as pd

        return np.asarray(pd.isna(column))
    if pa.types.is_dictionary(column.type):  # in which values may be null, too
        return codes_of(column)[0] < 0
    missing = column.is_null()
    if pa.types.is_floating(column.type) or pa.types.is_null(column.type):
        missing = pc.is_null(column, nan_is_null=True)
    return np.asarray(missing.to_numpy(zero_copy_only=False))


def codes_of(column: Any) -> tuple[Integers, list[Any]]:
    """Return a code for each cell, -1 if it is missing, and what the codes stand for."""
    if isinstance(column, np.ndarray):
        import pandas as pd

        codes, values = pd.factorize(column)
        return codes, list(values)
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    encoded = column.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values = encoded.dictionary.to_pylist()
    null = np.array([value is None or value != value for value in values] + [True])
    return np.where(null[codes], -1, codes), values


def numbers_of(column: Any, name: Hashable, expected: str) -> Floats:
    """Return a column as float64, with NaN for cells that are no numbers.

    Raises
    ------
    InvalidDataError
        If it has a type that is none of numbers or text.
    """
    import pyarrow as pa
    from pyarrow import types

    if isinstance(column, np.ndarray):
        import pandas as pd

        if any(isinstance(cell, complex) for cell in column[:1]):
            raise _wrong_type(name, expected, "complex")
        numbers = pd.to_numeric(pd.Series(column), errors="coerce")
        return np.array(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    dtype = column.type
    if types.is_dictionary(dtype):
        column = column.cast(dtype := dtype.value_type)
    if is_text(dtype):
        codes, texts = codes_of(column)
        return np.array([*map(parse_number, texts), np.nan])[codes]
    if types.is_boolean(dtype):
        column = column.cast(pa.int8())
    elif not (is_number(dtype) or types.is_null(dtype)):
        raise _wrong_type(name, expected, dtype)
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


def _check(valid: Booleans, column: Any, name: Hashable, expected: str, first: int) -> None:
    """Raise an error about the first cell that is not valid; `first` is the number of its row."""
    if not valid.all():
        row = int(np.argmin(valid))
        raise InvalidDataError(
            f"row {first + row}, column {name!r}: expected {expected}, found {at(column, row)!r}",
            row=first + row,
            column=name,
        )


def gains_of(column: Any, name: Hashable, first: int) -> Floats:
    """Return a column of values or gains, or raise an error about the first that is none."""
    expected = "a finite number that is not negative"
    values = numbers_of(column, name, expected)
    _check(np.isfinite(values) & (values >= 0), column, name, expected, first)
    return values


def orders_of(column: Any, name: Hashable, first: int, *, ranks: bool) -> Floats:
    """Return a column of ranks or scores, or raise an error about the first that is none."""
    expected = "a whole number of at least 1" if ranks else "a finite number"
    if not isinstance(column, np.ndarray) and is_text(column.type):
        raise _wrong_type(name, expected, "text")
    values = numbers_of(column, name, expected)
    valid = np.isfinite(values)
    if ranks:
        valid &= (values >= 1) & (values <= MAX_ITEMS) & (values == np.floor(values))
    _check(valid, column, name, expected, first)
    if not ranks and not isinstance(column, np.ndarray) and column.type in _wide():
        check_exact(column.to_numpy(zero_copy_only=False))
    return values


def _wide() -> tuple[Any, Any]:
    import pyarrow as pa

    return pa.int64(), pa.uint64()


class Times:
    """A column of times, the first batch of which decides what they are.

    Attributes
    ----------
    blocks : list of ndarray of int64
    unit : {"ns"} or None
        The unit of dates.
    """

    def __init__(self, name: Hashable, *, undated: bool) -> None:
        self.name, self.undated = name, undated
        self.blocks: list[Integers] = []
        self.unit: Any = None
        self._parse: Callable[[str], int] | None = None

    def add(self, column: Any, first: int) -> None:
        """Add the rows of a batch, the first of which has a number."""
        missing = is_missing(column)
        if not self.undated:
            _check(~missing, column, self.name, _UNDATED_HINT, first)
        if missing.all():
            self.blocks.append(np.full(len(column), UNDATED, np.int64))
            return
        times, unit = self._times(column, missing, first)
        if self.blocks and unit != self.unit and (self.blocks[-1] != UNDATED).any():
            raise InvalidDataError(
                f"row {first}, column {self.name!r}: expected "
                f"{'whole numbers' if self.unit is None else 'dates'} as before, found "
                f"{at(column, int(np.argmin(missing)))!r}",
                row=first,
                column=self.name,
            )
        self.unit = unit
        times[missing] = UNDATED
        self.blocks.append(times)

    def _times(self, column: Any, missing: Booleans, first: int) -> tuple[Integers, str | None]:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import types

        given = column
        if isinstance(column, np.ndarray):
            column = _dates(column, self.name)
        if not isinstance(column, np.ndarray) and types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        dtype = None if isinstance(column, np.ndarray) else column.type
        if dtype is not None and (types.is_timestamp(dtype) or types.is_date(dtype)):
            try:
                dates = column.cast(pa.timestamp("ns", getattr(dtype, "tz", None)))
            except pa.ArrowInvalid as error:  # dates outside 1677..2262
                raise InvalidDataError(f"column {self.name!r}: {error}", column=self.name) from None
            return _whole(dates.cast(pa.int64())), "ns"
        if dtype is not None and is_text(dtype):
            return self._of_text(column, first)
        if dtype is not None and types.is_integer(dtype):
            if types.is_uint64(dtype):
                fits = pc.fill_null(column, 0).to_numpy(zero_copy_only=False) < 2**63
                _check(fits, given, self.name, _TIME, first)
            return _whole(column.cast(pa.int64())), None
        if dtype is not None and types.is_boolean(dtype):
            _check(missing, given, self.name, _TIME, first)
        numbers = numbers_of(column, self.name, _TIME)
        # 2**63 is the smallest positive float64 that int64 cannot hold.
        valid = missing | ((np.abs(numbers) < 2.0**63) & (np.floor(numbers) == numbers))
        _check(valid, given, self.name, f"{_TIME} (use a finer unit for fractions)", first)
        return np.where(missing, 0, numbers).astype(np.int64), None

    def _of_text(self, column: Any, first: int) -> tuple[Integers, str | None]:
        codes, texts = codes_of(column)  # the first text stays the first
        parse = self._parse = self._parse or parser_of(texts[codes[codes >= 0][0]])
        times = np.zeros(len(texts) + 1, np.int64)
        for code, text in enumerate(texts):
            if text is None:
                continue
            try:
                times[code] = parse(text)
            except MalformedLineError as error:
                row = first + int(np.argmax(codes == code))
                raise InvalidDataError(
                    f"row {row}, column {self.name!r}: {error}; pandas.to_datetime reads other "
                    "dates",
                    row=row,
                    column=self.name,
                ) from None
        return times[codes], "ns" if parse is nanoseconds else None


def _whole(column: Any) -> Integers:
    return np.array(column.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _dates(column: AnyArray, name: Hashable) -> Any:
    """Return objects that are dates, text or whole numbers as a column of Arrow, others as is."""
    import pandas as pd
    import pyarrow as pa

    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("datetime64", "datetime", "date"):
        try:
            dates = pd.to_datetime(pd.Series(column), utc=True).dt.tz_localize(None)
            return pa.array(dates.dt.as_unit("ns"))
        except (ValueError, TypeError) as error:  # for example dates outside 1677..2262
            raise InvalidDataError(f"column {name!r}: {error}", column=name) from error
    return column


def event_gains(column: Any, name: Hashable, gains: Mapping[Any, float], first: int) -> Floats:
    """Return the gain of each row's event, or raise an error about the first without one."""
    codes, events = codes_of(column)
    worth = np.array([*(gains.get(event, np.nan) for event in events), np.nan])[codes]
    if np.isnan(worth).any():
        row = int(np.argmax(np.isnan(worth)))
        raise InvalidDataError(
            f"row {first + row}, column {name!r}: the event {at(column, row)!r} has no gain; add "
            "it to gains, with 0 if it is worth nothing, or leave such rows out",
            row=first + row,
            column=name,
        )
    return worth
