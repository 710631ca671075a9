"""The lists that a model of `implicit` recommends, without padding and seen items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from ..core.bars import tqdm
from ..core.progress import display
from ..errors import InvalidDataError, UnsupportedModelError
from ..inputs.training import excluded_items
from ..kernels.rows import keep_unseen
from .accepted import catalogue, has_factors
from .recommender import own_model

if TYPE_CHECKING:
    from ..core.types import Booleans, CSRMatrix, Integers, Items
    from ..inputs.training import SeenItems
    from .accepted import ImplicitModel


#: Users in a call of `recommend`. implicit scores them in batches of 100, so with a multiple of it
#: every user is in the same batch, and has the same rounding, as in one call for all users.
USERS_PER_CALL = 2_000

#: The most ids that a call of `recommend` may return; with its score, each takes 12 bytes.
_IDS_PER_CALL = 4_000_000


def recommend_lists(
    model: ImplicitModel,
    train: CSRMatrix,
    users: Integers,
    k: int,
    progress: bool | None = None,
    seen: SeenItems = "exclude",
) -> Items:
    """Recommend the `k` best unseen items to each user, or of all items.

    Parameters
    ----------
    model : fitted model of implicit
        From `as_model`.
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
    model = own_model(model)
    _, n_items = catalogue(model)
    dtype = np.float32 if has_factors(model) else np.float64
    train = sparse.csr_matrix(  # of the class and dtypes that the model's compiled code takes
        (
            train.data.astype(dtype, copy=False),
            train.indices.astype(np.int32, copy=False),
            train.indptr.astype(np.int32, copy=False),
        ),
        shape=train.shape,
        copy=False,
    )
    lists = np.empty((len(users), k), np.int32)
    pending = np.arange(len(users))
    n_requested = min(k, n_items)
    with (
        threadpool_limits(limits=1, user_api="blas"),  # implicit has threads of its own
        tqdm(total=len(users), desc="recommend", unit=" users", **display(progress)) as bar,
    ):
        while len(pending):
            incomplete = []
            size = max(1, min(USERS_PER_CALL, _IDS_PER_CALL // n_requested))
            for start in range(0, len(pending), size):
                rows = pending[start : start + size]
                lists[rows], complete = _recommend(model, train, users[rows], n_requested, k, seen)
                incomplete.append(rows[~complete])
                bar.update(int(complete.sum()))
            pending = np.concatenate(incomplete)
            # Neighbour models return seen items too, which are then taken out of the lists.
            n_requested = min(4 * n_requested, n_items)
    return lists


def _recommend(
    model: ImplicitModel,
    train: sparse.csr_matrix,
    users: Integers,
    n_requested: int,
    k: int,
    seen: SeenItems,
) -> tuple[Items, Booleans]:
    """Return the lists of some users, and whether each of them is complete."""
    returned = model.recommend(
        users, train[users], N=n_requested, filter_already_liked_items=seen == "exclude"
    )
    excluded = excluded_items(train, seen)
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
    lists = np.empty((len(users), k), np.int32)
    complete = np.empty(len(users), np.bool_)
    # Only factor models mark an item by the lowest score; the others pad with the id -1.
    blocked = -np.finfo(scores.dtype).max if has_factors(model) else -np.inf
    keep_unseen(
        ids,
        scores,
        users,
        excluded.indptr,
        excluded.indices,
        train.shape[1],
        n_requested,
        float(blocked),
        lists,
        complete,
    )
    return lists, complete
