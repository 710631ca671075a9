"""Reading text files line by line: encodings, line ends, compression and malformed lines."""

from __future__ import annotations

import codecs
import io
import math
import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import check_choice
from ..core.parquet import place
from ..core.warning import warn
from ..errors import InvalidDataError, InvalidFileError
from .columns import GuessWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Digits of a second that `datetime` cannot hold, and would leave out.
_NANOSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})(\d*)", re.ASCII)

#: How compressed files begin, by Arrow's names of compressions.
_COMPRESSED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bz2>BZh[1-9](1AY&|\x17rE8))|(?P<zstd>\x28\xb5\x2f\xfd)"
)

#: Bytes in which the first line is looked for, and of the parts of a file that is read whole.
_HEAD, _PART = 2**16, 2**24


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


def parser_of(text: str) -> Callable[[str], int]:
    """Return the function that reads times written like this one."""
    return nanoseconds if math.isnan(parse_number(text)) else whole


def whole(text: str) -> int:
    """Return a whole number, also one that is written as 1e9 or 1.0."""
    try:
        result = 2**63 if "_" in text else int(text)
    except ValueError:  # 1e9 and 1.0 are whole numbers too
        number = parse_number(text)
        result = int(number) if number.is_integer() else 2**63
    if -(2**63) <= result < 2**63:
        return result
    raise MalformedLineError(f"expected a whole number as timestamp, found {text!r}")


def nanoseconds(text: str) -> int:
    """Return an ISO 8601 date as nanoseconds since 1970."""
    try:
        date = datetime.fromisoformat(text.strip())
        date = date.replace(tzinfo=date.tzinfo or UTC)
        result = (date - _EPOCH) // timedelta(microseconds=1) * 1000
        if digits := _NANOSECONDS.search(text):
            result = 2**63 if digits[2].strip("0") else result + int(digits[1].ljust(3, "0"))
    except (ValueError, OverflowError):
        result = 2**63
    if not -(2**63) <= result < 2**63:
        raise MalformedLineError(f"expected a whole number or an ISO 8601 date, found {text!r}")
    return result


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
            remedy = (
                "correct the line, or skip such lines with se.datasets.load(…, on_bad_lines='skip')"
            )
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


class TextFile:
    r"""A text file as blocks of whole lines.

    Blocks are UTF-8 without a byte order mark at the start of the file, and without NUL characters.
    Lines end in ``\n``, so that they are numbered as an editor numbers them.

    Parameters
    ----------
    path : Path
        The file; ``.gz``, ``.bz2`` and ``.zst`` are decompressed.
    encoding : str, optional
        Its encoding; UTF-8 by default.
    guess : bool
        Whether a file is read as Latin-1 if `encoding` is not given, and its first character that
        is not ASCII is not UTF-8 either. Latin-1 has a character for every byte, so that different
        ids stay different.

    Raises
    ------
    InvalidDataError
        If there is no such encoding.
    """

    def __init__(self, path: Path, encoding: str | None = None, *, guess: bool = False) -> None:
        self.path, self._can_name = path, guess
        self._encoding, self._guess = _other_than_utf8(encoding), guess and encoding is None
        self._latin = 0  # the first line that is not UTF-8, if the file is read as Latin-1
        self._is_told = False

    def blocks(self, size: int) -> Generator[tuple[int, bytes], None, None]:
        """Yield blocks of about `size` bytes, each after the number of lines before it.

        Raises
        ------
        InvalidFileError
            If the file cannot be read, or is no text.
        """
        n_lines, is_ascii = 0, True
        pieces: list[bytes | memoryview] = []
        for data in self._unified(size):
            end = data.rfind(b"\n") + 1
            if not end:
                pieces.append(data)
                continue
            block = b"".join((*pieces, memoryview(data)[:end]))
            pieces = [data[end:]]
            del data  # before the next one is read
            n_more = count_lines(block)
            if self._latin or not block.isascii() or b"\0" in block:
                block = self._text(block, n_lines, is_ascii)
                is_ascii = False
            yield n_lines, block
            n_lines += n_more

    def _text(self, block: bytes, n_lines: int, is_ascii: bool) -> bytes:
        """Return a block as UTF-8, or say where it is not."""
        fault = block.find(b"\0")
        if fault < 0 and not self._latin:
            try:
                block.decode()
            except UnicodeDecodeError as error:
                fault = error.start
                if self._guess and is_ascii and block[:fault].isascii():
                    is_utf16 = n_lines == 0 and block.startswith(_UTF16_MARKS)
                    self._latin = 0 if is_utf16 else n_lines + block.count(b"\n", 0, fault) + 1
        if self._latin and b"\0" not in block:
            return block.decode("latin-1").encode()
        if fault < 0:
            return block
        hint = " or, with encoding=, name its encoding" if self._can_name else ""
        raise InvalidFileError(
            f"expected UTF-8 text, found the byte {block[fault]:#04x}; convert or unpack the "
            f"file{hint}",
            self.path,
            n_lines + block.count(b"\n", 0, fault) + 1,
        )

    def warn_of_guess(self) -> None:
        """Warn once if the file is read as Latin-1."""
        if self._latin and not self._is_told:
            self._is_told = True
            warn(
                f"{self.path}: line {self._latin} is not UTF-8, so the file was read as Latin-1; "
                "name the encoding to be sure (encoding='latin-1', 'cp1252', …)",
                GuessWarning,
            )

    def first_line(self) -> tuple[int, str]:
        """Return the number and the text of the first line that is not blank."""
        with closing(self.blocks(_HEAD)) as blocks:
            for n_before, block in blocks:
                for line in numbered_lines(block, n_before):
                    return line
        raise InvalidFileError("the file is empty", self.path)

    def _unified(self, size: int) -> Iterator[bytes]:
        r"""Yield UTF-8 with ``\n`` line ends, also at the end of the file."""
        held, data, is_start = b"", b"\n", True
        for data in self._decoded(size):
            if is_start:
                data, is_start = data.removeprefix(codecs.BOM_UTF8), False
            data = held + data if held else data
            held = data[-1:] if data.endswith(b"\r") else b""  # which may be half of a line end
            if b"\r" in data:
                data = data.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            yield data
        if held or not data.endswith(b"\n"):
            yield b"\n"

    def _decoded(self, size: int) -> Iterator[bytes]:
        """Yield the content of the file, as UTF-8 if it has another encoding."""
        decoder = codecs.getincrementaldecoder(self._encoding)() if self._encoding else None
        try:
            with opened(self.path) as file:
                while data := file.read(max(size, 3)):  # a whole byte order mark
                    if decoder is None:
                        yield data
                        continue
                    text = decoder.decode(data)
                    if text:
                        yield text.encode()
                if decoder is not None and (text := decoder.decode(b"", final=True)):
                    yield text.encode()
        except FileNotFoundError:
            raise InvalidFileError("there is no such file", self.path) from None
        except OSError as error:
            raise InvalidFileError(f"cannot be read ({error})", self.path) from error
        except UnicodeError as error:
            raise InvalidFileError(
                f"expected text in {self._encoding} ({error}); give another encoding=", self.path
            ) from None


def _other_than_utf8(encoding: str | None) -> str | None:
    """Return a valid encoding, or None if it is UTF-8."""
    if encoding is None:
        return None
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
        is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    except (LookupError, TypeError, ValueError):
        raise InvalidDataError(
            "encoding: expected a name that Python knows, such as 'utf-8', 'latin-1', 'cp1252' "
            f"or 'utf-16', found {encoding!r}"
        ) from None
    return None if is_utf8 else encoding


def in_arrow(data: bytes) -> Any:
    """Return a stream of a copy of `data` in the memory of Arrow.

    A thread of Arrow that lets go of an object of Python at the end of the process aborts it.
    """
    import pyarrow as pa

    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def opened(path: Path) -> Any:
    """Open a file that may be compressed, as its first bytes show."""
    import pyarrow as pa

    with path.open("rb") as file:
        match = _COMPRESSED.match(file.read(8))
    return pa.input_stream(place(path), compression=match and match.lastgroup)


def read_text(path: Path, encoding: str | None = None, *, guess: bool = False) -> bytes:
    """Return a whole file as `TextFile` reads it, or raise `InvalidFileError` if it is blank."""
    file = TextFile(path, encoding, guess=guess)
    data = b"".join(block for _, block in file.blocks(_PART))
    file.warn_of_guess()
    if not data or data.isspace():
        raise InvalidFileError("the file is empty", path)
    return data


def count_lines(data: bytes) -> int:
    """Return the number of line ends, sooner than ``data.count`` does."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))


def numbered_lines(data: bytes, n_before: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the number, counted from 1, and the text of every line that is not blank."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n")
    for number, line in enumerate(text, start=n_before + 1):
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
