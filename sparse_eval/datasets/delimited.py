"""Tables: frames, CSV and TSV files, Parquet files."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InvalidDataError, InvalidFileError, MissingExtraError
from .interactions import Interactions, missing_column
from .labels import text_labels, vocabulary
from .lines import BadLines, MalformedLineError, numbered_lines, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["load_csv", "load_frame", "load_parquet", "load_table", "split_fields"]

_SEPARATORS = ("::", "\t", ",", ";", "|")  # of equally frequent ones the first is taken
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def load_frame(
    df: pd.DataFrame,
    user: Hashable = "user",
    item: Hashable = "item",
    value: Hashable | None = None,
    timestamp: Hashable | None = None,
    users: pd.Index[Any] | Sequence[Hashable] | None = None,
    items: pd.Index[Any] | Sequence[Hashable] | None = None,
) -> Interactions:
    """Encode a frame with one row per event: the same as `Interactions.from_frame`.

    Parameters
    ----------
    df : pandas.DataFrame
        The events; it is not changed.
    user, item : hashable
        Names of the columns with the ids.
    value : hashable, optional
        Name of the column with the values, finite and >= 0; default: every event counts 1.
    timestamp : hashable, optional
        Name of the column with whole numbers or dates (which become nanoseconds, UTC).
    users, items : pandas.Index or sequence, optional
        The labels to encode with; default: the sorted distinct ids.

    Returns
    -------
    Interactions

    Raises
    ------
    InvalidDataError
        When a column does not exist, or a row cannot be used; row and column are named.

    Examples
    --------
    >>> import pandas as pd
    >>> load_frame(pd.DataFrame({"user": [1, 1], "item": ["x", "y"]}))
    Interactions(1 users × 2 items, 2 events)
    """
    return Interactions.from_frame(df, user, item, value, timestamp, users, items)


def load_csv(
    path: str | Path,
    user: str | int = "user",
    item: str | int = "item",
    value: str | int | None = None,
    timestamp: str | int | None = None,
    sep: str | None = None,
    header: bool = True,
    on_bad_lines: str = "error",
) -> Interactions:
    r"""Read a file of comma-, tab- or otherwise separated values, ``.gz`` included.

    Ids that are all integers (without leading zeros) become int64 labels, otherwise all of them
    are text, read as it is: ``NA`` is an id like any other. Fields may be quoted with ``"``, on
    one line. Blank lines are passed over.

    Parameters
    ----------
    path : str or Path
        The file: UTF-8 text.
    user, item : str or int
        Columns with the ids: names, or places counted from 0 with ``header=False`` (where the
        defaults stand for 0 and 1).
    value : str or int, optional
        Column with the values, finite and >= 0; default: every line counts 1.
    timestamp : str or int, optional
        Column with the times: whole numbers of any unit, or ISO 8601 dates, which become
        nanoseconds since 1970 (those without a time zone are taken as UTC). The first line
        decides which of the two.
    sep : str, optional
        The text between two fields, taken literally; default: a tab in ``.tsv`` and ``.txt``
        files, otherwise the most frequent of ``::``, tab, ``,``, ``;``, ``|`` in the first line.
    header : bool
        Whether the first line holds the names of the columns.
    on_bad_lines : {"error", "skip"}
        A malformed line (wrong number of fields, empty id, a value or time that is none) is an
        error, or is left out, counted in `Interactions.n_skipped` and reported in one
        `SkippedLinesWarning`.

    Returns
    -------
    Interactions
        In the order of the lines.

    Raises
    ------
    InvalidFileError
        When the file cannot be read, a column does not exist, or a line is malformed.
    InvalidDataError
        When an option is none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "clicks.csv"
    ...     _ = path.write_text("user,item,clicks\nanna,7,3\nbob,5,1\n")
    ...     load_csv(path, value="clicks").to_frame()
       user  item  value
    0  anna     7    3.0
    1   bob     5    1.0
    """
    if not header:
        user, item = 0 if user == "user" else user, 1 if item == "item" else item
    columns = {"user": user, "item": item, "value": value, "timestamp": timestamp}
    wanted = {role: name for role, name in columns.items() if name is not None}
    for role, name in wanted.items():
        if isinstance(name, bool) or not isinstance(name, str if header else int):
            expected = "a column name" if header else "the place of a column, with header=False"
            raise InvalidDataError(f"{role}: expected {expected}, found {name!r}")
    if sep is not None and (not isinstance(sep, str) or not sep or set(sep) & set('"\r\n')):
        raise InvalidDataError(f"sep: expected the text between two fields, found {sep!r}")
    return load_table(Path(path), wanted, sep, header, on_bad_lines)


def load_parquet(
    path: str | Path,
    user: str = "user",
    item: str = "item",
    value: str | None = None,
    timestamp: str | None = None,
) -> Interactions:
    """Read the columns needed of a Parquet file; this takes the extra ``parquet``.

    Parameters
    ----------
    path : str or Path
        The file.
    user, item : str
        Names of the columns with the ids.
    value : str, optional
        Name of the column with the values, finite and >= 0; default: every row counts 1.
    timestamp : str, optional
        Name of the column with whole numbers or dates (which become nanoseconds, UTC).

    Returns
    -------
    Interactions
        In the order of the rows.

    Raises
    ------
    MissingExtraError
        When pyarrow is not installed.
    InvalidFileError
        When the file cannot be read, a column does not exist, or a row cannot be used.

    Examples
    --------
    >>> load_parquet("clicks.parquet", value="clicks")  # doctest: +SKIP
    Interactions(50,000 users × 51,277 items, 1,500,000 events)
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtraError(
            'reading Parquet takes pyarrow: pip install "sparse_eval[parquet]"'
        ) from error
    path = Path(path)
    if not path.is_file():
        raise InvalidFileError(
            "expected a file, found a folder" if path.is_dir() else "there is no such file", path
        )
    wanted = [name for name in (user, item, value, timestamp) if name is not None]
    try:
        names = parquet.read_schema(path).names
        for name in wanted:
            if name not in names:
                raise InvalidFileError(missing_column(name, names), path)
        # Read as this one file: a path like year=2024/x.parquet must not grow a column.
        table = parquet.ParquetFile(path).read(columns=list(dict.fromkeys(wanted)))
        return Interactions.from_frame(table.to_pandas(), user, item, value, timestamp)
    except InvalidDataError as error:
        raise InvalidFileError(str(error), path) from error
    except InvalidFileError:
        raise
    except (OSError, ArrowException, KeyError, TypeError, ValueError) as error:
        # What pyarrow and pandas raise on files that are damaged.
        raise InvalidFileError(f"not a readable Parquet file ({error})", path) from error


def load_table(
    path: Path,
    columns: dict[str, str | int],
    sep: str | None,
    header: bool,
    on_bad_lines: str,
) -> Interactions:
    """Read a text table whose options were checked; `columns` maps roles to names or places."""
    bad = BadLines(path, on_bad_lines)
    data = read_text(path)
    number, first = next(numbered_lines(data))
    sep = _separator(path, first) if sep is None else sep
    try:
        names = split_fields(first, sep)
    except MalformedLineError as error:
        raise InvalidFileError(str(error), path, number) from None
    places = _places(path, names, columns, header)
    layout = _Layout(sep=sep, n_fields=len(names), places=places, n_header=number * header)
    frame = _read_fast(data, layout)
    if frame is None:
        frame = _read_lines(data, layout, bad)
    if not len(frame):
        fault = f"all {bad.count} lines are malformed" if bad.count else "no line after the header"
        raise InvalidFileError(f"there are no interactions: {fault}", path)
    interactions = Interactions.from_frame(
        frame,
        value="value" if "value" in places else None,
        timestamp="timestamp" if "timestamp" in places else None,
    )
    return replace(interactions, n_skipped=bad.report())


def split_fields(line: str, sep: str) -> list[str]:
    """Split one line into fields.

    Quotes are understood with separators of one character. A line is parsed by itself, so that
    a stray quote spoils its own line and not all that follow.
    """
    if len(sep) > 1 or '"' not in line:
        return line.split(sep)
    try:
        return next(csv.reader([line], delimiter=sep, strict=True))
    except csv.Error as error:
        raise MalformedLineError(f"expected quotes in pairs, found a stray one ({error})") from None


@dataclass(frozen=True)
class _Layout:
    """How a table is written."""

    sep: str
    n_fields: int
    places: dict[str, int]
    n_header: int  # lines up to and with the header


def _separator(path: Path, line: str) -> str:
    suffix = (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
    if suffix in (".tsv", ".txt") and "\t" in line:
        return "\t"
    best = max(_SEPARATORS, key=line.count)
    if best not in line:
        raise InvalidFileError(
            "expected fields separated by a tab, ',', ';', '|' or '::'; give sep=", path, 1
        )
    return best


def _places(
    path: Path, names: list[str], columns: dict[str, str | int], header: bool
) -> dict[str, int]:
    """Find the columns in the first line."""
    places = {}
    for role, name in columns.items():
        if isinstance(name, str):
            if names.count(name) > 1:
                raise InvalidFileError(f"{role}: there are several columns {name!r}", path)
            if name not in names:
                raise InvalidFileError(f"{role}: {missing_column(name, names)}", path)
            places[role] = names.index(name)
        elif not 0 <= name < len(names):
            raise InvalidFileError(
                f"{role}: there is no column {name}; the first line has {len(names)} fields, "
                "counted from 0",
                path,
            )
        else:
            places[role] = name
    return places


def _read_fast(data: bytes, layout: _Layout) -> pd.DataFrame | None:
    """Read a table without faults, or return None when anything is unusual about it.

    `pandas.read_csv` does not say where a fault is, and passes over some (a line with too many
    fields is cut). So the fields are counted first, and whatever is not plain is left to
    `_read_lines`, which gives the same result on plain files.
    """
    sep = layout.sep
    if sep == "::" and b"\t" not in data:
        data, sep = data.replace(b"::", b"\t"), "\t"
    if len(sep) > 1 or not sep.isascii() or b'"' in data:
        return None
    if not data.endswith(b"\n"):
        data += b"\n"
    buffer = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(buffer == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    separators = np.add.reduceat(buffer == ord(sep), starts, dtype=np.int64)
    separators = separators[layout.n_header :][(ends > starts)[layout.n_header :]]
    if not len(separators) or (separators != layout.n_fields - 1).any():
        return None
    # Ids and values are read as text: no id is taken for a number or for missing, and each
    # distinct value is parsed once, by the same function as line by line.
    dtypes = {place: "str" for role, place in layout.places.items() if role != "timestamp"}
    usecols = sorted(set(layout.places.values()))
    if len(usecols) < len(layout.places):
        return None
    try:
        table = pd.read_csv(
            io.BytesIO(data),
            sep=sep,
            header=None,
            index_col=False,
            skiprows=layout.n_header,
            usecols=usecols,
            dtype=dtypes,
            na_filter=False,
            quoting=csv.QUOTE_NONE,
            engine="c",
            low_memory=False,
        )
        columns: dict[str, Any] = {}
        for role, place in layout.places.items():
            if role == "timestamp":
                if table[place].dtype != np.int64:  # dates, or floats, which lose digits
                    return None
                columns[role] = table[place].to_numpy()
                continue
            codes, distinct = pd.factorize(table[place])
            texts = distinct.tolist()
            if role == "value":
                columns[role] = np.array([_value(text) for text in texts])[codes]
            elif all(map(str.strip, texts)):
                columns[role] = pd.Categorical.from_codes(codes, text_labels(texts))
            else:
                return None
    except (ValueError, OverflowError):
        return None
    return pd.DataFrame(columns)


def _read_lines(data: bytes, layout: _Layout, bad: BadLines) -> pd.DataFrame:
    """Read a table line by line, and find the malformed ones."""
    places = layout.places
    numbers = {"user": vocabulary(), "item": vocabulary()}
    codes: dict[str, list[int]] = {"user": [], "item": []}
    columns: dict[str, list[Any]] = {role: [] for role in ("value", "timestamp") if role in places}
    to_time: Callable[[str], int] | None = None
    for number, line in numbered_lines(data):
        if number <= layout.n_header:
            continue
        try:
            fields = split_fields(line, layout.sep)
            if len(fields) != layout.n_fields:
                raise MalformedLineError(
                    f"expected {layout.n_fields} fields separated by {layout.sep!r}, "
                    f"found {len(fields)}"
                )
            for role in codes:
                if not fields[places[role]].strip():
                    raise MalformedLineError(f"expected a {role} id, found an empty field")
            row: dict[str, float | int] = {}
            if "value" in columns:
                row["value"] = _value(fields[places["value"]])
            if "timestamp" in columns:
                text = fields[places["timestamp"]]
                reader = to_time or (_whole if _is_number(text) else _nanoseconds)
                row["timestamp"] = reader(text)
                to_time = reader
        except MalformedLineError as error:
            bad.add(number, line, str(error))
            continue
        for role, numbered in codes.items():
            numbered.append(numbers[role][fields[places[role]]])
        for role, cell in row.items():
            columns[role].append(cell)
    frame = pd.DataFrame(
        {
            role: pd.Categorical.from_codes(codes[role], text_labels(list(numbers[role])))
            for role in codes
        }
    )
    for role, cells in columns.items():
        frame[role] = np.array(cells, dtype=np.float64 if role == "value" else np.int64)
    return frame


def _number(text: str) -> float:
    """Return a number, NaN where it is none; as the fast path, without Python's underscores."""
    try:
        return float("nan") if "_" in text else float(text)
    except ValueError:
        return float("nan")


def _is_number(text: str) -> bool:
    return not np.isnan(_number(text))


def _value(text: str) -> float:
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise MalformedLineError(f"expected a finite value that is not negative, found {text!r}")
    return value


def _whole(text: str) -> int:
    try:
        result = 2**63 if "_" in text else int(text)
    except ValueError:  # 1e9 and 1.0 are whole numbers too
        number = _number(text)
        result = int(number) if number.is_integer() else 2**63
    if -(2**63) <= result < 2**63:
        return result
    raise MalformedLineError(f"expected a whole number as timestamp, found {text!r}")


def _nanoseconds(text: str) -> int:
    try:
        date = datetime.fromisoformat(text.strip())
        date = date.replace(tzinfo=date.tzinfo or UTC)
        result = (date - _EPOCH) // timedelta(microseconds=1) * 1000
    except (ValueError, OverflowError):
        result = 2**63
    if not -(2**63) <= result < 2**63:
        raise MalformedLineError(f"expected a whole number or an ISO 8601 date, found {text!r}")
    return result
