"""Search ALS's hyperparameters with Optuna: trials on a validation part, and a test of the best.

A search is a study of Optuna. Its sampler chooses the trials, its pruner stops hopeless ones, and
its journal keeps them. This module connects the trials with the parts of a split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..core.arguments import check_whole, show_spelling
from ..core.atomic_files import locked_folder, make_folder, replacing
from ..core.formatting import text_of_frame
from ..core.messages import no_attribute
from ..core.progress import progress_bar
from ..datasets.split.holdout import Holdout
from ..datasets.split.parts import load_split, training_part
from ..errors import (
    InvalidDataError,
    InvalidFileError,
    InvalidMetricError,
    MissingExtraError,
    OutputError,
    SparseEvalError,
    shown,
)
from ..evaluation.execution import Execution
from ..models.checkpoints import saving_model
from ..results.saving import SUMMARY
from .ledger import REMEDY, differences
from .scoring import Scoring
from .train import PARAMETERS, WHOLE, EvaluationCallback, check_parameter, train_als

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import optuna
    import pandas as pd
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.storages import JournalStorage
    from optuna.trial import FrozenTrial

    from ..core.types import PathLike
    from ..datasets.split.parts import CandidatesOfSplit, TrainLike
    from ..metrics import Metric
    from ..metrics.request import MetricsLike
    from ..results import Evaluation

#: The values to search for one parameter, as a caller passes them.
Searched: TypeAlias = "float | str | Iterable[float | str] | BaseDistribution"

#: The files in the folder of a search: Optuna's journal and the table of the trials; the best model
#: and the folder of its test.
JOURNAL, TABLE, _MODEL, _TEST = "study.jsonl", "trials.csv", "model.npz", "test"

#: The name of the study in the journal, and its attribute with all that determines the values.
_STUDY, _INPUTS = "tune", "inputs"

#: The calls that replace former names.
_INSTEAD = {
    "scores": "tuning.trials and tuning.test.summary()",
    "to_markdown": "tuning.trials.to_markdown()",
}

#: The status of a trial by its state in Optuna.
_STATUS = {"COMPLETE": "ok", "PRUNED": "pruned", "FAIL": "failed"}

#: Errors of Optuna if a journal has other content.
_DAMAGE = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@show_spelling
def tune(
    train: Holdout | TrainLike,
    validation: TrainLike | MetricsLike | None = None,
    metrics: MetricsLike | None = None,
    *,
    space: Mapping[str, Searched] | None = None,
    n_trials: int | None = None,
    sampler: BaseSampler | None = None,
    pruner: BasePruner | None = None,
    patience: int | None = None,
    monitor: str | Metric | None = None,
    candidates: CandidatesOfSplit | None = None,
    seed: int = 0,
    out: PathLike | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Search for the hyperparameters of `implicit`'s ALS that are best on a validation part.

    The search is a study of Optuna. Each trial trains on `train`, is evaluated on `validation`
    after every iteration, and counts with the values of its best iteration. If a `Holdout` has a
    test part, the model of the best trial is trained once more, on train and validation together,
    and scored on the test part, which no trial has used.

    Parameters
    ----------
    train : as for `train_als`, or Holdout
        ``tune(holdout, metrics)`` uses the parts of a `Holdout`, its test part included. If you
        have the parts already, ``Holdout(train, validation, test=test)`` makes one of matrices, and
        `Holdout.from_frames` of frames.
    validation : as `train`, or Relevance
        The held-out gains for comparing trials, matched by id, or padded without ids.
    metrics : str, Metric, iterable of them, or Protocol
        As for `evaluate_model`.
    space : mapping of str to number, iterable of numbers, str or distribution, optional
        The values of ``factors``, ``alpha``, ``regularization`` and ``iterations`` to try. One
        value; several, as a list or as text like ``"16,32,64"``; a log-uniform range like
        ``"16:128"``, both ends included; or a distribution of Optuna. Other parameters have the
        default of `train_als`.
    n_trials : int, optional
        The number of trials in all. By default all combinations are tried. Ranges and a `sampler`
        need a number.
    sampler : optuna.samplers.BaseSampler, optional
        By default, lists of values are searched by ``GridSampler``, in random order and without
        repetition, and ranges by ``TPESampler``, which learns from earlier trials.
    pruner : optuna.pruners.BasePruner, optional
        Stops hopeless trials between iterations. By default ``MedianPruner``: after five trials,
        one that is worse than their median, from its fourth iteration on.
    patience : int, optional
        As in `EvaluationCallback`: a trial stops after this number of iterations without a better
        value of `monitor`. By default it runs to its end.
    monitor : str or Metric, optional
        The metric that determines the best iteration and the best trial, the first of equal ones;
        by default the first of `metrics`. Lower values of some are better, such as ``gini``.
    candidates
        As in `evaluate_model`, the same for the validation and the test part. Or a function that
        returns the candidates of a `Holdout`: it is called with the split in `train`, and for the
        test with its `Holdout.for_test`.
    seed : int
        Of the sampling and of every training. The same seed gives the same trials and, on the same
        machine, the same values.
    out : str or Path, optional
        A folder, created if missing. It gets ``study.jsonl``, Optuna's journal; ``trials.csv``, the
        table of the finished trials; and of the test, ``model.npz`` and ``test``, for
        `Evaluation.load`. The same call continues the search and repeats only the test. A larger
        `n_trials` adds trials. One process at a time may use the folder.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Tuning

    Raises
    ------
    InvalidDataError
        If `space` has an unknown parameter, no value for one, or a value that is not valid in
        `train_als`. If a range or a `sampler` is given without `n_trials`. If an option is out of
        range or a matrix cannot be used. If sampled candidates lack the held-out items of a part.
    InvalidMetricError
        If a metric is unknown or needs an input that is not given here, or `monitor` is not among
        the metrics.
    InvalidFileError
        If the search in `out` has other data, metrics or options; the message names them. If its
        journal is damaged. The folder is left unchanged.
    MissingExtraError
        If Optuna is not installed.
    OutputError
        If `out` cannot be written, or another process writes to it.
    SparseEvalError
        If the training for the test diverged. A trial that diverges or runs out of memory is a
        failed one, with the reason, and the search continues.

    Notes
    -----
    If a search is interrupted or killed, only the running trial is lost. A search that continues
    may sample other trials than an uninterrupted one would: Optuna's samplers start anew. A grid
    has the same combinations, with the lost one at the end.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.temporal(clicks, fraction=0.1, test=0.1)
    >>> space = {"factors": [4, 8], "alpha": "1:40", "iterations": 5}
    >>> result = se.tune(holdout, "ndcg@10", space=space, n_trials=3, patience=2)
    >>> len(result.trials), int(result.trials["best"].sum())
    (3, 1)
    >>> whole = holdout.for_test()
    >>> model = se.train_als(whole.train, **result.best)
    >>> result.test["ndcg@10"] == se.evaluate_model(model, whole, "ndcg@10")["ndcg@10"]
    True
    """
    distributions, n_trials = read_space(space or {}, n_trials, sampler, pruner)
    from optuna.pruners import MedianPruner

    check_whole("seed", seed, 0)
    train = load_split(train)
    whole = train.for_test() if isinstance(train, Holdout) and train.test is not None else None
    among: tuple[Any, Any] = candidates, candidates
    if callable(candidates):
        if not isinstance(train, Holdout):
            raise InvalidDataError(
                "candidates= is a function of a Holdout, but the parts are given separately. Pass "
                "a Holdout, or the candidates"
            )
        among = candidates(train), None if whole is None else candidates(whole)
    objective = _Objective(distributions, seed)
    callback = objective.callback = EvaluationCallback(
        train,
        validation,
        metrics,
        patience=patience,
        monitor=monitor,
        candidates=among[0],
        log=objective.report,
        log_errors="raise",
    )
    scoring, tested = callback.scoring, None
    if whole is not None:
        parts = training_part(whole), whole.validation
        tested = Scoring.of(*parts, scoring.request, among[1], "test")
    inputs = scoring.inputs | {"monitor": callback.monitored, "patience": patience, "seed": seed}
    inputs |= {name: str(values) for name, values in distributions.items()}
    folder = None if out is None else make_folder(out)
    with nullcontext() if folder is None else locked_folder(folder):
        with _optuna(folder):
            study = _open_study(folder, inputs, callback.monitor)
            study.sampler = sampler or _default_sampler(distributions, seed, len(study.trials))
            study.pruner = pruner or MedianPruner(n_warmup_steps=3)
            objective.run(study, n_trials, folder, progress)
        tuning = objective.result(study)
        if tested is None or tuning.best is None:
            return tuning
        return tuning._replace(test=_test(tuning, tested, folder, progress))


def read_space(
    space: Mapping[str, Searched],
    n_trials: int | None,
    sampler: BaseSampler | None = None,
    pruner: BasePruner | None = None,
) -> tuple[dict[str, BaseDistribution], int]:
    """Return the distribution of each parameter, and the number of trials.

    Raises
    ------
    InvalidDataError
        As from `tune`, about these arguments.
    MissingExtraError
        If Optuna is not installed.
    """
    try:
        from optuna.pruners import BasePruner
        from optuna.samplers import BaseSampler
    except ImportError:
        raise MissingExtraError('tune needs Optuna: pip install "sparse_eval[tune]"') from None
    if not isinstance(sampler, BaseSampler | None):
        raise InvalidDataError(
            f"sampler is {sampler!r}; expected a sampler of Optuna, such as "
            "optuna.samplers.RandomSampler(seed=0). The default for ranges is TPESampler"
        )
    if not isinstance(pruner, BasePruner | None):
        raise InvalidDataError(
            f"pruner is {pruner!r}; expected a pruner of Optuna, such as "
            "optuna.pruners.MedianPruner()"
        )
    for name in space:
        if name not in PARAMETERS:
            raise InvalidDataError(f"space has {name!r}; expected {', '.join(PARAMETERS)}")
    distributions = {
        name: _distribution(name, space.get(name, default)) for name, default in PARAMETERS.items()
    }
    if n_trials is not None:
        check_whole("n_trials", n_trials, 1)
    if sampler is None and (grid := _grid_of(distributions)):
        size = math.prod(map(len, grid.values()))
        return distributions, min(n_trials or size, size)
    if n_trials is None:
        raise InvalidDataError(
            "a range or a sampler needs a number of trials; set it with n_trials=, such as 20",
            argument="n_trials",
        )
    return distributions, n_trials


def _grid_of(distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Return the values of each parameter, nothing if a parameter has a range."""
    from optuna.distributions import CategoricalDistribution

    grid = {
        name: values.choices
        for name, values in distributions.items()
        if isinstance(values, CategoricalDistribution)
    }
    return grid if len(grid) == len(distributions) else {}


def _default_sampler(
    distributions: Mapping[str, BaseDistribution], seed: int, n_earlier: int
) -> BaseSampler:
    """Return the sampler of a search that has had `n_earlier` trials."""
    from optuna.samplers import GridSampler, TPESampler

    if grid := _grid_of(distributions):
        return GridSampler(grid, seed % 2**32)
    # With the same seed again, a search that continues would repeat its first trials.
    return TPESampler(seed=(seed + n_earlier) % 2**32)


def _distribution(name: str, searched: Any) -> BaseDistribution:
    """Return the distribution of a parameter, or raise `InvalidDataError` that names it."""
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(searched, BaseDistribution):
        return searched
    number: Any = int if name in WHOLE else float
    is_range = isinstance(searched, str) and ":" in searched
    given = searched.split(":" if is_range else ",") if isinstance(searched, str) else searched
    given = list(given) if isinstance(given, Iterable) else [given]
    try:
        read = [number(value) if isinstance(value, str) else value for value in given]
    except ValueError:
        read = []
    values = [check_parameter(name, value) for value in read]
    if not values or (is_range and not (len(values) == 2 and 0 < values[0] < values[1])):
        label = "whole number" if name in WHOLE else "number"
        raise InvalidDataError(
            f"{name}: expected a {label}, several as in 10,20,40, a log-uniform range above 0 as "
            f"in 10:40, or a distribution of Optuna, found {searched!r}",
            argument=name,
        )
    if not is_range:
        return CategoricalDistribution([*dict.fromkeys(values)])
    if name in WHOLE:
        return IntDistribution(int(values[0]), int(values[1]), log=True)
    return FloatDistribution(values[0], values[1], log=True)


class Tuning(NamedTuple):
    """The result of a search, as `tune` returns it. Printed, a table.

    Attributes
    ----------
    trials : pandas.DataFrame
        One row per finished trial. First ``trial``, its number in the study; ``best``, true for at
        most one trial, the first of equal ones; ``status``, "ok", "pruned" or "failed"; ``error``,
        empty or the reason in one line. Then ``factors``, ``alpha``, ``regularization`` and
        ``iterations``; ``best_iteration``, the number of iterations after which the monitored
        metric was best. Each metric follows, on the validation part at that point, NaN if the trial
        failed, called ``hit_rate@10 (1+99)`` and the like among candidates. The last is
        ``seconds``, its duration.
    best : dict or None
        The options of `train_als` that reproduce the model of the best trial: its parameters, with
        ``iterations`` its best iteration, and ``seed``. None if no trial finished.
    test : Evaluation or None
        The test of the best trial. None without a test part.
    study : optuna.Study
        The study, such as for ``optuna.visualization``. ``user_attrs["best"]`` of a trial has its
        metrics.
    """

    trials: pd.DataFrame
    best: dict[str, Any] | None
    test: Evaluation | None
    study: optuna.Study

    def __getattr__(self, name: str) -> object:
        raise no_attribute("Tuning", name, _INSTEAD)

    def __repr__(self) -> str:
        test = "" if self.test is None else f"\n\ntest of the best trial\n{self.test}"
        return text_of_frame(self.trials, "simple") + test

    def _repr_html_(self) -> str:
        test = "" if self.test is None else self.test._repr_html_()
        return text_of_frame(self.trials, "html") + test


class _Stopped(BaseException):
    """Wraps an exception that ends the search, which Optuna would record as a failed trial.

    So the trial is left as by a process that is killed, and `GridSampler` repeats it.
    """


@dataclass
class _Objective:
    """The function that Optuna optimizes, and its results.

    `callback` evaluates the model of the current `trial` after each iteration, and calls `report`.
    """

    distributions: dict[str, BaseDistribution]
    seed: int
    callback: EvaluationCallback = field(init=False)
    trial: optuna.Trial = field(init=False)

    def __call__(self, trial: optuna.Trial) -> float:
        """Train the model of a trial; return the best value of the monitored metric."""
        from optuna import TrialPruned

        self.trial, callback = trial, self.callback
        options = {name: _suggest(trial, name, d) for name, d in self.distributions.items()}
        options |= {"seed": self.seed, "progress": False}
        try:
            train_als(callback.scoring.matrix, **options, callback=callback)
            if callback.best_iteration is None:
                raise InvalidMetricError(
                    f"{callback.monitored} is undefined for all users; monitor another metric"
                )
        except TrialPruned:
            raise
        except (SparseEvalError, MemoryError) as error:
            trial.set_user_attr("error", " ".join(str(error).split()) or "not enough memory")
            raise
        except BaseException as error:
            raise _Stopped from error
        return float(trial.user_attrs["best"][callback.monitored])

    def report(self, values: dict[str, float], iteration: int) -> None:
        """Record the values of the best iteration so far; end a hopeless trial."""
        from optuna import TrialPruned

        if iteration == self.callback.best_iteration:
            self.trial.set_user_attr("best", {"best_iteration": iteration, **values})
        value = values[self.callback.monitored]
        if not math.isnan(value):
            self.trial.report(value, iteration - 1)  # pruners count from 0
        if self.trial.should_prune():
            raise TrialPruned

    def run(
        self, study: optuna.Study, n_trials: int, folder: Path | None, progress: bool | None
    ) -> None:
        """Run the missing trials, and write the table after each."""

        def write_table() -> None:
            if folder is not None:
                with replacing(folder / TABLE) as temporary:
                    self.result(study).trials.to_csv(temporary, index=False)

        n_finished = len(_finished(study))
        bar = progress_bar(
            progress, total=n_trials, initial=n_finished, desc="tune", unit=" trials"
        )
        with bar:
            try:
                study.optimize(
                    self,
                    max(n_trials - n_finished, 0),
                    catch=(SparseEvalError, MemoryError),
                    callbacks=[lambda *_: write_table(), lambda *_: bar.update()],
                )
            except _Stopped as stop:
                raise stop.__cause__ or stop from None
        write_table()

    def result(self, study: optuna.Study) -> Tuning:
        """Return the finished trials and the best one, without a test."""
        import pandas as pd

        trials = _finished(study)
        is_complete = any(trial.state.name == "COMPLETE" for trial in trials)
        best = study.best_trial if is_complete else None
        rows = [
            {
                **trial.params,
                **({} if trial.state.name == "FAIL" else trial.user_attrs.get("best", {})),
                "trial": trial.number,
                "best": best is not None and trial.number == best.number,
                "status": _STATUS[trial.state.name],
                "error": trial.user_attrs.get("error", ""),
                "seconds": trial.duration and trial.duration.total_seconds(),
            }
            for trial in trials
        ]
        names = [*self.callback.scoring.names.values()]
        columns = ["trial", "best", "status", "error", *PARAMETERS, "best_iteration", *names]
        types = {"best_iteration": "Int64", **dict.fromkeys(names, "float64")}
        table = pd.DataFrame(rows, columns=[*columns, "seconds"]).astype(types)
        options = None
        if best is not None:
            iterations = best.user_attrs["best"]["best_iteration"]
            options = {**best.params, "iterations": iterations, "seed": self.seed}
        return Tuning(table, options, None, study)


def _suggest(trial: optuna.Trial, name: str, distribution: Any) -> Any:
    """Return the value of a parameter in a trial."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    is_whole = isinstance(distribution, IntDistribution)
    suggest: Any = trial.suggest_int if is_whole else trial.suggest_float
    ends = distribution.low, distribution.high
    return suggest(name, *ends, step=distribution.step, log=distribution.log)


def _finished(study: optuna.Study) -> list[FrozenTrial]:
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]


@contextmanager
def _optuna(folder: Path | None) -> Iterator[None]:
    """Silence Optuna's logging, which repeats the table; raise our errors."""
    from optuna.logging import ERROR, get_verbosity, set_verbosity

    level = get_verbosity()
    set_verbosity(max(level, ERROR))
    try:
        yield
    except OSError as error:
        if folder is None:
            raise
        path = folder / JOURNAL
        reason = error.strerror or error
        raise OutputError(f"{shown(path)}: cannot be written: {reason}", path=path) from error
    finally:
        set_verbosity(level)


def _open_study(folder: Path | None, inputs: dict[str, Any], monitor: Metric) -> optuna.Study:
    """Create a study in memory, or the study of a folder, or load that.

    Raises `InvalidFileError` if the journal is damaged, or its study has other inputs.
    """
    import optuna
    from optuna.study import StudyDirection

    is_maximized = monitor.definition.higher_is_better
    direction = StudyDirection.MAXIMIZE if is_maximized else StudyDirection.MINIMIZE
    if folder is None:
        return optuna.create_study(direction=direction)

    path = folder / JOURNAL
    if not path.exists():
        with replacing(path) as temporary:
            study = optuna.create_study(
                storage=_journal(temporary), study_name=_STUDY, direction=direction
            )
            study.set_user_attr(_INPUTS, inputs)
    try:
        if not path.read_bytes().endswith(b"\n"):
            raise ValueError("the last line is incomplete, and Optuna would add to it")
        study = optuna.load_study(study_name=_STUDY, storage=_journal(path))
        found = study.user_attrs[_INPUTS]
    except _DAMAGE as error:
        raise InvalidFileError(
            "is damaged, or not the study of a search. Delete its last line if that is "
            "incomplete; otherwise choose a different folder",
            path,
        ) from error
    if differing := differences(found, inputs):
        raise InvalidFileError(f"this search has different inputs: {differing}. {REMEDY}", path)
    return study


def _journal(path: Path) -> JournalStorage:
    """Return the storage of a study in a locked folder."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    # A lock of the file found here is that of a killed process.
    lock = JournalFileOpenLock(str(path), grace_period=3)
    return JournalStorage(JournalFileBackend(str(path), lock))


def _test(
    tuning: Tuning, scoring: Scoring, folder: Path | None, progress: bool | None
) -> Evaluation:
    """Train the best model on all data but the test part, and score it on that."""
    model = train_als(scoring.matrix, **tuning.best or {}, progress=progress)
    ev = scoring.evaluate(model, Execution(progress=progress))
    if folder is not None:
        with saving_model(model, folder / _MODEL):
            (folder / _TEST / SUMMARY).unlink(missing_ok=True)  # of another model
        trial = int(tuning.trials.loc[tuning.trials["best"], "trial"].item())
        ev.save(folder / _TEST, about={"trial": trial, "parameters": tuning.best})
    return ev
