"""Evaluate several models on several splits with several seeds, and compare the means of folds.

The folder's ledger, ``cross_validation.jsonl`` (see `sparse_eval.jobs.ledger`), contains the rules
of the metrics, a row for each fold, ``fold 1``, with digests of its parts, and a row for each
finished run, ``MODEL, fold F, seed S``.
"""

from __future__ import annotations

import html
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from ..core.arguments import check_choice, check_fraction, check_whole, show_spelling
from ..core.arrays import describe
from ..core.formatting import escaped, numbers, plain, text_table
from ..core.messages import printable
from ..core.progress import progress_bar
from ..core.versions import NUMBERS_VERSION, library_versions
from ..datasets.split import k_fold
from ..datasets.split.holdout import Holdout
from ..datasets.split.parts import training_part
from ..datasets.times import time_text
from ..errors import InvalidDataError, InvalidFileError, SparseEvalError
from ..evaluation.execution import Execution
from ..results.decisions import add_verdicts, decide, parse_margins
from ..results.differences import CORRECTIONS, correct, significance
from ..results.intervals import LEVEL, interval_around, two_sided
from ..results.matching import shared_metrics
from .ledger import Ledger
from .scoring import Scoring, parse_monitored
from .train import PARAMETERS, check_parameter, train_als

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from ..core.types import Floats, PathLike, SparseInput
    from ..datasets import Interactions
    from ..datasets.split.parts import CandidatesOfSplit
    from ..evaluation.runners import ClientLike
    from ..metrics.request import MetricsLike, Request
    from ..results.decisions import Margin, Size
    from ..results.differences import Distance

#: The kind of job, after which the file of its ledger is named.
JOB = "cross_validation"

#: The seeds of a fold are larger by this number than the seeds of the fold before.
STEP = 1000

#: Parameters of ALS, or a function of the training matrix, and of the seed if it takes one.
TrainerLike: TypeAlias = "Mapping[str, float] | Callable[..., Any]"

#: A number of folds, splits, or a function of the interactions that makes them.
SplitsLike: TypeAlias = "int | Iterable[Holdout] | Callable[..., Iterable[Holdout] | Holdout]"


@show_spelling
def cross_validate(
    interactions: Interactions | SparseInput | None,
    models: Mapping[str, TrainerLike],
    metrics: MetricsLike,
    *,
    splits: SplitsLike = 5,
    seeds: int | Iterable[int] = 3,
    out: PathLike | None = None,
    convention: str | None = None,
    candidates: CandidatesOfSplit | None = None,
    memory: int | None = None,
    client: ClientLike | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> CrossValidation:
    """Train and evaluate models on several splits with several seeds.

    Parameters
    ----------
    interactions : Interactions, scipy sparse matrix or array, or None
        The data that `splits` divides. With ready-made splits it may be None.
    models : mapping of str to parameters or callable
        Models by name, each of them

        - the parameters of `train_als`, as ``{"factors": 64, "alpha": 40}``;
        - a function of the training matrix, or of the training matrix and the seed, that returns
          what `evaluate_model` takes (a trained model, factors, a path), as ``se.baselines.ease``
          or ``lambda train, seed: se.train_als(train, factors=64, seed=seed)``. A parameter named
          ``seed`` gets the seed, and so does a second parameter without a default. A function
          without a seed runs once per fold.
    metrics : str, Metric, iterable of them, or Protocol
        As for `evaluate_model`.
    splits : int, iterable of Holdout, or callable
        The number of folds of `split.k_fold`. Or splits, such as ``se.split.k_fold(clicks, k=5)``.
        Or a function of `interactions` that makes them, such as ``partial(se.split.rolling,
        window="2D", at="2019-12-01")``. The users of a split by users are folded in.
    seeds : int or iterable of int
        A number of seeds, 0, 1, 2 and so on, or the seeds themselves, for the first fold. Each
        later fold adds 1,000 to the seeds of the fold before. Models of the same seed start alike,
        so their errors would be correlated over folds.
    out : str or Path, optional
        A folder, created if missing. Each finished run adds a line to its file
        ``cross_validation.jsonl``. A later call takes these runs from the file, and trains only
        what is missing. Other data, candidates, metrics or versions, or other parameters of the
        same model, raise an error. One process at a time may use the folder.
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
        With a ``table`` of all runs, ``summary()`` and ``compare()``.

    Raises
    ------
    InvalidDataError
        If a model is none of these. If there is no split, or a split is not a `Holdout` or holds
        nothing out. If a seed is repeated or not a whole number. If candidates that were sampled
        for one split are given for all.
    InvalidMetricError
        As from `evaluate_model`.
    InvalidFileError
        If the file in `out` has runs of other data, metrics, versions or trainers, or is damaged.
        It is left as it is.
    OutputError
        If `out` cannot be written, or another process writes there.
    SparseEvalError
        Errors of trainings and evaluations pass through, with a note that names the run.

    See Also
    --------
    tune : Search for hyperparameters on one split.

    Notes
    -----
    In `out`, a function is identified by its name in `models`: if you change how a model is
    trained, change its name or the folder. To detect a forgotten change, a call that continues
    repeats the first finished run of each function. A different number raises an error. A training
    that is not reproducible therefore cannot continue; BPR of `implicit`, for example, needs
    ``num_threads=1``.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=300, n_items=100, seed=0)
    >>> models = {"ease": se.baselines.ease, "als": {"factors": 8, "iterations": 5}}
    >>> cv = se.cross_validate(clicks, models, "ndcg@10", splits=3, seeds=2)
    >>> len(cv.table)  # 3 runs of ease, and 3 folds × 2 seeds of als
    9
    >>> cv.summary()[["mean", "n_folds"]].round(3)
                    mean  n_folds
    metric  model
    ndcg@10 ease   0.323        3
            als    0.223        3
    >>> cv.compare(margin="1%")[["a", "b", "better", "verdict"]]
          a    b better verdict
    0  ease  als   ease  better
    """
    trainers = read_trainers(models)
    request, _ = parse_monitored(metrics, None, convention, among=candidates is not None)
    chosen = _read_seeds(seeds)
    execution = Execution("totals", memory, client, num_threads, False)
    settings = {  # what determines the numbers, but for the folds and the models
        "versions": library_versions() | {"numbers": NUMBERS_VERSION},
        "values": "means",  # earlier versions saved evaluations
        "metrics": sorted(request.names),
        "convention": request.rules,
        "seen": request.seen,
        "judged_only": request.judged_only,
    }
    rows: list[dict[str, Any]] = []
    repeated: set[str] = set()
    with (
        Ledger.opened(out, JOB, settings) as ledger,
        progress_bar(progress, desc="cross-validate", unit=" runs") as bar,
    ):
        for number, holdout in enumerate(_make_splits(interactions, splits), start=1):
            try:
                among = candidates(holdout) if callable(candidates) else candidates
                scoring = Scoring.of(training_part(holdout), holdout.validation, request, among)
            except SparseEvalError as error:
                error.add_note(f"This is about fold {number}.")
                raise
            inputs = scoring.inputs
            digests = {name: inputs[name] for name in ("train", "validation", "candidates")}
            ledger.agree(f"fold {number}", digests)
            cut = {} if holdout.cut is None else {"cut": time_text(holdout.cut)}
            sizes = {"n_train": holdout.train.nnz, "n_validation": holdout.validation.nnz}
            for run, trainer in _runs_of_fold(number, trainers, chosen):
                bar.set_postfix_str(printable(run.name), refresh=False)
                row = ledger.rows.get(run.name)
                if row is not None:
                    ledger.check(run.name, {"parameters": trainer.parameters})
                if row is None:
                    found = _evaluate_run(run, trainer, holdout, scoring, execution)
                    row = ledger.append(run.name, parameters=trainer.parameters, **found)
                elif trainer.parameters is None and run.model not in repeated:
                    found = _evaluate_run(run, trainer, holdout, scoring, execution)
                    _check_repeated(run, found, row, ledger)
                    repeated.add(run.model)
                kind = {} if row["candidates"] is None else {"candidates": row["candidates"]}
                means = {name: row["means"][name] for name in request.names}
                counted = sizes | {"n_users": row["n_users"]} | kind
                rows.append(run._asdict() | cut | counted | means)
                bar.update()
        if not rows:
            raise InvalidDataError("splits: expected at least one Holdout, found none")
    return CrossValidation(_as_table(rows, request), request)


class Trainer(NamedTuple):
    """How a model is trained.

    Attributes
    ----------
    train : callable
        Takes the training matrix and the seed.
    takes_seed : bool
        Whether the seed matters.
    parameters : dict or None
        The parameters of `train_als`; None for the caller's function.
    """

    train: Callable[[Any, int | None], Any]
    takes_seed: bool
    parameters: dict[str, float] | None


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
    parameters: dict[str, Any] | None = None
    function = given
    if isinstance(given, Mapping) and given.keys() <= PARAMETERS.keys():
        parameters = {key: check_parameter(key, x) for key, x in given.items()}
        function = partial(train_als, progress=False, **parameters)
    if callable(function):
        taken = inspect.signature(function)
        needed = [
            one
            for one in taken.parameters.values()
            if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        with suppress(TypeError):  # of `bind`: it needs other arguments
            if "seed" in taken.parameters:
                taken.bind(None, seed=0)
                return Trainer(lambda train, seed: function(train, seed=seed), True, parameters)
            if len(needed) > 1:
                taken.bind(None, 0)
                return Trainer(function, True, None)
            taken.bind(None)
            return Trainer(lambda train, _: function(train), False, None)
    found = [*given] if isinstance(given, Mapping) else describe(given)
    raise InvalidDataError(
        f"models: {name} is {found}; expected parameters of train_als, which are "
        f"{', '.join(PARAMETERS)} (pass seeds as seeds=), or a function of train, or of train and "
        "seed, that returns a trained model"
    )


def _make_splits(interactions: Any, splits: Any) -> Iterator[Holdout]:
    """Yield the splits, one at a time, or raise `InvalidDataError`."""
    if isinstance(interactions, Holdout):
        raise InvalidDataError(
            "interactions is a Holdout, which is split already; pass the Interactions, or None and "
            "splits=[holdout]"
        )
    if isinstance(splits, int | np.integer):
        splits = partial(k_fold, k=check_whole("splits", splits, 2))
    made = splits(interactions) if callable(splits) else splits
    if isinstance(made, Holdout):
        made = [made]
    if not isinstance(made, Iterable):
        raise InvalidDataError(
            f"splits is {describe(made)}; expected a number of folds, or Holdouts, as "
            "se.split.k_fold(clicks) makes them, or a function of the interactions that makes them"
        )
    for position, holdout in enumerate(made, start=1):
        if not isinstance(holdout, Holdout):
            raise InvalidDataError(
                f"splits: number {position} is {describe(holdout)}, not a Holdout"
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


class Run(NamedTuple):
    """A training, identified by its model, fold (from 1) and seed, None without one."""

    model: str
    fold: int
    seed: int | None

    @property
    def name(self) -> str:
        """The run in words."""
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.model}, fold {self.fold}{seed}"


def _runs_of_fold(
    fold: int, trainers: Mapping[str, Trainer], seeds: Iterable[int]
) -> Iterator[tuple[Run, Trainer]]:
    """Yield the runs of a fold, by model, then by seed, with their trainers."""
    for model, trainer in trainers.items():
        if trainer.takes_seed:
            for seed in seeds:
                yield Run(model, fold, seed + (fold - 1) * STEP), trainer
        else:
            yield Run(model, fold, None), trainer


def _evaluate_run(
    run: Run, trainer: Trainer, holdout: Holdout, scoring: Scoring, execution: Execution
) -> dict[str, Any]:
    """Train and evaluate a model, and return the numbers for the ledger."""
    try:
        evaluation = scoring.evaluate(trainer.train(holdout.train, run.seed), execution)
    except SparseEvalError as error:
        error.add_note(f"This is about {run.name}.")
        raise
    candidates = evaluation._part.candidates
    kind = None if candidates is None else candidates.kind
    means = {name: plain(mean) for name, mean in evaluation.mean().items()}
    return {"n_users": evaluation.n_users, "candidates": kind, "means": means}


def _check_repeated(
    run: Run, found: Mapping[str, Any], row: Mapping[str, Any], ledger: Ledger
) -> None:
    """Raise `InvalidFileError` unless a run has the numbers that it had before."""
    both = [one["means"] | {"users": one["n_users"]} for one in (row, found)]
    if both[0] != both[1]:
        what = next(name for name, number in both[0].items() if number != both[1][name])
        raise InvalidFileError(
            f"{run.name} has {what} {both[0][what]}, but was repeated with {both[1][what]}. Its "
            "function was changed, or does not train reproducibly. Give the model a new name, or "
            "choose a different folder",
            ledger.path,
        )


def _as_table(rows: list[dict[str, Any]], request: Request) -> pd.DataFrame:
    """Return the table of the runs; means that are not defined are NaN."""
    import pandas as pd

    table = pd.DataFrame(rows)
    table["seed"] = pd.array([row["seed"] for row in rows], "Int64")
    return table.astype(dict.fromkeys(request.names, np.float64))


# A former attribute, whose error shows what to use instead. It has no docstring, which the
# documentation would show.
class _Removed:
    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __get__(self, *_: object) -> NoReturn:
        raise AttributeError(f"CrossValidation no longer has this attribute; use {self._instead}")


class CrossValidation:
    r"""The means of several models on several folds with several seeds.

    Printed, and in a notebook, it is a table of means and their intervals.

    Folds are the unit. The seeds of a model are averaged for each fold, so that its K values have
    the variance S². The variance of their mean is ::

        (1 / K + n_test / n_train) * S²

    as folds share training data [1]_, and the degrees of freedom of Student's t are K − 1. n_test /
    n_train is the number of validation pairs divided by the number of training pairs, averaged over
    folds. A fold in which a metric is not defined is left out of this metric.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each run. Columns: ``model``; ``fold``, from 1 on; ``seed``, missing for a
        function without one; ``cut``, if the folds are split by time; ``n_train`` and
        ``n_validation``, the numbers of pairs; ``n_users`` evaluated; with candidates
        ``candidates``, their kind. The mean of every metric follows.
    models : tuple of str
        The names of the models.
    names : tuple of str
        The metrics.

    See Also
    --------
    cross_validate : Make one.

    References
    ----------
    .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52,
       2003, pp. 239-281. doi:10.1023/A:1024068626366
    """

    folds = _Removed("cv.table, which has the sizes of each fold")
    left_out = notes = _Removed("the table of cv.compare()")
    load = _Removed("cross_validate with the same arguments, which reads finished runs from out")
    n_seeds = _Removed('cv.table.groupby(["model", "fold"]).size()')
    per_user = _Removed("evaluate_model for each fold of se.split.k_fold, whose per_user has them")
    select = _Removed("the models that you pass to cross_validate")

    def __init__(self, table: pd.DataFrame, request: Request) -> None:
        self.table, self.request = table, request
        self.models = tuple(table["model"].unique())
        self.names = tuple(request.names)
        folds = table.groupby("fold").first()
        self._ratio = float((folds["n_validation"] / folds["n_train"]).mean())

    def summary(self, level: float = LEVEL) -> pd.DataFrame:
        """Return every mean in full; ``print(cv)`` shows fewer digits.

        Parameters
        ----------
        level : float
            Confidence level of the intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row for each metric and model (index ``metric``, ``model``):

            - ``mean`` over folds, and ``std`` of the folds' means, with K − 1;
            - ``ci_low``, ``ci_high``: Student's interval with the corrected variance, missing for
              one fold;
            - ``n_folds``; with candidates ``candidates``, their kind.

        Raises
        ------
        InvalidDataError
            If `level` is not between 0 and 1.
        """
        import pandas as pd

        level = check_fraction("level", level)
        index = pd.MultiIndex.from_product((self.names, self.models), names=["metric", "model"])
        rows = []
        for name, model in index:
            means = self._fold_means(name).loc[model].dropna()
            mean, error, freedom = _distance(means.to_numpy(), self._ratio)
            ends = self.request.range_of(self.names.index(name))
            interval = interval_around(mean, error, freedom, level, "t").within(mean, ends)
            rows.append((mean, means.std(), interval.low, interval.high, len(means)))
        frame = pd.DataFrame(rows, index, ["mean", "std", "ci_low", "ci_high", "n_folds"])
        return frame.assign(candidates=self._kind()) if self._kind() else frame

    def compare(
        self,
        metrics: str | Iterable[str] | None = None,
        *,
        correction: Literal["holm", "bonferroni", "bh", "none"] = "holm",
        level: float = LEVEL,
        margin: Size | Mapping[str, Size] | None = None,
    ) -> pd.DataFrame:
        """Compare the models pair by pair, by the corrected resampled t-test.

        Parameters
        ----------
        metrics, correction, level, margin
            As in `sparse_eval.compare`.

        Returns
        -------
        pandas.DataFrame
            One row for each metric and pair (columns ``metric``, ``a``, ``b``):

            - ``mean_a``, ``mean_b`` over folds, and ``difference``, a minus b, with its interval
              ``ci_low``, ``ci_high``, which is not corrected for the number of comparisons;
            - ``n_folds``: the number of folds;
            - ``p``, ``p_corrected``: the p-value, and the same after correction over all rows;
            - ``better``: the name of the better model; empty if the difference is not significant.

            With `margin` also ``margin`` as a number, ``p_better``, ``p_equivalent``, ``p_worse``,
            ``p_verdict`` and ``verdict``, as in `sparse_eval.compare`: "better", "worse",
            "equivalent" or "not shown".

        Raises
        ------
        InvalidDataError
            If there is only one model or one fold. Also as from `sparse_eval.compare`.
        """
        import pandas as pd

        check_choice("correction", correction, list(CORRECTIONS))
        level = check_fraction("level", level)
        if len(self.models) < 2:
            raise InvalidDataError("there is only one model; cross-validate two or more to compare")
        if self.table["fold"].nunique() < 2:
            raise InvalidDataError(
                "there is only one fold, so the variation over folds is unknown. Cross-validate "
                "two or more folds, or compare evaluations of this split with se.compare"
            )
        chosen, _ = shared_metrics({"the cross-validation": self.request}, metrics)
        margins = parse_margins(margin, chosen)
        table = pd.DataFrame(
            self._compare_pair(name, a, b, level, margins.get(name))
            for name, (a, b) in product(chosen, combinations(self.models, 2))
        )
        p = correct(table["p"].to_numpy(), correction)
        higher = table["metric"].map(self._higher_is_better).to_numpy()
        a_better = (table["difference"] > 0).to_numpy() == higher
        better = np.where(a_better, table["a"], table["b"])
        place = list(table).index("p") + 1
        table.insert(place, "p_corrected", p)
        table.insert(place + 1, "better", np.where(p < significance(level), better, ""))
        if margins:
            add_verdicts(table, margins, correction, level)
        return table

    def _compare_pair(
        self, name: str, a: str, b: str, level: float, margin: Margin | None
    ) -> dict[str, Any]:
        """Return the row of a metric and two models, without corrections."""
        one, two = self._fold_means(name).loc[[a, b]].dropna(axis=1).to_numpy()
        mean_b = _mean(two)

        def distance(factor: float) -> Distance:
            return _distance(one - factor * two, self._ratio)

        difference = distance(1.0)
        interval = interval_around(*difference, level, "t")
        row = {
            "metric": name,
            "a": a,
            "b": b,
            "mean_a": _mean(one),
            "mean_b": mean_b,
            "difference": difference[0],
            "ci_low": interval.low,
            "ci_high": interval.high,
            "n_folds": len(one),
            "p": two_sided(*difference),
        }
        if margin is not None:
            row |= decide(margin, margin.number(mean_b), distance, self._higher_is_better(name))
        return row

    def _fold_means(self, name: str) -> pd.DataFrame:
        """Return the mean over seeds, a row for each model and a column for each fold."""
        return self.table.pivot_table(name, "model", "fold", dropna=False)

    def _higher_is_better(self, name: str) -> bool:
        return self.request.plans[self.names.index(name)].definition.higher_is_better

    def _kind(self) -> str:
        """Return the kinds of candidates of all folds, empty without candidates."""
        kinds = self.table["candidates"].dropna().unique() if "candidates" in self.table else ()
        return ", ".join(kinds)

    def __repr__(self) -> str:
        return f"<{self._heading()}>\n{self._as_text('simple')}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._heading())}</p>{self._as_text('html')}"

    def _heading(self) -> str:
        n_folds, n_runs = self.table["fold"].nunique(), len(self.table)
        among = f", candidates: {self._kind()}" if self._kind() else ""
        folds = f"{n_folds:,} fold{'' if n_folds == 1 else 's'}"
        models = printable(", ".join(self.models))
        return f"CrossValidation of {models}: {folds}, {n_runs:,} runs{among}"

    def _as_text(self, style: str) -> str:
        rows = []
        for row in self.summary().reset_index().to_dict("records"):
            mean, *ends = numbers(row["mean"], row["ci_low"], row["ci_high"])
            interval = " to ".join(ends) if ends[0] else "none"
            rows.append([row["metric"], row["model"], mean or "none", interval])
        headings = ["metric", "model", "mean", f"{LEVEL * 100:g} % interval"]
        return text_table(rows, headings, ["left", "left", "decimal", "left"], style)


def _distance(values: Floats, ratio: float) -> Distance:
    """Return the mean of the folds' values, its corrected standard error, and its freedom."""
    n = len(values)
    variance = (1 / n + ratio) * float(values.var(ddof=1)) if n > 1 else math.nan
    return _mean(values), math.sqrt(variance), n - 1


def _mean(values: Floats) -> float:
    """Return a mean, NaN without values."""
    return float(values.mean()) if len(values) else math.nan
