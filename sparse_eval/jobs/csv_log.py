"""A CSV file of rows that are added one by one, from which an interrupted run continues."""

from __future__ import annotations

import csv
import re
from io import StringIO
from typing import TYPE_CHECKING, TypeAlias

from ..core.files import replacing
from ..errors import InvalidFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

#: The cells of a row by column, as text; an empty cell is left out.
Row: TypeAlias = dict[str, str]


class CSVLog:
    """The CSV file of a run, replaced as a whole, so that it is complete whenever it is read.

    Parameters
    ----------
    path : Path
        The file, which need not exist.
    foreign, unsound : str
        Messages for a file that is not such a log, and for a row that no run wrote.
    """

    def __init__(self, path: Path, foreign: str, unsound: str) -> None:
        self.path = path
        self._foreign = foreign
        self._unsound = unsound
        self._text = ""
        #: The header of the file; None if there was no file.
        self.columns: list[str] | None = None
        if path.exists():
            try:
                self._text = path.read_text(encoding="utf-8")
            except OSError as error:
                reason = error.strerror or error
                raise InvalidFileError(f"cannot be read: {reason}", path) from None
            except UnicodeDecodeError:
                raise self.foreign() from None
            self.columns = self._parse(n_rows=1)[0]

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the line number and the cells of each row of the file."""
        header, *rows = self._parse()
        if not self._text.endswith("\n"):  # cut off, maybe in the middle of a number
            raise self.unsound(self._text.count("\n") + 1)
        for line, cells in enumerate(rows, start=2):
            row = zip(header, cells, strict=True)
            yield line, {name: text for name, text in row if text != ""}

    def write(self, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
        """Replace the file, unless it has that content; cells that a row lacks are empty."""
        stream = StringIO()
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        text = stream.getvalue()
        if text != self._text:
            with replacing(self.path) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")
            self._text = text

    def foreign(self) -> InvalidFileError:
        """Return the error for a file that is not such a log."""
        return InvalidFileError(self._foreign, self.path)

    def unsound(self, line: int) -> InvalidFileError:
        """Return the error for a row that no run wrote."""
        return InvalidFileError(self._unsound, self.path, line)

    def _parse(self, n_rows: int | None = None) -> list[list[str]]:
        import pandas as pd

        try:
            # The csv module refuses cells of more than 128 KiB.
            frame = pd.read_csv(
                StringIO(self._text), header=None, dtype=str, na_filter=False, nrows=n_rows
            )
        except ValueError as error:
            longer = re.search(r"Expected \d+ fields in line (\d+)", str(error))
            raise (self.unsound(int(longer[1])) if longer else self.foreign()) from None
        rows: list[list[str]] = frame.to_numpy().tolist()
        return rows


def check_origin(
    path: Path,
    found: Mapping[str, object],
    expected: Mapping[str, object],
    fault: str,
    remedy: str,
) -> None:
    """Raise `InvalidFileError` if a file was made from other inputs than expected.

    The message names the differing ones between `fault` and `remedy`.
    """
    differences = [
        f"{name} {found[name]} (here {value})"
        for name, value in expected.items()
        if found[name] != value
    ]
    if differences:
        raise InvalidFileError(
            f"{fault}: {'; '.join(differences)}. It is left as it is; {remedy}", path
        )
