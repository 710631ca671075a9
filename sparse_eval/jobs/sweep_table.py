"""The table of a sweep: a row for each checkpoint, and the CSV file from which it continues."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .callback import signed_score
from .csv_log import CSVLog, check_origin
from .sweep_folder import EvaluationFolder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..metrics import Metric
    from .csv_log import Row
    from .sweep_folder import Scored

#: The file of the table.
TABLE = "table.csv"

#: The columns before and after the metrics, also with candidates; the hyperparameters come last.
BEFORE = ("file", "best", "status", "error", "seconds")
AFTER = ("sha256", "train", "validation", "convention", "seen", "sparse_eval")
AFTER_AMONG = ("sha256", "train", "validation", "candidates", "convention", "seen", "sparse_eval")


class Table:
    """The rows of a sweep by file, with every cell as text, and what is written of them.

    With `save`, a row is added when its evaluation has been saved in the folder.
    """

    def __init__(
        self,
        folder: Path | None,
        save: bool,
        columns: dict[str, str],
        monitor: Metric,
        origin: Row,
    ) -> None:
        self.metrics = list(columns.values())
        self.monitor = monitor
        self.monitored = columns[str(monitor)]
        self.after = ("sha256", *origin)
        self.rows: dict[str, Row] = {}
        self.scored: dict[str, Row] = {}  # by the content of the checkpoint
        self.without_ids: list[Path] = []  # checkpoints that lack ids, on data with ids
        self.log: CSVLog | None = None
        if folder is not None:
            self.log = CSVLog(
                folder / TABLE,
                "is not a table that a sweep wrote, and is left as it is; choose another folder",
                "is not what a sweep wrote; delete the line, and its checkpoint is scored again",
            )
            self._load(self.log, origin)
        self.saved: EvaluationFolder | None = None
        if folder is not None and save:
            inputs = origin | {"metrics": ", ".join(sorted(self.metrics))}
            saved = self.saved = EvaluationFolder(folder, inputs)
            self.scored = {key: row for key, row in self.scored.items() if saved.has(key)}

    def add(self, path: Path, scored: Scored, files: Sequence[Path]) -> bool:
        """Add the row of a checkpoint, with its evaluation, and save the table.

        False if it has to be scored again, since an evaluation like it has been replaced.
        """
        row = scored.row | {"file": text_of(path)}
        if self.saved is not None:
            if row["status"] == "ok":
                if not self.saved.keep(path, row["sha256"], scored, files):
                    self.scored.pop(row["sha256"], None)
                    return False
            else:
                self.saved.drop(path)
        if scored.lacks_ids:
            self.without_ids.append(path)
        if self.rows.get(row["file"]) != row:
            self._keep(row)
            self.save(files)
        return True

    def save(self, files: Sequence[Path]) -> None:
        """Write the CSV file, unless it has the same content."""
        if self.log is not None:
            rows = self._ordered(files)
            self.log.write(self._columns(rows), rows)

    def frame(self, files: Sequence[Path]) -> pd.DataFrame:
        """Return the table with numbers instead of text."""
        rows = self._ordered(files)
        columns = self._columns(rows)
        frame = pd.DataFrame(
            [[row.get(name, "") for name in columns] for row in rows], columns=columns
        )
        frame["best"] = frame["best"] == "True"
        for name in ("seconds", *self.metrics):
            frame[name] = np.array([text or "nan" for text in frame[name]], np.float64)
        for name in columns[len(BEFORE) + len(self.metrics) + len(self.after) :]:
            frame[name] = pd.array([_parse_cell(text) for text in frame[name]])
        return frame

    def _columns(self, rows: Sequence[Row]) -> list[str]:
        fixed = [*BEFORE, *self.metrics, *self.after]
        # Sorted, so that their order does not depend on which checkpoint came first.
        return fixed + sorted({name for row in rows for name in row}.difference(fixed))

    def _ordered(self, files: Sequence[Path]) -> list[Row]:
        """Return the rows of `files`, then the other scored rows of different content."""
        names = dict.fromkeys(map(text_of, files))
        rows = [self.rows[name] for name in names if name in self.rows]
        contents = {row.get("sha256") for row in rows}
        unlisted = [
            row
            for name, row in self.rows.items()
            if name not in names and row["status"] == "ok" and row["sha256"] not in contents
        ]
        # Only a row of `files` can be the best: another checkpoint may no longer exist.
        values = [float(row.get(self.monitored, "nan")) for row in rows]
        scores = [signed_score(self.monitor, value) for value in values]
        ranked = [(score, -i) for i, score in enumerate(scores) if not math.isnan(score)]
        best = -max(ranked)[1] if ranked else None
        rows += sorted(unlisted, key=lambda row: natural(row["file"]))
        return [row | {"best": str(i == best)} for i, row in enumerate(rows)]

    def _keep(self, row: Row) -> None:
        self.rows[row["file"]] = row
        if row["status"] == "ok":
            self.scored[row["sha256"]] = row

    def _load(self, log: CSVLog, origin: Row) -> None:
        """Load the rows of an earlier sweep, or raise `InvalidFileError`."""
        columns = log.columns
        if columns is None:
            return
        end = columns.index("sha256") if "sha256" in columns else 0
        metrics = columns[len(BEFORE) : end]
        after = AFTER_AMONG if columns[end:][3:4] == ["candidates"] else AFTER
        if columns[: end + len(after)] != [*BEFORE, *metrics, *after]:
            raise log.foreign()
        for line, row in log.rows():
            if not _is_sound(row, metrics, after):
                raise log.unsound(line)
            check_origin(
                log.path,
                {"metrics": ", ".join(sorted(metrics)), "candidates": "none"} | row,
                {"metrics": ", ".join(sorted(self.metrics)), "candidates": "none"} | origin,
                "was made with other inputs",
                "choose another place for this sweep, or delete that file",
            )
            del row["best"]  # depends on the rows and on the monitored metric
            self._keep(row)


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


def _parse_cell(text: str) -> bool | int | float | str | None:
    """Return the value of a cell; None if it is empty."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text or None


def _is_sound(row: Row, metrics: list[str], after: tuple[str, ...]) -> bool:
    """Return whether a sweep can have written a row; an edited one would pass for a result."""
    needed = {"file", "best", "status", "seconds", *after[1:]}
    if row.get("status") == "ok":
        needed |= {"sha256", *metrics}
    try:
        for name in ("seconds", *metrics):
            float(row.get(name, "nan"))
    except ValueError:
        return False
    return needed <= {*row} and row["status"] in ("ok", "failed")
