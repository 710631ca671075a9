"""Lists from a model's own ``recommend``, with its padding taken out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from ..core.progress import is_shown
from ..errors import InvalidDataError, UnsupportedModelError
from ..kernels.lists import keep_unseen
from ..retrieval.factors import check_factors
from .checkpoints import Checkpoint, Factors, check_similarity, read_checkpoint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..core.types import AnyArray, PathLike

__all__ = ["ImplicitModel", "ModelLike", "as_model", "catalogue", "check_shape", "recommend_lists"]


class ImplicitModel(Protocol):
    """A model of `implicit` that was fitted."""

    def recommend(
        self,
        userid: Any,
        user_items: Any,
        N: int = ...,  # noqa: N803 - implicit's name
        filter_already_liked_items: bool = ...,
    ) -> tuple[AnyArray, AnyArray]:
        """Return the ids and scores of the best items of some users."""


#: What `evaluate_model` takes: a model, a checkpoint, or factors alone.
ModelLike: TypeAlias = "ImplicitModel | Factors | tuple[Any, Any] | PathLike"

#: Users handed to `recommend` at once. implicit scores them in batches of 100, so a multiple of
#: that gives every user the same batch, and with it the same rounding, as one call for all users.
USERS_AT_ONCE = 2_000

#: Ids that one call of `recommend` may return: 12 bytes each with their scores.
_IDS_AT_ONCE = 4_000_000


def as_model(model: Any) -> Any:
    """Return a fitted model that recommends on the CPU, from a model, a checkpoint or its path.

    Raises
    ------
    InvalidCheckpointError
        As `read_checkpoint`.
    UnsupportedModelError
        If it cannot recommend, or was not fitted.
    InvalidDataError
        If its factors are not finite or of different widths.
    """
    if isinstance(model, str | Path):
        model = read_checkpoint(model)
    if isinstance(model, Checkpoint):
        return _from_checkpoint(model)
    if isinstance(model, Factors):
        check_factors(model.user_factors, model.item_factors)
        return model
    if hasattr(model, "to_cpu"):
        model = model.to_cpu()
    if not callable(getattr(model, "recommend", None)):
        raise UnsupportedModelError(
            f"a {type(model).__name__} cannot recommend; expected a model of implicit or the path "
            "of a checkpoint"
        )
    if hasattr(model, "item_factors"):
        if model.item_factors is None or model.user_factors is None:
            raise UnsupportedModelError(f"the {type(model).__name__} has no factors; fit it first")
        check_factors(model.user_factors, model.item_factors)
    elif getattr(model, "similarity", None) is not None:
        check_similarity(model.similarity)
    else:
        raise UnsupportedModelError(
            f"the {type(model).__name__} has no similarities; fit it first"
            if hasattr(model, "similarity")
            else f"a {type(model).__name__} has neither factors nor similarities; expected an "
            "ALS, BPR, LMF or item-item neighbour model of implicit"
        )
    return model


def catalogue(model: Any) -> tuple[int | None, int]:
    """Return the number of users (None for a neighbour model, which takes any) and of items."""
    if hasattr(model, "item_factors"):
        return len(model.user_factors), len(model.item_factors)
    return None, model.similarity.shape[0]


def check_shape(model: Any, shape: tuple[int, int]) -> None:
    """Raise `InvalidDataError` unless a model was trained on a matrix of that shape."""
    n_users, n_items = catalogue(model)
    for what, size, expected in (("users", shape[0], n_users), ("items", shape[1], n_items)):
        if expected is not None and size != expected:
            raise InvalidDataError(
                f"train has {size} {what}, the model {expected}; give the matrix that the model "
                "was trained on"
            )


def recommend_lists(
    model: Any,
    train: Any,
    users: NDArray[np.int64],
    k: int,
    progress: bool | None = None,
) -> NDArray[np.int32]:
    """Recommend every user's `k` best unseen items.

    Parameters
    ----------
    model : fitted model of implicit
        From `as_model`.
    train : csr_matrix, shape (n_users, n_items)
        Rows ascend. Every stored entry is seen, an explicit zero too, as in implicit.
    users : ndarray of int64, shape (n_lists,)
        Rows of `train`.
    k : int
        List length.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    ndarray of int32, shape (n_lists, k)
        Item ids in the model's order, padded with -1.

    Raises
    ------
    InvalidDataError
        If a score is not finite. The user is named.
    """
    _, n_items = catalogue(model)
    train = _for_model(model, train)
    lists = np.empty((len(users), k), np.int32)
    open_rows = np.arange(len(users))
    n_asked = min(k, n_items)
    with (
        threadpool_limits(limits=1, user_api="blas"),  # implicit has threads of its own
        tqdm(
            total=len(users), desc="recommend", unit=" users", disable=not is_shown(progress)
        ) as bar,
    ):
        while len(open_rows):
            incomplete = []
            size = max(1, min(USERS_AT_ONCE, _IDS_AT_ONCE // n_asked))
            for start in range(0, len(open_rows), size):
                rows = open_rows[start : start + size]
                found = np.empty((len(rows), k), np.int32)
                complete = _ask(model, train, users[rows], n_asked, found)
                lists[rows] = found
                incomplete.append(rows[~complete])
                bar.update(int(complete.sum()))
            open_rows = np.concatenate(incomplete)
            n_asked = min(4 * n_asked, n_items)  # a neighbour model lets seen items take places
    return lists


def _ask(
    model: Any,
    train: Any,
    users: NDArray[np.int64],
    n_asked: int,
    lists: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Fill `lists` for some users and say which of them are complete."""
    answer = model.recommend(users, train[users], N=n_asked, filter_already_liked_items=True)
    try:
        ids, scores = (np.asarray(part) for part in answer)
    except (TypeError, ValueError):
        ids, scores = np.empty(0, np.int32), np.empty(0)
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
            "their dtype"
        )
    complete = np.empty(len(users), np.bool_)
    # Only factor models mark an item by the lowest score; the others pad with the id -1.
    blocked = -np.finfo(scores.dtype).max if hasattr(model, "item_factors") else -np.inf
    keep_unseen(
        ids,
        scores,
        users,
        train.indptr,
        train.indices,
        train.shape[1],
        n_asked,
        float(blocked),
        lists,
        complete,
    )
    return complete


def _for_model(model: Any, train: Any) -> Any:
    """Give `train` the class and dtypes that the model's compiled code takes."""
    dtype = np.float32 if hasattr(model, "item_factors") else np.float64
    return sparse.csr_matrix(
        (
            train.data.astype(dtype, copy=False),
            train.indices.astype(np.int32, copy=False),
            train.indptr.astype(np.int32, copy=False),
        ),
        shape=train.shape,
        copy=False,
    )


def _from_checkpoint(checkpoint: Checkpoint) -> Any:
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.nearest_neighbours import ItemItemRecommender, NearestNeighboursScorer

    if checkpoint.similarity is not None:
        neighbours = ItemItemRecommender()
        neighbours.similarity = checkpoint.similarity.astype(np.float64)
        neighbours.scorer = NearestNeighboursScorer(neighbours.similarity)
        return neighbours
    # A file does not say which family saved it, and need not: all of them rank by the product of
    # their factors, BPR's and LMF's biases being columns of them.
    with threadpool_limits(limits=1, user_api="blas"):
        model = AlternatingLeastSquares()
    model.user_factors = checkpoint.user_factors
    model.item_factors = checkpoint.item_factors
    return model
