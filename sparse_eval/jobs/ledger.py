"""Ledgers: finished work as rows in a file, so an interrupted job can continue.

A line is a JSON object with

- ``job``, the kind of job, and ``slot``, the piece of work, such as the path of a checkpoint; a
  later line of the same slot replaces an earlier one;
- the result, as each job describes it;
- ``schema``, ``sparse_eval``, the version, and ``check``, a digest of the rest of the line.

The slot ``inputs`` holds everything that determines the numbers of all other rows: digests of the
data, the request, and the version of the numbers.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.atomic_files import locked, locked_folder, make_folder
from ..core.hashing import digest
from ..core.messages import warn
from ..core.versions import installed_version
from ..errors import InvalidFileError, OutputError, shown
from ..results import Evaluation
from ..results.saving import SUMMARY, read_saved, read_summary, save

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    from ..core.types import PathLike
    from ..results.saving import Savable

#: The content of a line.
Row: TypeAlias = dict[str, Any]

#: The slot of the inputs that determine the numbers of all rows.
INPUTS = "inputs"

#: The version of the lines.
SCHEMA = 2

#: The names in a line that are not part of the result.
LINE = "job", "slot", "schema", "sparse_eval", "check"

#: The file of the table of a sweep, next to its ledger.
TABLE = "table.csv"

#: What to do about a folder of other inputs.
REMEDY = "Choose a different folder, or empty this one; no file was changed"


class Ledger:
    """The rows of a job, the newest of each slot.

    Raises `InvalidFileError` if the file cannot be read, was written by another version or job, or
    a line is damaged. An incomplete last line gives a warning only.

    Parameters
    ----------
    path : Path or None
        The file, which need not exist; None keeps the rows in memory only.
    job : str
        The kind of job.

    Attributes
    ----------
    rows : dict of str to dict
        By slot, in insertion order.
    """

    def __init__(self, path: Path | None, job: str) -> None:
        self.path, self.job = path, job
        self.rows: dict[str, Row] = {}
        if path is not None and path.exists():
            self._read(path)

    @classmethod
    @contextmanager
    def opened(
        cls, out: PathLike | None, job: str, inputs: Row, earlier: Sequence[str] = ()
    ) -> Iterator[Ledger]:
        """Open the ledger ``JOB.jsonl`` of a folder, which no other process may use meanwhile.

        Parameters
        ----------
        out : str, Path or None
            The folder, created if missing; None keeps the rows in memory only.
        inputs : dict
            What determines the numbers of all rows, ready for JSON.
        earlier : sequence of str
            Patterns of files that are in the folder only together with a ledger.

        Raises
        ------
        InvalidFileError
            As for the class, or if the ledger has other inputs.
        OutputError
            If the folder cannot be written to, or another process uses it.
        """
        folder = None if out is None else make_folder(out)
        with nullcontext() if folder is None else locked_folder(folder):
            ledger = cls(None if folder is None else folder / f"{job}.jsonl", job)
            for pattern in () if ledger.rows else earlier:
                for path in () if folder is None else folder.glob(pattern):
                    raise InvalidFileError(
                        f"has no {job}.jsonl next to it, so it cannot be continued. {REMEDY}",
                        path,
                    )
            if ledger.rows:
                ledger.check(INPUTS, inputs)
            else:
                ledger.append(INPUTS, **inputs)
            yield ledger

    def agree(self, slot: str, values: Row) -> None:
        """Add a row, or raise `InvalidFileError` unless the row that is there has these values."""
        if slot in self.rows:
            self.check(slot, values)
        else:
            self.append(slot, **values)

    def check(self, slot: str, values: Row) -> None:
        """Raise `InvalidFileError` unless a row has these values; the message shows the others."""
        found = self.rows.get(slot, {})
        prefix = "" if slot == INPUTS else f"{slot} "
        if differing := differences(found, values, prefix):
            raise InvalidFileError(
                f"this folder was written with different inputs: {differing}. {REMEDY}", self.path
            )

    def append(self, slot: str, **values: Any) -> Row:
        """Add a row as one whole line, and return it.

        Several processes may add rows to a file at once.

        Raises `OutputError` if the file cannot be written; it is left as it was.
        """
        row = {"job": self.job, "slot": slot, **values}
        row |= {"schema": SCHEMA, "sparse_eval": installed_version()}
        row["check"] = _check(row)
        line = json.dumps(row).encode() + b"\n"
        with self._opened() as file:
            if file is not None:
                size = _whole_lines(file)
                try:
                    file.truncate(size)
                    if os.write(file.fileno(), line) < len(line):
                        raise OSError(28, os.strerror(28))  # no space is left
                    os.fsync(file.fileno())
                except BaseException:
                    file.truncate(size)
                    raise
        self._keep(row)
        return row

    @property
    def results(self) -> list[Row]:
        """The rows without the row of the inputs."""
        return [row for slot, row in self.rows.items() if slot != INPUTS]

    def begin(self) -> None:
        """Create the file, or raise `OutputError` if it cannot be written."""
        with self._opened():
            pass

    def save(self, name: str, savable: Savable, about: Mapping[str, Any]) -> Row:
        """Save an evaluation to a folder next to the file.

        Returns
        -------
        dict
            The value for ``saved`` in its row, which is added after that.
        """
        return {"folder": name, "digest": save(self.beside(name), savable, about)}

    def savable(self, row: Row) -> Savable | None:
        """Return the saved evaluation of a row, None if it is not there with all of its files."""
        if "saved" not in row:
            return None
        try:
            return read_saved(self._folder_of(row))
        except InvalidFileError:
            return None

    def evaluation(self, slot: str) -> Evaluation:
        """Return the saved evaluation of a row.

        Raises `InvalidFileError` if there is none, or a file of it was changed or exchanged.
        """
        if slot not in self.rows:
            raise InvalidFileError(f"has no row for {slot}", self.path)
        return Evaluation.load(self._folder_of(self.rows[slot]))

    def _folder_of(self, row: Row) -> Path:
        """Return the folder of the evaluation of a row, if it is still that evaluation."""
        folder = self.beside(row["saved"]["folder"])
        if read_summary(folder / SUMMARY)["digest"] != row["saved"]["digest"]:
            raise InvalidFileError(f"is not the evaluation of {row['slot']}", folder / SUMMARY)
        return folder

    def beside(self, name: str) -> Path:
        """Return a path in the folder of the file."""
        assert self.path is not None  # noqa: S101 - evaluations are saved next to a file only
        return self.path.parent / name

    def _keep(self, row: Row) -> None:
        self.rows.pop(row["slot"], None)
        self.rows[row["slot"]] = row

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file, locked(file):
                *lines, rest = file.read().split(b"\n")
        except OSError as error:
            raise InvalidFileError(f"cannot be read: {error.strerror}", path) from None
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line.decode())
                if row["schema"] == SCHEMA and row["check"] != _check(row):
                    raise ValueError
                folder = row["saved"]["folder"] if "saved" in row else "none"
                if Path(folder).name != folder or folder in ("", ".."):
                    raise ValueError  # not next to the file
            except (ValueError, RecursionError, LookupError, TypeError):
                raise InvalidFileError(
                    "is damaged; delete the line, or restore it", path, number
                ) from None
            if row["schema"] != SCHEMA:
                raise InvalidFileError(
                    f"was written by sparse_eval {row.get('sparse_eval')}, in a format that this "
                    "version cannot read; choose another file",
                    path,
                    number,
                )
            if row["job"] != self.job:
                raise InvalidFileError(
                    f"belongs to a {row['job']}, not to a {self.job}", path, number
                )
            self._keep(row)
        if rest:
            warn(f"{shown(path)}: the last line is incomplete and is ignored")

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO | None]:
        """Open the file to add to it, and keep other processes from that meanwhile."""
        if self.path is None:
            yield None
            return
        if not self.path.exists():
            make_folder(self.path.parent)
        try:
            with self.path.open("a+b", buffering=0) as file, locked(file):
                yield file
        except OSError as error:
            raise OutputError(f"{shown(self.path)}: cannot be written: {error.strerror}") from error


def differences(found: Row, values: Row, prefix: str = "") -> str:
    """Return which values differ from those found, in words; empty if none does."""
    return "; ".join(
        f"{prefix}{name}={found.get(name)} (now {value})"
        for name, value in values.items()
        if found.get(name) != value
    )


def _check(row: Row) -> str:
    """Return a digest of a row, so that what is read is what was written."""
    rest = {name: value for name, value in row.items() if name != "check"}
    text = json.dumps(rest, sort_keys=True, allow_nan=False)
    return digest(text)[:16]


def _whole_lines(file: BinaryIO) -> int:
    """Return the size of a file without an incomplete last line."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    if file.read(1) in (b"", b"\n"):
        return size
    file.seek(0)
    return file.read().rfind(b"\n") + 1
