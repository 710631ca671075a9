"""Evaluate several models on several splits with several seeds, in a folder that can be resumed.

The ledger of the folder, ``cross_validation.jsonl`` (see `sparse_eval.jobs.ledger`), has the
settings; a row for each fold, ``fold 1``, with digests and sizes of its parts; one for each run,
``MODEL, fold F, seed S``, added when its evaluation is saved in the folder
``MODEL-fold-F-seed-S``; and ``finished`` at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from ..core.arguments import check_whole
from ..core.bars import tqdm
from ..core.mistaken import describe
from ..core.printable import printable
from ..core.progress import display
from ..core.versions import NUMBERS_VERSION, library_versions
from ..datasets.split import k_fold
from ..datasets.split.holdout import Holdout
from ..datasets.times import time_text
from ..errors import InvalidDataError, InvalidFileError, SparseEvalError
from ..evaluation.runners import Execution
from ..metrics.request import Protocol
from ..models.evaluate import evaluate_request, parse_cut_request
from ..models.identifiers import without_warning
from ..models.inputs import (
    Shared,
    digest_of,
    open_held_out,
    open_train,
    share_candidates,
    training_part,
)
from ..results.runs import Fold, RunValues
from ..results.saving import SUMMARY
from .cross_validation import FINISHED, JOB, CrossValidation, runs_of_fold
from .ledger import Ledger
from .trainers import read_trainers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.types import PathLike, SparseInput
    from ..datasets import Interactions
    from ..evaluation.runners import ClientLike
    from ..metrics.request import MetricsLike, Request
    from ..models.inputs import CandidatesOfSplit
    from ..results import Evaluation
    from ..results.runs import Run
    from .trainers import TrainerLike

#: Splits, or a function of the interactions that makes them.
SplitsLike: TypeAlias = "Iterable[Holdout] | Callable[..., Iterable[Holdout] | Holdout]"

#: Longest name of a model as part of a folder's, which file systems allow 255 bytes for.
_MAX_NAME = 180


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
        What `splits` divides. With splits that are made already it may be None.
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
        A number of seeds, 0, 1, 2 and so on, or the seeds themselves. They are those of the first
        split; each other split has others, as many further on as these span (3, 4, 5; 6, 7, 8),
        because models of the same seed start alike and would err alike on all splits.
    out : str or Path, optional
        A folder, created if missing, for the evaluation of each run and their ledger,
        ``cross_validation.jsonl``. The same call continues from it, to the same bits if trainings
        are reproducible; other data, splits, models, metrics or versions raise an error.
        `CrossValidation.load` reads it when it is finished. One process at a time may use it.
    convention, memory, client, num_threads
        As in `evaluate_model`.
    candidates : as for `evaluate_model`, or callable, optional
        Candidates for all splits alike, or a function of a `Holdout` that returns those of the
        split, as ``lambda holdout: se.sample_negatives(holdout, n=99)``, once for all models and
        seeds.
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
        If a model is none of these, a split is no `Holdout`, holds nothing out or is of other
        users and items than the first, there is no split, or a seed is no whole number or there
        twice; or if candidates that are sampled beside the held-out items of one split are given
        for all.
    InvalidMetricError
        As from `evaluate_model`.
    InvalidFileError
        If `out` belongs to another cross-validation, or its ledger is damaged. It is left as it
        is.
    OutputError
        If `out` cannot be written, or another process writes there.
    SparseEvalError
        What trainings and evaluations raise passes through, with a note on which one it was.

    See Also
    --------
    tune : Search for hyperparameters on one split.
    CrossValidation.summary : How values are pooled, with references.

    Notes
    -----
    Functions are known again by their names and by what is written in them, including the numbers
    that they refer to, but not by what the functions do that they call: if such a function
    changes, choose another folder. BPR of `implicit` is reproducible with ``num_threads=1`` only.

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
    inputs = {"train"} if candidates is None else {"train", "candidates"}
    request = parse_cut_request(Protocol.of(metrics, convention), inputs)
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
    if out is not None:
        for name in trainers:
            _quoted(name)  # refused before anything is written
    folds: list[Fold] = []
    values: dict[Run, RunValues] = {}
    earlier = ("cross_validation.json", f"*-fold-*/{SUMMARY}")
    with (
        Ledger.opened(out, JOB, settings, earlier) as ledger,
        tqdm(desc="cross-validate", unit=" runs", **display(progress)) as bar,
    ):
        for holdout in _make_splits(interactions, splits):
            among = _share(candidates, holdout, request, len(folds) + 1)
            fold = Fold(
                digest_of(training_part(holdout)),
                digest_of(holdout.validation),
                holdout.train.nnz,
                holdout.validation.nnz,
                None if holdout.cut is None else time_text(holdout.cut),
                among.digest,
            )
            folds.append(fold)
            _begin(ledger, len(folds), fold)
            for run in runs_of_fold(len(folds), trainers, chosen):
                bar.set_postfix_str(printable(run.name))
                place = None if out is None else folder_name(run)
                evaluation = _finished(ledger, run)
                if evaluation is None:
                    try:
                        model = trainers[run.model].train(holdout.train, run.seed)
                        with without_warning():  # it was trained on this part
                            evaluation = evaluate_request(
                                among.request,
                                model,
                                training_part(holdout),
                                holdout.validation,
                                among.inputs,
                                Execution("values", memory, client, num_threads, False),
                            )
                    except SparseEvalError as error:
                        error.add_note(f"This is about {run.name}.")
                        raise
                    if place is not None:
                        about = run._asdict() | {"parameters": trainers[run.model].identity}
                        about |= {"train": fold.train, "validation": fold.validation}
                        saved = ledger.save(place, evaluation._savable(), about)
                        ledger.append(run.name, saved=saved)
                values[run] = RunValues.of(evaluation)
                bar.update()
        if not folds:
            raise InvalidDataError("splits: there are none; give at least one Holdout")
        if FINISHED not in ledger.rows:
            ledger.append(FINISHED, folds=len(folds))
        ledger.check(FINISHED, {"folds": len(folds)})
    return CrossValidation(among.request, folds, values)


def _begin(ledger: Ledger, number: int, fold: Fold) -> None:
    """Add a fold, or raise `InvalidFileError` if another one has its number."""
    slot = f"fold {number}"
    if slot in ledger.rows:
        ledger.check(slot, fold._asdict())
    elif FINISHED in ledger.rows:
        ledger.check(FINISHED, {"folds": f"{number} or more"})
    else:
        ledger.append(slot, **fold._asdict())


def _finished(ledger: Ledger, run: Run) -> Evaluation | None:
    """Return the evaluation of a run, if it is there; a damaged one is computed again."""
    try:
        return ledger.evaluation(run.name)
    except InvalidFileError:
        return None


def folder_name(run: Run) -> str:
    """Return the name of the folder of a run, which no other run has."""
    return f"{_quoted(run.model)}-fold-{run.fold}-seed-{run.seed}"


def _quoted(model: str) -> str:
    """Return the name of a model as part of a file's name, or raise `InvalidDataError`."""
    name = quote(model, safe=" +,=()")
    if not 0 < len(name) <= _MAX_NAME:
        raise InvalidDataError(
            f"models: the name {model[:60]!r} of {len(model):,} characters cannot be part of a "
            "file's name; give a shorter one, and not an empty one"
        )
    return name


def _make_splits(interactions: Any, splits: Any) -> Iterator[Holdout]:
    """Yield the splits, one at a time, or raise `InvalidDataError`."""
    made = splits(interactions) if callable(splits) else splits
    if isinstance(made, Holdout):
        made = [made]
    if not isinstance(made, Iterable):
        raise InvalidDataError(
            f"splits is {describe(made)}; expected Holdouts, as se.split.k_fold(clicks) makes "
            "them, or a function of the interactions that makes them, as se.split.k_fold"
        )
    first = None
    for number, holdout in enumerate(made, start=1):
        if not isinstance(holdout, Holdout):
            raise InvalidDataError(f"splits: number {number} is {describe(holdout)}, no Holdout")
        first = first or holdout
        if holdout.train.shape != first.train.shape:
            raise InvalidDataError(
                f"splits: number {number} has shape {holdout.train.shape}, not {first.train.shape}"
            )
        for axis in ("users", "items"):
            ours, firsts = getattr(holdout, axis), getattr(first, axis)
            if (ours is None) != (firsts is None) or (ours is not None and not ours.equals(firsts)):
                raise InvalidDataError(
                    f"splits: number {number} has other {axis} than the first, or in another "
                    "order; expected splits of the same users and items"
                )
        if not (holdout.train.data > 0).any():
            raise InvalidDataError(f"splits: number {number} has nothing in its train part")
        yield holdout


def _share(given: Any, holdout: Holdout, request: Request, number: int) -> Shared:
    """Return the candidates of a split."""
    if given is None:
        return Shared({}, None, request, {})
    try:
        own = given(holdout) if callable(given) else given
        sides = open_train(holdout.seen), open_held_out(holdout.validation)
        return share_candidates(own, *sides, request)
    except SparseEvalError as error:
        error.add_note(f"This is about fold {number}.")
        raise


def _read_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Return the seeds, or raise `InvalidDataError`."""
    if not isinstance(seeds, Iterable):
        return tuple(range(check_whole("seeds", seeds, 1)))
    chosen = tuple(check_whole("seeds", seed, 0) for seed in seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidDataError(f"seeds: expected one or more different seeds, found {chosen}")
    return chosen
