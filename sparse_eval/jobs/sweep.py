"""Score many checkpoints into one table, with a ledger to continue an interrupted sweep.

Results are recognized by the content of a checkpoint, even if it was renamed. A row of the ledger
``sweep.jsonl`` (see `sparse_eval.jobs.ledger`) has the absolute path of a checkpoint as its slot,
and

- ``file``, as given; ``sha256`` of its content; ``status`` ("gone" after a sweep that did not find
  the file), ``error`` and ``seconds``;
- ``metrics`` by name, null for NaN, and ``parameters``, the other single values in the checkpoint;
- ``saved``, the folder of its evaluation and a digest of that, if it was saved.

A CSV file next to the ledger has the same table.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.arguments import check_flag, show_spelling
from ..core.arrays import describe
from ..core.atomic_files import as_path, replacing
from ..core.formatting import escaped, plain
from ..core.hashing import digest_file
from ..core.messages import printable
from ..core.progress import progress_bar
from ..core.threads import thread_count
from ..datasets.split.holdout import Holdout
from ..datasets.split.parts import split_arguments
from ..errors import (
    InvalidCheckpointError,
    InvalidDataError,
    InvalidFileError,
    SparseEvalError,
    shown,
)
from ..evaluation.execution import Execution, is_spark, open_runner
from ..models.checkpoints import read_checkpoint
from ..models.ids import lacks_ids, warn_of_numbers
from ..models.opening import as_model
from ..models.trained_on import has_other_data, warn_of_other_data
from ..results.saving import SUMMARY, read_summary, remove_saved
from .ledger import INPUTS, LINE, TABLE, Ledger
from .scoring import Scoring, best_of, parse_monitored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from ..core.types import JSONValue, PathLike
    from ..datasets.split.parts import CandidatesLike, TrainLike
    from ..evaluation.runners import ClientLike
    from ..metrics import Metric
    from ..metrics.request import MetricsLike
    from ..results.saving import Savable
    from .ledger import Row

#: The kind of job, after which the file of its ledger is named.
JOB = "sweep"


@show_spelling
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
        The seen items, and the held-out gains; or a `Holdout` for both. They are matched by id if
        checkpoints and data have ids.
    metrics : str, Metric, iterable of them, or Protocol
        As for `evaluate_model`.
    out : str or Path, optional
        A folder, created if missing, for the ledger, ``sweep.jsonl``, and ``table.csv``, which is
        replaced as a whole after each checkpoint. If the ledger exists, the sweep continues from
        it. Its results are not computed again, except for failures. Its rows of checkpoints that
        are not in `paths` are kept, after the others. If such a checkpoint no longer exists, its
        row is left out, and ``compare`` and ``report`` leave out its evaluation, which stays in the
        folder. One process at a time may use the folder.
    save : bool
        Also save each evaluation by `Evaluation.save`, in a folder of `out` that is named after the
        checkpoint: ``als-32`` for ``als-32.npz``. If two checkpoints share that name, the one in a
        folder ``night`` becomes ``night-als-32``. The evaluations rank whole lists, with the
        popularity ranking as a baseline. Their `about` names the checkpoint, and the path of
        `train` or the folder of a loaded `Holdout`. Rows of `out` without an evaluation are scored
        again.
    convention : str, optional
        As in `evaluate`.
    candidates
        As in `evaluate_model`. Metrics among candidates have the kind in their name, as
        ``hit_rate@10 (1+99)`` or ``ndcg@10 (judged)``.
    monitor : str or Metric, optional
        The metric that determines the best checkpoint, the first of equal ones; by default the
        first of `metrics`. Lower values of some are better, such as ``mean_rank`` and ``gini``; see
        ``sparse-eval metrics NAME``.
    client : distributed.Client, str or concurrent.futures.Executor, optional
        Where to score checkpoints, as in `evaluate`: a worker scores one at a time, with one
        thread. Paths have to lead to the same files everywhere; only this process writes `out`.
    num_threads : int, optional
        As in `evaluate_model`. The values do not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    pandas.DataFrame
        One row per checkpoint, in the order of `paths`. First ``file``; ``best``, true for at most
        one row; ``status``, "ok" or "failed"; ``error``, empty or the reason in one line. Then
        ``seconds``, the time to load and score this content; each metric, NaN if it failed;
        ``sha256`` of the file. ``train``, ``validation`` and, if given, ``candidates`` are digests.
        ``convention``, ``seen`` and ``sparse_eval``, the version that scored it, follow. The other
        single values in the file, such as ``factors`` and ``regularization``, come last, sorted by
        name, in nullable columns. A name that is already a column gets a trailing underscore.

    Raises
    ------
    InvalidDataError
        If there is no checkpoint, or a matrix is not valid for `evaluate_model` or
        `Relevance.from_csr`. If `validation` is larger than `train` or has no relevant item. If
        `num_threads` is out of range, or `save` is True without `out`.
    InvalidMetricError
        If a metric or convention is unknown, or a metric needs more than `train`, or
        `monitor` is not one of the metrics.
    InvalidFileError
        If a folder cannot be read or has no checkpoint. If `out` was made with different data,
        metrics or convention, or by a version with different numbers. If its ledger is damaged or
        missing next to a table. The folder is left unchanged.
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
    if is_spark(client):
        raise InvalidDataError(
            "Spark cannot score checkpoints; pass an executor or a Dask client as client="
        )
    request, monitored = parse_monitored(
        requested, monitor, convention, among=candidates is not None
    )
    scoring = Scoring.of(parts, held_out, request, candidates)  # before a checkpoint is read
    thread_count(num_threads)  # raises for a wrong number
    num_threads = num_threads if client is None else 1
    # If evaluations are saved, everything that can be saved is kept.
    execution = Execution("lists" if save else "values", num_threads=num_threads, progress=False)
    doubtful: dict[Callable[[str], None], list[Path]] = {}
    with Ledger.opened(out, JOB, scoring.inputs, earlier=(TABLE,)) as ledger:
        origin = train.folder if isinstance(train, Holdout) else train
        data = {"data": shown(origin)} if isinstance(origin, str | Path) else {}
        table = SweepTable(ledger, files, scoring, monitored, save=save, about=data)
        tasks = ((path.absolute(), path) for path in files)
        with (
            progress_bar(progress, total=len(files), desc="score", unit=" checkpoints") as bar,
            open_runner(client) as runner,
        ):
            for path, scored in runner.run(score_task, (scoring, execution, table.scored), tasks):
                bar.set_postfix_str(printable(path.name), refresh=False)
                if not table.add(path, scored):  # an evaluation like it has been replaced
                    table.add(path, score_task((scoring, execution, {}), path))
                for give_warning in scored.doubts:
                    doubtful.setdefault(give_warning, []).append(path)
                bar.update()
    for give_warning, (first, *more) in doubtful.items():
        give_warning(f"{first}{f' (and {len(more)} more)' if more else ''}")
    return table.frame()


def list_checkpoints(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """Return the files that `sweep` scores, each once, or raise as it does if there are none."""
    files: dict[Path, None] = {}
    if isinstance(paths, Mapping):
        raise InvalidDataError(
            f"the checkpoints are {describe(paths)}; expected paths. Save models with "
            "se.save_model, or evaluate each with se.evaluate_model",
            argument="paths",
        )
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
                "contains no .npz file; expected checkpoints saved by models of implicit", path
            )
        files.update(dict.fromkeys(sorted(members, key=lambda file: natural(file.name))))
    if not files:
        raise InvalidDataError("no checkpoint is given; pass at least one file, or a folder")
    return list(files)


def score_task(shared: tuple[Scoring, Execution, Mapping[str, Row]], path: Path) -> Scored:
    """Score a checkpoint, unless it is among the rows of contents that have been scored."""
    scoring, execution, scored = shared
    start, before, saves = time.perf_counter(), _state(path), execution.keep == "lists"
    row: Row = {"status": "failed", "error": "", "seconds": 0.0, "sha256": ""}
    row |= {"metrics": {}, "parameters": {}}
    savable, doubts = None, []
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
        ev = scoring.evaluate(model, execution, baselines=saves)
        if lacks_ids(model, scoring.seen, scoring.relevance):
            doubts.append(warn_of_numbers)
        if has_other_data(model, scoring.matrix):
            doubts.append(warn_of_other_data)
        savable = ev._savable() if saves else None
        metrics = {scoring.names[name]: plain(mean) for name, mean in ev.mean().items()}
        parameters = {name: plain(value) for name, value in checkpoint.parameters.items()}
        row |= {"status": "ok", "metrics": metrics, "parameters": parameters}
    except (SparseEvalError, OSError, MemoryError) as error:
        reason = str(error).removeprefix(f"{shown(path)}: ") or "there is not enough memory"
        row["error"] = shown(" ".join(reason.split()))
    row["seconds"] = round(time.perf_counter() - start, 3)
    return Scored(row, savable, doubts)


def _state(path: Path) -> tuple[int, ...] | None:
    """Return a value that changes if a file is replaced or rewritten; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Scored(NamedTuple):
    """The result of a checkpoint, its evaluation if that is to be saved, and warnings to give."""

    row: Row
    savable: Savable | None = None
    doubts: Sequence[Callable[[str], None]] = ()


class SweepTable:
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
    about : dict
        More that saved evaluations record.
    """

    def __init__(
        self,
        ledger: Ledger,
        files: Sequence[Path],
        scoring: Scoring,
        monitor: Metric,
        *,
        save: bool,
        about: Row,
    ) -> None:
        self.ledger, self._save, self._about = ledger, save, about
        self._listed = {path_of(file): shown(file) for file in files}
        self._names, self._monitor = scoring.names, monitor
        names = ("train", "validation", "candidates", "convention", "seen")
        self._inputs = {name: x for name in names if (x := scoring.inputs[name]) is not None}
        for row in ledger.results:
            slot = row["slot"]
            if row["status"] == "ok" and slot not in self._listed and not _state(Path(slot)):
                result = {name: value for name, value in row.items() if name not in LINE}
                ledger.append(slot, **result | {"status": "gone"})
        #: Earlier rows by the content of the checkpoint, which is not scored again.
        self.scored: dict[str, Row] = {
            row["sha256"]: row | {"status": "ok"}
            for row in ledger.results
            if row["status"] != "failed" and (not save or ledger.savable(row) is not None)
        }
        self._write()

    def add(self, path: Path, scored: Scored) -> bool:
        """Save the evaluation of a checkpoint, add its row, and write the table.

        False if it has to be scored again, since an evaluation like it has been replaced.
        """
        slot, row = path_of(path), scored.row | {"file": shown(path)}
        before = self.ledger.rows.get(slot, {})
        if self._save and row["status"] == "ok":
            alike = [one for one in self.ledger.results if one["sha256"] == row["sha256"]]
            stored = (self.ledger.savable(one) for one in alike)  # reads no more than it has to
            if scored.savable is None and before in alike and self.ledger.savable(before):
                row["saved"] = before["saved"]
            elif (savable := scored.savable or next(filter(None, stored), None)) is None:
                self.scored.pop(row["sha256"], None)
                return False
            else:
                about = self._about | {
                    "checkpoint": row["parameters"] | {"file": slot, "sha256": row["sha256"]},
                    "sweep": self._inputs | {"metrics": self.ledger.rows[INPUTS]["metrics"]},
                }
                row["saved"] = self.ledger.save(self._folder_for(path), savable, about)
        elif "saved" in before and (self._save or before["sha256"] != row["sha256"]):
            folder = self.ledger.beside(before["saved"]["folder"])
            remove_saved(folder)
            with suppress(OSError):  # there are other files
                folder.rmdir()
        if not row.items() <= before.items():
            row = self.ledger.append(slot, **row)
            self._write()
        if row["status"] == "ok":
            self.scored[row["sha256"]] = row
        return True

    def _write(self) -> None:
        """Write the CSV file, unless it has the same content."""
        if self.ledger.path is not None:
            path = self.ledger.beside(TABLE)
            text = self.frame().to_csv(index=False, lineterminator="\n").encode()
            if not path.exists() or path.read_bytes() != text:
                with replacing(path) as temporary:
                    temporary.write_bytes(text)

    def frame(self) -> pd.DataFrame:
        """Return the table: the files, and other scored checkpoints that still exist."""
        import pandas as pd

        rows = [
            self.ledger.rows[slot] | {"file": file, "best": False}
            for slot, file in self._listed.items()
            if slot in self.ledger.rows
        ]
        monitored = self._names[str(self._monitor)]
        best = best_of(rows, self._monitor, lambda row: row["metrics"].get(monitored))
        if best is not None:
            best["best"] = True
        others = [
            row | {"best": False}
            for slot, row in self.ledger.rows.items()
            if slot not in {INPUTS, *self._listed} and row["status"] == "ok"
        ]
        rows += sorted(others, key=lambda row: natural(row["file"]))
        names = ("file", "best", "status", "error", "seconds")
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
        for name in self._names.values():
            columns[name] = np.array([row["metrics"].get(name) for row in rows], np.float64)
        columns["sha256"] = [row["sha256"] for row in rows]
        columns |= self._inputs
        columns["sparse_eval"] = [row["sparse_eval"] for row in rows]
        cells = [_cells(row["parameters"], {*columns, "candidates"}) for row in rows]
        # Sorted, so that their order does not depend on which checkpoint came first.
        for name in sorted({name for one in cells for name in one}):
            columns[name] = pd.array([one.get(name) for one in cells])
        return pd.DataFrame(columns)

    def _folder_for(self, path: Path) -> str:
        """Return the folder of a checkpoint's evaluation: the one it has, or the first one free."""
        held = {
            row["saved"]["folder"]: row["slot"] for row in self.ledger.results if "saved" in row
        }
        stem = path.stem
        names = (f"{stem}-{number}" for number in count(2))
        for name in chain((stem, f"{path.absolute().parent.name}-{stem}"), names):
            folder = self.ledger.beside(name)
            is_taken = folder.is_file() or _is_of_another(folder, path_of(path))
            if held[name] == path_of(path) if name in held else not is_taken:
                return name
        raise AssertionError  # numbers do not end


def path_of(file: PathLike) -> str:
    """Return the absolute path of a checkpoint as JSON can hold it."""
    return escaped(Path(file).absolute())


def _is_of_another(folder: Path, slot: str) -> bool:
    """Return whether a folder has an evaluation that no sweep saved of a checkpoint.

    A sweep that is killed may leave an evaluation whose row it has not added yet.
    """
    try:
        about = read_summary(folder / SUMMARY)["about"]
    except InvalidFileError:
        return (folder / SUMMARY).exists()
    return "sweep" not in about or about["checkpoint"]["file"] != slot


def saved_evaluations(folder: Path, status: str = "ok") -> dict[str, Path]:
    """Return the folder of each evaluation that a sweep saved, by the name of its checkpoint.

    With the status "gone", these are the evaluations of checkpoints that the last sweep did not
    find.
    """
    rows = Ledger(folder / f"{JOB}.jsonl", JOB).rows.values()
    return {
        row["file"]: folder / row["saved"]["folder"]
        for row in rows
        if "saved" in row and row["status"] == status
    }


def natural(name: str) -> tuple[list[str | int], str]:
    """Return a sort key that puts als-2 before als-10."""
    parts = re.split("([0-9]{1,18})", name)  # Python makes no int of thousands of digits
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], name


def _cells(parameters: Mapping[str, JSONValue], taken: set[str]) -> dict[str, JSONValue]:
    """Return the parameters of a checkpoint by columns whose names are not taken."""
    cells: dict[str, JSONValue] = {}
    for name, value in parameters.items():
        column = shown(name)
        while column in taken or column in cells:
            column += "_"
        cells[column] = shown(value) if isinstance(value, str) else value
    return {column: value for column, value in cells.items() if value not in ("", None)}
