"""Delimited text (CSV, TSV, any separator) as Arrow batches.

The consumer of a `TextTable` chooses columns by `names`, and asks for `Field`s::

    table = TextTable("clicks.csv.gz")
    for batch in table.batches([Field("user", "userId", "id"), Field("at", "time", "time")]):
        ...  # columns "user" and "at"
    table.n_skipped

The columns of a batch have the roles of the fields as names, and these types:

=========  =======================================================================================
kind       type of the column; never null
=========  =======================================================================================
"id"       dictionary<int32, string>, each batch with its own dictionary; never blank
"text"     dictionary<int32, string>; may be blank
"gain"     float64, finite and not negative
"number"   float64, finite
"time"     int64; or timestamp[ns] without a zone (UTC) if the first line has an ISO 8601 date
=========  =======================================================================================

Text is verbatim. A line that breaks a rule is malformed: it raises `InvalidFileError` with its
number, or is skipped and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from ..core.types import PathLike

#: How the text of a column is read.
Kind: TypeAlias = Literal["id", "text", "gain", "number", "time"]


class Field(NamedTuple):
    """A column to read.

    Attributes
    ----------
    role : str
        The name of the column in the batches, and in messages: "the user id is missing".
    column : str or int
        Its name, or its number without a header. Several fields may have the same column.
    kind : Kind
    way_out : str
        What a message about an invalid value adds, such as "; name another column with time=".
    """

    role: str
    column: str | int
    kind: Kind
    way_out: str = ""


class TextTable:
    """A file of delimited text.

    Attributes
    ----------
    path : Path
    names : list of str
        The fields of the first line that is not blank: names of the columns, if `header`.
    header : bool
    n_skipped : int
        The malformed lines that were skipped, once all batches are read.
    """

    path: Path
    names: list[str]
    header: bool
    n_skipped: int

    def __init__(
        self,
        path: PathLike,
        *,
        sep: str | None = None,
        encoding: str | None = None,
        header: bool = True,
        on_bad_lines: str = "error",
    ) -> None:
        raise NotImplementedError

    def batches(self, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of the lines; nothing if there are none."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise `InvalidFileError` if the file is no text, before an error about its columns."""
        raise NotImplementedError
