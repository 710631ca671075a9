"""`fold_in`: find the factors of users that a model was not trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.arguments import check_number
from ..core.threads import one_blas_thread, openmp_threads
from ..datasets.split.holdout import Holdout
from ..datasets.split.parts import name_of, open_train
from ..errors import InvalidDataError, UnsupportedModelError
from ..inputs.alignment import check_size, match_items, place
from ..inputs.labelled import labels_of
from .checkpoints import SavedFactors
from .ids import ids_of, known_to, warn_without_ids
from .model import Factors
from .opening import as_model

if TYPE_CHECKING:
    from ..core.types import AnyArray
    from ..datasets.split.parts import TrainLike
    from ..inputs.labelled import LabelledMatrix
    from .model import Model
    from .opening import ModelLike

#: Users whose factors are found in one call.
_USERS_PER_CALL = 1 << 16


def fold_in(
    model: ModelLike,
    seen: Holdout | TrainLike,
    *,
    regularization: float | None = None,
    alpha: float | None = None,
    num_threads: int | None = None,
) -> Factors:
    """Find the factors of users that a model was not trained on, from the items they have seen.

    An ALS model uses the step of its training that finds user factors for fixed item factors, with
    its own regularization and alpha: `recalculate_user`. For factors of any other origin, pass
    `regularization`; the same least squares are solved [1]_.

    Parameters
    ----------
    model : fitted model of implicit, path, or pair of factors
        As in `evaluate_model`. It is not modified.
    seen : sparse matrix, Interactions, frame, Relevance, path or Holdout
        The items that the users have seen, with weights as in training: like `train` in
        `evaluate_model`, but for any users. Items are matched by id if both sides have ids, and
        items unknown to the model are ignored. For a `Holdout`, its part to fold in.
    regularization : float, optional
        λ, at least 0; by default the model's own, which only ALS has.
    alpha : float, optional
        The confidence in an entry is alpha times its value, above 0. By default the model's own, or
        1 if `regularization` is given.
    num_threads : int, optional
        By default one for each core that this process may use, as in `evaluate`. The result does
        not depend on it.

    Returns
    -------
    Factors
        ``user_factors`` with a row for each row of `seen`, of zeros if that is empty,
        ``item_factors``, and the ids of both if there are any. `evaluate_model`, `recommend`
        and `top_k` accept it as a model.

    Raises
    ------
    UnsupportedModelError
        If the model has no factors, or is not of ALS and no `regularization` is given.
    InvalidDataError
        If `seen` has other items than the model and there are no ids, or an option is out of its
        range.
    ValueError
        If the equations cannot be solved, as without regularization.

    See Also
    --------
    split.users : Hold out users to evaluate this.
    evaluate_model : Given such a `Holdout`, folds its users in by itself.

    Notes
    -----
    Y are the item factors. For a user's seen items, c is the confidence and p = 1; for all others c
    = 1 and p = 0. The user's factors are (YᵀCY + λI)⁻¹ YᵀCp. Columns of Y that `factor_model` adds
    for biases and distances are treated like any others. A new user gets a fitted weight of the
    item biases, while all other users have weight 1.

    References
    ----------
    .. [1] Y. Hu, Y. Koren and C. Volinsky, "Collaborative filtering for implicit feedback
       datasets", ICDM 2008. doi:10.1109/ICDM.2008.22

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.users(clicks, fraction=0.1, seed=0)
    >>> model = se.train_als(holdout.train, factors=8)
    >>> newcomer = holdout.fold_in.csr[[int(holdout.fold_in.csr.nonzero()[0][0])]]
    >>> folded = se.fold_in(model, newcomer)
    >>> folded.user_factors.shape
    (1, 8)
    >>> recs = se.recommend(folded, newcomer, k=3)
    >>> recs["rank"].tolist()
    [1, 2, 3]
    """
    opened = as_model(model)
    part: Any = seen.fold_in if isinstance(seen, Holdout) else seen
    if part is None:
        raise InvalidDataError(
            "the holdout has no users to fold in, because all are in train. Split with "
            "se.split.users"
        )
    given = open_train(part)
    if opened.factors is None or not opened.exact:
        raise UnsupportedModelError(opened.unfolded)
    solver = _solver(opened.factors, regularization, alpha)
    factors = _solve(solver, opened, given, num_threads, name_of("seen", seen))
    warn_without_ids(opened, given, of_users=False)
    users, items = labels_of(given)
    known = ids_of(opened)[1]
    return Factors(factors, opened.factors.item_factors, users, items if known is None else known)


def with_new_users(model: Model, parts: Holdout, num_threads: int | None = None) -> Model:
    """Return a model with the users that a split folds in.

    A neighbour model or item-item matrix is returned unchanged, because it recommends from the
    items that users have seen. For any other model, the result is a copy in which these users have
    new factors. A model with equal factors for all users, as by popularity, gives them the same.

    Raises
    ------
    UnsupportedModelError
        If the model has no rule for the factors of new users, or is a function.
    InvalidDataError
        As from `fold_in`, and if there are no ids and other users than the model has.
    """
    model.check()
    if model.takes_any_user:
        return model
    if model.factors is None:
        raise UnsupportedModelError(model.unfolded)
    given: Any = parts.fold_in
    known = ids_of(model)[0]
    labels = labels_of(given)[0]
    own = model.factors.user_factors
    sizes = (len(own), given.shape[0])
    users = place("users", known, labels, sizes, ("the model", "fold_in"))
    if known is None or labels is None:
        check_size("users", given.shape[0], len(own))
    places = np.arange(given.shape[0]) if users.places is None else users.places
    union = None if known is None else users.labels
    is_new = np.diff(given.indptr) > 0
    # The one factor of every user is the same, as of popularity.
    if own.shape[1] == 1 and len(own) and own[0, 0] != 0 and (own == own[0, 0]).all():
        folded = np.repeat(own[:1], given.shape[0], axis=0)
    else:
        solver = _solver(model.factors, None, None)
        folded = _solve(solver, model.factors, open_train(given), num_threads)
    factors = np.zeros((users.size, own.shape[1]), np.result_type(own, folded))
    factors[: len(own)] = own
    factors[places[is_new]] = folded[is_new]
    return model.with_users(factors, union)


def _solver(model: Factors, regularization: float | None, alpha: float | None) -> Any:
    """Return an ALS model with the same item factors, to solve for user factors.

    Raises `UnsupportedModelError` if the regularization is unknown.
    """
    from implicit.cpu.als import AlternatingLeastSquares

    has_rule = isinstance(model.trained, AlternatingLeastSquares | SavedFactors)
    own = model.trained if has_rule else None
    own_values = getattr(own, "regularization", None), getattr(own, "alpha", None)
    if regularization is not None:
        regularization = check_number("regularization", regularization, 0)
    if alpha is not None:
        alpha = check_number("alpha", alpha, 0, open_end=True)
    if None in own_values:
        if regularization is None:
            raise UnsupportedModelError(
                "new users cannot be folded into this model automatically, because it is not an "
                "ALS model or its checkpoint. Use folded = se.fold_in(model, holdout, "
                "regularization=0.01), then evaluate folded with train=holdout.seen and "
                "holdout.validation"
            )
        own_values = (regularization, 1.0)
    with one_blas_thread():  # which implicit asks for
        solver = AlternatingLeastSquares(
            factors=model.item_factors.shape[1],
            regularization=own_values[0] if regularization is None else regularization,
            alpha=own_values[1] if alpha is None else alpha,
        )
    items = model.item_factors
    dtype = np.float64 if items.dtype == np.float64 else np.float32
    # Compiled code takes these two dtypes, and no array that is write-protected.
    solver.item_factors = np.require(items, dtype, ["C", "W"])
    solver.dtype = np.dtype(dtype)
    return solver


def _solve(
    solver: Any,
    model: Model,
    seen: LabelledMatrix,
    num_threads: int | None,
    name: str = "seen",
) -> AnyArray:
    """Return the factors of the users of a matrix, whose items are matched with the model's."""
    solver.num_threads = openmp_threads(num_threads)
    matrix = match_items(known_to(model), seen, name)
    n_users = matrix.shape[0]
    factors = np.zeros((n_users, solver.item_factors.shape[1]), solver.dtype)
    with one_blas_thread():  # or sums would depend on the threads
        for first in range(0, n_users, _USERS_PER_CALL):
            last = min(first + _USERS_PER_CALL, n_users)
            rows = sparse.csr_matrix(matrix[first:last], dtype=np.float32)
            rows.indices, rows.indptr = (
                part.astype(np.int32, copy=False) for part in (rows.indices, rows.indptr)
            )
            with np.errstate(under="ignore"):  # of the factors' products with each other
                factors[first:last] = solver.recalculate_user(np.arange(first, last), rows)
    return factors
