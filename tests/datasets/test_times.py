"""Dates and durations in the unit of timestamps."""

from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises

from sparse_eval.datasets.times import UNDATED, Clock
from sparse_eval.errors import InvalidDataError

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UNITS = st.sampled_from(list(PER_SECOND))
DATES = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def clock_of(times, *given, unit=None):
    return Clock.of(np.array(times, np.int64), unit, [("at", value) for value in given])


def microseconds(moment):
    """Return the whole microseconds since 1970, by the standard library alone."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@given(UNITS, DATES, ZONES)
def test_a_date_is_the_first_timestamp_that_is_not_before_it(unit, moment, zone):
    aware = moment.replace(tzinfo=zone)
    exact = Fraction(microseconds(aware), 10**6) * PER_SECOND[unit]
    clock = Clock(unit)
    found = clock.time("at", aware)
    assert found - 1 < exact <= found
    for spelled in (aware.isoformat(), aware.isoformat(" "), pd.Timestamp(aware)):
        assert clock.time("at", spelled) == found
    in_utc = aware.astimezone(UTC).replace(tzinfo=None)  # without a time zone it is UTC
    for spelled in (in_utc, in_utc.isoformat(), pd.Timestamp(in_utc), np.datetime64(in_utc)):
        assert clock.time("at", spelled) == found


@given(UNITS, st.timedeltas(timedelta(0), timedelta(days=10_000)))
def test_a_duration_is_a_whole_number_of_units_or_refused(unit, length):
    exact = Fraction(length // timedelta(microseconds=1), 10**6) * PER_SECOND[unit]
    delta = pd.Timedelta(length)
    for spelled in (length, delta, np.timedelta64(length), str(delta)):
        if exact.denominator == 1:
            assert Clock(unit).duration("gap", spelled, 0) == exact
        else:
            with raises(InvalidDataError, argument="gap"):
                Clock(unit).duration("gap", spelled, 0)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2019-11-14", 1573689600),
        (date(2019, 11, 14), 1573689600),
        ("2019-11-14 09:30:00.000", 1573723800),
        ("2019-11-14T09:30Z", 1573723800),
        ("2019-11-14T09:30:00.000000001", 1573723801),
        (np.datetime64("2019-11"), 1572566400),
    ],
)
def test_reads_dates(value, seconds):
    assert Clock("s").time("at", value) == seconds


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        *(("s", value) for value in ("", "20191114", "2019-11", "2019-11-31")),
        *(("s", value) for value in (1.5, True, pd.NaT, timedelta(1), 2**63)),
        ("ns", "2500-01-01"),
        (None, "2019-11-14"),
    ],
)
def test_refuses_what_is_no_time(unit, value):
    with raises(InvalidDataError):
        Clock(unit).time("at", value)


@pytest.mark.parametrize(
    "value",
    [
        np.timedelta64(7),
        "",
        "1.5",
        "-1D",
        "1M",
        1.5,
        True,
        None,
        pd.NaT,
        np.timedelta64(1, "M"),
        "0D",
    ],
)
def test_refuses_what_is_no_duration(value):
    with raises(InvalidDataError, argument="gap"):
        Clock("s").duration("gap", value, 1)


@pytest.mark.parametrize("value", [7, 86_400, 86_400 * 10**9, np.int64(7), 0])
def test_a_whole_number_is_no_duration_of_dates(value):
    with raises(InvalidDataError, argument="window"):
        Clock("ns").duration("window", value, 1)
    if value:
        with raises(InvalidDataError, argument="gap"):
            Clock("ns").duration("gap", value, 0)
    assert Clock("ns").duration("gap", 0, 0) == 0  # in any unit
    assert Clock("s").duration("gap", value, 0) == Clock(None).duration("gap", value, 0) == value


@given(UNITS, st.lists(st.datetimes(datetime(1995, 1, 1), datetime(2032, 12, 31)), min_size=1))
def test_recent_dates_tell_their_unit(unit, moments):
    times = [microseconds(m.replace(tzinfo=UTC)) * PER_SECOND[unit] // 10**6 for m in moments]
    assert clock_of([*times, UNDATED], "2019-11-14").unit == unit
    assert clock_of(times, None, 5).unit is None  # nobody asked
    assert clock_of(times, "2019-11-14", unit="us").unit == "us"  # the source says it


@pytest.mark.parametrize(
    "times",
    [
        [10, 20, 30],
        [1573689600, 1573689600000],  # two units
        [2019111400, 2019111409],  # hours in digits
        [637_092_864_000_000_000],  # ticks of 100 ns since the year 1
        [UNDATED],
        [],
    ],
)
def test_does_not_guess_the_unit_of_other_numbers(times):
    for value in ("2019-11-14", date(2019, 11, 14), timedelta(1), np.timedelta64(1, "D")):
        with raises(InvalidDataError):
            clock_of(times, value)
