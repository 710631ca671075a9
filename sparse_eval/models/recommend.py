"""The lists that a model of `implicit` recommends, without padding and seen items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

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
    from ..core.types import AnyArray, Booleans, CSRMatrix, Integers, Items, PathLike


class ImplicitModel(Protocol):
    """A model of `implicit` that was fitted."""

    def recommend(
        self,
        userid: Integers,
        user_items: CSRMatrix,
        N: int = ...,  # noqa: N803 - implicit's name
        filter_already_liked_items: bool = ...,
    ) -> tuple[AnyArray, AnyArray]:
        """Return the ids and scores of the best items of some users."""


#: What `evaluate_model` takes: a model, a checkpoint, or factors alone.
ModelLike: TypeAlias = "ImplicitModel | Factors | tuple[Any, Any] | PathLike"

#: Users in a call of `recommend`. implicit scores them in batches of 100, so with a multiple of it
#: every user is in the same batch, and has the same rounding, as in one call for all users.
USERS_PER_CALL = 2_000

#: The most ids that a call of `recommend` may return; with its score, each takes 12 bytes.
_IDS_PER_CALL = 4_000_000


class FactorModel(ImplicitModel, Protocol):
    """A model of `implicit` that ranks by the product of its factors."""

    @property
    def user_factors(self) -> AnyArray:
        """The factors of users, shape (n_users, f)."""

    @property
    def item_factors(self) -> AnyArray:
        """The factors of items, shape (n_items, f)."""


def has_factors(model: ImplicitModel | Factors) -> TypeGuard[FactorModel | Factors]:
    """Return whether a model has factors, rather than similarities of items."""
    return hasattr(model, "item_factors")


def as_model(model: Any) -> ImplicitModel | Factors:
    """Return a fitted model on the CPU, given a model, factors, a checkpoint or its path.

    Raises
    ------
    InvalidCheckpointError
        As `read_checkpoint`.
    UnsupportedModelError
        If the model cannot recommend, or was not fitted.
    InvalidDataError
        If the factors are not finite, or those of users and items differ in width.
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
    checked: ImplicitModel = model
    return checked


def catalogue(model: ImplicitModel | Factors) -> tuple[int | None, int]:
    """Return the number of users (None for a neighbour model, which takes any) and of items."""
    if has_factors(model):
        return len(model.user_factors), len(model.item_factors)
    similarity: CSRMatrix = getattr(model, "similarity")  # noqa: B009 - implicit has no types
    return None, similarity.shape[0]


def check_shape(model: ImplicitModel | Factors, shape: tuple[int, int]) -> None:
    """Raise `InvalidDataError` unless a model was trained on a matrix of that shape."""
    n_users, n_items = catalogue(model)
    for axis, size, expected in (("users", shape[0], n_users), ("items", shape[1], n_items)):
        if expected is not None and size != expected:
            raise InvalidDataError(
                f"train has {size} {axis}, the model {expected}; give the matrix that the model "
                "was trained on"
            )


def recommend_lists(
    model: ImplicitModel,
    train: CSRMatrix,
    users: Integers,
    k: int,
    progress: bool | None = None,
) -> Items:
    """Recommend the `k` best unseen items to each user.

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
    _, n_items = catalogue(model)
    train = _as_model_input(model, train)
    lists = np.empty((len(users), k), np.int32)
    pending = np.arange(len(users))
    n_requested = min(k, n_items)
    with (
        threadpool_limits(limits=1, user_api="blas"),  # implicit has threads of its own
        tqdm(
            total=len(users), desc="recommend", unit=" users", disable=not is_shown(progress)
        ) as bar,
    ):
        while len(pending):
            incomplete = []
            size = max(1, min(USERS_PER_CALL, _IDS_PER_CALL // n_requested))
            for start in range(0, len(pending), size):
                rows = pending[start : start + size]
                lists[rows], complete = _recommend(model, train, users[rows], n_requested, k)
                incomplete.append(rows[~complete])
                bar.update(int(complete.sum()))
            pending = np.concatenate(incomplete)
            # Neighbour models return seen items too, which are then taken out of the lists.
            n_requested = min(4 * n_requested, n_items)
    return lists


def _recommend(
    model: ImplicitModel, train: CSRMatrix, users: Integers, n_requested: int, k: int
) -> tuple[Items, Booleans]:
    """Return the lists of some users, and whether each of them is complete."""
    returned = model.recommend(users, train[users], N=n_requested, filter_already_liked_items=True)
    try:
        ids, scores = (np.asarray(part) for part in returned)
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
    lists = np.empty((len(users), k), np.int32)
    complete = np.empty(len(users), np.bool_)
    # Only factor models mark an item by the lowest score; the others pad with the id -1.
    blocked = -np.finfo(scores.dtype).max if has_factors(model) else -np.inf
    keep_unseen(
        ids,
        scores,
        users,
        train.indptr,
        train.indices,
        train.shape[1],
        n_requested,
        float(blocked),
        lists,
        complete,
    )
    return lists, complete


def _as_model_input(model: ImplicitModel, train: CSRMatrix) -> CSRMatrix:
    """Return `train` with the class and dtypes that the model's compiled code takes."""
    dtype = np.float32 if has_factors(model) else np.float64
    matrix: CSRMatrix = sparse.csr_matrix(
        (
            train.data.astype(dtype, copy=False),
            train.indices.astype(np.int32, copy=False),
            train.indptr.astype(np.int32, copy=False),
        ),
        shape=train.shape,
        copy=False,
    )
    return matrix


def _from_checkpoint(checkpoint: Checkpoint) -> ImplicitModel:
    """Return a model of implicit that recommends what the saved one did."""
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.nearest_neighbours import ItemItemRecommender, NearestNeighboursScorer

    model: Any
    if checkpoint.similarity is not None:
        model = ItemItemRecommender()
        model.similarity = checkpoint.similarity.astype(np.float64)
        model.scorer = NearestNeighboursScorer(model.similarity)
    else:
        # The file does not say which family saved it. ALS will do for all of them, because they
        # rank by the product of their factors; the biases of BPR and LMF are columns of these.
        with threadpool_limits(limits=1, user_api="blas"):
            model = AlternatingLeastSquares()
        model.user_factors = checkpoint.user_factors
        model.item_factors = checkpoint.item_factors
    fitted: ImplicitModel = model
    return fitted
