"""Search ALS's hyperparameters: trials on a validation part, and one test of the best.

The search is a study of Optuna. What is done here ties its trials to the parts of a split.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..core.arguments import check_choice, check_whole
from ..core.bars import tqdm
from ..core.files import remove
from ..core.progress import display
from ..core.removed import removed
from ..core.versions import NUMBERS_VERSION
from ..datasets.split.holdout import Holdout
from ..errors import (
    InvalidDataError,
    InvalidFileError,
    InvalidMetricError,
    MissingExtraError,
    SparseEvalError,
)
from ..inputs.labelled import labels_of
from ..metrics.protocol import Protocol
from ..models.checkpoints import saving_model
from ..models.evaluate import evaluate_request
from ..models.identifiers import id_arrays
from ..models.inputs import NewUsers, digest_of, open_held_out, split_arguments, training_matrix
from ..models.matching import add_sides, match_sides
from ..models.shared_candidates import SharedCandidates, share_candidates
from ..results.saving import SUMMARY
from .callback import EvaluationCallback, parse_monitored, signed_score
from .ledger import Ledger
from .search_space import PARAMETERS, read_grid, read_space
from .study import STUDY, Study
from .train import train_als
from .tuning import Tuning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial

    from ..core.types import CSRMatrix, PathLike
    from ..inputs.relevance import Relevance
    from ..metrics import Metric
    from ..metrics.protocol import MetricsLike
    from ..models.inputs import CandidatesLike, TrainLike
    from ..models.shared_candidates import CandidatesOfSplit
    from ..results import Evaluation
    from .search_space import Searched

#: How trials are sampled.
SamplerLike: TypeAlias = "Literal['tpe', 'random'] | BaseSampler"

#: The kind of job, after which the file of its ledger is named; the files of a test.
JOB, _MODEL, _TEST = "tune", "model.npz", "test"

#: Iterations before a trial may be pruned.
_WARM_UP = 3


@removed(
    "corrected",
    "judged_only",
    "seen",
    **{name: f"space={{{name!r}: …}}" for name in PARAMETERS},
)
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
        ``tune(holdout, metrics)`` stands for the parts of a `Holdout`, its test part included.
    validation : as `train`, or Relevance
        The held-out gains by which trials are compared, matched by id, or padded without ids.
    metrics : str, Metric, iterable of them, or Protocol
        As for `evaluate_model`.
    space : mapping of str to number, iterable of numbers, str or distribution, optional
        The values of ``factors``, ``alpha``, ``regularization`` and ``iterations`` to try: one
        value; several, as a list or as text like ``"16,32,64"``; a log-uniform range like
        ``"16:128"``, both ends included; or a distribution of Optuna. Parameters that are not in
        it have the default of `train_als`.
    n_trials : int, optional
        The number of trials in all. By default the grid of all combinations is tried; ranges need
        a number.
    sampler : {"tpe", "random"} or optuna.samplers.BaseSampler, optional
        By default lists of values are a grid, of which `n_trials` are drawn at random, none twice;
        with a range it is "tpe", Optuna's ``TPESampler``, which learns from the trials before. A
        sampler of your own that has a seed samples the same again when a search continues.
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
        As in `evaluate_model`. `candidates` are for the validation and the test part alike, or a
        function of a `Holdout` that returns them: it is called with the split in `train`, and for
        the test with its `Holdout.for_test`.
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
        If `space` has another parameter, no value of one, or a value that `train_als` refuses; a
        range without
        `n_trials`; fewer combinations than `n_trials`; an option out of range; a matrix that
        cannot be used; or sampled candidates without the held-out items of both parts.
    InvalidMetricError
        If a metric is unknown or needs an input that is not given here, or `monitor` is not among
        the metrics.
    InvalidFileError
        If `out` belongs to another search or other data. It is left as it is.
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
    of_validation: Any = candidates
    of_test: Any = candidates
    if callable(candidates):
        if not isinstance(train, Holdout) or test is not None:
            raise InvalidDataError(
                "candidates= is a function of a Holdout, and the parts are given one by one; give "
                "a Holdout, its test part included, or candidates for all parts"
            )
        of_validation = candidates(train)
        of_test = None if train.test is None else candidates(train.for_test())
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
    return search.run(parts, held_out, test, (of_validation, of_test), out, progress)


class Search:
    """The settings of a search, validated before there are data.

    The parameters are those of `tune`, and `among`, whether there will be candidates.

    Attributes
    ----------
    so_far : callable or None
        Returns the finished trials, once there is a study.
    """

    so_far: Callable[[], Tuning] | None = None

    def __init__(
        self,
        metrics: MetricsLike,
        space: Mapping[str, Searched],
        *,
        n_trials: int | None = None,
        sampler: SamplerLike | None = None,
        pruner: BasePruner | None = None,
        patience: int | None = None,
        monitor: str | Metric | None = None,
        among: bool = False,
        seed: int = 0,
    ) -> None:
        try:
            from optuna.pruners import MedianPruner
            from optuna.samplers import BaseSampler
        except ImportError:
            raise MissingExtraError('tune needs Optuna: pip install "sparse_eval[tune]"') from None
        self.protocol = Protocol.of(metrics)
        self.request, self.monitor = parse_monitored(self.protocol, monitor, among=among)
        self.patience = None if patience is None else check_whole("patience", patience, 1)
        self.seed = check_whole("seed", seed, 0)
        self.pruner = MedianPruner(n_warmup_steps=_WARM_UP) if pruner is None else pruner
        self.sampler = sampler
        if not isinstance(sampler, BaseSampler | None):
            check_choice("sampler", sampler, ("tpe", "random"))
        self.space = read_space(space)
        self.grid: list[dict[str, float]] = []
        ranged = any(not hasattr(values, "choices") for values in self.space.values())
        if sampler is None and (n_trials is None or not ranged):
            self.grid = read_grid(self.space, n_trials, self.seed)
            n_trials = len(self.grid)
        self.n_trials = check_whole("n_trials", n_trials, 1)

    def run(
        self,
        train: TrainLike,
        validation: TrainLike,
        test: TrainLike | None,
        candidates: tuple[CandidatesLike | None, CandidatesLike | None],
        out: PathLike | None,
        progress: bool | None,
    ) -> Tuning:
        """Run the missing trials, then the test; `candidates` are those of both parts."""
        new_users = train if isinstance(train, NewUsers) else None
        matrix = training_matrix(train if new_users is None else new_users.train)
        parts = matrix if new_users is None else new_users
        held_out = open_held_out(validation)
        known = matrix if new_users is None else new_users.seen
        among = share_candidates(candidates[0], known, held_out, self.request)
        objective = _Objective(self, parts, matrix, held_out, among)
        truth, among_test = None, SharedCandidates()
        if test is not None:
            truth, names = open_held_out(test, "test"), ("train", "test")
            among_test = share_candidates(candidates[1], known, truth, self.request, names)
        if out is not None:
            id_arrays(*labels_of(matrix))  # refuses what could not be saved hours later
        sampler = "grid" if self.grid else self.sampler or "tpe"
        settings = {  # all that determines the values of trials
            "numbers": NUMBERS_VERSION,
            "train": digest_of(parts),
            "validation": digest_of(held_out),
            "candidates": among.digest,
            "metrics": list(self.request.names),
            "monitor": str(self.monitor),
            "convention": self.request.rules,
            "seen": self.request.seen,
            "judged_only": self.request.judged_only,
            "patience": self.patience,
            **{name: str(values) for name, values in self.space.items()},
            "sampler": sampler if isinstance(sampler, str) else type(sampler).__name__,
            "seed": self.seed,
        }
        with Ledger.opened(out, JOB, settings, (STUDY, _MODEL, f"{_TEST}/{SUMMARY}")) as ledger:
            direction = "maximize" if self.monitor.definition.higher_is_better else "minimize"
            study = Study(ledger.path and ledger.path.parent, direction, self.pruner)
            self.so_far = partial(self._tuning, study, objective.names)
            self._run_trials(study, objective, progress)
            tuning, best = self.so_far(), self._best(study.finished())
            if best is None:
                return tuning
            chosen = {
                **best.params,
                "iterations": best.user_attrs["best_iteration"],
                "seed": self.seed,
            }
            if truth is None:
                return tuning._replace(best=chosen)
            about = {
                "trial": best.number,
                "parameters": chosen,
                "test": digest_of(truth),
                "test_candidates": among_test.digest,
            }
            together = (
                add_sides(match_sides(None, matrix, held_out))
                if new_users is None
                else NewUsers(new_users.holdout.for_test())
            )
            ev = self._test(about, together, truth, among_test, ledger, progress)
            return tuning._replace(best=chosen, test=ev)

    def _tuning(self, study: Study, names: list[str]) -> Tuning:
        """Return the finished trials, without a test."""
        trials = study.finished()
        return Tuning(_frame(trials, self._best(trials), names), None, None, study.study)

    def _run_trials(self, study: Study, objective: _Objective, progress: bool | None) -> None:
        with tqdm(total=self.n_trials, desc="tune", unit=" trials", **display(progress)) as bar:

            def show() -> None:
                trials = study.finished()
                bar.update(min(len(trials), self.n_trials) - bar.n)
                if best := self._best(trials):
                    value = f"{best.values[0]:.4f}"
                    bar.set_postfix({"best trial": best.number, str(self.monitor): value})

            show()
            for trial in study.start_trials(self.n_trials, self.space, self.grid, self._sampler_of):
                with study.written():
                    study.study.tell(trial, **objective.run(trial))
                show()

    def _sampler_of(self, index: int) -> BaseSampler:
        """Return the sampler of a trial.

        Each has a seed of its own, so that a search that continues samples what it would have
        sampled.
        """
        from optuna.samplers import BaseSampler, RandomSampler, TPESampler

        if isinstance(self.sampler, BaseSampler):
            return self.sampler
        kind = RandomSampler if self.sampler == "random" else TPESampler
        return kind(seed=int(np.random.SeedSequence((self.seed, index)).generate_state(1)[0]))

    def _best(self, trials: list[FrozenTrial]) -> FrozenTrial | None:
        """Return the best of the trials that came to their end, the first of equal ones."""
        return max(
            (trial for trial in trials if trial.state.name == "COMPLETE"),
            key=lambda trial: signed_score(self.monitor, trial.values[0]),
            default=None,
        )

    def _test(
        self,
        about: Mapping[str, Any],
        train: CSRMatrix | NewUsers,
        truth: Relevance,
        among: SharedCandidates,
        ledger: Ledger,
        progress: bool | None,
    ) -> Evaluation:
        """Train the model of the best trial on train and validation, and score the test part.

        A finished test of that model is not repeated.
        """
        if _TEST in ledger.rows:
            ledger.check(_TEST, {name: about[name] for name in ("test", "test_candidates")})
            if about.items() <= ledger.rows[_TEST].items():
                with suppress(InvalidFileError):  # or it is repeated
                    return ledger.evaluation(_TEST)
        matrix = train.train if isinstance(train, NewUsers) else train
        model = train_als(matrix, **about["parameters"], progress=progress)
        request = among.corrected(self.request)
        ev = evaluate_request(request, model, train, truth, among.inputs, progress=progress)
        if ledger.path is not None:
            with saving_model(model, ledger.path.with_name(_MODEL)):
                remove(ledger.path.with_name(_TEST) / SUMMARY)  # of another model
            ledger.append(_TEST, **about, saved=ledger.save(_TEST, ev._savable(), about))
        return ev


def _frame(trials: list[FrozenTrial], best: FrozenTrial | None, names: list[str]) -> pd.DataFrame:
    """Return the table of `Tuning`."""
    import pandas as pd

    rows = [
        {
            "trial": trial.number,
            "best": trial is best,
            "status": {"COMPLETE": "ok", "PRUNED": "pruned", "FAIL": "failed"}[trial.state.name],
            "error": trial.user_attrs.get("error", ""),
            **{name: trial.params[name] for name in PARAMETERS},
            "best_iteration": trial.user_attrs.get("best_iteration"),
            **trial.user_attrs.get("metrics", {}),
            "seconds": trial.duration.total_seconds() if trial.duration else math.nan,
        }
        for trial in trials
    ]
    columns = ["trial", "best", "status", "error", *PARAMETERS, "best_iteration", *names, "seconds"]
    types = {"best_iteration": "Int64", **dict.fromkeys(names, "float64")}
    return pd.DataFrame(rows, columns=columns).astype(types)


class _Objective:
    """The training of a trial, evaluated and reported to Optuna after every iteration."""

    def __init__(
        self,
        search: Search,
        parts: CSRMatrix | NewUsers,
        train: CSRMatrix,
        held_out: Relevance,
        among: SharedCandidates,
    ) -> None:
        names = among.names(among.corrected(search.request))
        self.names = list(names.values())
        self._monitored = names[str(search.monitor)]
        self._train, self._seed = train, search.seed
        self._trial: Any = None
        self._callback = EvaluationCallback(
            parts,
            held_out,
            search.protocol,
            patience=search.patience,
            monitor=search.monitor,
            candidates=among.candidates,
            log=self._report,
        )

    def run(self, trial: Trial) -> dict[str, Any]:
        """Return what to tell the study of a trial, and note its other values."""
        from optuna import TrialPruned
        from optuna.trial import TrialState

        self._trial, pruned, callback = trial, False, self._callback
        options = {**trial.params, "seed": self._seed, "progress": False}
        try:
            try:
                train_als(self._train, **options, callback=callback)
            except TrialPruned:
                pruned = True
            if callback.best_iteration is None:
                raise InvalidMetricError(
                    f"{self._monitored} is defined for no user, so nothing says which iteration "
                    "is best; monitor another metric"
                )
        except (SparseEvalError, MemoryError) as error:
            reason = " ".join(str(error).split()) or "there is not enough memory"
            trial.set_user_attr("error", reason)
            return {"state": TrialState.FAIL}
        best = callback.history.loc[callback.best_iteration, self.names].astype(float).to_dict()
        trial.set_user_attr("best_iteration", callback.best_iteration)
        trial.set_user_attr("metrics", best)
        return {"state": TrialState.PRUNED} if pruned else {"values": best[self._monitored]}

    def _report(self, values: dict[str, float], iteration: int) -> None:
        from optuna import TrialPruned

        if not math.isnan(values[self._monitored]):
            self._trial.report(values[self._monitored], iteration - 1)  # pruners count from 0
        if self._trial.should_prune():
            raise TrialPruned
