"""Score many checkpoints into one table, with a ledger from which an interrupted sweep continues.

Results are recognized by the content of a checkpoint, whatever its name is now. A row of the ledger
``sweep.jsonl`` (see `sparse_eval.jobs.ledger`) has the absolute path of a checkpoint as its slot,
and

- ``file``, as it was given; ``sha256`` of its content; ``status``, ``error`` and ``seconds``;
- ``metrics`` by name, null for NaN, and ``parameters``, the other single values in the checkpoint;
- ``saved``, the folder of its evaluation and a digest of that, if it was saved.

A CSV file next to the ledger has the same table.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..core.arguments import check_flag
from ..core.files import as_path, replacing
from ..core.formatting import escaped, plain
from ..core.hashing import digest_file
from ..core.printable import printable
from ..core.progress import progress_bar
from ..core.threads import thread_count
from ..errors import (
    InvalidCheckpointError,
    InvalidDataError,
    InvalidFileError,
    SparseEvalError,
    shown,
)
from ..evaluation.run import Execution, open_runner
from ..models.accepted import as_model
from ..models.checkpoints import read_checkpoint
from ..models.identifiers import (
    has_other_data,
    lacks_ids,
    warn_of_numbers,
    warn_of_other_data,
)
from ..models.inputs import split_arguments
from ..results.saving import SUMMARY, remove_saved
from .ledger import INPUTS, TABLE, Ledger
from .scoring import Scoring, parse_monitored, signed_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..core.types import JSONValue, PathLike
    from ..datasets.split.holdout import Holdout
    from ..evaluation.run import Keep
    from ..evaluation.runners import ClientLike
    from ..metrics import Metric
    from ..metrics.request import MetricsLike
    from ..models.inputs import CandidatesLike, TrainLike
    from ..results.saving import Savable
    from .ledger import Row

#: The kind of job, after which the file of its ledger is named.
JOB = "sweep"

#: The columns before the metrics.
BEFORE = ("file", "best", "status", "error", "seconds")


def sweep(
    paths: PathLike | Iterable[PathLike],
    train: Holdout | TrainLike,
    validation: TrainLike | MetricsLike | None = None,
    metrics: MetricsLike | None = None,
    *,
    out: PathLike | None = None,
    save: bool = False,
    convention: str | None = None,
    candidates: CandidatesLike | None = None,
    monitor: str | Metric | None = None,
    client: ClientLike | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Evaluate many checkpoints on the same data.

    A checkpoint that cannot be scored gets a row with the reason, and the sweep continues. A
    checkpoint whose content has already been scored is not scored again.

    Parameters
    ----------
    paths : str, Path or iterable of them
        Checkpoints or files of matrices, as in `evaluate_model`. A folder stands for the
        ``.npz`` files in it, ``als-2`` before ``als-10``, except for hidden ones (whose names begin
        with a dot), and a pattern such as ``"models/als-*.npz"`` for its matches.
    train, validation : as in `evaluate_model`
        What users have seen, and the held-out gains; or a `Holdout` for both. Where checkpoints and
        data have ids, each is matched by them.
    metrics : str, Metric, iterable of them, or Protocol
        As for `evaluate_model`.
    out : str or Path, optional
        A folder, created if missing, for the ledger, ``sweep.jsonl``, and ``table.csv``, which is
        replaced as a whole after each checkpoint. If the ledger exists, the sweep continues from
        it: its results are not computed again, except for failures, and its rows of checkpoints
        that are not in `paths` are kept, after the others. One process at a time may use the
        folder.
    save : bool
        Also save each evaluation by `Evaluation.save`, in a folder of `out` that is named after the
        checkpoint: ``als-32`` for ``als-32.npz``, and where another checkpoint has that name,
        ``night-als-32`` for the one in a folder ``night``. They are of whole lists, with the
        popularity ranking as a baseline, and their `about` names the checkpoint. Rows of `out`
        without an evaluation are scored again.
    convention : str, optional
        As in `evaluate`.
    candidates
        As in `evaluate_model`. Metrics among candidates are called so, as ``hit_rate@10 (1+99)`` or
        ``ndcg@10 (judged)``.
    monitor : str or Metric, optional
        The metric that determines the best checkpoint, the first of equal ones; by default the
        first of `metrics`. Lower values are better where ``sparse-eval metrics NAME`` says so, as
        of ``mean_rank`` and ``gini``.
    client : distributed.Client, str or concurrent.futures.Executor, optional
        Who scores checkpoints, as in `evaluate`: a worker scores one at a time, with one thread.
        Paths have to lead to the same files everywhere; only this process writes `out`.
    num_threads : int, optional
        As in `evaluate_model`. The values do not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    pandas.DataFrame
        One row per checkpoint, in the order of `paths`: ``file``; ``best``, true for at most one
        row; ``status``, "ok" or "failed"; ``error``, empty or the reason in one line; ``seconds``,
        the time to load and score this content; each metric, NaN if it failed; ``sha256`` of the
        file; ``train`` and ``validation``, a digest of each matrix, and of ``candidates`` if they
        are given; ``convention``, ``seen`` and ``sparse_eval``, the version that scored it; then
        the other single values in the file, such as ``factors`` and ``regularization``, sorted by
        name, in nullable columns. A name that is already a column is followed by an underscore.

    Raises
    ------
    InvalidDataError
        If there is no checkpoint, a matrix is refused by `evaluate_model` or `Relevance.from_csr`,
        `validation` is larger than `train` or has no relevant item, `num_threads` is out of
        range, or `save` is True without `out`.
    InvalidMetricError
        If a metric or convention is unknown, or a metric needs more than `train`, or
        `monitor` is not one of the metrics.
    InvalidFileError
        If a folder cannot be read or has no checkpoint, or `out` was made from other data or
        metrics, under another convention or by a version with other numbers, has a table without
        a ledger, or a damaged one. The folder is left as it is.
    OutputError
        If `out` cannot be written, or another process writes there. The previous table is kept.

    See Also
    --------
    tune : Train the models too.
    compare : Compare evaluations of a few of them, user by user.

    Notes
    -----
    A metric from `register_metric` is identified by its name: if its formula changes, choose
    another `out`.

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
    ...         _ = se.save_model(model, Path(folder) / f"als-{factors}.npz")
    ...     table = se.sweep(folder, holdout.train, holdout.validation, "ndcg@10")
    >>> table[["status", "factors"]]
      status  factors
    0     ok        4
    1     ok        8
    >>> int(table["best"].sum())
    1
    """
    parts, held_out, requested = split_arguments(train, validation, metrics)
    if check_flag("save", save) and out is None:
        raise InvalidDataError("save=True saves evaluations in a folder; name it with out=")
    files = list_checkpoints(paths)
    if client is not None:
        if type(client).__module__.startswith("pyspark."):
            raise InvalidDataError(
                "checkpoints are not scored by Spark; give an executor or a Dask client as client="
            )
        num_threads = 1
    request, monitored = parse_monitored(
        requested, monitor, convention, among=candidates is not None
    )
    scoring = Scoring.of(parts, held_out, request, candidates)  # before a checkpoint is read
    thread_count(num_threads)  # refuses a wrong number
    job = Job(scoring, num_threads, save)
    with Ledger.opened(out, JOB, scoring.inputs, earlier=(TABLE,)) as ledger:
        table = Table(ledger, files, scoring, monitored, save=save)
        tasks = ((path.absolute(), path) for path in files)
        with (
            progress_bar(progress, total=len(files), desc="score", unit=" checkpoints") as bar,
            open_runner(client) as runner,
        ):
            for path, scored in runner.run(score_task, (job, table.scored), tasks):
                bar.set_postfix_str(printable(path.name), refresh=False)
                if not table.add(path, scored):
                    table.add(path, score_task((job, {}), path))
                bar.update()
    for paths, give_warning in zip(
        table.doubtful, (warn_of_numbers, warn_of_other_data), strict=True
    ):
        if paths:
            give_warning(f"{paths[0]}{f' (and {len(paths) - 1} more)' if paths[1:] else ''}")
    return table.frame()


def list_checkpoints(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """Return the files that `sweep` scores, each once, or raise as it does if there are none."""
    files: dict[Path, None] = {}
    given = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
    for path in map(as_path, given):
        members = [path]
        if path.is_dir():
            members = list(path.glob("[!.]*.npz"))
            if not members and path.suffix == ".npz":  # as the shell makes of models/*.npz
                members = [path]
        elif not path.exists() and any(sign in str(path) for sign in "*?["):
            members = list(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not members:
            raise InvalidFileError(
                "has no .npz file in it; expected checkpoints that models of implicit saved", path
            )
        files.update(dict.fromkeys(sorted(members, key=lambda file: natural(file.name))))
    if not files:
        raise InvalidDataError("no checkpoint is given; name at least one file, or a folder")
    return list(files)


class Job(NamedTuple):
    """What all checkpoints share; evaluations are to be saved if `saves` is True."""

    scoring: Scoring
    num_threads: int | None
    saves: bool


def score_task(shared: tuple[Job, Mapping[str, Row]], path: Path) -> Scored:
    """Score a checkpoint, unless it is among the rows of contents that have been scored."""
    (scoring, num_threads, saves), scored = shared
    start = time.perf_counter()
    row: Row = {"status": "failed", "error": "", "seconds": 0.0, "sha256": ""}
    row |= {"metrics": {}, "parameters": {}}
    savable, doubts, before = None, (False, False), _state(path)
    try:
        if not path.is_file():
            reason = "is not a file" if path.exists() else "does not exist"
            raise InvalidCheckpointError(reason, path)
        row["sha256"] = digest_file(path)
        earlier = scored.get(row["sha256"])
        if earlier is not None:
            return Scored({name: earlier[name] for name in row})
        checkpoint = read_checkpoint(path)
        model = as_model(checkpoint.model)
        if _state(path) != before:
            raise InvalidCheckpointError("changed while it was read; score it again", path)
        # With all that is worth saving where that is to be saved.
        keep: Keep = "lists" if saves else "values"
        execution = Execution(keep, num_threads=num_threads, progress=False)
        ev = scoring.evaluate(model, execution, baselines=saves)
        by_number = lacks_ids(model, scoring.seen, scoring.relevance)
        doubts = by_number, has_other_data(model, scoring.matrix)
        savable = ev._savable() if saves else None
        metrics = {scoring.names[name]: plain(mean) for name, mean in ev.mean().items()}
        parameters = {name: plain(value) for name, value in checkpoint.parameters.items()}
        row |= {"status": "ok", "metrics": metrics, "parameters": parameters}
    except (SparseEvalError, OSError, MemoryError) as error:
        reason = str(error).removeprefix(f"{shown(path)}: ") or "there is not enough memory"
        row["error"] = text_of(" ".join(reason.split()))
    row["seconds"] = round(time.perf_counter() - start, 3)
    return Scored(row, savable, doubts)


def _state(path: Path) -> tuple[int, ...] | None:
    """Return what differs if a file is replaced or rewritten; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Scored(NamedTuple):
    """The result of a checkpoint, and its evaluation if that is to be saved.

    `doubts` says whether the checkpoint has no ids and the data have ids, and whether it was
    trained on other data.
    """

    row: Row
    savable: Savable | None = None
    doubts: tuple[bool, bool] = (False, False)


class Table:
    """The rows of a sweep over some files.

    Parameters
    ----------
    ledger : Ledger
    files : sequence of Path
    scoring : Scoring
    monitor : Metric
        The metric that determines the best row.
    save : bool
        Whether each row needs a saved evaluation.
    """

    def __init__(
        self,
        ledger: Ledger,
        files: Sequence[Path],
        scoring: Scoring,
        monitor: Metric,
        *,
        save: bool,
    ) -> None:
        self.ledger, self._save = ledger, save
        self._listed = {path_of(file): text_of(file) for file in files}
        self._metrics, self._monitor = list(scoring.names.values()), monitor
        self._monitored = scoring.names[str(monitor)]
        inputs = ledger.rows[INPUTS]
        names = ("train", "validation", "candidates", "convention", "seen")
        self._inputs = {name: inputs[name] for name in names if inputs[name] is not None}
        self._path = None if ledger.path is None else ledger.path.with_name(TABLE)
        #: Earlier rows by the content of the checkpoint, which is not scored again.
        self.scored: dict[str, Row] = {
            row["sha256"]: row
            for row in self.ledger.results
            if row["status"] == "ok" and (not save or ledger.has_evaluation(row))
        }
        #: Checkpoints that lack ids, on data with ids, and those trained on other data.
        self.doubtful: tuple[list[Path], list[Path]] = ([], [])
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
            folder = self.ledger.beside(before["saved"]["folder"])
            remove_saved(folder)
            with suppress(OSError):  # there are other files
                folder.rmdir()
        for paths, is_doubtful in zip(self.doubtful, scored.doubts, strict=True):
            paths.extend([path] * is_doubtful)
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
            for row in self.ledger.results
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
                for one in self.ledger.results
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

    def _folder_for(self, path: Path) -> str:
        """Return the folder of a checkpoint's evaluation: the one it has, or the first one free."""
        saved = (row for row in self.ledger.results if "saved" in row)
        held = {row["saved"]["folder"]: row["slot"] for row in saved}
        stem, parent = path.stem, path.absolute().parent.name
        for number in count():
            name = (stem, f"{parent}-{stem}")[number] if number < 2 else f"{stem}-{number}"
            folder = self.ledger.beside(name)
            is_taken = folder.is_file() or (folder / SUMMARY).exists()
            if held[name] == path_of(path) if name in held else not is_taken:
                return name
        raise AssertionError  # numbers do not end


def path_of(file: PathLike) -> str:
    """Return the absolute path of a checkpoint as JSON can hold it."""
    return escaped(Path(file).absolute())


def saved_evaluations(folder: Path) -> dict[str, Path]:
    """Return the folder of each evaluation that a sweep saved, by the name of its checkpoint."""
    rows = Ledger(folder / f"{JOB}.jsonl", JOB).rows.values()
    return {row["file"]: folder / row["saved"]["folder"] for row in rows if "saved" in row}


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
