"""Evaluate several models on several splits with several seeds, in a folder that can be resumed.

The folder's ledger, ``cross_validation.jsonl`` (see `sparse_eval.jobs.ledger`), contains the
settings and a row for each fold, ``fold 1``, with digests and sizes of its parts. Each run,
``MODEL, fold F, seed S``, gets a row when its evaluation is saved in the folder
``MODEL-fold-F-seed-S``. The last row is ``finished``.
"""

from __future__ import annotations

import hashlib
import html
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import product
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

import numpy as np

from ..core.arguments import check_fraction, check_whole, show_spelling
from ..core.arrays import describe
from ..core.exact_sums import Moments
from ..core.files import as_path
from ..core.formatting import escaped, numbers, text_table
from ..core.messages import printable
from ..core.progress import progress_bar
from ..core.versions import NUMBERS_VERSION, library_versions
from ..datasets.split import k_fold
from ..datasets.split.holdout import Holdout
from ..datasets.times import time_text
from ..errors import InvalidDataError, InvalidFileError, SparseEvalError
from ..evaluation.run import Execution
from ..models.inputs import training_part
from ..results.comparison import compare
from ..results.details import make_record
from ..results.intervals import LEVEL
from ..results.runs import Cells, Fold, Run, Runs, RunValues
from ..results.saving import SUMMARY
from ..results.scores import Scores
from .ledger import INPUTS, Ledger
from .scoring import Scoring, parse_monitored
from .train import PARAMETERS, check_parameter, train_als

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from ..core.types import Floats, JSONValue, PathLike, SparseInput
    from ..datasets import Interactions
    from ..evaluation.runners import ClientLike
    from ..metrics import Metric
    from ..metrics.request import MetricsLike
    from ..models.inputs import CandidatesOfSplit
    from ..results import Evaluation
    from ..results.comparison import Comparison
    from ..results.decisions import Size
    from ..results.intervals import Interval
    from ..results.runs import Estimate

#: The kind of job, after which the file of its ledger is named, and the slot of its last row.
JOB, FINISHED = "cross_validation", "finished"

#: Parameters of ALS, or a function of the training matrix and the seed.
TrainerLike: TypeAlias = "Mapping[str, float] | Callable[[Any, int], Any]"

#: Splits, or a function of the interactions that makes them.
SplitsLike: TypeAlias = "Iterable[Holdout] | Callable[..., Iterable[Holdout] | Holdout]"


@show_spelling
def cross_validate(
    interactions: Interactions | SparseInput | None,
    models: Mapping[str, TrainerLike],
    metrics: MetricsLike,
    *,
    splits: SplitsLike = k_fold,
    seeds: int | Iterable[int] = 3,
    out: PathLike | None = None,
    convention: str | None = None,
    candidates: CandidatesOfSplit | None = None,
    memory: int | None = None,
    client: ClientLike | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> CrossValidation:
    """Train and evaluate models on several splits, with several seeds, and pool their values.

    Parameters
    ----------
    interactions : Interactions, scipy sparse matrix or array, or None
        The data that `splits` divides. With ready-made splits it may be None.
    models : mapping of str to parameters or callable
        Models by name, each of them

        - the parameters of `train_als`, as ``{"factors": 64, "alpha": 40}``;
        - a function of the training matrix and the seed that returns what `evaluate_model` takes
          (a trained model, factors, a path), as
          ``lambda train, seed: se.train_model(CosineRecommender(), train)``.
    metrics : str, Metric, iterable of them, or Protocol
        As for `evaluate_model`.
    splits : iterable of Holdout, or callable
        Such as ``se.split.k_fold(clicks, k=5)``, or a function that is called with `interactions`:
        `split.k_fold` (the default, with five folds), ``partial(se.split.rolling, window="2D",
        at="2019-12-01")``, ``lambda clicks: (w.known() for w in se.split.rolling(clicks, …))``.
        They have to be of the same users and items. The users of a split by users are folded in.
    seeds : int or iterable of int
        A number of seeds, 0, 1, 2 and so on, or the seeds themselves, for the first split. The
        seeds of each later split are shifted (3, 4, 5; 6, 7, 8). Models of the same seed start
        alike, so their errors would be correlated over splits.
    out : str or Path, optional
        A folder, created if missing, for the evaluation of each run and their ledger,
        ``cross_validation.jsonl``. The same call continues from it, to the same bits if trainings
        are reproducible; other data, splits, models, metrics or versions raise an error.
        `CrossValidation.load` reads it when it is finished. One process at a time may use it.
    convention, memory, client, num_threads
        As in `evaluate_model`.
    candidates : as for `evaluate_model`, or callable, optional
        The same candidates for all splits, or a function that returns the candidates of a
        `Holdout`, as ``lambda holdout: se.sample_negatives(holdout, n=99)``. It is called once per
        split for all models and seeds.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    CrossValidation
        Printed, a table; with ``summary()``, ``compare()``, ``table`` and ``per_user``. `compare`
        and `write_report` take it.

    Raises
    ------
    InvalidDataError
        If a model is none of these. If there is no split, or a split is not a `Holdout`, holds
        nothing out or has different users and items from the first. If a seed is repeated or not a
        whole number. If candidates that were sampled for one split are given for all.
    InvalidMetricError
        As from `evaluate_model`.
    InvalidFileError
        If `out` belongs to another cross-validation, or its ledger is damaged. It is left as it
        is.
    OutputError
        If `out` cannot be written, or another process writes there.
    SparseEvalError
        Errors of trainings and evaluations pass through, with a note that names the run.

    See Also
    --------
    tune : Search for hyperparameters on one split.
    CrossValidation.summary : How values are pooled, with references.

    Notes
    -----
    Functions are identified by name and source, including the numbers that they refer to. The
    functions that they call are not included: if one of these changes, choose a different folder.
    BPR of `implicit` is reproducible with ``num_threads=1`` only.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=300, n_items=100, seed=0)
    >>> models = {f"als{factors}": {"factors": factors, "iterations": 5} for factors in (2, 8)}
    >>> folds = se.split.k_fold(clicks, k=2)
    >>> cv = se.cross_validate(clicks, models, "ndcg@10", splits=folds, seeds=2)
    >>> len(cv.table)  # models × folds × seeds
    8
    >>> cv.summary()[["interval", "n_users"]]
                  interval  n_users
    metric  model
    ndcg@10 als2    pooled      298
            als8    pooled      298
    >>> cv.compare().table[["a", "b", "interval", "n_users"]]
          a     b interval  n_users
    0  als2  als8   pooled      298
    """
    trainers = read_trainers(models)
    request, _ = parse_monitored(metrics, None, convention, among=candidates is not None)
    chosen = _read_seeds(seeds)
    settings = {  # what determines the numbers, but for the splits
        "versions": library_versions() | {"numbers": NUMBERS_VERSION},
        "models": {name: trainer.identity for name, trainer in trainers.items()},
        "metrics": list(request.names),
        "convention": request.rules,
        "seen": request.seen,
        "judged_only": request.judged_only,
        "seeds": list(chosen),
    }
    folds: list[Fold] = []
    values: dict[Run, RunValues] = {}
    earlier = ("cross_validation.json", f"*-fold-*/{SUMMARY}")
    with (
        Ledger.opened(out, JOB, settings, earlier) as ledger,
        progress_bar(progress, desc="cross-validate", unit=" runs") as bar,
    ):
        for number, holdout in enumerate(_make_splits(interactions, splits), start=1):
            try:
                among = candidates(holdout) if callable(candidates) else candidates
                scoring = Scoring.of(training_part(holdout), holdout.validation, request, among)
            except SparseEvalError as error:
                error.add_note(f"This is about fold {number}.")
                raise
            inputs, cut = scoring.inputs, holdout.cut
            fold = Fold(
                inputs["train"],
                inputs["validation"],
                holdout.train.nnz,
                holdout.validation.nnz,
                None if cut is None else time_text(cut),
                inputs["candidates"],
            )
            folds.append(fold)
            slot = f"fold {number}"
            if FINISHED in ledger.rows and slot not in ledger.rows:
                ledger.check(FINISHED, {"folds": f"{number} or more"})
            ledger.agree(slot, fold._asdict())
            for run in _runs_of_fold(number, trainers, chosen):
                bar.set_postfix_str(printable(run.name), refresh=False)
                evaluation: Evaluation | None = None
                with suppress(InvalidFileError):  # a damaged one is computed again
                    evaluation = ledger.evaluation(run.name)
                if evaluation is None:
                    trainer = trainers[run.model]
                    try:
                        model = trainer.train(holdout.train, run.seed)
                        execution = Execution("values", memory, client, num_threads, False)
                        evaluation = scoring.evaluate(model, execution)
                    except SparseEvalError as error:
                        error.add_note(f"This is about {run.name}.")
                        raise
                    if out is not None:
                        about = run._asdict() | {"parameters": trainer.identity}
                        about |= {"train": fold.train, "validation": fold.validation}
                        name = quote(run.model, safe=" +,=()")
                        place = f"{name}-fold-{run.fold}-seed-{run.seed}"
                        saved = ledger.save(place, evaluation._savable(), about)
                        ledger.append(run.name, saved=saved)
                values[run] = RunValues.of(evaluation)
                bar.update()
        if not folds:
            raise InvalidDataError("splits: expected at least one Holdout, found none")
        ledger.agree(FINISHED, {"folds": len(folds)})
    return CrossValidation(scoring.request, folds, values)


class Trainer(NamedTuple):
    """A function that trains a model, and the model's identity, ready for JSON."""

    train: Callable[[Any, int], Any]
    identity: dict[str, JSONValue]


def read_trainers(models: Mapping[str, TrainerLike]) -> dict[str, Trainer]:
    """Return the trainer of each model, or raise `InvalidDataError` if that is not clear."""
    if not isinstance(models, Mapping) or not models:
        raise InvalidDataError(
            f"models is {describe(models)}; expected models by name, as "
            '{"als64": {"factors": 64}, "als128": {"factors": 128}}'
        )
    trainers = {escaped(name): _read_trainer(escaped(name), one) for name, one in models.items()}
    if len(trainers) < len(models):
        raise InvalidDataError(f"models: two have the same name: {', '.join(map(str, models))}")
    return trainers


def _read_trainer(name: str, given: Any) -> Trainer:
    if isinstance(given, Mapping) and given.keys() <= PARAMETERS.keys():
        parameters: dict[str, Any] = {key: check_parameter(key, x) for key, x in given.items()}

        def train(matrix: Any, seed: int) -> Any:
            return train_als(matrix, **parameters, seed=seed, progress=False)

        return Trainer(train, {"train_als": parameters})
    if not callable(given):
        found = [*given] if isinstance(given, Mapping) else describe(given)
        raise InvalidDataError(
            f"models: {name} is {found}; expected parameters of train_als, which are "
            f"{', '.join(PARAMETERS)} (pass seeds as seeds=), or a function of train and "
            "seed that returns a trained model"
        )
    function = given
    while isinstance(function, partial):
        function = function.func
    function = function if hasattr(function, "__qualname__") else type(function)
    # It changes with the code and the plain values that it refers to, but not with the functions
    # that are called.
    code = hashlib.sha256(json.dumps(_written(given)).encode()).hexdigest()[:16]
    return Trainer(
        given, {"function": f"{function.__module__}.{function.__qualname__}", "code": code}
    )


def _written(value: Any) -> Any:
    """Return the source of a function, or a plain value; for anything else, its type."""
    if isinstance(value, partial):
        return [_written(value.func), _values(value.args), _values(value.keywords)]
    if isinstance(value, CodeType):
        inner = [_written(one) for one in value.co_consts]
        return [value.co_code.hex(), *value.co_names, *value.co_varnames, inner]
    if isinstance(value, FunctionType):
        variables = inspect.getclosurevars(value)
        named = {**variables.globals, **variables.nonlocals, **(value.__kwdefaults__ or {})}
        return [_written(value.__code__), _values(named), _values(value.__defaults__)]
    return _values(value)


def _values(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _values(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return list(map(_values, value))
    if isinstance(value, str | bytes | int | float | np.number | None):
        return repr(value)
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _make_splits(interactions: Any, splits: Any) -> Iterator[Holdout]:
    """Yield the splits, one at a time, or raise `InvalidDataError`."""
    if isinstance(interactions, Holdout):
        raise InvalidDataError(
            "interactions is a Holdout, which is split already; pass the Interactions, or None and "
            "splits=[holdout]"
        )
    made = splits(interactions) if callable(splits) else splits
    if isinstance(made, Holdout):
        made = [made]
    if not isinstance(made, Iterable):
        raise InvalidDataError(
            f"splits is {describe(made)}; expected Holdouts, as se.split.k_fold(clicks) makes "
            "them, or a function of the interactions that makes them, as se.split.k_fold"
        )
    first = None
    for position, holdout in enumerate(made, start=1):
        if not isinstance(holdout, Holdout):
            raise InvalidDataError(
                f"splits: number {position} is {describe(holdout)}, not a Holdout"
            )
        first = first or holdout
        pairs = ((holdout.users, first.users), (holdout.items, first.items))
        if holdout.train.shape != first.train.shape or any(
            (ours is None) != (firsts is None) or (ours is not None and not ours.equals(firsts))
            for ours, firsts in pairs
        ):
            raise InvalidDataError(
                f"splits: number {position} has different users or items from the first, or a "
                "different order; expected splits of the same users and items"
            )
        if not (holdout.train.data > 0).any():
            raise InvalidDataError(f"splits: number {position} has nothing in its train part")
        yield holdout


def _read_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Return the seeds, or raise `InvalidDataError`."""
    if not isinstance(seeds, Iterable):
        return tuple(range(check_whole("seeds", seeds, 1)))
    chosen = tuple(check_whole("seeds", seed, 0) for seed in seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidDataError(f"seeds: expected one or more different seeds, found {chosen}")
    return chosen


def _runs_of_fold(fold: int, models: Iterable[str], seeds: Sequence[int]) -> Iterator[Run]:
    """Yield the runs of a fold, by model, then by seed.

    Fold 1 has the given seeds. The seeds of each later fold are shifted, because models of one seed
    start alike and their luck would be correlated over folds.
    """
    step = max(seeds) - min(seeds) + 1
    for model in models:
        for seed in seeds:
            yield Run(model, fold, seed + (fold - 1) * step)


class CrossValidation(Runs):
    """The values of several models on several folds with several seeds.

    Printed, and in a notebook, it is a table of the pooled means and their intervals.

    Users are the unit. The seeds of a model are averaged for each user and fold, then the folds
    that the user is in, however many these are. Every user therefore counts once. `split.k_fold`
    puts users into every fold with different items, and `split.rolling` puts them into the periods
    in which they did something new.

    Attributes
    ----------
    models : tuple of str
        The names of the models.
    folds : tuple of Fold
        The splits: a digest of their parts, and the sizes of these.
    n_seeds : int
        The number of seeds on each fold.
    names : list of str
        The metrics.

    See Also
    --------
    cross_validate : Make one.
    """

    def summary(self, level: float = LEVEL) -> pd.DataFrame:
        """Return every pooled number in full; ``print(cv)`` shows fewer.

        Parameters
        ----------
        level : float
            Confidence level of the intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row for each metric and model (index ``metric``, ``model``):

            - ``mean``, over users;
            - ``std`` of the users' pooled values, with n − 1;
            - ``ci_low``, ``ci_high``: the interval of the mean over users, folds and seeds like
              these, and ``interval``, its kind: "pooled" or "none". Its variance is the variance
              over users and, with several folds, Nadeau and Bengio's corrected variance over folds
              [1]_;
            - ``error``: the standard error, and ``freedom``, Satterthwaite's degrees of freedom;
            - ``n_users``; with candidates ``candidates``, their kind.

            Metrics about all users together, such as coverage, are averaged over folds and seeds;
            the users' part of their error is from a jackknife.

        Raises
        ------
        InvalidDataError
            If `level` is not between 0 and 1.

        References
        ----------
        .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning
           52, 2003, pp. 239-281. doi:10.1023/A:1024068626366
        """
        import pandas as pd

        level = check_fraction("level", level)
        among = {} if self._candidates is None else {"candidates": self._candidates.kind}
        index = pd.MultiIndex.from_product((self.names, self.models), names=["metric", "model"])
        rows = []
        for name, model in index:
            one = self.estimate(model, name)
            interval = self._interval(one, name, level)
            error = math.sqrt(one.error.variance)
            rows.append((one.mean, one.std, *interval, error, one.error.freedom, one.n_users))
        columns = ("mean", "std", "ci_low", "ci_high", "interval", "error", "freedom", "n_users")
        return pd.DataFrame(rows, index, columns).assign(**among)

    def per_user(self, model: str) -> pd.DataFrame:
        """Return the pooled values of each user, a column for each metric that has them.

        Raises
        ------
        InvalidDataError
            If there is no such model.
        """
        import pandas as pd

        self._check_models([model])
        columns = {
            name: Cells(self.cells(model, name)).spread()
            for name in self.names
            if self._is_per_user(name)
        }
        frame = pd.DataFrame(columns, index=self._matched[0].index.rename("user"))
        return frame.dropna(how="all")

    def compare(
        self,
        metrics: str | Iterable[str] | None = None,
        *,
        correction: Literal["holm", "bonferroni", "bh", "none"] = "holm",
        level: float = LEVEL,
        margin: Size | Mapping[str, Size] | None = None,
    ) -> Comparison:
        """Compare the models pair by pair, as ``se.compare(cv)`` does.

        Parameters
        ----------
        metrics, correction, level, margin
            As in `sparse_eval.compare`.

        Returns
        -------
        Comparison
            Differences are pooled by user, as the values are. Their variance has a part for users
            and one for folds, which share training data. With one fold, the second part is for
            seeds; see `summary`.

        Raises
        ------
        InvalidDataError
            As from `sparse_eval.compare`, or if there is only one model.
        """
        return compare(self, metrics, correction=correction, level=level, margin=margin)

    def select(self, models: Sequence[str]) -> CrossValidation:
        """Return the same of some of the models, in the order given.

        Raises
        ------
        InvalidDataError
            If there is no such model.
        """
        self._check_models(models)
        values = {
            run: values
            for model in models
            for run, values in self._values.items()
            if run.model == model
        }
        return CrossValidation(self.request, self.folds, values)

    def _check_models(self, models: Sequence[str]) -> None:
        unknown = [model for model in models if model not in self.models]
        if unknown or not models:
            raise InvalidDataError(f"there are no models {unknown}, but {', '.join(self.models)}")

    @classmethod
    def load(cls, folder: PathLike) -> CrossValidation:
        """Read the folder of a finished `cross_validate`.

        Parameters
        ----------
        folder : str or Path
            The `out` of `cross_validate`.

        Returns
        -------
        CrossValidation
            With all numbers, to the last bit.

        Raises
        ------
        InvalidFileError
            If the folder does not contain a finished cross-validation, or a file in it cannot be
            read or was changed.
        """
        path = as_path(folder) / f"{JOB}.jsonl"
        if not path.exists():
            raise InvalidFileError(
                "does not exist; create it with cross_validate(out=folder)", path
            )
        ledger = Ledger(path, JOB)
        if FINISHED not in ledger.rows:
            raise InvalidFileError(
                "belongs to an unfinished cross-validation. Call cross_validate again with the "
                "same data and this folder to continue",
                path,
            )
        settings: dict[str, Any] = ledger.rows[INPUTS]
        folds, values = [], {}
        for fold in range(1, ledger.rows[FINISHED]["folds"] + 1):
            row = ledger.rows[f"fold {fold}"]
            folds.append(Fold(*(row[name] for name in Fold._fields)))
            for run in _runs_of_fold(fold, settings["models"], settings["seeds"]):
                saved = ledger.evaluation(run.name)
                values[run] = RunValues.of(saved)
        return cls(saved.request, folds, values)

    def __repr__(self) -> str:
        return f"<{self._heading()}>\n{self._table('simple')}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._heading())}</p>{self._table('html')}"

    def _heading(self) -> str:
        counts = [(len(self.folds), "fold"), (self.n_seeds, "seed"), (self.n_users, "user")]
        sizes = ", ".join(f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts if n)
        return f"CrossValidation of {', '.join(self.models)}: {sizes}"

    def _interval(self, one: Estimate, name: str, level: float) -> Interval:
        ends = self.request.range_of(self.names.index(name))
        return one.error.interval(one.mean, level).within(one.mean, ends)

    def _table(self, style: str) -> str:
        rows = []
        for name, model in product(self.names, self.models):
            mean, *_ = one = self.estimate(model, name)
            interval = self._interval(one, name, LEVEL)
            rounded = numbers(mean, *interval[:2])[0] or "none"
            rows.append([self._shown(name), model, rounded, interval.text()])
        headings = ["metric", "model", "mean", "95 % interval"]
        return text_table(rows, headings, ["left", "left", "decimal", "left"], style)


class PooledModel(Scores):
    """The pooled numbers of a model, for the page and the charts."""

    def __init__(self, cv: CrossValidation, model: str) -> None:
        super().__init__(cv.request, cv._candidates)
        self._cv = cv
        self._estimates = [cv.estimate(model, name) for name in cv.names]
        self._table = cv.per_user(model)
        self.n_users = len(self._table)

    @property
    def _record(self) -> dict[str, Any]:
        """The folds and the number of seeds."""
        folds = [fold._asdict() for fold in self._cv.folds]
        return make_record(None) | {"about": {"folds": folds, "seeds": self._cv.n_seeds}}

    def values(self, name: str | Metric) -> Floats:
        """Return the pooled value of each user."""
        return self._table[self.names[self._row_of(name)]].to_numpy()

    def _value(self, row: int) -> float:
        return self._estimates[row].mean

    def _count(self, row: int) -> int:
        return self._estimates[row].n_users

    def _std(self, row: int) -> float:
        users = self._estimates[row].users
        return Moments.of(np.zeros(0) if users is None else users).std

    def _unlimited(self, row: int, mean: float, level: float) -> Interval:
        return self._estimates[row].error.interval(mean, level)
