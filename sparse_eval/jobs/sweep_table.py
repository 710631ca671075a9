"""The table of a sweep: a row for each checkpoint, in a ledger and in a CSV file next to it.

A row of the ledger ``sweep.jsonl`` (see `sparse_eval.jobs.ledger`) has the absolute path of a
checkpoint as its slot, and

- ``file``, as it was given; ``sha256`` of its content; ``status``, ``error`` and ``seconds``;
- ``metrics`` by name, null for NaN, and ``parameters``, the other single values in the checkpoint;
- ``saved``, the folder of its evaluation and a digest of that, if it was saved.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..core.files import replacing
from ..core.formatting import escaped
from ..results.saving import SUMMARY, remove_saved
from .ledger import INPUTS
from .scoring import signed_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..core.types import JSONValue, PathLike
    from ..metrics import Metric
    from ..results.saving import Savable
    from .ledger import Ledger, Row

#: The kind of job, after which the file of its ledger is named, and the file of the table.
JOB, TABLE = "sweep", "table.csv"

#: The columns before the metrics.
BEFORE = ("file", "best", "status", "error", "seconds")


class Scored(NamedTuple):
    """The result of a checkpoint, and its evaluation if that is to be saved.

    `lacks_ids` is True if the checkpoint has no ids and the data have ids.
    """

    row: Row
    savable: Savable | None = None
    lacks_ids: bool = False


class Table:
    """The rows of a sweep over some files.

    Parameters
    ----------
    ledger : Ledger
    files : sequence of Path
    metrics : dict of str to str
        The column of each metric.
    monitor : Metric
        The metric that determines the best row.
    save : bool
        Whether each row needs a saved evaluation.
    """

    def __init__(
        self,
        ledger: Ledger,
        files: Sequence[Path],
        metrics: Mapping[str, str],
        monitor: Metric,
        *,
        save: bool,
    ) -> None:
        self.ledger, self._save = ledger, save
        self._listed = {path_of(file): text_of(file) for file in files}
        self._metrics, self._monitor = list(metrics.values()), monitor
        self._monitored = metrics[str(monitor)]
        inputs = ledger.rows[INPUTS]
        names = ("train", "validation", "candidates", "convention", "seen")
        self._inputs = {name: inputs[name] for name in names if inputs[name] is not None}
        self._path = None if ledger.path is None else ledger.path.with_name(TABLE)
        #: Earlier rows by the content of the checkpoint, which is not scored again.
        self.scored: dict[str, Row] = {
            row["sha256"]: row
            for row in self._rows()
            if row["status"] == "ok" and (not save or ledger.has_evaluation(row))
        }
        self.without_ids: list[Path] = []  # checkpoints that lack ids, on data with ids
        self.write()

    def add(self, path: Path, scored: Scored) -> bool:
        """Save the evaluation of a checkpoint, add its row, and write the table.

        False if it has to be scored again, since an evaluation like it has been replaced.
        """
        slot, row = path_of(path), scored.row | {"file": text_of(path)}
        before = self.ledger.rows.get(slot, {})
        if self._save and row["status"] == "ok":
            saved = self._saved(path, row, scored.savable)
            if saved is None:
                self.scored.pop(row["sha256"], None)
                return False
            row["saved"] = saved
        elif "saved" in before and (self._save or before["sha256"] != row["sha256"]):
            self._drop(before["saved"]["folder"])
        if scored.lacks_ids:
            self.without_ids.append(path)
        if not row.items() <= before.items():
            row = self.ledger.append(slot, **row)
            self.write()
        if row["status"] == "ok":
            self.scored[row["sha256"]] = row
        return True

    def write(self) -> None:
        """Write the CSV file, unless it has the same content."""
        if self._path is not None:
            text = self.frame().to_csv(index=False, lineterminator="\n").encode()
            if not self._path.exists() or self._path.read_bytes() != text:
                with replacing(self._path) as temporary:
                    temporary.write_bytes(text)

    def frame(self) -> pd.DataFrame:
        """Return the table."""
        rows = [*self.listed(), *self._others()]
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in BEFORE}
        for name in self._metrics:
            values = [row["metrics"].get(name) for row in rows]
            columns[name] = np.array([math.nan if x is None else x for x in values], np.float64)
        columns["sha256"] = [row["sha256"] for row in rows]
        columns |= self._inputs
        columns["sparse_eval"] = [row["sparse_eval"] for row in rows]
        cells = [_cells(row["parameters"], {*columns, "candidates"}) for row in rows]
        # Sorted, so that their order does not depend on which checkpoint came first.
        for name in sorted({name for one in cells for name in one}):
            columns[name] = pd.array([one.get(name) for one in cells])
        return pd.DataFrame(columns)

    def _rows(self) -> list[Row]:
        return [row for slot, row in self.ledger.rows.items() if slot != INPUTS]

    def listed(self) -> list[Row]:
        """Return the rows of the files, of which at most one is the best."""
        rows = [
            self.ledger.rows[slot] | {"file": file, "best": False}
            for slot, file in self._listed.items()
            if slot in self.ledger.rows
        ]
        scores = [
            -math.inf if value is None else signed_score(self._monitor, value)
            for value in (row["metrics"].get(self._monitored) for row in rows)
        ]
        if scores and max(scores) > -math.inf:
            rows[scores.index(max(scores))]["best"] = True
        return rows

    def _others(self) -> list[Row]:
        """Return other scored rows of different content, whose checkpoints may be gone."""
        contents = {self.ledger.rows.get(slot, {}).get("sha256") for slot in self._listed}
        rows = [
            row | {"best": False}
            for row in self._rows()
            if row["slot"] not in self._listed
            and row["status"] == "ok"
            and row["sha256"] not in contents
        ]
        return sorted(rows, key=lambda row: natural(row["file"]))

    def _saved(self, path: Path, row: Row, savable: Savable | None) -> Row | None:
        """Save the evaluation of a checkpoint: a new one, or that of another file like it.

        Returns
        -------
        dict or None
            What the row records of it. None if there was one like it, which has been replaced.
        """
        slot = path_of(path)
        source: Savable | Row | None = savable
        if savable is None:
            alike = {
                one["slot"]: one
                for one in self._rows()
                if one["sha256"] == row["sha256"] and self.ledger.has_evaluation(one)
            }
            if slot in alike:
                saved: Row = alike[slot]["saved"]
                return saved
            source = next(iter(alike.values()), None)
        if source is None:
            return None
        about = {
            "checkpoint": row["parameters"] | {"file": slot, "sha256": row["sha256"]},
            "sweep": self._inputs | {"metrics": self.ledger.rows[INPUTS]["metrics"]},
        }
        return self.ledger.save(self._folder_for(path), source, about)

    def _drop(self, name: str) -> None:
        """Remove the evaluation of a checkpoint that can no longer be scored."""
        folder = self._beside(name)
        remove_saved(folder)
        with suppress(OSError):  # there are other files
            folder.rmdir()

    def _folder_for(self, path: Path) -> str:
        """Return the folder of a checkpoint's evaluation: the one it has, or the first one free."""
        held = {row["saved"]["folder"]: row["slot"] for row in self._rows() if "saved" in row}
        stem, parent = path.stem, path.absolute().parent.name
        for number in count():
            name = (stem, f"{parent}-{stem}")[number] if number < 2 else f"{stem}-{number}"
            folder = self._beside(name)
            is_taken = folder.is_file() or (folder / SUMMARY).exists()
            if held[name] == path_of(path) if name in held else not is_taken:
                return name
        raise AssertionError  # numbers do not end

    def _beside(self, name: str) -> Path:
        assert self._path is not None  # noqa: S101 - evaluations are saved in a folder only
        return self._path.with_name(name)


def path_of(file: PathLike) -> str:
    """Return the absolute path of a checkpoint as JSON can hold it."""
    return escaped(Path(file).absolute())


def natural(name: str) -> tuple[list[str | int], str]:
    """Return a sort key that puts als-2 before als-10."""
    parts = re.split("([0-9]{1,18})", name)  # Python makes no int of thousands of digits
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], name


def text_of(value: object) -> str:
    """Return `value` as one line of printable characters, for any CSV reader and terminal."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in str(value)
    )


def _cells(parameters: Mapping[str, JSONValue], taken: set[str]) -> dict[str, JSONValue]:
    """Return the parameters of a checkpoint by columns whose names are not taken."""
    cells: dict[str, JSONValue] = {}
    for name, value in parameters.items():
        column = text_of(name)
        while column in taken or column in cells:
            column += "_"
        cells[column] = text_of(value) if isinstance(value, str) else value
    return {column: value for column, value in cells.items() if value not in ("", None)}
