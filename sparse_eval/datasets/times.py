"""Timestamps as dates: their unit, and dates and durations as whole numbers in that unit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from pyarrow import ArrowInvalid

from ..core.arguments import check_whole
from ..errors import InvalidDataError
from ..inputs.column_values import (
    FIRST_YEAR,
    LAST_YEAR,
    UNDATED,
    UNITS,
    TimeUnit,
    nanoseconds,
    unit_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.types import Integers

#: A point in time: ISO 8601 text, a date, or a whole number in the unit of the timestamps.
Time: TypeAlias = str | date | np.datetime64 | int
#: A length of time: text such as "1D", a duration, or a whole number in the unit of timestamps that
#: are numbers.
Duration: TypeAlias = str | timedelta | np.timedelta64 | int

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

#: Longer logs are not counted by day, so that a damaged time does not allocate too much memory.
_MOST_DAYS = 10**6

_WEEK = 7

_FACTOR = 1.8


@dataclass(frozen=True, slots=True)
class Clock:
    """The unit of timestamps, for times and durations given as whole numbers.

    Parameters
    ----------
    unit : {"s", "ms", "us", "ns"} or None
        None if it is not known: then there are no dates, only whole numbers.
    """

    unit: TimeUnit | None

    @classmethod
    def of(
        cls, times: Integers, unit: TimeUnit | None, given: Iterable[tuple[str, object]]
    ) -> Clock:
        """Return the clock of timestamps, whose unit must be known if dates are among `given`.

        Raises `InvalidDataError` if a date or duration is given, and the unit is not known.

        Parameters
        ----------
        times : ndarray of int64
            The timestamps.
        unit : {"s", "ms", "us", "ns"} or None
            Their unit, if known. Otherwise it is inferred from their values, provided that all of
            them are dates from 1995 to 2032 in one unit.
        given : iterable of (str, object)
            Names and values of the options with times and durations, None if not given.
        """
        dated = (str, date, timedelta, np.datetime64, np.timedelta64)
        dates = [name for name, value in given if isinstance(value, dated)]
        if unit is None and dates and (unit := unit_of_values(times)) is None:
            raise InvalidDataError(
                f"{dates[0]}: the unit of the timestamps is not known (they are no dates from "
                f"{FIRST_YEAR} to {LAST_YEAR} in any of {', '.join(UNITS)}); pass {dates[0]}= as "
                "a whole number in their unit, or convert the column to dates with "
                "pandas.to_datetime(..., unit=)",
                argument=dates[0],
            )
        return cls(unit)

    def time(self, name: str, value: object) -> int:
        """Return the first timestamp that is not before a point in time."""
        if _is_whole(value):
            return check_whole(name, value, UNDATED + 1, int(np.iinfo(np.int64).max))
        expected = (
            "a date such as '2019-11-14', '2019-11-14T09:30' or '2019-11-14T09:30+01:00', or a "
            "whole number in the unit of the timestamps"
        )
        if isinstance(value, np.datetime64) and len(str(value)) < len("2019-11-14"):
            value = value.astype("datetime64[D]")  # of a year or month
        if not isinstance(value, str | date | np.datetime64) or str(value).isdecimal():
            raise _not_valid(name, expected, value)
        try:
            ticks = nanoseconds(str(value))
        except ArrowInvalid:
            raise _not_valid(name, expected, value) from None
        return -(-ticks // _NANOSECONDS[self._known_unit()])

    def duration(self, name: str, value: object, least: int) -> int:
        """Return a length of time in the unit, at least `least`.

        Raises `InvalidDataError` if it is not a duration, or if it is a whole number and the
        timestamps are dates. A 7 would then count nanoseconds, which nobody intends.
        """
        import pandas as pd

        if _is_whole(value) and (self.unit != "ns" or value == least == 0):
            return check_whole(name, value, least)
        examples = "'7D', '12h' or datetime.timedelta(days=7)"
        expected = (
            f"a duration with a unit, such as {examples}, because the timestamps are dates"
            if self.unit == "ns"
            else f"a duration such as {examples}, or a whole number in the unit of the timestamps"
        )
        # pandas reads a number without a unit as nanoseconds.
        text = value if isinstance(value, str) else ""
        is_length = re.search("[A-Za-z:]", text) or isinstance(value, timedelta)
        if isinstance(value, np.timedelta64):
            is_length = np.datetime_data(value.dtype)[0] != "generic"
        try:
            length: Any = pd.Timedelta(value if is_length else None)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            length = pd.NaT
        if pd.isna(length) or length < pd.Timedelta(0):
            raise _not_valid(name, expected, value)
        unit = self._known_unit()
        units, rest = divmod(length, pd.Timedelta(1, unit))
        if rest:
            raise _not_valid(name, f"a whole number of {unit}, the unit of the timestamps", value)
        return check_whole(name, units, least)

    def date(self, time: int) -> np.datetime64 | int:
        """Return a timestamp as a date (UTC), or as it is if the unit is not known."""
        return time if self.unit is None else np.datetime64(time, self.unit)

    def text(self, time: int) -> str:
        """Return a timestamp as messages show it."""
        return time_text(self.date(time))

    def _known_unit(self) -> TimeUnit:
        if self.unit is None:
            raise InvalidDataError("the unit of the timestamps is not known; use whole numbers")
        return self.unit


def time_text(time: np.datetime64 | int) -> str:
    """Return a date without zeros at its end, or a whole number: "2019-11-14 09:30:00"."""
    if not isinstance(time, np.datetime64):
        return str(time)
    day, _, clock = str(time).partition("T")
    clock = clock.rstrip("0").removesuffix(".") if "." in clock else clock
    return day if clock in ("", "00:00:00", "00:00:") else f"{day} {clock}"


def _is_whole(value: object) -> bool:
    # NumPy's durations are integers to isinstance.
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def unit_of_values(times: Integers) -> TimeUnit | None:
    """Return the only unit that makes all dated timestamps recent dates, None if there is none."""
    dated = times[times != UNDATED]
    if len(dated):
        unit = unit_of(dated.min())
        if unit is not None and unit == unit_of(dated.max()):
            return unit
    return None


def events_a_day(times: Integers, unit: TimeUnit | None) -> str:
    """Return the first and last day, and the fewest and most events of a day between, as text.

    They reveal a day that is missing or was loaded twice. The text is empty if the unit is not
    known, or no event has a date.
    """
    first, counts = _by_day(times, unit)
    if not len(counts):
        return ""
    least, most = int(counts.argmin()), int(counts.argmax())
    date = [_day(first + day) for day in (0, len(counts) - 1, least, most)]
    return (
        f"events a day from {date[0]} to {date[1]}: fewest {counts[least]:,} ({date[2]}), most "
        f"{counts[most]:,} ({date[3]})"
    )


def doubtful_days(times: Integers, unit: TimeUnit | None, *, is_whole: bool = False) -> list[str]:
    """Describe days of the last week with too few or too many events, in words.

    A day is compared with the median of the seven days before it. It is doubtful if the number of
    events differs by a factor of more than 1.8 (a day that was written twice has 2), and by more
    than five standard deviations of a Poisson distribution. The last day may be incomplete,
    so there too few events are doubtful only if `is_whole`.
    """
    first, counts = _by_day(times, unit)
    found = []
    for day in range(max(len(counts) - _WEEK, _WEEK), len(counts)):
        median = float(np.median(counts[day - _WEEK : day]))
        count, noise = int(counts[day]), 5 * math.sqrt(median)
        is_low = count < min(median / _FACTOR, median - noise)
        if is_low and day == len(counts) - 1 and not is_whole:
            continue
        if is_low or count > max(_FACTOR * median, median + noise):
            fault = "are events missing" if is_low else "was a file read twice"
            found.append(
                f"{_day(first + day)} has {count:,} events, and the median of the week before is "
                f"{median:,.0f}; {fault}?"
            )
    return found


def _by_day(times: Integers, unit: TimeUnit | None) -> tuple[int, Integers]:
    """Return the first day and the number of events of each day; none if there are no dates."""
    unit = unit_of_values(times) if unit is None else unit
    days = times[times != UNDATED]
    if unit is None or not len(days):
        return 0, np.zeros(0, np.int64)
    days = days // int(np.timedelta64(1, "D") / np.timedelta64(1, unit))
    first = int(days.min())
    if int(days.max()) - first > _MOST_DAYS:
        return 0, np.zeros(0, np.int64)
    return first, np.bincount(days - first)


def _day(number: int) -> str:
    return str(np.datetime64(number, "D"))


def _not_valid(name: str, expected: str, value: object) -> InvalidDataError:
    return InvalidDataError(f"{name}: expected {expected}, found {value!r}", argument=name)
