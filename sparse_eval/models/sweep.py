"""Scoring many checkpoints: one row for each, in a table that an interrupted sweep goes on from.

What a row was computed from stands in the row itself: the content of the checkpoint, of both
matrices, the convention and the version. So one CSV is all that a sweep leaves and needs, and what
is already in it is known by content, whatever the file is called now.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from ..core.arguments import check_number, check_whole
from ..core.files import replacing
from ..core.progress import is_shown
from ..core.versions import installed_version
from ..errors import InvalidCheckpointError, InvalidDataError, InvalidFileError, SparseEvalError
from ..metrics import convention_named
from ..metrics.measure import make_plans
from .checkpoints import read_checkpoint
from .implicit import evaluate_model, parse_cut_metrics
from .inputs import digest_of, held_out_part, train_part
from .monitor import goodness, monitored
from .recommend import as_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..inputs.relevance import Relevance
    from ..metrics import Metric

__all__ = ["Job", "Table", "list_checkpoints", "prepare", "score_file", "sweep", "text_of"]

#: The columns before and after the metrics; the hyperparameters come last.
_BEFORE = ("file", "best", "status", "error", "seconds")
_AFTER = ("sha256", "train", "validation", "convention", "sparse_eval")

#: Seconds between two looks at a folder, at least.
_LEAST_WATCH = 0.1

_Row = dict[str, str]
_State = tuple[int, ...]


def sweep(
    paths: str | Path | Iterable[str | Path],
    train: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    out: str | Path | None = None,
    convention: str | None = None,
    monitor: str | Metric | None = None,
    watch: float | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Evaluate many checkpoints on the same data.

    A checkpoint that cannot be scored has a row that says why, and the sweep goes on. One whose
    content has been scored before is not scored again.

    Parameters
    ----------
    paths : str, Path or iterable of them
        Checkpoints. A folder stands for the ``.npz`` files in it, ``als-2`` before ``als-10``,
        without those whose name begins with a dot.
    train : scipy sparse matrix or array, shape (n_users, n_items)
        What the models were trained on, as in `evaluate_model`.
    validation : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        The held-out gains. A smaller matrix is padded.
    metrics : str, Metric or iterable of them
        Each with a cut-off.
    out : str or Path, optional
        A CSV with the table, replaced as a whole after each checkpoint. If it is there, the sweep
        goes on from it: what it holds is not computed again, except for failures, and checkpoints
        of its rows that `paths` does not name stay in it, behind the others.
    convention : str, optional
        As in `evaluate`.
    monitor : str or Metric, optional
        The metric that says which checkpoint is best, the first of equal ones. By default the
        first of `metrics`. Higher is better, but of ``gini`` and ``popularity`` lower.
    watch : float, optional
        Follow the folder `paths`: look for new and changed checkpoints every so many seconds, at
        least 0.1, until interrupted (Ctrl-C), and then return the table. A file that has changed
        since the last look is left for the next one.
    num_threads : int, optional
        As in `evaluate_model`. No value depends on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    pandas.DataFrame
        One row for each checkpoint, in the order of `paths`: ``file``; ``best``, true for one at
        most; ``status``, "ok" or "failed"; ``error``, empty or the reason in a line; ``seconds``
        it took when its content was scored, loading included; each metric, NaN where it failed;
        ``sha256`` of the file; ``train`` and ``validation``, a digest of each matrix,
        ``convention`` and ``sparse_eval``, the version; then what else is in the file as a single
        value, such as ``factors`` and ``regularization``, by name, in nullable columns. A name
        that is a column already gets an underscore behind it.

    Raises
    ------
    InvalidDataError
        If there is no checkpoint, a matrix is refused by `evaluate_model` or `Relevance.from_csr`,
        `validation` is larger than `train` or has nothing relevant, or `num_threads` or `watch` is
        out of its range or `watch` given without a folder.
    InvalidMetricError
        If a metric or convention is unknown, has no cut-off or needs more than `train`, or
        `monitor` is not one of them.
    InvalidFileError
        If a folder cannot be read or has no checkpoint, or `out` was made from other data or
        metrics, under another convention or by another version, or by no sweep at all. It is left
        as it is.
    OutputError
        If `out` cannot be written. What it held before is still there.

    Notes
    -----
    A metric from `register_metric` is known by its name: when its formula changes, take another
    `out`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for factors in (4, 8):
    ...         model = se.train_als(holdout.train, factors=factors)
    ...         model.save(Path(folder) / f"als-{factors}.npz")
    ...     table = se.sweep(folder, holdout.train, holdout.validation, "ndcg@10")
    >>> table[["status", "factors"]]
      status  factors
    0     ok        4
    1     ok        8
    >>> int(table["best"].sum())
    1
    """
    given = _given(paths)
    if watch is None:
        files = list_checkpoints(given)
    else:
        folder, every = _watched(given), check_number("watch", watch, _LEAST_WATCH)
        files = _in_folder(folder)
    job, table = prepare(files, train, validation, metrics, out, convention, monitor, num_threads)
    with tqdm(
        total=len(files) if watch is None else None,
        desc="score",
        unit=" checkpoints",
        disable=not is_shown(progress),
    ) as bar:
        if watch is None:
            for path in files:
                bar.set_postfix_str(path.name)
                table.add(score_file(path, job, table.scored), files)
                bar.update()
        else:
            with suppress(KeyboardInterrupt):
                _follow(folder, every, job, table, bar)
            files = _in_folder(folder)
    table.save(files)
    return table.frame(files)


def prepare(
    files: Sequence[Path],
    train: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    out: str | Path | None,
    convention: str | None,
    monitor: str | Metric | None,
    num_threads: int | None,
) -> tuple[Job, Table]:
    """Check the options of a sweep, and take in what an earlier one left."""
    rules = convention_named(convention)
    asked = parse_cut_metrics(metrics, rules)
    make_plans(asked, rules, frozenset({"train"}))
    best_by = asked[0] if monitor is None else monitored(monitor, asked, rules)
    matrix = train_part(train)
    relevance = held_out_part(validation, matrix.shape)
    if num_threads is not None:
        check_whole("num_threads", num_threads, 1)
    options = {"convention": convention, "num_threads": num_threads, "progress": False}
    origin = {
        "train": digest_of(matrix),
        "validation": digest_of(relevance),
        "convention": rules.name,
        "sparse_eval": installed_version(),
    }
    job = Job(matrix, relevance, tuple(map(str, asked)), options, origin)
    table = Table(out, asked, best_by, origin)
    table.save(files)  # before the first hour, not after it, if that cannot be done
    return job, table


def list_checkpoints(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files that `sweep` scores, each once, or raise as it does where there are none."""
    files: dict[Path, None] = {}
    for path in _given(paths):
        found = _in_folder(path) if path.is_dir() else [path]
        if not found:
            raise InvalidFileError(
                "has no .npz file in it; expected checkpoints that models of implicit saved", path
            )
        files.update(dict.fromkeys(found))
    if not files:
        raise InvalidDataError("no checkpoint is given; name at least one file, or a folder")
    return list(files)


class Job(NamedTuple):
    """What every checkpoint is evaluated on, checked and converted once.

    `origin` is what the values of a row come from, the checkpoint aside.
    """

    train: Any
    relevance: Relevance
    metrics: tuple[str, ...]
    options: dict[str, Any]
    origin: _Row


class Table:
    """The rows by file, every cell as text, and the CSV that holds them."""

    def __init__(
        self, out: str | Path | None, metrics: tuple[Metric, ...], monitor: Metric, origin: _Row
    ) -> None:
        self.out = None if out is None else Path(out)
        self.metrics = [str(metric) for metric in metrics]
        self.monitor = monitor
        self.origin = origin
        self.rows: dict[str, _Row] = {}
        self.scored: dict[str, _Row] = {}
        self.written = ""
        if self.out is not None and self.out.exists():
            self._load(self.out)

    def add(self, row: _Row, files: Sequence[Path]) -> None:
        """Take a row in and save the table, unless that row is in it."""
        if self.rows.get(row["file"]) != row:
            self._keep(row)
            self.save(files)

    def save(self, files: Sequence[Path]) -> None:
        """Write the table, unless the CSV holds just that."""
        if self.out is None:
            return
        rows = self._ordered(files)
        stream = StringIO()
        writer = csv.DictWriter(stream, self._columns(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        text = stream.getvalue()
        if text != self.written:
            with replacing(self.out) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")
            self.written = text

    def frame(self, files: Sequence[Path]) -> pd.DataFrame:
        """Return the table, its numbers as numbers."""
        rows = self._ordered(files)
        columns = self._columns(rows)
        frame = pd.DataFrame(
            [[row.get(name, "") for name in columns] for row in rows], columns=columns
        )
        frame["best"] = frame["best"] == "True"
        for name in ("seconds", *self.metrics):
            frame[name] = np.array([text or "nan" for text in frame[name]], np.float64)
        for name in columns[len(_BEFORE) + len(self.metrics) + len(_AFTER) :]:
            frame[name] = pd.array([_value(text) for text in frame[name]])
        return frame

    def _columns(self, rows: Sequence[_Row]) -> list[str]:
        known = [*_BEFORE, *self.metrics, *_AFTER]
        # By name, so that their order does not depend on which checkpoint came first.
        return known + sorted({name for row in rows for name in row}.difference(known))

    def _ordered(self, files: Sequence[Path]) -> list[_Row]:
        """Return the rows of `files`, then what was scored of others and is not among them."""
        names = dict.fromkeys(map(text_of, files))
        rows = [self.rows[name] for name in names if name in self.rows]
        contents = {row.get("sha256") for row in rows}
        others = [
            row
            for name, row in self.rows.items()
            if name not in names and row["status"] == "ok" and row["sha256"] not in contents
        ]
        # What was not asked for may be gone, and is not the best to take.
        values = [goodness(self.monitor, float(row.get(str(self.monitor), "nan"))) for row in rows]
        rows += sorted(others, key=lambda row: _natural(row["file"]))
        ranked = [(value, -place) for place, value in enumerate(values) if not math.isnan(value)]
        best = -max(ranked)[1] if ranked else None
        return [row | {"best": str(place == best)} for place, row in enumerate(rows)]

    def _keep(self, row: _Row) -> None:
        self.rows[row["file"]] = row
        if row["status"] == "ok":
            self.scored[row["sha256"]] = row

    def _load(self, out: Path) -> None:
        """Take in the rows of an earlier sweep, or refuse them."""
        try:
            self.written = out.read_text(encoding="utf-8")
            frame = pd.read_csv(StringIO(self.written), dtype=str, na_filter=False)
        except OSError as error:
            raise InvalidFileError(f"cannot be read: {error.strerror or error}", out) from None
        except ValueError:  # not UTF-8, or no CSV
            frame = pd.DataFrame()
        columns = list(frame.columns)
        end = columns.index("sha256") if "sha256" in columns else 0
        metrics = columns[len(_BEFORE) : end]
        if columns[: end + len(_AFTER)] != [*_BEFORE, *metrics, *_AFTER]:
            raise InvalidFileError(
                "is no table that a sweep wrote, and is left as it is; choose another file", out
            )
        ours = {"metrics": ", ".join(sorted(self.metrics))} | self.origin
        for line, cells in enumerate(frame.to_dict(orient="records"), start=2):
            row = {str(name): text for name, text in cells.items() if text != ""}
            if not _is_sound(row, metrics):
                raise InvalidFileError(
                    "is not what a sweep wrote; delete the line, and its checkpoint is scored anew",
                    out,
                    line,
                )
            theirs = {"metrics": ", ".join(sorted(metrics))} | row
            differing = [
                f"{name} {theirs[name]} (here {value})"
                for name, value in ours.items()
                if theirs[name] != value
            ]
            if differing:
                raise InvalidFileError(
                    f"was made with other inputs: {'; '.join(differing)}. It is left as it is; "
                    "choose another place for this sweep, or delete that file",
                    out,
                )
            del row["best"]  # of all rows, and of what is monitored now
            self._keep(row)


def score_file(path: Path, job: Job, scored: Mapping[str, _Row]) -> _Row:
    """Return the row of a checkpoint, which is read once more if it changes meanwhile.

    `scored` are rows by their content, which is not scored again.
    """
    for _ in range(2):
        row = _attempt(path, _state(path), job, scored)
        if row is not None:
            return row
    return {
        "file": text_of(path),
        "status": "failed",
        "error": "changed while it was read, twice; score it again when it is complete",
        "seconds": "0.0",
    } | job.origin


def _attempt(path: Path, state: _State | None, job: Job, scored: Mapping[str, _Row]) -> _Row | None:
    """Return the row of a checkpoint, or None unless it is in that state until it is loaded."""
    start = time.perf_counter()
    row = {"file": text_of(path), "status": "ok"} | job.origin
    try:
        if not path.is_file():
            reason = "is no file" if path.exists() else "does not exist"
            raise InvalidCheckpointError(reason, path)
        with path.open("rb") as stream:
            row["sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
        known = scored.get(row["sha256"])
        if known is not None:
            return known | {"file": row["file"]} if _state(path) == state else None
        checkpoint = read_checkpoint(path)
        model = as_model(checkpoint)
        if _state(path) != state:
            return None
        ev = evaluate_model(model, job.train, job.relevance, job.metrics, **job.options)
        row |= {name: repr(float(mean)) for name, mean in ev.mean().items()}
        row |= _named(checkpoint.parameters, {*_BEFORE, *_AFTER, *row})
    except (SparseEvalError, OSError, MemoryError) as error:
        if _state(path) != state:
            return None
        reason = str(error).removeprefix(f"{path}: ") or "there is not enough memory"
        row |= {"status": "failed", "error": text_of(" ".join(reason.split()))}
    row["seconds"] = str(round(time.perf_counter() - start, 3))
    return row


def _follow(folder: Path, every: float, job: Job, table: Table, bar: Any) -> None:
    """Score what is new or changed in a folder, until interrupted.

    What has changed since the last look may not be complete: its turn is at the next one. At the
    first look the time of its last change has to say that.
    """
    done: dict[Path, _State] = {}
    now = time.time_ns()
    before = {path: state for path, state in _look(folder).items() if now - state[-1] > every * 1e9}
    while True:
        states = _look(folder)
        files = list(states)
        for path, state in states.items():
            if state != before.get(path) or state == done.get(path):
                continue
            row = _attempt(path, state, job, table.scored)
            if row is not None:
                done[path] = state
                table.add(row, files)
                bar.set_postfix_str(path.name)
                bar.update()
        table.save(files)
        before = states
        time.sleep(every)


def _look(folder: Path) -> dict[Path, _State]:
    states = {path: _state(path) for path in _in_folder(folder)}
    return {path: state for path, state in states.items() if state is not None}


def _state(path: Path) -> _State | None:
    """Return what tells a file from one that is put or written in its place; None: no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _given(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    given = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
    for path in given:
        if not isinstance(path, str | Path):
            raise InvalidDataError(
                f"{path!r} is a {type(path).__name__}; expected the path of a checkpoint or folder"
            )
    return [Path(path) for path in given]


def _watched(given: list[Path]) -> Path:
    if len(given) != 1 or not given[0].is_dir():
        raise InvalidDataError(
            f"watch follows one folder, found {', '.join(map(str, given)) or 'nothing'}; name the "
            "folder that checkpoints are written to"
        )
    return given[0]


def _in_folder(folder: Path) -> list[Path]:
    try:
        found = [
            path
            for path in folder.iterdir()
            if path.suffix == ".npz" and not path.name.startswith(".") and not path.is_dir()
        ]
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", folder) from None
    return sorted(found, key=lambda path: _natural(path.name))


def _natural(name: str) -> tuple[list[str | int], str]:
    """Return a key that puts als-2 before als-10."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], name


def _named(parameters: dict[str, Any], taken: set[str]) -> _Row:
    """Return parameters as cells, under names that are no other column's."""
    cells: _Row = {}
    for name, value in parameters.items():
        column = text_of(name)
        while column in taken or column in cells:
            column += "_"
        cells[column] = text_of(value)
    return {column: text for column, text in cells.items() if text}


def text_of(value: object) -> str:
    """Return it in one line that every CSV reader and terminal takes."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in str(value)
    )


def _value(text: str) -> bool | int | float | str | None:
    """Return what a cell says; None where it is empty."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text or None


def _is_sound(row: _Row, metrics: list[str]) -> bool:
    """Say whether a row can be what a sweep wrote: an edit would be taken for a result."""
    needed = {"file", "best", "status", "seconds", *_AFTER[1:]}
    if row.get("status") == "ok":
        needed |= {"sha256", *metrics}
    try:
        for name in ("seconds", *metrics):
            float(row.get(name, "nan"))
    except ValueError:
        return False
    return needed <= {*row} and row["status"] in ("ok", "failed")
