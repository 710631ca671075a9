"""Models of `implicit` that make their own lists, without padding and seen items."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from ..core.csr import as_int32, take_rows, without_entries
from ..core.progress import progress_bar
from ..core.threads import one_blas_thread, openmp_threads
from ..errors import InvalidDataError, UnsupportedModelError
from ..inputs.candidates import mark_seen
from .model import ImplicitFactors, Model

if TYPE_CHECKING:
    from ..core.types import AnyArray, Booleans, CSRMatrix, Floats, Integers, Items
    from ..inputs.training import SeenItems
    from .model import Factors

#: Users whose scores of all items a neighbour model computes at once.
_USERS_AT_ONCE = 1_000

#: Users in a call of `recommend`. implicit scores them in batches of 100. With a multiple of 100,
#: every user has the same batch, and so the same rounding, as in one call for all users.
USERS_PER_CALL = 2_000

#: The most ids that a call of `recommend` may return; with its score, each takes 12 bytes.
_IDS_PER_CALL = 4_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Recommender(Model):
    """A model of implicit whose own ``recommend`` makes the lists.

    Without a `Recommender`, a model with factors is ranked exactly, with the lower id first among
    equal scores. The model's own lists differ in the rounding of scores and in the order of equal
    scores (implicit puts the higher id first). Metrics of such lists need a cut-off, and candidates
    cannot be given.

    Parameters
    ----------
    model : fitted model of implicit, or path of a checkpoint
        A GPU model is converted with ``to_cpu``.

    See Also
    --------
    evaluate_model : Evaluate it.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> model = se.train_als(holdout.train, factors=8)
    >>> se.evaluate_model(se.Recommender(model), holdout, "ndcg@10").retrieval.via
    'recommend'
    """

    model: Any

    exact: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"Recommender({type(self.model).__name__})"

    @property
    def trained(self) -> Any:
        """The fitted model, once it was opened."""
        return self.model

    @property
    def factors(self) -> Factors | None:
        """The factors of the model; None of a neighbour model, which has similarities."""
        return (
            ImplicitFactors.of_model(self.trained)
            if hasattr(self.trained, "item_factors")
            else None
        )

    def with_users(self, user_factors: AnyArray, user_ids: Any) -> Recommender:
        """Return the model with other users."""
        changed = ImplicitFactors.of_model(self.trained).with_users(user_factors, user_ids)
        return Recommender(changed.trained)

    @property
    def shape(self) -> tuple[int | None, int]:
        """The number of users, None for a neighbour model, which takes any, and of items."""
        factors = self.factors
        return (None, int(self.trained.similarity.shape[0])) if factors is None else factors.shape

    @property
    def name(self) -> str:
        """Its name in messages: a neighbour model makes its own lists without a `Recommender`."""
        return type(self.trained).__name__ if self.takes_any_user else "Recommender"

    def take(self, rows: Integers) -> Recommender:
        """Return the model with some of its users only, without ids."""
        factors = self.factors
        return self if factors is None else self.with_users(factors.user_factors[rows], None)


def recommend_lists(
    model: Any,
    train: CSRMatrix,
    users: Integers,
    k: int,
    progress: bool | None = None,
    seen: SeenItems = "exclude",
) -> Items:
    """Recommend the `k` best unseen items to each user, or of all items.

    Parameters
    ----------
    train : csr_matrix, shape (n_users, n_items)
        With sorted rows. Every stored entry is seen, explicit zeros included, as in implicit.
    users : ndarray of int64, shape (n_lists,)
        Rows of `train`.
    k : int
        List length.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.
    seen : {"exclude", "allow"}
        Whether what users have seen is left out, or may be recommended again.

    Returns
    -------
    ndarray of int32, shape (n_lists, k)
        Item ids in the model's order, padded with -1.

    Raises
    ------
    InvalidDataError
        If a score is not finite; the error names the user.
    UnsupportedModelError
        If the model does not return a row of ids and scores for each user.
    """
    n_items = Recommender(model).shape[1]
    dtype = np.float32 if hasattr(model, "item_factors") else np.float64
    if hasattr(model, "item_factors"):  # other models recommend without OpenMP
        model = copy(model)
        model.num_threads = openmp_threads(getattr(model, "num_threads", None) or None)
    train = sparse.csr_matrix(  # of the class and dtypes that the model's compiled code takes
        (
            train.data.astype(dtype, copy=False),
            train.indices.astype(np.int32, copy=False),
            train.indptr.astype(np.int32, copy=False),
        ),
        shape=train.shape,
        copy=False,
    )
    excluded = train if seen == "exclude" else without_entries(train)
    lists = np.empty((len(users), k), np.int32)
    pending = np.arange(len(users))
    n_requested = min(k, n_items)
    with (
        one_blas_thread(),  # implicit has its own threads
        progress_bar(progress, total=len(users), desc="recommend", unit=" users") as bar,
    ):
        while len(pending):
            incomplete = []
            size = max(1, min(USERS_PER_CALL, _IDS_PER_CALL // n_requested))
            for start in range(0, len(pending), size):
                rows = pending[start : start + size]
                sides = (model, train, excluded, users[rows])
                lists[rows], complete = _recommend(*sides, n_requested, k)
                incomplete.append(rows[~complete])
                bar.update(int(complete.sum()))
            pending = np.concatenate(incomplete)
            # Neighbour models return seen items too, which are then taken out of the lists.
            n_requested = min(4 * n_requested, n_items)
    return lists


def _recommend(
    model: Any,
    train: sparse.csr_matrix,
    excluded: CSRMatrix,
    users: Integers,
    n_requested: int,
    k: int,
) -> tuple[Items, Booleans]:
    """Return the lists of some users, and whether each of them is complete."""
    returned = model.recommend(
        users, train[users], N=n_requested, filter_already_liked_items=excluded is train
    )
    ids, scores = (np.asarray(part) for part in returned)
    if (
        ids.shape != scores.shape
        or ids.shape[:1] != users.shape
        or ids.ndim != 2
        or ids.dtype.kind != "i"
        or scores.dtype.kind != "f"
    ):
        raise UnsupportedModelError(
            f"the {type(model).__name__} recommended ids of {ids.dtype} {ids.shape} with scores of "
            f"{scores.dtype} {scores.shape}; expected a row of both for each of {len(users)} users"
        )
    finite = np.isfinite(scores).all(axis=1)
    if not finite.all():
        user = int(users[~finite][0])
        raise InvalidDataError(
            f"the model's scores for user {user} are not finite; its factors are too large for "
            "their dtype",
            user=user,
        )
    # Only factor models mark an item by the lowest score; the others pad with the id -1.
    blocked = -np.finfo(scores.dtype).max if hasattr(model, "item_factors") else -np.inf
    recommended = (ids >= 0) & (ids < train.shape[1]) & (scores > blocked)
    bounds = np.arange(len(users) + 1) * ids.shape[1]
    known = take_rows(excluded.indptr, users, excluded.indices)
    kept = recommended & ~mark_seen(bounds, as_int32(ids.ravel()), *known).reshape(ids.shape)
    places = np.cumsum(kept, axis=1)
    listed = kept & (places <= k)
    lists = np.full((len(users), k), -1, np.int32)
    lists[np.nonzero(listed)[0], places[listed] - 1] = ids[listed]
    # More items cannot change a list that is full, or that the model could not fill.
    complete = (kept.sum(axis=1) >= k) | ~recommended.all(axis=1)
    if n_requested >= train.shape[1] or ids.shape[1] < n_requested:
        complete[:] = True
    return lists, complete


def own_scores(model: Any, train: Any, rows: Integers, lists: Items) -> Floats:
    """Return the scores of the items in the lists of some users, minus infinity behind them."""
    scores = np.full(lists.shape, -np.inf)
    places = np.maximum(lists, 0).astype(np.int64)
    if hasattr(model, "item_factors"):
        users, items = model.user_factors[rows], model.item_factors
        for rank in range(lists.shape[1]):
            pairs = users, items[places[:, rank]]
            scores[:, rank] = np.einsum("uf,uf->u", *pairs, dtype=np.float64)
    else:
        for first in range(0, len(rows), _USERS_AT_ONCE):
            block = slice(first, first + _USERS_AT_ONCE)
            of_items = (train[rows[block]].astype(np.float64) @ model.similarity).toarray()
            scores[block] = np.take_along_axis(of_items, places[block], axis=1)
    return np.where(lists >= 0, scores, -np.inf)
