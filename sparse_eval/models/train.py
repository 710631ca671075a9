"""Train `implicit`'s ALS model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from ..core.arguments import check_number, check_whole
from ..core.labelled import labels_of
from ..core.progress import display
from ..errors import InvalidDataError, SparseEvalError
from ..retrieval.factors import check_factors
from .identifiers import keep_ids
from .inputs import training_matrix

if TYPE_CHECKING:
    from implicit.cpu.als import AlternatingLeastSquares

    from .callback import EvaluationCallback
    from .inputs import TrainLike


def train_als(
    train: TrainLike,
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
    train : sparse matrix of shape (n_users, n_items), Interactions, frame, Relevance or path
        The stored value is the confidence before `alpha`; an explicit zero has no weight at all
        (shown, not clicked). It is not changed. If it has ids of users and items (`Interactions`,
        the parts of a `Holdout`, tables), the model knows them: as its attributes ``user_ids`` and
        ``item_ids``, which `save_model` writes into its file.
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
    matrix = training_matrix(train)
    ids = labels_of(matrix)
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
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                if callback is None:
                    # A copy: compiled code cannot read float32 that is write-protected.
                    weights = matrix.astype(np.float32)
                    with tqdm(
                        total=iterations, desc="train", unit=" iterations", **display(progress)
                    ) as bar:
                        model.fit(weights, show_progress=False, callback=lambda *_: bar.update())
                else:
                    callback.fit(model, matrix, progress=progress)
        except implicit.recommender_base.ModelFitError as error:
            raise SparseEvalError(
                f"the training diverged ({error}); lower alpha or raise the regularization"
            ) from error
        check_factors(model.user_factors, model.item_factors)
    keep_ids(model, *ids)
    return model
