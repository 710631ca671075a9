"""Loading tables: pandas frames, CSV and other delimited text files, and Parquet files."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.files import need_pyarrow
from ..errors import InvalidDataError, InvalidFileError
from .interactions import Interactions, missing_column
from .labels import text_labels, vocabulary
from .lines import BadLines, MalformedLineError, numbered_lines, parse_number, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from ..core.types import AnyArray, Labels, PathLike
    from .interactions import MissingTimes

_SEPARATORS = ("::", "\t", ",", ";", "|")  # the first wins among equally frequent ones
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def load_frame(
    df: pd.DataFrame,
    *,
    user: Hashable = "user",
    item: Hashable = "item",
    value: Hashable | None = None,
    timestamp: Hashable | None = None,
    missing_times: MissingTimes = "error",
    users: Labels | Sequence[Hashable] | None = None,
    items: Labels | Sequence[Hashable] | None = None,
) -> Interactions:
    """Encode a frame with one row per event.

    The same as `Interactions.from_frame`, which describes the parameters and the errors.

    Returns
    -------
    Interactions
        In the order of the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> load_frame(pd.DataFrame({"user": [1, 1], "item": ["x", "y"]}))
    Interactions(1 users × 2 items, 2 events)
    """
    return Interactions.from_frame(
        df,
        user=user,
        item=item,
        value=value,
        timestamp=timestamp,
        missing_times=missing_times,
        users=users,
        items=items,
    )


def load_csv(
    path: PathLike,
    *,
    user: str | int = "user",
    item: str | int = "item",
    value: str | int | None = None,
    timestamp: str | int | None = None,
    sep: str | None = None,
    header: bool = True,
    on_bad_lines: str = "error",
) -> Interactions:
    r"""Read a text file of values separated by commas, tabs or anything else.

    If all ids are integers (without leading zeros), labels are int64, otherwise text, read
    verbatim: ``NA`` is an id like any other. Fields may be quoted with ``"``, but not across
    lines. Blank lines are ignored.

    Parameters
    ----------
    path : str or Path
        The file: UTF-8 text; ``.gz`` is decompressed.
    user, item : str or int
        Columns with the ids: names, or with ``header=False`` numbers counted from 0 (0 and 1 by
        default).
    value : str or int, optional
        Column with the values, finite and >= 0; default: every line counts 1.
    timestamp : str or int, optional
        Column with the times: integers in any unit, or ISO 8601 dates, which become nanoseconds
        since 1970 (UTC is assumed for dates without a time zone). The first line decides which.
    sep : str, optional
        The separator, taken literally; default: a tab in ``.tsv`` and ``.txt`` files, otherwise
        the most frequent of ``::``, tab, ``,``, ``;``, ``|`` in the first line.
    header : bool
        Whether the first line holds the names of the columns.
    on_bad_lines : {"error", "skip"}
        Whether a malformed line (wrong number of fields, empty id, invalid value or time) raises
        an error, or is skipped. Skipped lines are counted in `Interactions.n_skipped` and
        reported in one `SkippedLinesWarning`.

    Returns
    -------
    Interactions
        In the order of the lines.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, a column does not exist, or a line is malformed.
    InvalidDataError
        If an option is invalid.

    See Also
    --------
    load : Read a file of any format.
    load_parquet : Read a Parquet file.

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
    roles = {"user": user, "item": item, "value": value, "timestamp": timestamp}
    columns = {role: name for role, name in roles.items() if name is not None}
    for role, name in columns.items():
        if isinstance(name, bool) or not isinstance(name, str if header else int):
            expected = "a column name" if header else "a column number, because of header=False"
            raise InvalidDataError(f"{role}: expected {expected}, found {name!r}")
    if sep is not None and (not isinstance(sep, str) or not sep or set(sep) & set('"\r\n')):
        raise InvalidDataError(f"sep: expected the text between two fields, found {sep!r}")
    return load_table(Path(path), columns, sep, header, on_bad_lines)


def load_parquet(
    path: PathLike,
    *,
    user: str = "user",
    item: str = "item",
    value: str | None = None,
    timestamp: str | None = None,
) -> Interactions:
    """Read the needed columns of a Parquet file; requires the extra ``parquet``.

    Parameters
    ----------
    path : str or Path
        The file.
    user, item, value, timestamp : str, optional
        Names of the columns, as in `Interactions.from_frame`.

    Returns
    -------
    Interactions
        In the order of the rows.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    InvalidFileError
        If the file cannot be read, a column does not exist, or a row is invalid.

    Examples
    --------
    >>> load_parquet("clicks.parquet", value="clicks")  # doctest: +SKIP
    Interactions(50,000 users × 51,277 items, 1,500,000 events)
    """
    need_pyarrow()
    from pyarrow import ArrowException, parquet

    path = Path(path)
    if not path.is_file():
        raise InvalidFileError(
            "expected a file, found a folder" if path.is_dir() else "there is no such file", path
        )
    columns = [name for name in (user, item, value, timestamp) if name is not None]
    try:
        names = parquet.read_schema(path).names
        for name in columns:
            if name not in names:
                raise InvalidFileError(missing_column(name, names), path)
        # Read as a single file: a path like year=2024/x.parquet must not add a column.
        table = parquet.ParquetFile(path).read(columns=list(dict.fromkeys(columns)))
        return Interactions.from_frame(
            table.to_pandas(), user=user, item=item, value=value, timestamp=timestamp
        )
    except InvalidDataError as error:
        raise InvalidFileError(str(error), path) from error
    except InvalidFileError:
        raise
    except (OSError, ArrowException, KeyError, TypeError, ValueError) as error:
        # What pyarrow and pandas raise on damaged files.
        raise InvalidFileError(f"not a readable Parquet file ({error})", path) from error


def load_table(
    path: Path,
    columns: dict[str, str | int],
    sep: str | None,
    header: bool,
    on_bad_lines: str,
) -> Interactions:
    """Read a text table with valid options; `columns` maps roles to column names or numbers."""
    bad = BadLines(path, on_bad_lines)
    data = read_text(path)
    number, first = next(numbered_lines(data))
    sep = _separator(path, first) if sep is None else sep
    try:
        names = split_fields(first, sep)
    except MalformedLineError as error:
        raise InvalidFileError(str(error), path, number) from None
    numbers = _column_numbers(path, names, columns)
    layout = _Layout(sep=sep, n_fields=len(names), columns=numbers, n_header=number * header)
    frame = _read_fast(data, layout)
    if frame is None:
        frame = _read_lines(data, layout, bad)
    if not len(frame):
        fault = f"all {bad.count} lines are malformed" if bad.count else "no line after the header"
        raise InvalidFileError(f"there are no interactions: {fault}", path)
    interactions = Interactions.from_frame(
        frame,
        value="value" if "value" in columns else None,
        timestamp="timestamp" if "timestamp" in columns else None,
    )
    return replace(interactions, n_skipped=bad.report())


def split_fields(line: str, sep: str) -> list[str]:
    """Split one line into fields, respecting quotes if the separator has one character.

    Each line is parsed by itself, so that a stray quote does not affect the lines after it.
    """
    if len(sep) > 1 or '"' not in line:
        return line.split(sep)
    try:
        return next(csv.reader([line], delimiter=sep, strict=True))
    except csv.Error as error:
        raise MalformedLineError(f"expected quotes in pairs, found a stray one ({error})") from None


@dataclass(frozen=True)
class _Layout:
    """The layout of a text table."""

    sep: str
    n_fields: int
    columns: dict[str, int]  # the number of the column of each role
    n_header: int  # lines up to and including the header


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


def _column_numbers(path: Path, names: list[str], columns: dict[str, str | int]) -> dict[str, int]:
    """Return the number of each column among the fields of the first line."""
    numbers = {}
    for role, name in columns.items():
        if isinstance(name, str):
            if names.count(name) > 1:
                raise InvalidFileError(f"{role}: there are several columns {name!r}", path)
            if name not in names:
                raise InvalidFileError(f"{role}: {missing_column(name, names)}", path)
            numbers[role] = names.index(name)
        elif not 0 <= name < len(names):
            raise InvalidFileError(
                f"{role}: there is no column {name}; the first line has {len(names)} fields, "
                "counted from 0",
                path,
            )
        else:
            numbers[role] = name
    return numbers


def _read_fast(data: bytes, layout: _Layout) -> pd.DataFrame | None:
    """Read a table with `pandas.read_csv`, or return None if anything about it is unusual.

    `pandas.read_csv` does not say where a fault is, and ignores some (it truncates a line with
    too many fields). So the fields are counted first, and whatever is not plain is left to
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
    # Ids and values are read as text: no id becomes a number or a missing value, and each
    # distinct value is parsed once, by the same function as in `_read_lines`.
    dtypes = {column: "str" for role, column in layout.columns.items() if role != "timestamp"}
    usecols = sorted(set(layout.columns.values()))
    if len(usecols) < len(layout.columns):
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
        columns: dict[str, AnyArray | pd.Categorical] = {}
        for role, column in layout.columns.items():
            if role == "timestamp":
                if table[column].dtype != np.int64:  # dates, or floats, which lose digits
                    return None
                columns[role] = table[column].to_numpy()
                continue
            codes, distinct = pd.factorize(table[column])
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
    """Read a table line by line, and raise or skip malformed lines."""
    columns = layout.columns
    ids = {"user": vocabulary(), "item": vocabulary()}
    codes: dict[str, list[int]] = {"user": [], "item": []}
    cells: dict[str, list[float]] = {role: [] for role in ("value", "timestamp") if role in columns}
    parse_time: Callable[[str], int] | None = None
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
                if not fields[columns[role]].strip():
                    article = "an" if role == "item" else "a"
                    raise MalformedLineError(f"expected {article} {role} id, found an empty field")
            row: dict[str, float] = {}
            if "value" in cells:
                row["value"] = _value(fields[columns["value"]])
            if "timestamp" in cells:
                text = fields[columns["timestamp"]]
                is_date = math.isnan(parse_number(text))
                parse = parse_time or (_nanoseconds if is_date else _whole)
                row["timestamp"] = parse(text)
                parse_time = parse
        except MalformedLineError as error:
            bad.add(number, line, str(error))
            continue
        for role, role_codes in codes.items():
            role_codes.append(ids[role][fields[columns[role]]])
        for role, cell in row.items():
            cells[role].append(cell)
    frame = pd.DataFrame(
        {
            role: pd.Categorical.from_codes(codes[role], text_labels(list(ids[role])))
            for role in codes
        }
    )
    for role, column in cells.items():
        frame[role] = np.array(column, dtype=np.float64 if role == "value" else np.int64)
    if parse_time is _nanoseconds:
        frame["timestamp"] = frame["timestamp"].astype("datetime64[ns]")
    return frame


def _value(text: str) -> float:
    value = parse_number(text)
    if not 0 <= value < float("inf"):
        raise MalformedLineError(f"expected a finite value that is not negative, found {text!r}")
    return value


def _whole(text: str) -> int:
    try:
        result = 2**63 if "_" in text else int(text)
    except ValueError:  # 1e9 and 1.0 are whole numbers too
        number = parse_number(text)
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
