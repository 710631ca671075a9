"""Reading text files line by line: encodings, line ends, compression and malformed lines."""

from __future__ import annotations

import codecs
import gzip
import io
import math
import zlib
from typing import TYPE_CHECKING

from ..core.arguments import check_choice
from ..core.warning import warn
from ..errors import InvalidDataError, InvalidFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class GuessWarning(UserWarning):
    """A loader went by what is likely, where only the user can know."""


class SkippedLinesWarning(UserWarning):
    """Malformed lines were skipped, because ``on_bad_lines="skip"`` was given."""


class MalformedLineError(ValueError):
    """A line that does not follow the format; `BadLines` adds its place in the file."""


def shorten(text: str, width: int = 80) -> str:
    """Return the repr of a text, truncated to about `width` characters."""
    return repr(text) if len(text) <= width else f"{text[:width]!r}..."


def parse_number(text: str) -> float:
    """Return a text as a float, or NaN if it is not a number; Python alone would read 1_000."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


class OpenQuoteError(MalformedLineError):
    """A quoted field that the line does not end: what follows may be of it, or be rows."""


class BadLines:
    """Malformed lines of one file: the first raises an error, or all are skipped and counted."""

    def __init__(self, path: Path, on_bad_lines: str) -> None:
        check_choice("on_bad_lines", on_bad_lines, ("error", "skip"))
        self.path = path
        self.skip = on_bad_lines == "skip"
        self.count = 0
        self.first = 0

    def add(self, number: int, line: str, fault: MalformedLineError | str) -> None:
        """Raise `InvalidFileError` for the line, or count it.

        No `OpenQuoteError` is counted: lines after it would be taken for rows that are none.
        """
        if isinstance(fault, OpenQuoteError):
            remedy = (
                "correct it, or read a table whose fields hold line breaks with pandas.read_csv, "
                "and load the frame"
            )
        elif not self.skip:
            remedy = "correct the line, or skip such lines with on_bad_lines='skip'"
        else:
            self.first = self.first or number
            self.count += 1
            return
        raise InvalidFileError(f"{fault}, in {shorten(line)}; {remedy}", self.path, number)

    def report(self) -> int:
        """Return the number of skipped lines, and warn once if there are any."""
        if self.count:
            lines = "line" if self.count == 1 else "lines"
            warn(
                f"skipped {self.count} malformed {lines} of {self.path} (first: line {self.first})",
                SkippedLinesWarning,
            )
        return self.count


def read_text(path: Path, encoding: str | None = None, *, guess: bool = False) -> bytes:
    r"""Read a whole text file, decompressing ``.gz``, as UTF-8 bytes with ``\n`` line ends.

    A byte order mark is dropped; ``\r\n`` and ``\r`` become ``\n``, so that lines are numbered
    as an editor numbers them.

    Parameters
    ----------
    path : Path
        The file.
    encoding : str, optional
        Its encoding; UTF-8 by default.
    guess : bool
        Whether a file that is no UTF-8 is read as Latin-1 if `encoding` is not given, with a
        warning. Latin-1 has a character for every byte, so that different ids stay different.

    Raises
    ------
    InvalidFileError
        If there is no such text.
    InvalidDataError
        If there is no such encoding.
    """
    try:
        data = path.read_bytes()
        if path.suffix.lower() == ".gz":
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise InvalidFileError("there is no such file", path) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidFileError(f"cannot be read ({error})", path) from error
    if encoding is not None:
        try:
            data = data.decode(encoding).encode()
        except (LookupError, TypeError):
            raise InvalidDataError(
                "encoding: expected a name that Python knows, such as 'utf-8', 'latin-1', 'cp1252' "
                f"or 'utf-16', found {encoding!r}"
            ) from None
        except UnicodeError as error:
            start = error.start if isinstance(error, UnicodeDecodeError) else 0
            line = data[:start].decode(encoding, "replace").count("\n") + 1
            raise InvalidFileError(
                f"expected text in {encoding} ({error}); give another encoding=", path, line
            ) from None
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    fault = data.find(b"\0")
    if fault < 0 and not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            fault = error.start
    if fault >= 0:
        line = data.count(b"\n", 0, fault) + 1
        if not guess or b"\0" in data or data.startswith(_UTF16_MARKS):
            hint = " or, with encoding=, name its encoding" if guess else ""
            raise InvalidFileError(
                f"expected UTF-8 text, found the byte {data[fault]:#04x}; convert or unpack the "
                f"file{hint}",
                path,
                line,
            )
        warn(
            f"{path}: line {line} is not UTF-8, so the file was read as Latin-1; name the encoding "
            "to be sure (encoding='latin-1', 'cp1252', …)",
            GuessWarning,
        )
        data = data.decode("latin-1").encode()
    if not data or data.isspace():
        raise InvalidFileError("the file is empty", path)
    return data


def numbered_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield the 1-based number and the text of every line that is not blank."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n")
    for number, line in enumerate(text, start=1):
        if not line.isspace():
            yield number, line.rstrip("\n")


def find_file(path: Path, names: Sequence[str]) -> Path:
    """Return a file's path unchanged, or the only file with one of the names in a folder."""
    if not path.is_dir():
        return path
    files = [path / name for name in names if (path / name).is_file()]
    if len(files) == 1:
        return files[0]
    listed = ", ".join(file.name for file in files) or "none of them"
    raise InvalidFileError(
        f"expected one of {', '.join(names)} in this folder, found {listed}; give the path of "
        "a file",
        path,
    )
