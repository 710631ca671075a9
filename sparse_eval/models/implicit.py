"""Training a model of `implicit` and evaluating one: the two ends of the adapter."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from ..compute import make_plans
from ..errors import InvalidDataError, InvalidMetricError, SparseEvalError
from ..evaluate import evaluate
from ..factors import check_factors
from ..matrices import Rankings
from ..metrics import STANDARD, Convention, Metric, convention_named, parse_metrics
from ..options import check_number, check_whole
from ..progress import is_shown
from .inputs import held_out_part, train_part
from .recommend import as_model, catalogue
from .retrieval import choose_way, rank

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..results import Evaluation
    from .callback import EvaluationCallback
    from .retrieval import Via

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
    progress: bool | None = None,
) -> Evaluation:
    """Rank the unseen items of every user with relevant ones, and evaluate the rankings.

    Parameters
    ----------
    model : fitted model of implicit, str or Path
        ALS, BPR, LMF or an item-item neighbour model, on the CPU or movable there; or the path of
        a checkpoint that one of them saved.
    train : scipy sparse matrix or array, shape (n_users, n_items)
        What the model was trained on: every stored entry, an explicit zero too, is seen and not
        recommended again.
    validation : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        The held-out gains. A smaller matrix is padded.
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
    inputs = {"train": train, "item_groups": item_groups, "item_vectors": item_vectors}
    given = {name for name, value in inputs.items() if value is not None}
    # What is missing is said before the lists are made, not after.
    plans = make_plans(asked, rules, frozenset(given))
    model = as_model(model)
    way = choose_way(model, plans, via)
    matrix = train_part(train)
    _check_shape(model, matrix.shape)
    relevance = held_out_part(validation, matrix.shape)
    k = min(max(metric.cutoff or 0 for metric in asked), matrix.shape[1])
    rankings, retrieval = rank(model, matrix, relevance, k, way, num_threads, progress)
    if retrieval.n_seen:
        warnings.warn(
            f"{retrieval.n_seen} of {relevance.n_relevant.sum()} held-out items were seen by their "
            "users; they can be in no list and count as missed",
            stacklevel=2,
        )
    options: dict[str, Any] = {
        "convention": convention,
        "train": matrix,
        "item_groups": item_groups,
        "item_vectors": item_vectors,
        "no_relevant": no_relevant,
        "num_threads": num_threads,
    }
    ev = replace(evaluate(rankings, relevance, asked, **options), retrieval=retrieval)
    if not baselines:
        return ev
    popular = Rankings.from_popularity(matrix, k, users=np.flatnonzero(relevance.n_relevant))
    return replace(ev, baselines={"popularity": evaluate(popular, relevance, asked, **options)})


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


def _check_shape(model: Any, shape: tuple[int, int]) -> None:
    n_users, n_items = catalogue(model)
    if n_users is not None and shape[0] != n_users:
        raise InvalidDataError(
            f"train has {shape[0]} users, the model {n_users}; give the matrix that the model was "
            "trained on"
        )
    if shape[1] != n_items:
        raise InvalidDataError(
            f"train has {shape[1]} items, the model {n_items}; give the matrix that the model was "
            "trained on"
        )
