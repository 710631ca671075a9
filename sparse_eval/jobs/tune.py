"""Search ALS's hyperparameters: trials on a validation part, and one test of the best.

The search is a study of Optuna. This module connects its trials with the parts of a split.
"""

from __future__ import annotations

import html
import json
import logging
import math
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..core.arguments import check_choice, check_whole, show_spelling
from ..core.formatting import MOST_ROWS, text_of_frame
from ..core.progress import progress_bar
from ..datasets.split.holdout import Holdout
from ..errors import (
    InvalidDataError,
    InvalidFileError,
    InvalidMetricError,
    MissingExtraError,
    OutputError,
    SparseEvalError,
    shown,
)
from ..evaluation.run import Execution
from ..inputs.labelled import labels_of
from ..metrics.request import Protocol
from ..models.checkpoints import saving_model
from ..models.identifiers import id_arrays
from ..models.inputs import add_sides, match_sides, split_arguments
from ..results.saving import SUMMARY
from .ledger import Ledger
from .scoring import Scoring, best_of, parse_monitored
from .train import PARAMETERS, WHOLE, EvaluationCallback, check_parameter, train_als

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import optuna
    import pandas as pd
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

    from ..core.types import PathLike
    from ..metrics import Metric
    from ..metrics.request import MetricsLike
    from ..models.inputs import CandidatesLike, CandidatesOfSplit, TrainLike
    from ..results import Evaluation
    from .ledger import Row

#: The values to search for one parameter, as a caller passes them.
Searched: TypeAlias = "float | str | Iterable[float | str] | BaseDistribution"

#: How trials are sampled.
SamplerLike: TypeAlias = "Literal['tpe', 'random'] | BaseSampler"

#: The kind of job, after which the file of its ledger is named; the files of a test.
JOB, _MODEL, _TEST = "tune", "model.npz", "test"

#: Optuna's journal.
STUDY = "study.jsonl"

_FOREIGN = "is damaged or not the study of a search; choose another folder, or delete it"

#: Errors of Optuna if a journal holds something else.
_DAMAGE = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

#: Iterations before a trial may be pruned.
_WARM_UP = 3


@show_spelling
def tune(
    train: Holdout | TrainLike,
    validation: TrainLike | MetricsLike | None = None,
    metrics: MetricsLike | None = None,
    *,
    space: Mapping[str, Searched] | None = None,
    n_trials: int | None = None,
    sampler: SamplerLike | None = None,
    pruner: BasePruner | None = None,
    patience: int | None = None,
    monitor: str | Metric | None = None,
    candidates: CandidatesOfSplit | None = None,
    seed: int = 0,
    test: TrainLike | None = None,
    out: PathLike | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Search for the hyperparameters of `implicit`'s ALS that are best on a validation part.

    The search is a study of Optuna. Each trial trains on `train`, is evaluated on `validation`
    after every iteration, and counts with the values of its best iteration. With `test`, the model
    of the best trial is trained once more, on train and validation together, and scored on data
    that no trial has used.

    Parameters
    ----------
    train : as for `train_als`, or Holdout
        ``tune(holdout, metrics)`` uses the parts of a `Holdout`, its test part included.
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
        The number of trials in all. By default the grid of all combinations is tried. Ranges and
        a `sampler` need a number.
    sampler : {"tpe", "random"} or optuna.samplers.BaseSampler, optional
        By default lists of values are a grid, and `n_trials` combinations are drawn at random
        without repetition. With a range the default is "tpe", Optuna's ``TPESampler``, which learns
        from earlier trials. Your own sampler, if it has a seed, samples the same again when a
        search continues.
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
    test : as `validation`, optional
        Held out before `validation` was. It is checked at the start and scored once, at the end.
    out : str or Path, optional
        A folder, created if missing, for ``study.jsonl``, Optuna's journal, and ``tune.jsonl``,
        the settings; of the test, ``model.npz`` and ``test``, for `Evaluation.load`. The same
        search on the same data continues from it, failed trials included. A larger `n_trials` adds
        trials, and the test is repeated if another one is best then. One process at a time may use
        the folder.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Tuning

    Raises
    ------
    InvalidDataError
        If `space` has an unknown parameter, no value for one, or a value that is not valid in
        `train_als`. If a range or a `sampler` is given without `n_trials`, or there are fewer
        combinations than `n_trials`. If an option is out of range or a matrix cannot be used. If
        sampled candidates lack the held-out items of a part.
    InvalidMetricError
        If a metric is unknown or needs an input that is not given here, or `monitor` is not among
        the metrics.
    InvalidFileError
        If `out` belongs to another search or other data. It is left unchanged.
    MissingExtraError
        If Optuna is not installed.
    OutputError
        If `out` cannot be written, or another process writes to it.
    SparseEvalError
        If the training for the test diverged. A trial that diverges or runs out of memory is a
        failed one, with the reason, and the search continues.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> whole = se.split.random(clicks, seed=0)  # its validation part is the test
    >>> part = se.split.random(whole.train, seed=0)
    >>> result = se.tune(
    ...     part.train, part.validation, "ndcg@10", test=whole.validation,
    ...     space={"factors": [4, 8], "alpha": "1:40", "iterations": 5}, n_trials=3, patience=2,
    ... )
    >>> len(result.trials), int(result.trials["best"].sum())
    (3, 1)
    >>> model = se.train_als(whole.train, **result.best)
    >>> ev = se.evaluate_model(model, whole.train, whole.validation, "ndcg@10")
    >>> result.test["ndcg@10"] == ev["ndcg@10"]
    True
    """
    among: tuple[Any, Any] = candidates, candidates
    if callable(candidates):
        if not isinstance(train, Holdout) or test is not None:
            raise InvalidDataError(
                "candidates= is a function of a Holdout, but the parts are given separately. Pass "
                "a Holdout, its test part included, or candidates for all parts"
            )
        among = candidates(train), None if train.test is None else candidates(train.for_test())
    if isinstance(train, Holdout) and test is None:
        test = train.test
    parts, held_out, requested = split_arguments(train, validation, metrics)
    search = Search(
        requested,
        space or {},
        n_trials=n_trials,
        sampler=sampler,
        pruner=pruner,
        patience=patience,
        monitor=monitor,
        among=candidates is not None,
        seed=seed,
    )
    return search.run(parts, held_out, test, among, out, progress)


class Tuning(NamedTuple):
    """The result of a search, as `tune` returns it. Printed, a table.

    Attributes
    ----------
    trials : pandas.DataFrame
        One row per finished trial. First ``trial``, its number in the study; ``best``, true for at
        most one trial; ``status``, "ok", "pruned" or "failed"; ``error``, empty or the reason in
        one line. Then ``factors``, ``alpha``, ``regularization`` and ``iterations``;
        ``best_iteration``, the number of iterations after which the monitored metric was best. Each
        metric follows, on the validation part at that point, NaN if the trial failed, called
        ``hit_rate@10 (1+99)`` and the like among candidates. The last is ``seconds``, its duration.
    best : dict or None
        The options of `train_als` that reproduce the model of the best trial: its parameters, with
        ``iterations`` its best iteration, and ``seed``. None if no trial finished.
    test : Evaluation or None
        The test of the best trial. None without a test part.
    study : optuna.Study
        The study, such as for ``optuna.visualization``. The metrics of a trial are among its
        ``user_attrs``.
    """

    trials: pd.DataFrame
    best: dict[str, Any] | None
    test: Evaluation | None
    study: optuna.Study

    def scores(self) -> pd.DataFrame:
        """Return the metrics of the best trial: ``metric``, ``validation`` and ``test``.

        Empty without a test.
        """
        import pandas as pd

        rows = []
        if self.test is not None:
            best = self.trials[self.trials["best"]].iloc[0]
            names = {name: self.test._shown(name) for name in self.test.names}
            rows = [(shown, float(best[shown]), self.test[name]) for name, shown in names.items()]
        return pd.DataFrame(rows, columns=["metric", "validation", "test"])

    def to_markdown(self) -> str:
        """Return the table of ``print(tuning)`` as Markdown, with all trials."""
        return self._show("pipe", len(self.trials))

    def __repr__(self) -> str:
        return f"<{self._heading()}>\n{self._show('simple', MOST_ROWS)}"

    def __str__(self) -> str:
        return self._show("simple", len(self.trials))

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._heading())}</p>{self._show('html', MOST_ROWS)}"

    def _heading(self) -> str:
        counts = self.trials["status"].value_counts()
        states = ", ".join(f"{n:,} {status}" for status, n in counts.items()) or "none finished"
        return f"Tuning of {len(self.trials):,} trial{'s' * (len(self.trials) != 1)}: {states}"

    def _show(self, style: str, most: int) -> str:
        """Return the trials, the metrics of the best one, and a line about each."""
        trials = self.trials
        ok, failed = (trials["status"] == "ok").all(), (trials["status"] == "failed").any()
        shown = trials.assign(
            best=["*" if best else "" for best in trials["best"]],
            alpha=[f"{value:g}" for value in trials["alpha"]],
            regularization=[f"{value:g}" for value in trials["regularization"]],
            seconds=[f"{value:.1f}" for value in trials["seconds"]],
        ).drop(columns=["status"] * bool(ok) + ["error"] * (not failed))
        texts = [text_of_frame(shown.head(most), style)]
        lines = []
        if len(trials) > most:
            lines.append(f"… and {len(trials) - most:,} more trials: .trials")
        if self.best is not None:
            number_of_best = trials.loc[trials["best"], "trial"].iloc[0]
            parameters = ", ".join(f"{name} {value:g}" for name, value in self.best.items())
            lines.append(f"best: trial {number_of_best} ({parameters})")
        if self.test is not None:
            texts.append(text_of_frame(self.scores(), style))
            lines.append(
                f"test: trained again on train and validation; means over {self.test.n_users:,} "
                f"users, {self.test.n_skipped:,} left out (nothing relevant)"
            )
        if style == "html":
            return "".join([*texts, *(f"<p>{html.escape(line)}</p>" for line in lines)])
        return "\n\n".join([*texts, "\n".join(lines)]).rstrip()


@dataclass(kw_only=True)
class Search:
    """The settings of a search, validated before there are data.

    Parameters are as in `tune`; `among` is whether there will be candidates.

    Attributes
    ----------
    study : optuna.Study or None
        The study, once there is one.
    """

    metrics: MetricsLike = field(kw_only=False)
    space: Mapping[str, Any] = field(kw_only=False)
    n_trials: int | None = None
    sampler: SamplerLike | None = None
    pruner: BasePruner | None = None
    patience: int | None = None
    monitor: str | Metric | None = None
    among: bool = False
    seed: int = 0
    study: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        try:
            from optuna.samplers import BaseSampler
        except ImportError:
            raise MissingExtraError('tune needs Optuna: pip install "sparse_eval[tune]"') from None
        self.metrics = Protocol.of(self.metrics)
        self._request, self._monitor = parse_monitored(self.metrics, self.monitor, among=self.among)
        if self.patience is not None:
            check_whole("patience", self.patience, 1)
        check_whole("seed", self.seed, 0)
        if not isinstance(self.sampler, BaseSampler | None):
            check_choice("sampler", self.sampler, ("tpe", "random"))
        for name in self.space:
            if name not in PARAMETERS:
                raise InvalidDataError(f"space has {name!r}; expected {', '.join(PARAMETERS)}")
        self.space = {
            name: _distribution(name, self.space.get(name, default))
            for name, default in PARAMETERS.items()
        }
        #: All combinations, the last parameter changing fastest, or `n_trials` of them at random. A
        #: larger `n_trials` begins with the same ones. Empty if a sampler suggests trials.
        self._grid: list[dict[str, Any]] = []
        ranged = [name for name, values in self.space.items() if not hasattr(values, "choices")]
        if self.n_trials is None and (ranged or self.sampler is not None):
            what, other = "sampler is given", "omit it to try the whole grid"
            if ranged:
                what, other = f"{ranged[0]} is a range", "list the values of a grid"
            raise InvalidDataError(
                f"{what}; set the number of trials with n_trials=, or {other}", argument="n_trials"
            )
        if self.sampler is None and not ranged:
            choices = [values.choices for values in self.space.values()]
            self._grid = [dict(zip(self.space, one, strict=True)) for one in product(*choices)]
        if self._grid and self.n_trials is not None:
            check_whole("n_trials", self.n_trials, 1, len(self._grid))
            order = np.random.default_rng(self.seed).permutation(len(self._grid))
            self._grid = [self._grid[i] for i in order[: self.n_trials]]
        self._n_trials = check_whole("n_trials", self.n_trials or len(self._grid), 1)

    def run(
        self,
        train: TrainLike,
        validation: TrainLike,
        test: TrainLike | None,
        candidates: tuple[CandidatesLike | None, CandidatesLike | None],
        out: PathLike | None,
        progress: bool | None,
    ) -> Tuning:
        """Run the missing trials, then the test; `candidates` belong to the two parts."""
        self._callback = callback = EvaluationCallback(
            train,
            None if isinstance(train, Holdout) else validation,  # it has its own
            self.metrics,
            patience=self.patience,
            monitor=self.monitor,
            candidates=candidates[0],
            log=self._report,
            log_errors="raise",
        )
        scoring, tested = callback.scoring, None
        if test is not None:
            tested = Scoring.of(scoring.train, test, self._request, candidates[1], "test")
        if out is not None:
            id_arrays(*labels_of(scoring.matrix))  # raises now, not after hours
        sampler = "grid" if self._grid else self.sampler or "tpe"
        settings = scoring.inputs | {  # all that determines the values of trials
            "monitor": str(self._monitor),
            "patience": self.patience,
            **{name: str(values) for name, values in self.space.items()},
            "sampler": sampler if isinstance(sampler, str) else type(sampler).__name__,
            "seed": self.seed,
        }
        with Ledger.opened(out, JOB, settings, (STUDY, _MODEL, f"{_TEST}/{SUMMARY}")) as ledger:
            path = None if ledger.path is None else ledger.path.with_name(STUDY)
            try:
                self._open(path)
                self._run_trials(progress)
            except OSError as error:
                reason = error.strerror or error
                raise OutputError(f"{shown(path)}: cannot be written: {reason}") from error
            tuning, best = self.so_far(), self._best()
            if best is None:
                return tuning
            iterations = best.user_attrs["best_iteration"]
            chosen = {**best.params, "iterations": iterations, "seed": self.seed}
            ev = None
            if tested is not None:
                about = {"trial": best.number, "parameters": chosen}
                ev = self._test(about, tested, ledger, progress)
            return tuning._replace(best=chosen, test=ev)

    def so_far(self) -> Tuning:
        """Return the finished trials, without a test."""
        import pandas as pd

        best, names = self._best(), list(self._callback.scoring.names.values())
        rows = [
            {
                "trial": trial.number,
                "best": best is not None and trial.number == best.number,
                "status": {"COMPLETE": "ok", "PRUNED": "pruned"}.get(trial.state.name, "failed"),
                "error": trial.user_attrs.get("error", ""),
                **{name: trial.params[name] for name in PARAMETERS},
                "best_iteration": trial.user_attrs.get("best_iteration"),
                **trial.user_attrs.get("metrics", {}),
                "seconds": trial.duration.total_seconds() if trial.duration else math.nan,
            }
            for trial in self._finished()
        ]
        columns = ["trial", "best", "status", "error", *PARAMETERS, "best_iteration", *names]
        types = {"best_iteration": "Int64", **dict.fromkeys(names, "float64")}
        frame = pd.DataFrame(rows, columns=[*columns, "seconds"]).astype(types)
        return Tuning(frame, None, None, self.study)

    def _open(self, path: Path | None) -> None:
        """Open the study, in memory or in a journal."""
        import optuna
        from optuna.pruners import MedianPruner
        from optuna.storages import InMemoryStorage, JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        storage: Any = InMemoryStorage()
        logger = logging.getLogger("optuna")
        level = logger.level
        logger.setLevel(max(level, logging.WARNING))  # that a study was made need not be said
        try:
            if path is not None:
                path.touch()
                _end_journal(path)
                # The ledger lets only one process in, so a lock found here is that of a killed one.
                lock = JournalFileOpenLock(str(path), grace_period=3)
                storage = JournalStorage(JournalFileBackend(str(path), lock))
            self.study = optuna.create_study(
                study_name="tune",
                storage=storage,
                direction="maximize" if self._monitor.definition.higher_is_better else "minimize",
                pruner=self.pruner or MedianPruner(n_warmup_steps=_WARM_UP),
                load_if_exists=True,
            )
            for trial in self._finished():
                if not trial.params.keys() >= {*PARAMETERS}:
                    raise ValueError(f"trial {trial.number} lacks parameters")
        except _DAMAGE as error:
            raise InvalidFileError(_FOREIGN, path) from error
        finally:
            logger.setLevel(level)

    def _run_trials(self, progress: bool | None) -> None:
        from optuna.trial import TrialState

        for lost in self.study.get_trials(states=(TrialState.RUNNING,)):
            self.study.tell(lost.number, state=TrialState.FAIL)
        with progress_bar(progress, total=self._n_trials, desc="tune", unit=" trials") as bar:
            while True:
                n_finished = len(self._finished())
                bar.update(min(n_finished, self._n_trials) - bar.n)
                if best := self._best():
                    value = f"{best.values[0]:.4f}"
                    shown = {"best trial": best.number, str(self._monitor): value}
                    bar.set_postfix(shown, refresh=False)
                if n_finished >= self._n_trials:
                    return
                self._run_trial(n_finished)

    def _run_trial(self, n_finished: int) -> None:
        """Train the next trial, of the grid or as the sampler suggests, and tell its outcome.

        Each trial has a sampler with its own seed, so that a search that continues samples what it
        would have sampled.
        """
        from optuna import TrialPruned
        from optuna.samplers import BaseSampler, RandomSampler, TPESampler
        from optuna.trial import TrialState

        if isinstance(self.sampler, BaseSampler):
            self.study.sampler = self.sampler
        else:
            kind = RandomSampler if self.sampler == "random" else TPESampler
            seed = np.random.SeedSequence((self.seed, n_finished)).generate_state(1)[0]
            self.study.sampler = kind(seed=int(seed))
        known = [trial.params for trial in self._known()]
        if self._grid and not self.study.get_trials(states=(TrialState.WAITING,)):
            # In the order of the grid, also what was lost.
            self.study.enqueue_trial(next(one for one in self._grid if one not in known))
        self._trial = trial = self.study.ask(self.space)
        callback, outcome = self._callback, TrialState.COMPLETE
        options = {**trial.params, "seed": self.seed, "progress": False}
        try:
            try:
                train_als(callback.scoring.matrix, **options, callback=callback)
            except TrialPruned:
                outcome = TrialState.PRUNED
            if callback.best_iteration is None:
                raise InvalidMetricError(
                    f"{callback.monitored} is undefined for all users, so the best iteration "
                    "is unknown; monitor another metric"
                )
        except (SparseEvalError, MemoryError) as error:
            reason = " ".join(str(error).split()) or "there is not enough memory"
            trial.set_user_attr("error", reason)
            self.study.tell(trial, state=TrialState.FAIL)
            return
        names = list(callback.scoring.names.values())
        best = callback.history.loc[callback.best_iteration, names].astype(float).to_dict()
        trial.set_user_attr("best_iteration", callback.best_iteration)
        trial.set_user_attr("metrics", best)
        value = best[callback.monitored] if outcome == TrialState.COMPLETE else None
        self.study.tell(trial, value, state=outcome)

    def _report(self, values: dict[str, float], iteration: int) -> None:
        from optuna import TrialPruned

        value = values[self._callback.monitored]
        if not math.isnan(value):
            self._trial.report(value, iteration - 1)  # pruners count from 0
        if self._trial.should_prune():
            raise TrialPruned

    def _known(self) -> list[FrozenTrial]:
        """Return the trials except lost ones; a failed trial has a reason."""
        return [
            trial
            for trial in self.study.get_trials(deepcopy=False)
            if trial.state.name != "FAIL" or "error" in trial.user_attrs
        ]

    def _finished(self) -> list[FrozenTrial]:
        return [trial for trial in self._known() if trial.state.is_finished()]

    def _best(self) -> FrozenTrial | None:
        """Return the best finished trial, the first of equal ones."""
        complete = (trial for trial in self._known() if trial.state.name == "COMPLETE")
        return best_of(complete, self._monitor, lambda trial: trial.values[0])

    def _test(
        self, about: Row, scoring: Scoring, ledger: Ledger, progress: bool | None
    ) -> Evaluation:
        """Train the model of the best trial on train and validation, and score the test part.

        A finished test of that model is not repeated.
        """
        digests = scoring.inputs
        digests = {"test": digests["validation"], "test_candidates": digests["candidates"]}
        about = about | digests
        if _TEST in ledger.rows:
            ledger.check(_TEST, digests)
            if about.items() <= ledger.rows[_TEST].items():
                with suppress(InvalidFileError):  # or it is repeated
                    return ledger.evaluation(_TEST)
        if isinstance(scoring.train, Holdout):
            together: Any = scoring.train.for_test()
        else:
            validated = self._callback.scoring.relevance
            together = add_sides(match_sides(None, scoring.train, validated))
        scoring = scoring._replace(train=together)
        model = train_als(scoring.matrix, **about["parameters"], progress=progress)
        ev = scoring.evaluate(model, Execution(progress=progress))
        if ledger.path is not None:
            with saving_model(model, ledger.path.with_name(_MODEL)):
                of_another = ledger.path.with_name(_TEST) / SUMMARY
                of_another.unlink(missing_ok=True)
            ledger.append(_TEST, **about, saved=ledger.save(_TEST, ev._savable(), about))
        return ev


def _end_journal(path: Path) -> None:
    """End a journal of Optuna where a full disk cut its last line off; raise if it is none."""
    *lines, rest = path.read_bytes().split(b"\n")
    codes = [json.loads(line)["op_code"] for line in lines]
    if codes and codes[0] != 0:  # the first one creates the study
        raise ValueError(_FOREIGN)
    if rest:
        os.truncate(path, path.stat().st_size - len(rest))


def _distribution(name: str, searched: Any) -> Any:
    """Return the distribution of a parameter, or raise `InvalidDataError` that names it."""
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    def read(value: Any) -> Any:
        if isinstance(value, str):
            kind, label = (int, "whole number") if name in WHOLE else (float, "number")
            try:
                value = kind(value)
            except ValueError:
                raise InvalidDataError(
                    f"{name}: {value!r} is not a {label}; expected one, several as in 10,20,40, or "
                    "a range as in 10:40",
                    argument=name,
                ) from None
        return check_parameter(name, value)

    if isinstance(searched, str) and ":" in searched:
        ends = list(map(read, searched.split(":")))
        if len(ends) != 2 or not 0 < ends[0] < ends[1]:
            raise InvalidDataError(
                f"{name}: expected a range LOW:HIGH, log-uniform, with LOW above 0 and below HIGH, "
                f"or a distribution of Optuna, found {searched!r}",
                argument=name,
            )
        kind = IntDistribution if name in WHOLE else FloatDistribution
        return kind(low=ends[0], high=ends[1], log=True)
    if isinstance(searched, BaseDistribution) and not hasattr(searched, "choices"):
        return searched
    given = getattr(searched, "choices", searched)
    given = given.split(",") if isinstance(given, str) else given
    given = given if isinstance(given, Iterable) else [given]
    return CategoricalDistribution([*dict.fromkeys(map(read, given))])
