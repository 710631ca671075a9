"""Training a model of `implicit` and evaluating one: the two ends of the adapter."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from ..core.arguments import check_number, check_whole
from ..core.progress import is_shown
from ..errors import InvalidDataError, InvalidMetricError, SparseEvalError
from ..evaluation.blocks import ROWS, check_memory, is_blocks, open_matrix, release
from ..evaluation.evaluate import evaluate
from ..inputs.rankings import Rankings
from ..metrics import STANDARD, Convention, Metric, convention_named, parse_metrics
from ..results import MergedEvaluation, reduce_block
from ..results.once import Question, terms_of
from ..results.parts import Total
from ..retrieval.factors import check_factors
from .blocks import (
    check_shape,
    evaluate_users,
    make_task,
    open_model,
    rows_for,
    told_of_seen,
    user_blocks,
    users_of,
)
from .checkpoints import Factors
from .inputs import held_out_part, train_part
from .ranking import choose_way, rank
from .recommend import as_model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..results import Evaluation
    from .callback import EvaluationCallback
    from .ranking import Via

__all__ = ["evaluate_model", "parse_cut_metrics", "train_als"]


def train_als(
    train: Any,
    factors: int = 64,
    regularization: float = 0.1,
    alpha: float = 40.0,
    iterations: int = 15,
    seed: int = 0,
    progress: bool | None = None,
    callback: EvaluationCallback | None = None,
) -> Any:
    """Train `implicit`'s ALS model.

    Parameters
    ----------
    train : scipy sparse matrix or array, shape (n_users, n_items)
        The stored value is the confidence before `alpha`; an explicit zero has no weight at all
        (shown, not clicked). It is not changed.
    factors : int
        Number of latent factors, at least 1.
    regularization : float
        At least 0.
    alpha : float
        Weight of an interaction, above 0 (Hu, Koren and Volinsky, 2008, use 40).
    iterations : int
        At least 1.
    seed : int
        Seed of the initial factors. The same seed gives the same factors on the same machine.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.
    callback : EvaluationCallback, optional
        Evaluates while the model is trained, and may stop the training; the progress bar then
        shows the metric it monitors.

    Returns
    -------
    implicit.cpu.als.AlternatingLeastSquares
        Fitted, float32 factors.

    Raises
    ------
    InvalidDataError
        If an option is out of its range, a value of `train` is not finite, or `callback` was made
        for a `train` of another shape.
    SparseEvalError
        If the training diverged. What an evaluation of `callback` raises passes through.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=50, n_items=40, seed=0).matrix()
    >>> se.train_als(clicks, factors=8, iterations=2).item_factors.shape
    (40, 8)

    With an evaluation after each iteration, and an early stop:

    >>> holdout = se.split.random(clicks, seed=0)
    >>> callback = se.EvaluationCallback(holdout.train, holdout.validation, "ndcg@10", patience=2)
    >>> model = se.train_als(holdout.train, factors=8, iterations=20, callback=callback)
    >>> len(callback.history) <= callback.best_iteration + 2
    True
    """
    import implicit
    from implicit.cpu.als import AlternatingLeastSquares

    from .callback import EvaluationCallback

    for name, value in (("factors", factors), ("iterations", iterations)):
        check_whole(name, value, 1)
    check_number("regularization", regularization, 0)
    check_number("alpha", alpha, 0, open_end=True)
    check_whole("seed", seed, 0)
    if callback is not None and not isinstance(callback, EvaluationCallback):
        raise InvalidDataError(f"callback is {callback!r}; expected an EvaluationCallback")
    matrix = train_part(train)
    # implicit asks for BLAS on one thread while it runs its own; the limit ends with the block.
    with threadpool_limits(limits=1, user_api="blas"):
        model = AlternatingLeastSquares(
            factors=factors,
            regularization=regularization,
            alpha=alpha,
            iterations=iterations,
            random_state=seed,
        )
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # told below, with what to do
                if callback is None:
                    # A copy: compiled code cannot read float32 that is write-protected.
                    model.fit(matrix.astype(np.float32), show_progress=is_shown(progress))
                else:
                    callback.fit(model, matrix, progress)
        except implicit.recommender_base.ModelFitError as error:
            raise SparseEvalError(
                f"the training diverged ({error}); lower alpha or raise the regularization"
            ) from error
        check_factors(model.user_factors, model.item_factors)
    return model


def evaluate_model(
    model: Any,
    train: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    convention: str | None = None,
    item_groups: Any = None,
    item_vectors: Any = None,
    no_relevant: Literal["exclude", "zero", "judged"] | None = None,
    baselines: bool = False,
    via: Via | None = None,
    num_threads: int | None = None,
    per_user: bool = True,
    memory: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Rank the unseen items of every user with relevant ones, and evaluate the rankings.

    Parameters
    ----------
    model : fitted model of implicit, str or Path
        ALS, BPR, LMF or an item-item neighbour model, on the CPU or movable there; or the path of
        a checkpoint that one of them saved. Or factors alone: a pair of arrays (of users, of
        items) or of ``.npy`` files, or a folder with ``user_factors.npy`` and
        ``item_factors.npy``; files stay on disk. The first of a pair may be an iterable of blocks.
    train : scipy sparse matrix or array, shape (n_users, n_items)
        What the model was trained on: every stored entry, an explicit zero too, is seen and not
        recommended again. Or an iterable of blocks of its rows, or a folder as in `evaluate`.
    validation : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        The held-out gains. A smaller matrix is padded. Or an iterable or folder, as `train`.
    metrics : str, Metric or iterable of them
        Each with a cut-off.
    convention, item_groups, item_vectors, no_relevant
        As in `evaluate`, which is given `train` too.
    baselines : bool
        Evaluate the popularity ranking beside the model: the items of most training users that
        the user has not seen (``ev.baselines["popularity"]``, and a column of ``summary()``).
    via : {"held_out_ranks", "top_k", "recommend"}, optional
        The way to the rankings. Of a factor model, accuracy metrics need no more than the ranks of
        the relevant items (`held_out_ranks`), the others need lists (`top_k`); both are exact, and
        of equal scores the lower id comes first. "recommend" is the model's own way, and all that
        there is for neighbour models: its scores, and its order of equal ones (implicit puts the
        higher id first). By default the cheapest way that the metrics allow.
    num_threads : int, optional
        One for each core by default. The result does not depend on it.
    per_user, memory
        As in `evaluate`; `memory` is beside the factors, too, at least what ranking takes whatever
        the number of users (some 160 MB, and more with many items), and for models with factors.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Evaluation
        As from `evaluate`, on rankings as long as the largest cut-off. ``ev.retrieval`` says which
        way was taken, how many relevant items had been seen before and can be in no list, how many
        hits are tied, and how many users and items are without factors. Users without relevant
        items get no list, so that a convention that counts every list of theirs finds none. A list
        is shorter where there are no more unseen items.

    Raises
    ------
    UnsupportedModelError
        If the model cannot recommend, was not fitted, or has no factors for `via`.
    InvalidCheckpointError
        If the checkpoint cannot be read, or has no finite factors.
    InvalidDataError
        If `train` is not of the model's users and items, `validation` is larger than `train`, or
        a score is not finite.
    InvalidMetricError
        If a metric is unknown, has no cut-off, or needs lists that `via` does not make.

    Warns
    -----
    UserWarning
        If held-out items were seen by their users: no list can hold them.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> model = se.train_als(holdout.train, factors=8)
    >>> ev = se.evaluate_model(model, holdout.train, holdout.validation, ["ndcg@10"])
    >>> 0 < ev["ndcg@10"] < 1
    True
    >>> ev.retrieval.via
    'held_out_ranks'
    """
    rules = convention_named(convention)
    asked = parse_cut_metrics(metrics, rules)
    inputs = {"item_groups": item_groups, "item_vectors": item_vectors}
    given = {"train", *(name for name, value in inputs.items() if value is not None)}
    # What is missing is said before the lists are made, not after.
    question = Question.of(asked, convention, no_relevant, given)
    memory = check_memory(memory)
    train, validation = (
        open_matrix(side) if isinstance(side, str | Path) else side for side in (train, validation)
    )
    model = open_model(model)
    in_blocks = [side for side in (*_sides(model), train, validation) if is_blocks(side)]
    if memory is not None or in_blocks:
        if baselines:
            raise InvalidDataError(
                "baselines need the lists of all users at once; leave out baselines= or memory="
            )
        return _in_blocks(
            question, model, train, validation, inputs, via, memory, per_user, num_threads, progress
        )
    model = as_model(model)
    way = choose_way(model, terms_of(question).plans, via)
    matrix = train_part(train)
    check_shape(model, matrix.shape)
    relevance = held_out_part(validation, matrix.shape)
    k = min(max(metric.cutoff or 0 for metric in asked), matrix.shape[1])
    rankings, retrieval = rank(model, matrix, relevance, k, way, num_threads, progress)
    if retrieval.n_seen:
        warnings.warn(told_of_seen(retrieval.n_seen, int(relevance.n_relevant.sum())), stacklevel=2)
    options: dict[str, Any] = {
        "convention": convention,
        "train": matrix,
        "no_relevant": no_relevant,
        "num_threads": num_threads,
    } | inputs
    ev = replace(evaluate(rankings, relevance, asked, **options), retrieval=retrieval)
    if baselines:
        popular = Rankings.from_popularity(matrix, k, users=np.flatnonzero(relevance.n_relevant))
        ev = replace(ev, baselines={"popularity": evaluate(popular, relevance, asked, **options)})
    return ev if per_user else reduce_block(ev, per_user=False)


def _sides(model: Any) -> tuple[Any, ...]:
    return (model.user_factors,) if isinstance(model, Factors) else ()


def _in_blocks(
    question: Question,
    model: Any,
    train: Any,
    validation: Any,
    inputs: dict[str, Any],
    via: Via | None,
    memory: int | None,
    per_user: bool,
    num_threads: int | None,
    progress: bool | None,
) -> MergedEvaluation:
    """Evaluate a model block by block."""
    if not isinstance(model, Factors):  # whose rows are checked block by block
        model = as_model(model)
    users = users_of(model, train, validation)
    task = make_task(question, model, users, inputs, via, per_user)
    width = model.item_factors.shape[1]
    n_rows = ROWS if memory is None else rows_for(users, task, width, memory)
    total = Total()
    with tqdm(
        total=users.n_users, desc="evaluate", unit=" users", disable=not is_shown(progress)
    ) as bar:
        for block in user_blocks(users, n_rows):
            part = evaluate_users(task, block, num_threads)
            total.add(part)
            bar.update(part.span.n)
            release(*users[:3])
    terms = terms_of(question)
    found = MergedEvaluation([total.whole()], terms.plans, terms.rules)
    if found.retrieval is not None and found.retrieval.n_seen:
        warnings.warn(told_of_seen(found.retrieval.n_seen), stacklevel=3)
    return found


def parse_cut_metrics(
    metrics: str | Metric | Iterable[str | Metric], convention: Convention = STANDARD
) -> tuple[Metric, ...]:
    """Parse metrics for a model's lists, or raise `InvalidMetricError` where one has no cut-off."""
    asked = parse_metrics(metrics, convention.options)
    for metric in asked:
        if metric.cutoff is None and metric.name not in convention.uncut:
            ask = f"ask for '{metric}@k'"
            if metric.definition.cutoff == "none":
                ask = "evaluate full rankings for it"
            raise InvalidMetricError(
                f"{metric} has no cut-off, and would need the whole catalogue ranked for every "
                f"user; {ask}"
            )
    if all(metric.cutoff is None for metric in asked):
        raise InvalidMetricError(
            f"no cut-off says how long the lists are to be; ask for another metric beside "
            f"{asked[0]}, such as 'ndcg@10'"
        )
    return asked
