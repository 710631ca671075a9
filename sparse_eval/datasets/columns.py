"""The columns of tables: which is for what, told by their names, and what they hold."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.frames import USUAL
from ..core.warning import warn
from ..errors import InvalidDataError
from ..inputs.lines import GuessWarning, MalformedLineError
from ..inputs.written_times import nanoseconds, parser_of
from .labels import at
from .times import UNDATED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.types import Booleans, Floats, Integers
    from .labels import Column
    from .times import TimeUnit


#: What columns are usually called besides "user", "item", "value" and "timestamp": in lower case,
#: without anything but letters and digits. The names of no two roles overlap.
_USUAL_NAMES = {
    "user": """
        user userid users uid visitor visitorid customer customerid client clientid member memberid
        reader readerid reviewer reviewerid account accountid person personid
    """,
    "item": """
        item itemid items iid movie movieid product productid article articleid news newsid
        track trackid song songid artist artistid album albumid book bookid isbn asin parentasin
        video videoid show showid game gameid app appid anime animeid recipe recipeid
        document documentid doc docid page pageid contentid postid business businessid
        venue venueid poi poiid locationid sku skuid stockcode offerid jobid adid
    """,
    "value": """
        value values rating ratings bookrating userrating stars count counts plays playcount
        nplays listens listencount clicks nclicks clickcount views nviews viewcount
        purchases purchasecount weight quantity qty strength preference click clicked label
    """,
    "timestamp": """
        timestamp timestamps timestampms ts time times date datetime unixtime unixtimestamp
        unixreviewtime eventtime eventtimestamp eventdate clicktime reviewtime playedat
        createdat createdtime creationdate invoicedate orderdate purchasedate tdat
    """,
}
_ROLE_OF = {name: role for role, names in _USUAL_NAMES.items() for name in names.split()}
_NO_LETTER = re.compile(r"[\W_]+")


def choose_columns(names: Iterable[Hashable], given: Mapping[str, Hashable]) -> dict[str, Hashable]:
    """Return the column of each role.

    Parameters
    ----------
    names : iterable of hashable
        The columns that there are.
    given : mapping of str to hashable
        By role: a name, None for no column, or `USUAL`. That is the column called like the role
        if there is one, otherwise the only one with another usual name, in any case and with or
        without ``_``, ``-`` and spaces (``userId``, ``User-ID``, and ``user_id:token`` as RecBole
        writes it).

    Returns
    -------
    dict of str to hashable
        Without roles that have no column.

    Raises
    ------
    InvalidDataError
        If several columns have a usual name of the same role, there is none for user or item, or
        these are the same.
    """
    names = list(dict.fromkeys(names))
    for role, name in given.items():
        if not isinstance(name, Hashable) or (name is None and role in ("user", "item")):
            raise InvalidDataError(f"{role}: expected the name of a column, found {name!r}")
    if given["user"] is not USUAL and given["user"] == given["item"]:
        raise InvalidDataError(
            f"user and item are both the column {given['user']!r}; name a column for each"
        )
    taken = {name for name in given.values() if name is not USUAL}
    columns = {}
    for role, name in given.items():
        if name is not USUAL:
            if name is not None:
                columns[role] = name
            continue
        usual = [column for column in names if role_of(column) == role and column not in taken]
        if role in names and role not in taken:
            columns[role] = role
        elif len(usual) == 1:
            columns[role] = usual[0]
        elif usual:
            none = "" if role in ("user", "item") else f", or none with {role}=None"
            raise InvalidDataError(
                f"{role}: the columns {', '.join(map(repr, usual))} may all be it; name one with "
                f"{role}={none}"
            )
        elif role in ("user", "item"):
            listed = ", ".join(repr(str(name)) for name in names if name not in taken)
            raise InvalidDataError(
                f"{role}: there is no column {role!r}, nor one with another usual name; the "
                f"columns to choose from are {listed}; name one with {role}="
            )
    return columns


def recognized(
    columns: Mapping[str, Hashable], given: Mapping[str, Hashable]
) -> dict[str, Hashable]:
    """Return those of the chosen columns that have neither been named nor the role's own name."""
    return {
        role: column
        for role, column in columns.items()
        if given.get(role) is USUAL and column != role
    }


def role_of(column: Hashable) -> str | None:
    """Return the role that a column usually has, told by its name; None if it has none."""
    if not isinstance(column, str):
        return None
    return _ROLE_OF.get(_NO_LETTER.sub("", column.partition(":")[0].lower()))


def id_column(name: str, role: str, names: Iterable[Hashable]) -> str:
    """Return the column of ids: the one that is named, or else the only one with a usual name."""
    columns = list(names)
    if not isinstance(name, str) or name != role or role in columns:
        return name
    usual = [column for column in columns if role_of(column) == role]
    return str(usual[0]) if len(usual) == 1 else name  # which is then told as missing


def gain_column(names: Iterable[Hashable]) -> str | None:
    """Return the column of gains that nobody named, None if there is none.

    Raises
    ------
    InvalidDataError
        If several columns may be it.

    Warns
    -----
    GuessWarning
        If it was told by another usual name than "gain" and "value".
    """
    columns = list(names)
    for name in ("gain", "value"):  # the second is that of `Interactions.to_frame`
        if name in columns:
            return name
    usual = [column for column in columns if role_of(column) == "value"]
    if len(usual) > 1:
        raise InvalidDataError(
            f"gain: the columns {', '.join(map(repr, usual))} may all be it; name one with gain="
        )
    if not usual:
        return None
    warn(
        f"the column {usual[0]!r} was taken for gains, where 0 is not relevant; name it with gain= "
        "to be sure, or leave it out if every row is relevant",
        GuessWarning,
    )
    return str(usual[0])


def missing_column(name: Hashable, columns: Iterable[Hashable]) -> str:
    """Return the message for a missing column, with the existing columns and the closest one."""
    names = [str(column) for column in columns]
    near = get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no column {name!r}; the columns are {', '.join(map(repr, names))}{hint}"


def column_of(df: pd.DataFrame, name: Hashable) -> Column:
    """Return a column of a frame, or raise if there are none or several of this name."""
    if not isinstance(name, Hashable) or name not in df.columns:
        raise InvalidDataError(missing_column(name, df.columns))
    n_columns = np.count_nonzero(df.columns == name)
    if n_columns > 1:
        raise InvalidDataError(f"there are {n_columns} columns named {name!r}; rename one")
    return df[name]


def way_out(role: str, column: Hashable) -> str:
    """Return what errors about an optional column add that the caller did not name."""
    return (
        f"; the column {column!r} was taken for the {role} by its name: name another with {role}=, "
        f"or none with {role}=None"
    )


def warn_of_zeros(values: Floats, column: Hashable, *, named: bool, where: str = "") -> None:
    """Warn once if values are 0 that may not mean that an item was shown and not chosen.

    In ratings 0 often means an event without a rating, as in Book-Crossing; in a column that was
    recognized by its name anything.

    Parameters
    ----------
    values : ndarray of float64
        The values.
    column : hashable
        The name of their column; "value" is what we call it ourselves, and raises no doubt.
    named : bool
        Whether the caller named the column.
    where : str
        What the warning begins with, such as the path.
    """
    if column == "value" or (named and not re.search(r"ratings?$", str(column), re.IGNORECASE)):
        return
    n_zeros = int(np.count_nonzero(values == 0))
    if n_zeros:
        warn(
            f"{where}{n_zeros:,} of {len(values):,} values in the column {column!r} are 0, which "
            "means shown and not chosen; if here it means chosen without a rating, drop these "
            "events (Interactions.filter with a min_value above 0), or count every event as 1 "
            "(value=None)",
            GuessWarning,
        )


def events_kept(column: Column, keep: Iterable[object]) -> Booleans:
    """Return which rows are events of the given names, compared as text.

    Raises
    ------
    InvalidDataError
        If there is no such event.
    """
    wanted = (
        list(map(str, keep)) if isinstance(keep, Iterable) and not isinstance(keep, str) else []
    )
    if not wanted:
        raise InvalidDataError(f"keep: expected a list of types of events, found {keep!r}")
    codes, events = pd.factorize(column)  # a missing event has the code -1
    names = [str(event) for event in events.tolist()]
    for name in wanted:
        if name not in names:
            listed = ", ".join(map(repr, sorted(names)))
            raise InvalidDataError(f"keep: there is no event {name!r}; there are {listed}")
    return np.isin(codes, [code for code, name in enumerate(names) if name in wanted])


def values_of(column: Column) -> Floats:
    """Return a column of values as float64, or raise; the first bad row is named."""
    expected = "a finite number that is not negative"
    values = _numbers(column, expected)
    valid = np.isfinite(values) & (values >= 0)
    if not valid.all():
        raise _fault(column, valid, expected)
    return values


def _fault(column: Column, valid: Booleans, expected: str) -> InvalidDataError:
    row = int(np.argmin(valid))
    return InvalidDataError(
        f"row {row}, column {column.name!r}: expected {expected}, found {at(column, row)!r}"
    )


def _numbers(column: Column, expected: str) -> Floats:
    """Return a column as float64, with NaN for what is not a number."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "cmM":
        raise InvalidDataError(
            f"column {column.name!r}: expected {expected}, found {column.dtype} values"
        )
    if kind not in "buif":
        column = pd.to_numeric(column.astype(object), errors="coerce")
    return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))


def times_of(column: Column, *, undated: bool) -> tuple[Integers, TimeUnit | None]:
    """Return a column of times as int64 and, if they were dates, their unit.

    Missing times are before all dates if `undated`; otherwise the first one is named.
    """
    missing = column.isna().to_numpy()
    if not missing.any():
        return _complete_times(column)
    if not undated:
        hint = "Interactions.from_frame(..., missing_times='undated') takes it as before all dates"
        raise _fault(column, ~missing, f"{_TIME} ({hint})")
    if missing.all():
        return np.full(len(column), UNDATED, np.int64), None
    # Another row's time in their place, so that errors count the rows of the frame.
    times, unit = _complete_times(column.where(~missing, column.iloc[int(np.argmin(missing))]))
    times[missing] = UNDATED
    return times, unit


_TIME = "a whole number or a date"


def _complete_times(column: Column) -> tuple[Integers, TimeUnit | None]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.infer_dtype(column) in ("datetime64", "datetime", "date"):
        try:
            dates = pd.to_datetime(column, utc=True).dt.tz_localize(None).dt.as_unit("ns")
            return dates.to_numpy().astype(np.int64), "ns"
        except (ValueError, TypeError) as error:  # for example dates outside 1677..2262
            raise InvalidDataError(f"column {column.name!r}: {error}") from error
    if pd.api.types.is_integer_dtype(column.dtype):
        valid = (column <= np.iinfo(np.int64).max).to_numpy(dtype=bool)
        if not valid.all():
            raise _fault(column, valid, _TIME)
        return column.to_numpy(dtype=np.int64, copy=True), None
    if pd.api.types.is_bool_dtype(column.dtype):
        raise _fault(column, np.zeros(len(column), dtype=bool), _TIME)
    if pd.api.types.infer_dtype(column) == "string":
        codes, texts = pd.factorize(column)  # the first text stays the first
        parse = parser_of(texts[0])
        times = np.empty(len(texts), dtype=np.int64)
        for code, text in enumerate(texts):
            try:
                times[code] = parse(text)
            except MalformedLineError as error:
                row = int(np.argmax(codes == code))
                raise InvalidDataError(
                    f"row {row}, column {column.name!r}: {error}; pandas.to_datetime reads other "
                    "dates"
                ) from None
        return times[codes], "ns" if parse is nanoseconds else None
    numbers = _numbers(column, _TIME)
    # 2**63 is the smallest positive float64 that int64 cannot hold.
    valid = (np.abs(numbers) < 2.0**63) & (np.floor(numbers) == numbers)
    if not valid.all():
        raise _fault(column, valid, f"{_TIME} (use a finer unit for fractions)")
    return numbers.astype(np.int64), None
