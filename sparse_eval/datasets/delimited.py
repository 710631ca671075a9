"""Loading CSV and other delimited text files."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pandas as pd

from ..core.frames import USUAL, Usual
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.lines import BadLines, MalformedLineError, parse_number
from .blocks import UnusualError
from .columns import (
    choose_columns,
    missing_column,
    recognized,
    role_of,
    warn_of_zeros,
    way_out,
)
from .interactions import Interactions, check_events
from .labels import check_labels, text_labels
from .text_blocks import TextFile
from .text_table import Layout, read_lines, split_fields

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    from ..core.types import Floats, PathLike
    from ..inputs.axes import Axis
    from .labels import Column

    #: Axis to encode with, if any are given.
    Given: TypeAlias = Axis | Sequence[Hashable] | None

_SEPARATORS = ("::", "\t", ",", ";", "|")  # the first wins among equally frequent ones


def load_csv(
    path: PathLike,
    *,
    user: str | int | Usual = USUAL,
    item: str | int | Usual = USUAL,
    value: str | int | Usual | None = USUAL,
    timestamp: str | int | Usual | None = USUAL,
    event: str | int | None = None,
    keep: Sequence[object] | None = None,
    users: Axis | Sequence[Hashable] | None = None,
    items: Axis | Sequence[Hashable] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    on_bad_lines: str = "error",
) -> Interactions:
    r"""Read a text file of values separated by commas, tabs or anything else.

    If all ids are integers (without leading zeros), labels are int64, otherwise text, read
    verbatim: ``NA`` is an id like any other. Fields may be quoted with ``"``, but not across
    lines. Blank lines are ignored.

    Files in UTF-8 are read block by block, by Arrow. Blocks with quotes that hide a separator, or
    with lines to skip, take the time of reading them line by line.

    Parameters
    ----------
    path : str or Path
        The file; ``.gz`` is decompressed.
    user, item : str or int, optional
        Columns with the ids: names, or with ``header=False`` numbers counted from 0 (0 and 1 by
        default). Columns that are not named are recognized as in `Interactions.from_frame`, and
        said in `Interactions.recognized`.
    value : str, int or None, optional
        Column with the values, finite and >= 0. None, or no column with a usual name: every line
        counts 1.
    timestamp : str, int or None, optional
        Column with the times: integers in any unit, or ISO 8601 dates, which become nanoseconds
        since 1970 (UTC is assumed for dates without a time zone). The first line decides which.
        None, or no column with a usual name: no times.
    event, keep, users, items : optional
        As in `Interactions.from_frame`. With `users` or `items` that are not integers, ids are
        text even if all of those in the file are integers.
    sep : str, optional
        The separator, taken literally; default: a tab in ``.tsv`` and ``.txt`` files, otherwise
        the most frequent of ``::``, tab, ``,``, ``;``, ``|`` in the first line.
    encoding : str, optional
        The encoding, by any name that Python knows; default: UTF-8, or Latin-1, which can read
        everything, where that fails.
    header : bool
        Whether the first line holds the names of the columns.
    on_bad_lines : {"error", "skip"}
        Whether a malformed line (wrong number of fields, empty id, invalid value or time) raises
        an error, or is skipped. Skipped lines are counted in `Interactions.n_skipped` and
        reported in one `SkippedLinesWarning`. A quoted field that its line does not end is an error
        in either case: nothing tells where its row ends.

    Returns
    -------
    Interactions
        In the order of the lines.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, a column does not exist or cannot be told, or a line is
        malformed.
    InvalidDataError
        If an option is invalid.

    Warns
    -----
    GuessWarning
        If the file is no UTF-8 and `encoding` is not given; or if ratings are 0, as in
        `Interactions.from_frame`.

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
    given: dict[str, Hashable] = {
        "user": user, "item": item, "value": value, "timestamp": timestamp
    }  # fmt: skip
    if not header:
        numbers = {"user": 0, "item": 1, "value": None, "timestamp": None}
        given = {role: numbers[role] if name is USUAL else name for role, name in given.items()}
    check_events(event, keep)
    for role, name in [*given.items(), ("event", event)]:
        kinds = (Usual, str, type(None)) if header else (int, type(None))
        if isinstance(name, bool) or not isinstance(name, kinds):
            expected = "a column name" if header else "a column number, because of header=False"
            raise InvalidDataError(f"{role}: expected {expected}, found {name!r}")
    table = TextTable(TextFile(path, encoding, guess=True), sep, header, on_bad_lines)
    return table.load(given, event=event, keep=keep, users=users, items=items)


def names_columns(line: str) -> bool:
    """Return whether a line is a header with usual names of users and items."""
    return any({"user", "item"} <= set(map(role_of, line.split(sep))) for sep in _SEPARATORS)


class TextTable:
    """A text table, its first line read.

    Parameters
    ----------
    file : TextFile
        The file.
    sep : str or None
        The separator, None to guess it.
    header : bool
        Whether the first line holds the names of the columns.
    on_bad_lines : str
        As in `load_csv`.
    """

    def __init__(self, file: TextFile, sep: str | None, header: bool, on_bad_lines: str) -> None:
        self.file, self.path, self.header = file, file.path, header
        self.number, first = file.first
        self.bad, self.on_bad_lines = BadLines(self.path, on_bad_lines), on_bad_lines
        try:
            self.sep = _separator(self.path, first) if sep is None else sep
            self.names = split_fields(first, self.sep)
        except MalformedLineError as error:
            file.check()
            raise InvalidFileError(str(error), self.path, self.number) from None

    def load(
        self,
        given: Mapping[str, Hashable],
        *,
        event: Hashable = None,
        keep: Sequence[object] | None = None,
        users: Axis | Sequence[Hashable] | None = None,
        items: Axis | Sequence[Hashable] | None = None,
    ) -> Interactions:
        """Return the events; `given` has the name or number of each role's column, or `USUAL`."""
        try:
            columns = choose_columns(self.names if self.header else (), given)
        except InvalidDataError as error:
            no_names = any(math.isfinite(parse_number(name)) for name in self.names)
            self.file.check()
            hint = ", or give header=False if the first line is not a header" if no_names else ""
            raise InvalidFileError(f"{error}{hint}", self.path) from None
        needed = columns if event is None else {**columns, "event": event}
        layout = Layout(
            sep=self.sep,
            n_fields=len(self.names),
            columns=_column_numbers(self.path, self.names, needed),
            n_header=self.number * self.header,
            way_out={
                role: way_out(role, column)
                for role, column in columns.items()
                if given[role] is USUAL
            },
        )
        try:
            interactions, values = self._from_blocks(layout, users, items, keep)
        except (InvalidDataError, UnusualError):
            interactions, values = self._from_frame(layout, given, users, items, keep)
        if "value" in columns and self.header:
            warn_of_zeros(
                values,
                columns["value"],
                named=given["value"] is not USUAL,
                where=f"{self.path}: ",
            )
        return replace(
            interactions, n_skipped=self.bad.report(), recognized=recognized(columns, given)
        )

    def _from_blocks(
        self, layout: Layout, users: Given, items: Given, keep: Sequence[object] | None
    ) -> tuple[Interactions, Floats]:
        """Return the events of a plain table and their values, before any are dropped."""
        given = {"user": users, "item": items}

        def column(role: str, ids: Any) -> Column:
            return pd.Series(_ids_of(ids.to_pylist(), role, given[role]))

        bad = BadLines(self.path, self.on_bad_lines)
        found = self.file.table(layout, bad).interactions(column, users, items, keep)
        self.bad = bad
        return found

    def _from_frame(
        self,
        layout: Layout,
        given: Mapping[str, Hashable],
        users: Given,
        items: Given,
        keep: Sequence[object] | None,
    ) -> tuple[Interactions, Floats]:
        """Return the events of any table and their values, or say which line is at fault."""
        frame = read_lines(self.file.data, layout, self.bad)
        if not len(frame):
            raise InvalidFileError(
                f"there are no interactions ({self.bad.count} lines are malformed)", self.path
            )
        for role, labels in (("user", users), ("item", items)):
            ids = _ids_of(frame[role].cat.categories.tolist(), role, labels)
            frame[role] = frame[role].cat.rename_categories(ids.tolist())
        roles: dict[str, Any] = {
            role: role if role in frame else None for role in (*given, "event")
        }
        try:
            interactions = Interactions.from_frame(
                frame, **roles, keep=keep, users=users, items=items
            )
        except InvalidDataError as error:
            raise InvalidFileError(str(error), self.path) from error
        return interactions, frame["value"].to_numpy() if "value" in frame else interactions.values


def _ids_of(texts: list[str], role: str, given: Given) -> pd.Index[Any]:
    """Return ids as integers if all are, and given labels too; otherwise as text."""
    if given is None or check_labels(given, role).is_integer:
        return text_labels(texts)
    return pd.Index(texts)


def _separator(path: Path, line: str) -> str:
    suffix = (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
    if suffix in (".tsv", ".txt") and "\t" in line:
        return "\t"
    best = max(_SEPARATORS, key=line.count)
    if best not in line:
        raise MalformedLineError(
            "expected fields separated by a tab, ',', ';', '|' or '::'; give sep="
        )
    return best


def _column_numbers(
    path: Path, names: list[str], columns: Mapping[str, Hashable]
) -> dict[str, int]:
    """Return the number of each column, given by name or number, in the first line."""
    numbers = {}
    for role, name in columns.items():
        if isinstance(name, str):
            if names.count(name) > 1:
                raise InvalidFileError(f"{role}: there are several columns {name!r}", path)
            if name not in names:
                raise InvalidFileError(f"{role}: {missing_column(name, names)}", path)
            numbers[role] = names.index(name)
        elif not 0 <= (number := cast("int", name)) < len(names):
            raise InvalidFileError(
                f"{role}: there is no column {number}; the first line has {len(names)} fields, "
                "counted from 0",
                path,
            )
        else:
            numbers[role] = number
    return numbers
