"""Train models of `implicit`: ALS by its parameters, and any other that is given."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from ..core.arguments import check_number, check_whole
from ..core.progress import progress_bar
from ..errors import InvalidDataError, SparseEvalError, UnsupportedModelError
from ..models.accepted import without_zeros
from ..models.checkpoints import check_similarity
from ..models.identifiers import keep_training
from ..models.inputs import open_train
from ..retrieval.ranker import check_factors

if TYPE_CHECKING:
    from implicit.cpu.als import AlternatingLeastSquares

    from ..core.types import CSRMatrix
    from ..datasets.split.holdout import Holdout
    from ..models.inputs import TrainLike
    from .callback import EvaluationCallback

#: A model of `implicit`, which has no type annotations.
Model = TypeVar("Model", bound=Any)


def train_als(
    train: Holdout | TrainLike,
    *,
    factors: int = 64,
    regularization: float = 0.1,
    alpha: float = 40.0,
    iterations: int = 15,
    seed: int = 0,
    progress: bool | None = None,
    callback: EvaluationCallback | None = None,
) -> AlternatingLeastSquares:
    """Train `implicit`'s ALS model.

    Parameters
    ----------
    train : sparse matrix (n_users × n_items), Interactions, frame, Relevance, path or Holdout
        Of a `Holdout` the train part. The stored value is the confidence before `alpha`; an
        explicit zero has no weight at all (shown, not clicked). It is not changed. If it has ids
        of users and items, the model knows them: as its attributes ``user_ids`` and ``item_ids``,
        which `save_model` writes into its file.
    factors : int
        Number of latent factors, at least 1.
    regularization : float
        At least 0.
    alpha : float
        Weight of an interaction, above 0 (40 in [1]_).
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

    See Also
    --------
    train_model : Train BPR, LMF and neighbours likewise.
    EvaluationCallback : Evaluate while the model trains, and stop early.
    tune : Search for its hyperparameters.
    save_model : Save it with the ids of its users and items.

    References
    ----------
    .. [1] Hu, Y., Koren, Y. and Volinsky, C. (2008). Collaborative Filtering for Implicit Feedback
       Datasets. ICDM 2008, 263-272. doi:10.1109/ICDM.2008.22

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
    from implicit.cpu.als import AlternatingLeastSquares

    for name, value in (("factors", factors), ("iterations", iterations)):
        check_whole(name, value, 1)
    check_number("regularization", regularization, 0)
    check_number("alpha", alpha, 0, open_end=True)
    check_whole("seed", seed, 0)
    with threadpool_limits(limits=1, user_api="blas"):
        model = AlternatingLeastSquares(
            factors=factors,
            regularization=regularization,
            alpha=alpha,
            iterations=iterations,
            random_state=seed,
        )
    return train_model(model, train, progress=progress, callback=callback)


def train_model(
    model: Model,
    train: Holdout | TrainLike,
    *,
    progress: bool | None = None,
    callback: EvaluationCallback | None = None,
) -> Model:
    """Train a model of `implicit` that was made with parameters of its own.

    Its ``fit`` does the same to a matrix; here it takes data of any kind, the model
    knows their ids, and what would spoil it is kept out.

    Parameters
    ----------
    model : model of implicit
        ALS, BPR, LMF, or an item-item neighbour model. A fitted model of factors continues from
        these.
    train : sparse matrix (n_users × n_items), Interactions, frame, Relevance, path or Holdout
        As in `train_als`. Explicit zeros (shown, not clicked) are left out for BPR, which takes
        every stored entry for a positive, and for neighbours, which would count them.
    progress, callback
        As in `train_als`; neighbours have no iterations, and take no callback.

    Returns
    -------
    model
        The same model, fitted.

    Raises
    ------
    UnsupportedModelError
        If the model cannot be fitted, or cannot call `callback`.
    InvalidDataError
        If a value of `train` is not finite, neighbours get negative ones, or `callback` was made
        for a `train` of another shape.
    SparseEvalError
        If the training diverged. What an evaluation of `callback` raises passes through.

    Notes
    -----
    With the same ``random_state`` ALS and neighbours come out the same with any number of threads.
    The threads of BPR and LMF race each other: give these ``num_threads=1`` for the same factors
    each time.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from implicit.cpu.bpr import BayesianPersonalizedRanking
    >>> clicks = se.datasets.synthetic(n_users=50, n_items=40, seed=0)
    >>> bpr = BayesianPersonalizedRanking(8, iterations=5, random_state=0, num_threads=1)
    >>> se.train_model(bpr, clicks).item_ids[:2].tolist()
    ['N1', 'N10']
    """
    from implicit.recommender_base import ModelFitError

    from .callback import EvaluationCallback

    if isinstance(model, type) or not callable(getattr(model, "fit", None)):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise UnsupportedModelError(
            f"{name} is no model that can be fitted; expected an ALS, BPR, LMF or item-item "
            "neighbour model of implicit, as AlternatingLeastSquares(factors=64)"
        )
    if callback is not None and not isinstance(callback, EvaluationCallback):
        raise InvalidDataError(f"callback is {callback!r}; expected an EvaluationCallback")
    matrix = open_train(train)
    # implicit asks for BLAS on one thread while it runs its own; the limit ends with the block.
    with threadpool_limits(limits=1, user_api="blas"):
        try:
            with np.errstate(all="ignore"):  # reported below
                if callback is None:
                    _fit(model, matrix, progress)
                else:
                    callback.fit(model, matrix, progress=progress)
        except ModelFitError as error:
            raise SparseEvalError(
                f"the training diverged ({error}); lower alpha or the learning rate, or raise the "
                "regularization"
            ) from error
        if hasattr(model, "item_factors"):
            check_factors(model.user_factors, model.item_factors)
        elif getattr(model, "similarity", None) is not None:
            check_similarity(model.similarity)
    keep_training(model, matrix)
    return model


def _fit(model: Any, matrix: CSRMatrix, progress: bool | None) -> None:
    from implicit.utils import ParameterWarning

    # A copy: compiled code cannot read data that is write-protected; neighbours take float64 alone.
    dtype = np.float64 if hasattr(model, "similarity") else np.float32
    weights = without_zeros(model, matrix.tocsr().astype(dtype))
    if hasattr(model, "similarity") and (weights.data < 0).any():
        raise InvalidDataError(
            "train has negative values, of which neighbours make no sense; leave them out"
        )
    if not (hasattr(model, "iterations") and hasattr(model, "item_factors")):
        with warnings.catch_warnings():  # neighbours, which tell of conversions of their own
            warnings.simplefilter("ignore", ParameterWarning)
            model.fit(weights, show_progress=False)
        return
    with progress_bar(progress, total=model.iterations, desc="train", unit=" iterations") as bar:
        model.fit(weights, show_progress=False, callback=lambda *_: bar.update())
