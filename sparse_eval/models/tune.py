"""Search ALS's hyperparameters: trials on a validation part, and one test of the best.

All trials are known before the first one is trained, and they do not depend on each other. So an
interrupted search continues with the missing ones, and ends with the same table.
"""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from ..core.arguments import check_whole
from ..core.csv_log import CSVLog, check_origin
from ..core.files import make_folder
from ..core.json_files import read_json, write_json
from ..core.labelled import labels_of
from ..core.progress import display
from ..core.versions import installed_version
from ..datasets.split.holdout import Holdout
from ..errors import InvalidDataError, InvalidFileError, InvalidMetricError, SparseEvalError
from .callback import EvaluationCallback, parse_monitored, signed_score
from .checkpoints import save_model
from .evaluate import evaluate_model
from .identifiers import id_arrays
from .inputs import NewUsers, digest_of, open_held_out, split_arguments, training_matrix
from .matching import add_sides, match_sides
from .search_space import PARAMETERS, Range, draw, grid, parse_values
from .shared_candidates import SharedCandidates, candidates_of, share_candidates
from .train import train_als

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ..core.csv_log import Row
    from ..core.types import CSRMatrix, JSONValue, PathLike
    from ..inputs.relevance import Relevance
    from ..inputs.training import SeenItems
    from ..metrics import Metric
    from ..metrics.corrected import Corrected
    from ..metrics.request import MetricsLike
    from .inputs import CandidatesLike, TrainLike
    from .search_space import Searched
    from .shared_candidates import CandidatesOfSplit

#: The files of a search. The summary is written last: where it is, the test is over.
_SETTINGS, _TRIALS = "search.json", "trials.csv"
_MODEL, _PER_USER, _SUMMARY = "model.npz", "per_user.csv", "summary.json"

#: Settings that earlier versions did not write, and what they stand for there.
_LATER: dict[str, JSONValue] = {"candidates": None, "corrected": None, "judged_only": False}

_FOREIGN_JSON = "is not what a search wrote, and is left as it is; choose another folder"


class Tuning(NamedTuple):
    """The result of a search.

    Attributes
    ----------
    trials : pandas.DataFrame
        One row per trial: ``trial``, from 1; ``best``, true for at most one trial; ``status``,
        "ok" or "failed"; ``error``, empty or the reason in one line; ``factors``, ``alpha``,
        ``regularization`` and ``iterations``; ``best_iteration``, the number of iterations after
        which the monitored metric was best; each metric on the validation part at that point, NaN
        if the trial failed, called ``hit_rate@10 (1+99)`` and the like among candidates;
        ``seconds``, its duration.
    best : dict or None
        The options with which `train_als` reproduces the model of the best trial: its parameters,
        with ``iterations`` its best iteration, and ``seed``. None if every trial failed.
    test : dict or None
        The test of the best trial: ``trial``; ``parameters``, as `best`; ``test``, a digest of the
        test part, and ``test_candidates``, one of its candidates or None; then the content of
        `Evaluation.to_json`. None without a test part.
    """

    trials: pd.DataFrame
    best: dict[str, Any] | None
    test: dict[str, Any] | None


def tune(
    train: Holdout | TrainLike,
    validation: TrainLike | MetricsLike | None = None,
    metrics: MetricsLike | None = None,
    *,
    factors: Searched = 64,
    alpha: Searched = 40.0,
    regularization: Searched = 0.1,
    iterations: Searched = 15,
    draws: int | None = None,
    patience: int | None = None,
    monitor: str | Metric | None = None,
    candidates: CandidatesOfSplit | None = None,
    corrected: Corrected | None = None,
    seen: SeenItems = "exclude",
    judged_only: bool = False,
    seed: int = 0,
    test: TrainLike | None = None,
    out: PathLike | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Search for the hyperparameters of `implicit`'s ALS that are best on a validation part.

    Each trial trains on `train`, is evaluated on `validation` after every iteration, and counts
    with the values of its best iteration. With `test`, the model of the best trial is trained once
    more, on train and validation together, and scored on data that no trial has used.

    Parameters
    ----------
    train : as for `train_als`, or Holdout
        ``tune(holdout, metrics)`` stands for the parts of a `Holdout`, its test part included.
    validation : as `train`, or Relevance
        The held-out gains by which trials are compared. With ids on both sides they are matched by
        id; otherwise a smaller matrix is padded.
    metrics : str, Metric or iterable of them
        As for `evaluate_model`.
    factors, alpha, regularization, iterations : number, iterable of them or str
        The values to try, as for `train_als`: one value; several, as a list or as text like
        ``"16,32,64"``; or, with `draws`, a range like ``"16:128"``. A range includes both ends
        (whole numbers for `factors` and `iterations`), starts above 0 and is drawn from
        log-uniformly.
    draws : int, optional
        The number of trials to draw at random, no combination twice. By default the trials are
        the grid of all combinations, the last parameter changing fastest.
    patience : int, optional
        As in `EvaluationCallback`: a trial stops after this number of iterations without a better
        value of `monitor`. By default every trial runs to its end.
    monitor : str or Metric, optional
        The metric that determines the best iteration and the best trial, the first of equal ones;
        by default the first of `metrics`. Higher values are better, except for ``gini``,
        ``popularity``, ``mean_rank`` and ``percentile_rank``.
    candidates, corrected, seen, judged_only
        As in `evaluate_model`. `candidates` are for the validation and the test part alike, or a
        function of a `Holdout` that returns them, as ``lambda holdout:
        se.sample_negatives(holdout, n=99)``: it is called with the split in `train`, and for the
        test with its `Holdout.for_test`.
    seed : int
        Seed of the draws and of every training. The same seed gives the same trials and, on the
        same machine, the same values.
    test : Relevance, or scipy sparse matrix or array, shape (n_users, n_items), optional
        Held out before `validation` was. It is checked at the start and scored once, at the end;
        for that, the values of `validation` are training data too.
    out : str or Path, optional
        A folder, created if missing, for ``search.json``, the settings and digests of the data;
        ``trials.csv``, replaced as a whole after each trial; and ``model.npz``, ``per_user.csv``
        and ``summary.json`` of the test. The same search on the same data continues from it:
        finished trials, failed ones included, and a finished test are not computed again. To
        repeat a trial, delete its line.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Tuning

    Raises
    ------
    InvalidDataError
        If a parameter has no value, a value that `train_als` refuses or a value twice, a range is
        empty or given without `draws`, there are fewer combinations than `draws`, an option is
        out of range, a matrix cannot be used, or candidates are sampled beside other held-out
        items than those of both parts.
    InvalidMetricError
        If a metric is unknown or needs an input that is not given here, or `monitor` is not among
        the metrics.
    InvalidFileError
        If `out` belongs to another search or other data, or has such files of another origin.
        They are left as they are.
    OutputError
        If `out` cannot be written.
    SparseEvalError
        If the training for the test diverged. A trial that diverges or runs out of memory gets a
        row that says so, and the search continues.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> whole = se.split.random(clicks, seed=0)  # its validation part is the test
    >>> part = se.split.random(whole.train, seed=0)
    >>> result = se.tune(
    ...     part.train, part.validation, "ndcg@10", test=whole.validation,
    ...     factors=[4, 8], alpha="1:40", draws=3, iterations=5, patience=2,
    ... )
    >>> len(result.trials), int(result.trials["best"].sum())
    (3, 1)
    >>> model = se.train_als(whole.train, **result.best)
    >>> ev = se.evaluate_model(model, whole.train, whole.validation, "ndcg@10")
    >>> result.test["metrics"]["ndcg@10"]["mean"] == ev.mean()["ndcg@10"]
    True
    """
    of_validation, of_test = _candidates_of_parts(candidates, train, test)
    if isinstance(train, Holdout) and test is None:
        test = train.test
    parts, held_out, requested = split_arguments(train, validation, metrics)
    search = Search(
        requested,
        factors=factors,
        alpha=alpha,
        regularization=regularization,
        iterations=iterations,
        draws=draws,
        patience=patience,
        monitor=monitor,
        among=candidates is not None,
        corrected=corrected,
        seen=seen,
        judged_only=judged_only,
        seed=seed,
    )
    return search.run(
        parts,
        held_out,
        candidates=of_validation,
        test=test,
        test_candidates=of_test,
        out=out,
        progress=progress,
    )


def _candidates_of_parts(candidates: Any, holdout: Any, test: Any) -> tuple[Any, Any]:
    """Return the candidates of the validation part and of the test part."""
    if not callable(candidates):
        return candidates, candidates
    if not isinstance(holdout, Holdout) or test is not None:
        raise InvalidDataError(
            "candidates= is a function of a Holdout, and the parts are given one by one; give a "
            "Holdout, its test part included, or candidates for all parts"
        )
    of_test = None if holdout.test is None else candidates_of(candidates, holdout.for_test())
    return candidates_of(candidates, holdout), of_test


class Search:
    """The settings of a search, validated before there are data.

    The parameters are those of `tune`, and `among`, whether there will be candidates.

    Attributes
    ----------
    request : Request
        The metrics to evaluate.
    monitor : Metric
        The metric by which trials are compared.
    trials : list of dict
        The parameters of each trial.
    """

    def __init__(
        self,
        metrics: str | Metric | Iterable[str | Metric],
        *,
        factors: Searched = 64,
        alpha: Searched = 40.0,
        regularization: Searched = 0.1,
        iterations: Searched = 15,
        draws: int | None = None,
        patience: int | None = None,
        monitor: str | Metric | None = None,
        among: bool = False,
        corrected: Corrected | None = None,
        seen: SeenItems = "exclude",
        judged_only: bool = False,
        seed: int = 0,
    ) -> None:
        self.request, self.monitor = parse_monitored(
            metrics, monitor, among=among, corrected=corrected, seen=seen, judged_only=judged_only
        )
        self.patience = None if patience is None else check_whole("patience", patience, 1)
        self.draws = None if draws is None else check_whole("draws", draws, 1)
        self.seed = check_whole("seed", seed, 0)
        searched = (factors, alpha, regularization, iterations)
        self.space = {
            name: parse_values(name, values)
            for name, values in zip(PARAMETERS, searched, strict=True)
        }
        self.trials = grid(self.space) if draws is None else draw(self.space, draws, self.seed)

    def run(
        self,
        train: TrainLike,
        validation: TrainLike,
        *,
        candidates: CandidatesLike | None = None,
        test: TrainLike | None = None,
        test_candidates: CandidatesLike | None = None,
        out: PathLike | None = None,
        progress: bool | None = None,
    ) -> Tuning:
        """Run the missing trials, then the test; see `tune`."""
        new_users = train if isinstance(train, NewUsers) else None
        matrix = training_matrix(train if new_users is None else new_users.train)
        parts = matrix if new_users is None else new_users
        held_out = open_held_out(validation)
        known = matrix if new_users is None else new_users.seen
        among = share_candidates(candidates, known, held_out, self.request)
        callback = EvaluationCallback(
            parts,
            held_out,
            self.request.metrics,
            patience=self.patience,
            monitor=self.monitor,
            candidates=among.candidates,
            corrected=self.request.corrected,
            seen=self.request.seen,
            judged_only=self.request.judged_only,
        )
        truth, among_test = None, SharedCandidates()
        if test is not None:
            truth = open_held_out(test, "test")
            among_test = share_candidates(
                test_candidates, known, truth, self.request, ("train", "test")
            )
        folder = None if out is None else make_folder(out)
        if folder is not None:
            id_arrays(*labels_of(matrix))  # refuses what could not be saved hours later
            _claim(folder, self._settings(parts, held_out, among))
        columns = among.names(self.request)
        table = _Table(self, columns, folder)
        with tqdm(
            total=len(self.trials),
            initial=len(table.rows),
            desc="tune",
            unit=" trials",
            **display(progress),
        ) as bar:
            for number, parameters in enumerate(self.trials, start=1):
                if number in table.rows:
                    continue
                bar.set_postfix(table.best_value())
                table.add(number, self._trial(parameters, matrix, callback, columns))
                bar.update()
        best = table.best()
        if best is None:
            return Tuning(table.frame(), None, None)
        chosen = {
            **self.trials[best - 1],
            "iterations": int(table.rows[best]["best_iteration"]),
            "seed": self.seed,
        }
        if truth is None:
            return Tuning(table.frame(), chosen, None)
        about: _About = {
            "trial": best,
            "parameters": chosen,
            "test": digest_of(truth),
            "test_candidates": among_test.digest,
        }
        summary = None if folder is None else _finished_test(folder / _SUMMARY, about)
        if summary is None:
            together = (
                add_sides(match_sides(None, matrix, held_out))
                if new_users is None
                else NewUsers(new_users.holdout.for_test())
            )
            summary = self._test(about, together, truth, among_test, folder, progress)
        return Tuning(table.frame(), chosen, summary)

    def _trial(
        self,
        parameters: dict[str, Any],
        train: CSRMatrix,
        callback: EvaluationCallback,
        columns: dict[str, str],
    ) -> Row:
        start = time.perf_counter()
        row = {"status": "ok"}
        try:
            train_als(train, **parameters, seed=self.seed, progress=False, callback=callback)
            iteration = callback.best_iteration
            if iteration is None:
                raise InvalidMetricError(
                    f"{self.monitor} is defined for no user, so nothing says which iteration is "
                    "best; monitor another metric"
                )
            values: Any = callback.history.loc[iteration]
            row |= {column: repr(float(values[column])) for column in columns.values()}
            row["best_iteration"] = str(iteration)
        except (SparseEvalError, MemoryError) as error:
            reason = " ".join(str(error).split()) or "there is not enough memory"
            row |= {"status": "failed", "error": reason}
        return row | {"seconds": f"{time.perf_counter() - start:.3f}"}

    def _test(
        self,
        about: _About,
        train: CSRMatrix | NewUsers,
        truth: Relevance,
        among: SharedCandidates,
        folder: Path | None,
        progress: bool | None,
    ) -> dict[str, Any]:
        """Train the model of the best trial on train and validation, and score the test part."""
        matrix = train.train if isinstance(train, NewUsers) else train
        model = train_als(matrix, **about["parameters"], progress=progress)
        ev = evaluate_model(
            model,
            train,
            truth,
            self.request.metrics,
            candidates=among.candidates,
            corrected=self.request.corrected,
            seen=self.request.seen,
            judged_only=self.request.judged_only,
            progress=progress,
        )
        summary = {**about, **json.loads(ev.to_json())}
        if folder is not None:
            save_model(model, folder / _MODEL)
            ev.to_csv(folder / _PER_USER)
            write_json(folder / _SUMMARY, summary)
        return summary

    def _settings(
        self, train: CSRMatrix | NewUsers, held_out: Relevance, among: SharedCandidates
    ) -> dict[str, JSONValue]:
        """Return everything that determines the values of the trials."""
        return {
            "sparse_eval": installed_version(),
            "train": digest_of(train),
            "validation": digest_of(held_out),
            "candidates": among.digest,
            "metrics": list(self.request.names),
            "monitor": str(self.monitor),
            "corrected": self.request.corrected,
            "seen": self.request.seen,
            "judged_only": self.request.judged_only,
            "patience": self.patience,
            **{
                name: str(values) if isinstance(values, Range) else list(values)
                for name, values in self.space.items()
            },
            "draws": self.draws,
            "seed": self.seed,
        }


class _About(TypedDict):
    """What identifies a test."""

    trial: int
    parameters: dict[str, Any]
    test: str
    test_candidates: str | None


class _Table:
    """The rows of the finished trials, with every cell as text, and their CSV file."""

    def __init__(self, search: Search, columns: dict[str, str], folder: Path | None) -> None:
        self.trials, self.monitor = search.trials, search.monitor
        self.metrics, self.monitored = list(columns.values()), columns[str(search.monitor)]
        self.columns = [
            "trial", "best", "status", "error", *PARAMETERS, "best_iteration", *self.metrics,
            "seconds",
        ]  # fmt: skip
        self.rows: dict[int, Row] = {}
        self.log: CSVLog | None = None
        if folder is not None:
            self.log = CSVLog(
                folder / _TRIALS,
                "is not the table that this search wrote, and is left as it is; choose another "
                "folder",
                "is not what this search wrote; delete the line, and its trial is run again",
            )
            self._load(self.log)

    def add(self, number: int, row: Row) -> None:
        """Add the row of a trial, and write the table."""
        self.rows[number] = row
        if self.log is not None:
            best = self.best()
            rows = (
                {"trial": str(trial), "best": str(trial == best)}
                | self._parameters(trial)
                | self.rows[trial]
                for trial in sorted(self.rows)
            )
            self.log.write(self.columns, rows)

    def best(self) -> int | None:
        """Return the number of the best trial, the first of equal ones."""
        scores = {
            number: signed_score(self.monitor, float(row[self.monitored]))
            for number, row in sorted(self.rows.items())
            if row["status"] == "ok"
        }
        return max(scores, key=lambda number: scores[number], default=None)

    def best_value(self) -> dict[str, str]:
        """Return the values that the progress bar shows."""
        best, name = self.best(), self.monitored
        if best is None:
            return {}
        return {"best trial": str(best), name: f"{float(self.rows[best][name]):.4f}"}

    def frame(self) -> pd.DataFrame:
        """Return the table with numbers instead of text."""
        best = self.best()
        rows = [self.rows[number] for number in sorted(self.rows)]
        iterations = [row.get("best_iteration") for row in rows]
        return pd.DataFrame(
            {
                "trial": np.arange(1, len(rows) + 1),
                "best": [number == best for number in sorted(self.rows)],
                "status": [row["status"] for row in rows],
                "error": [row.get("error", "") for row in rows],
                **{name: [trial[name] for trial in self.trials] for name in PARAMETERS},
                "best_iteration": pd.array(
                    [None if text is None else int(text) for text in iterations], "Int64"
                ),
                **{name: [float(row.get(name, "nan")) for row in rows] for name in self.metrics},
                "seconds": [float(row["seconds"]) for row in rows],
            }
        )

    def _parameters(self, number: int) -> Row:
        return {name: str(value) for name, value in self.trials[number - 1].items()}

    def _load(self, log: CSVLog) -> None:
        """Load the rows of an earlier run, or raise `InvalidFileError`."""
        if log.columns is None:
            return
        if log.columns != self.columns:
            raise log.foreign()
        for line, row in log.rows():
            number = self._trial_of(row)
            if number is None or number in self.rows:
                raise log.unsound(line)
            for name in ("trial", "best", *PARAMETERS):
                row.pop(name, None)
            self.rows[number] = row

    def _trial_of(self, row: Row) -> int | None:
        """Return the number of a row's trial; None unless the search can have written the row."""
        try:
            number = int(row["trial"])
            if not 1 <= number <= len(self.trials):
                return None
            planned = self._parameters(number)
            sound = all(row[name] == text for name, text in planned.items())
            float(row["seconds"])
            if row["status"] == "ok":
                values = {name: float(row[name]) for name in self.metrics}
                sound &= not math.isnan(values[self.monitored])
                sound &= 1 <= int(row["best_iteration"]) <= int(planned["iterations"])
            else:
                sound &= row["status"] == "failed" and "error" in row
        except (KeyError, ValueError):  # an empty cell, or not a number
            return None
        return number if sound else None


def _claim(folder: Path, settings: dict[str, JSONValue]) -> None:
    """Mark a folder as that of this search, or raise if it belongs to another."""
    path = folder / _SETTINGS
    if path.exists():
        check_origin(
            path,
            _LATER | read_json(path, settings.keys() - _LATER, _FOREIGN_JSON),
            settings,
            "is of another search",
            "choose another folder for this search, or delete that one",
        )
        return
    for name in (_TRIALS, _MODEL, _PER_USER, _SUMMARY):
        if (folder / name).exists():
            raise InvalidFileError(
                f"is there, but no {_SETTINGS} beside it that says which search it is of; it is "
                "left as it is, choose another folder",
                folder / name,
            )
    write_json(path, settings)


def _finished_test(path: Path, about: _About) -> dict[str, Any] | None:
    """Return the summary of a finished test, or raise if it is of another model or test part."""
    if not path.exists():
        return None
    needed = {*about, "metrics"} - {"test_candidates"}  # which earlier versions did not write
    summary = {"test_candidates": None} | read_json(path, needed, _FOREIGN_JSON)
    check_origin(
        path,
        summary,
        about,
        "is of another test",
        "choose another folder, or delete it to test again",
    )
    return summary
