"""Searching for ALS's hyperparameters: trials on a validation part, and one test of the best.

All trials are known before the first of them is trained, and none depends on another. So a search
that was interrupted goes on with those that are missing, and ends with the same table.
"""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Iterable
from importlib.metadata import version
from io import StringIO
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from tqdm.auto import tqdm

from ..core.arguments import check_number, check_whole
from ..core.files import make_folder, replacing
from ..core.progress import is_shown
from ..errors import InvalidDataError, InvalidFileError, InvalidMetricError, SparseEvalError
from ..metrics import STANDARD
from ..metrics.measure import make_plans
from .callback import EvaluationCallback
from .implicit import evaluate_model, parse_cut_metrics, train_als
from .inputs import digest_of, held_out_part, train_part
from .monitor import goodness, monitored

if TYPE_CHECKING:
    from pathlib import Path

    from ..inputs.relevance import Relevance
    from ..metrics import Metric

__all__ = ["Search", "Tuning", "tune"]

#: What is searched, in the order of the columns and of the draws.
_PARAMETERS = ("factors", "alpha", "regularization", "iterations")
_WHOLE = frozenset({"factors", "iterations"})
_MOST = 2**31 - 1

#: The files of a search. The summary is written last: where it is, the test is over.
_SETTINGS, _TRIALS = "search.json", "trials.csv"
_MODEL, _PER_USER, _SUMMARY = "model.npz", "per_user.csv", "summary.json"

_Row = dict[str, str]
_Searched = float | str | Iterable[float]


class Tuning(NamedTuple):
    """What a search found.

    Attributes
    ----------
    trials : pandas.DataFrame
        One row for each trial: ``trial``, from 1; ``best``, true for one at most; ``status``, "ok"
        or "failed"; ``error``, empty or the reason in a line; ``factors``, ``alpha``,
        ``regularization`` and ``iterations``; ``best_iteration``, after how many of these the
        monitored metric was best; each metric on the validation part then, NaN where the trial
        failed; the ``seconds`` it took.
    best : dict or None
        The options of `train_als` that give the best trial's model again: its parameters,
        ``iterations`` being its best iteration, and ``seed``. None if every trial failed.
    test : dict or None
        The test of the best trial: ``trial``, ``parameters`` as `best`, ``test``, a digest of the
        test part, then what `Evaluation.to_json` says. None without a test part.
    """

    trials: pd.DataFrame
    best: dict[str, Any] | None
    test: dict[str, Any] | None


def tune(
    train: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    factors: _Searched = 64,
    alpha: _Searched = 40.0,
    regularization: _Searched = 0.1,
    iterations: _Searched = 15,
    draws: int | None = None,
    patience: int | None = None,
    monitor: str | Metric | None = None,
    seed: int = 0,
    test: Any = None,
    out: str | Path | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Search `implicit`'s ALS for the hyperparameters that are best on a validation part.

    Each trial trains on `train`, is evaluated on `validation` after every iteration, and counts
    as it was after its best one. With `test` the best trial's model is trained once more, on train
    and validation together, and scored on what no trial has seen.

    Parameters
    ----------
    train : scipy sparse matrix or array, shape (n_users, n_items)
        As for `train_als`.
    validation : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        The held-out gains that trials are compared by. A smaller matrix is padded.
    metrics : str, Metric or iterable of them
        As for `evaluate_model`, each with a cut-off.
    factors, alpha, regularization, iterations : number, iterable of them or str
        What to try, as for `train_als`: one value; several, as a list or as text like
        ``"16,32,64"``; or, with `draws`, a range like ``"16:128"``. A range includes both ends
        (whole numbers for `factors` and `iterations`), starts above 0 and is drawn from
        log-uniformly.
    draws : int, optional
        How many trials to draw at random, no combination twice. Without it the trials are the
        grid of all combinations, the last parameter changing fastest.
    patience : int, optional
        As in `EvaluationCallback`: a trial stops after so many iterations without a better value
        of `monitor`. By default every trial runs through.
    monitor : str or Metric, optional
        The metric that says which iteration and which trial is best, the first of equal ones. By
        default the first of `metrics`. Higher is better, but of ``gini`` and ``popularity`` lower.
    seed : int
        Of the draws and of every training. The same seed gives the same trials and, on the same
        machine, the same values.
    test : Relevance, or scipy sparse matrix or array, shape (n_users, n_items), optional
        Held out before `validation` was. It is checked at the start and scored once, at the end.
        The values of `validation` are then training data too.
    out : str or Path, optional
        A folder, made if it is not there, for ``search.json``, what is searched and on which data;
        ``trials.csv``, replaced as a whole after each trial; and of the test ``model.npz``,
        ``per_user.csv`` and ``summary.json``. The same search on the same data goes on from it:
        finished trials, failed ones too, and a finished test are not computed again. Deleting
        the line of a trial makes it run again.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Tuning

    Raises
    ------
    InvalidDataError
        If a parameter has no value, one that `train_als` refuses or one twice, a range is empty
        or has no `draws`, there are fewer combinations than `draws`, an option is out of its
        range, or a matrix cannot be used.
    InvalidMetricError
        If a metric is unknown, has no cut-off or needs an input that is not given here, or
        `monitor` is not among the metrics.
    InvalidFileError
        If `out` is of another search or of other data, or holds such files of no search at all.
        It is left as it is.
    OutputError
        If `out` cannot be written.
    SparseEvalError
        If the training for the test diverged. A trial that does, or for which the memory is not
        enough, has a row that says so, and the search goes on.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> whole = se.split.random(clicks, seed=0)  # its validation part is the test
    >>> part = se.split.random(whole.train, seed=0)
    >>> found = se.tune(
    ...     part.train, part.validation, "ndcg@10", test=whole.validation,
    ...     factors=[4, 8], alpha="1:40", draws=3, iterations=5, patience=2,
    ... )
    >>> len(found.trials), int(found.trials["best"].sum())
    (3, 1)
    >>> model = se.train_als(whole.train, **found.best)
    >>> ev = se.evaluate_model(model, whole.train, whole.validation, "ndcg@10")
    >>> found.test["metrics"]["ndcg@10"]["mean"] == ev.mean()["ndcg@10"]
    True
    """
    search = Search(
        metrics,
        factors=factors,
        alpha=alpha,
        regularization=regularization,
        iterations=iterations,
        draws=draws,
        patience=patience,
        monitor=monitor,
        seed=seed,
    )
    return search.run(train, validation, test=test, out=out, progress=progress)


class Search:
    """What is searched: all that can be said, and refused, before there are data.

    The parameters are those of `tune`.

    Attributes
    ----------
    metrics : tuple of Metric
        What is evaluated.
    monitor : Metric
        By which trials are compared.
    trials : list of dict
        The parameters of each trial.
    """

    def __init__(
        self,
        metrics: str | Metric | Iterable[str | Metric],
        *,
        factors: _Searched = 64,
        alpha: _Searched = 40.0,
        regularization: _Searched = 0.1,
        iterations: _Searched = 15,
        draws: int | None = None,
        patience: int | None = None,
        monitor: str | Metric | None = None,
        seed: int = 0,
    ) -> None:
        self.metrics = parse_cut_metrics(metrics)
        make_plans(self.metrics, STANDARD, frozenset({"train"}))  # says what a metric lacks
        self.monitor = self.metrics[0] if monitor is None else monitored(monitor, self.metrics)
        self.patience = None if patience is None else check_whole("patience", patience, 1)
        self.draws = None if draws is None else check_whole("draws", draws, 1)
        self.seed = check_whole("seed", seed, 0)
        given = (factors, alpha, regularization, iterations)
        self.space = {
            name: _values(name, value) for name, value in zip(_PARAMETERS, given, strict=True)
        }
        self.trials = _grid(self.space) if draws is None else _drawn(self.space, draws, self.seed)

    def run(
        self,
        train: Any,
        validation: Any,
        *,
        test: Any = None,
        out: str | Path | None = None,
        progress: bool | None = None,
    ) -> Tuning:
        """Run the trials that are missing, then the test, as `tune` says."""
        matrix = train_part(train)
        held = held_out_part(validation, matrix.shape)
        callback = EvaluationCallback(
            matrix, held, self.metrics, patience=self.patience, monitor=self.monitor
        )
        truth = None if test is None else held_out_part(test, matrix.shape, "test")
        folder = None if out is None else make_folder(out)
        if folder is not None:
            _claim(folder, self._settings(matrix, held))
        table = _Table(self, folder)
        with tqdm(
            total=len(self.trials),
            initial=len(table.rows),
            desc="tune",
            unit=" trials",
            disable=not is_shown(progress),
        ) as bar:
            for number, parameters in enumerate(self.trials, start=1):
                if number in table.rows:
                    continue
                bar.set_postfix(table.best_value())
                table.add(number, self._trial(parameters, matrix, callback))
                bar.update()
        best = table.best()
        if best is None:
            return Tuning(table.frame(), None, None)
        chosen = {
            **self.trials[best - 1],
            "iterations": int(table.rows[best]["best_iteration"]),
            "seed": self.seed,
        }
        tested = None
        if truth is not None:
            about = {"trial": best, "parameters": chosen, "test": digest_of(truth)}
            tested = None if folder is None else _tested(folder / _SUMMARY, about)
            if tested is None:
                tested = self._test(about, _together(matrix, held), truth, folder, progress)
        return Tuning(table.frame(), chosen, tested)

    def _trial(self, parameters: dict[str, Any], train: Any, callback: EvaluationCallback) -> _Row:
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
            row |= {str(metric): repr(float(values[str(metric)])) for metric in self.metrics}
            row["best_iteration"] = str(iteration)
        except (SparseEvalError, MemoryError) as error:
            reason = " ".join(str(error).split()) or "there is not enough memory"
            row |= {"status": "failed", "error": reason}
        return row | {"seconds": f"{time.perf_counter() - start:.3f}"}

    def _test(
        self,
        about: dict[str, Any],
        train: Any,
        truth: Relevance,
        folder: Path | None,
        progress: bool | None,
    ) -> dict[str, Any]:
        """Train the best trial's model on all but the test part, and score it on that."""
        model = train_als(train, **about["parameters"], progress=progress)
        ev = evaluate_model(model, train, truth, self.metrics, progress=progress)
        summary: dict[str, Any] = about | json.loads(ev.to_json())
        if folder is not None:
            with replacing(folder / _MODEL) as temporary:
                model.save(str(temporary))
            ev.to_csv(folder / _PER_USER)
            _write_json(folder / _SUMMARY, summary)
        return summary

    def _settings(self, train: Any, held: Relevance) -> dict[str, Any]:
        """Return what the values of all trials come from."""
        return {
            "sparse_eval": version("sparse_eval"),
            "train": digest_of(train),
            "validation": digest_of(held),
            "metrics": [str(metric) for metric in self.metrics],
            "monitor": str(self.monitor),
            "patience": self.patience,
            **{
                name: str(values) if isinstance(values, _Range) else list(values)
                for name, values in self.space.items()
            },
            "draws": self.draws,
            "seed": self.seed,
        }


class _Range(NamedTuple):
    """Numbers to draw from log-uniformly, both ends included."""

    low: float
    high: float
    whole: bool

    def __str__(self) -> str:
        return f"{self.low}:{self.high}"

    @property
    def size(self) -> float:
        return self.high - self.low + 1 if self.whole else math.inf

    def at(self, share: float) -> float:
        """Return the number that so large a share of all draws is below."""
        # A whole number has what lies between it and the next one.
        low, high = math.log(self.low), math.log(self.high + self.whole)
        drawn = math.exp(low + share * (high - low))
        return min(max(math.floor(drawn) if self.whole else drawn, self.low), self.high)


def _values(name: str, given: Any) -> tuple[float, ...] | _Range:
    """Return what to try of a parameter, or raise `InvalidDataError` that names it."""
    if isinstance(given, str) and ":" in given:
        ends = [_number(name, word) for word in given.split(":")]
        if len(ends) != 2 or ends[0] >= ends[1]:
            raise InvalidDataError(
                f"{name}: expected a range LOW:HIGH with LOW below HIGH, found {given!r}"
            )
        if ends[0] == 0:
            raise InvalidDataError(
                f"{name}: a range is drawn from log-uniformly and starts above 0, found {given!r}"
            )
        return _Range(ends[0], ends[1], name in _WHOLE)
    if isinstance(given, str):
        given = given.split(",")
    values = tuple(
        _number(name, value) for value in (given if isinstance(given, Iterable) else [given])
    )
    if not values:
        raise InvalidDataError(f"{name}: expected at least one value, found none")
    for place, value in enumerate(values):
        if value in values[:place]:
            raise InvalidDataError(f"{name}: {value} is there twice; expected different values")
    return values


def _number(name: str, given: Any) -> float:
    if isinstance(given, str):
        kind, called = (int, "whole number") if name in _WHOLE else (float, "number")
        try:
            given = kind(given)
        except ValueError:
            raise InvalidDataError(
                f"{name}: {given!r} is no {called}; expected one, several as in 10,20,40, or a "
                "range as in 10:40"
            ) from None
    if name in _WHOLE:
        return check_whole(name, given, 1, _MOST)
    return check_number(name, given, 0, open_end=name == "alpha")


def _grid(space: dict[str, tuple[float, ...] | _Range]) -> list[dict[str, float]]:
    axes = []
    for name, values in space.items():
        if isinstance(values, _Range):
            raise InvalidDataError(
                f"{name}: {values} is a range; say with draws how many trials to draw, or list "
                "the values of a grid, separated by commas"
            )
        axes.append(values)
    return [dict(zip(space, values, strict=True)) for values in product(*axes)]


def _drawn(
    space: dict[str, tuple[float, ...] | _Range], draws: int, seed: int
) -> list[dict[str, float]]:
    """Return different combinations; real numbers are taken to be so."""
    n_different = math.prod(
        values.size if isinstance(values, _Range) else len(values) for values in space.values()
    )
    if draws > n_different:
        raise InvalidDataError(
            f"draws: expected a whole number from 1 to {n_different}, as many combinations as "
            f"there are, found {draws}"
        )
    random = np.random.default_rng(seed)
    found: dict[Any, tuple[float, ...]] = {}
    while len(found) < draws:
        drawn = tuple(
            values.at(share) if isinstance(values, _Range) else values[int(share * len(values))]
            for values, share in zip(space.values(), random.random(len(space)), strict=True)
        )
        found.setdefault(len(found) if n_different == math.inf else drawn, drawn)
    return [dict(zip(space, drawn, strict=True)) for drawn in found.values()]


class _Table:
    """The rows of the trials that are over, every cell as text, and the CSV that holds them."""

    def __init__(self, search: Search, folder: Path | None) -> None:
        self.trials, self.monitor = search.trials, search.monitor
        self.path = None if folder is None else folder / _TRIALS
        self.metrics = [str(metric) for metric in search.metrics]
        self.columns = [
            "trial", "best", "status", "error", *_PARAMETERS, "best_iteration", *self.metrics,
            "seconds",
        ]  # fmt: skip
        self.rows: dict[int, _Row] = {}
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def add(self, number: int, row: _Row) -> None:
        """Take the row of a trial in, and write the table."""
        self.rows[number] = row
        if self.path is None:
            return
        best = self.best()
        stream = StringIO()
        writer = csv.DictWriter(stream, self.columns, restval="", lineterminator="\n")
        writer.writeheader()
        for trial in sorted(self.rows):
            writer.writerow(
                {"trial": str(trial), "best": str(trial == best)}
                | self._parameters(trial)
                | self.rows[trial]
            )
        with replacing(self.path) as temporary:
            temporary.write_text(stream.getvalue(), encoding="utf-8", newline="")

    def best(self) -> int | None:
        """Return the number of the best trial, of equal ones the first."""
        values = {
            number: goodness(self.monitor, float(row[str(self.monitor)]))
            for number, row in sorted(self.rows.items())
            if row["status"] == "ok"
        }
        return max(values, key=lambda number: values[number], default=None)

    def best_value(self) -> dict[str, str]:
        """Return what the progress bar shows."""
        best, name = self.best(), str(self.monitor)
        if best is None:
            return {}
        return {"best trial": str(best), name: f"{float(self.rows[best][name]):.4f}"}

    def frame(self) -> pd.DataFrame:
        """Return the table, its numbers as numbers."""
        best = self.best()
        rows = [self.rows[number] for number in sorted(self.rows)]
        iterations = [row.get("best_iteration") for row in rows]
        return pd.DataFrame(
            {
                "trial": np.arange(1, len(rows) + 1),
                "best": [number == best for number in sorted(self.rows)],
                "status": [row["status"] for row in rows],
                "error": [row.get("error", "") for row in rows],
                **{name: [trial[name] for trial in self.trials] for name in _PARAMETERS},
                "best_iteration": pd.array(
                    [None if text is None else int(text) for text in iterations], "Int64"
                ),
                **{name: [float(row.get(name, "nan")) for row in rows] for name in self.metrics},
                "seconds": [float(row["seconds"]) for row in rows],
            }
        )

    def _parameters(self, number: int) -> _Row:
        return {name: str(value) for name, value in self.trials[number - 1].items()}

    def _load(self, path: Path) -> None:
        """Take in the rows of an earlier run, or refuse them."""
        try:
            with path.open(encoding="utf-8", newline="") as stream:
                reader = csv.DictReader(stream)
                columns, rows = reader.fieldnames, list(reader)
        except OSError as error:
            raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
        except (ValueError, csv.Error):  # not UTF-8, or no CSV
            raise self._foreign(path) from None
        if columns != self.columns:
            raise self._foreign(path)
        for line, cells in enumerate(rows, start=2):
            number = self._trial_of(cells)
            if number is None or number in self.rows:
                raise InvalidFileError(
                    "is not what this search wrote; delete the line, and its trial is run again",
                    path,
                    line,
                )
            dropped = {"trial", "best", *_PARAMETERS}
            self.rows[number] = {
                name: text for name, text in cells.items() if text and name not in dropped
            }

    def _trial_of(self, cells: dict[str, Any]) -> int | None:
        """Return which trial's row this is; None unless the search can have written it."""
        try:
            number = int(cells["trial"])
            if None in cells or not 1 <= number <= len(self.trials):
                return None
            planned = self._parameters(number)
            sound = all(cells[name] == text for name, text in planned.items())
            float(cells["seconds"])
            if cells["status"] == "ok":
                values = {name: float(cells[name]) for name in self.metrics}
                sound &= not math.isnan(values[str(self.monitor)])
                sound &= 1 <= int(cells["best_iteration"]) <= int(planned["iterations"])
            else:
                sound &= cells["status"] == "failed" and cells["error"] != ""
        except (TypeError, ValueError):  # a cell that is missing, or no number
            return None
        return number if sound else None

    def _foreign(self, path: Path) -> InvalidFileError:
        return InvalidFileError(
            "is not the table that this search wrote, and is left as it is; choose another folder",
            path,
        )


def _claim(folder: Path, settings: dict[str, Any]) -> None:
    """Make a folder that of this search, or refuse one that is another's."""
    path = folder / _SETTINGS
    if not path.exists():
        for name in (_TRIALS, _MODEL, _PER_USER, _SUMMARY):
            if (folder / name).exists():
                raise InvalidFileError(
                    f"is there, but no {_SETTINGS} beside it that says which search it is of; it "
                    "is left as it is, choose another folder",
                    folder / name,
                )
        _write_json(path, settings)
        return
    found = _read_json(path, settings)
    differing = [
        f"{name} {_shown(found[name])} (here {_shown(value)})"
        for name, value in settings.items()
        if found[name] != value
    ]
    if differing:
        raise InvalidFileError(
            f"is of another search: {'; '.join(differing)}. It is left as it is; choose another "
            "folder for this search, or delete that one",
            path,
        )


def _tested(path: Path, about: dict[str, Any]) -> dict[str, Any] | None:
    """Return the summary of a finished test, or raise unless it is of this model and test part."""
    if not path.exists():
        return None
    found = _read_json(path, [*about, "metrics"])
    for name, value in about.items():
        if found[name] != value:
            raise InvalidFileError(
                f"is of another test: {name} {_shown(found[name])} (here {_shown(value)}). It is "
                "left as it is; choose another folder, or delete it to test again",
                path,
            )
    return found


def _read_json(path: Path, keys: Iterable[str]) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    except (ValueError, RecursionError):  # no JSON, or not UTF-8
        found = None
    if not isinstance(found, dict) or not found.keys() >= {*keys}:
        raise InvalidFileError(
            "is not what a search wrote, and is left as it is; choose another folder", path
        )
    return found


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as temporary:
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        temporary.write_text(text, encoding="utf-8")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _together(train: Any, held: Relevance) -> Any:
    """Return both parts as one matrix, explicit zeros kept, which adding matrices would drop."""
    rows = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    parts = train.tocoo(), sparse.coo_matrix((held.gains, (rows, held.items)), shape=train.shape)
    data, row, column = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "row", "col")
    )
    return sparse.csr_matrix((data, (row, column)), shape=train.shape)
