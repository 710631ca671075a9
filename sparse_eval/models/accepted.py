"""Which models are accepted, and a model of `implicit` from whatever is given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from scipy import sparse

from ..core.arrays import is_array
from ..core.csr import plain_matrix
from ..core.warning import warn
from ..errors import InvalidDataError, UnsupportedModelError
from ..inputs.labelled import labels_of
from ..retrieval.factors import check_factors
from ..retrieval.scores import check_weights
from .checkpoints import Factors, check_similarity, read_checkpoint
from .identifiers import copy_ids
from .recommender import Recommender, own_model
from .scorers import ItemItemModel, Scorer

if TYPE_CHECKING:
    from ..core.types import AnyArray, CSRMatrix, Integers, PathLike, SparseInput
    from ..inputs.labelled import LabelledMatrix
    from ..retrieval.scores import ScoreFunction


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


#: A model as `as_model` returns it.
Model: TypeAlias = "ImplicitModel | Factors | ItemItemModel | Recommender | Scorer"

#: What `evaluate_model` takes: a model, a checkpoint, only factors, an item-item matrix, scores of
#: users × items, or a function that scores all items.
ModelLike: TypeAlias = "Model | tuple[Any, Any] | AnyArray | SparseInput | ScoreFunction | PathLike"


class FactorModel(ImplicitModel, Protocol):
    """A model of `implicit` that ranks by the product of its factors."""

    @property
    def user_factors(self) -> AnyArray:
        """The factors of users, shape (n_users, f)."""

    @property
    def item_factors(self) -> AnyArray:
        """The factors of items, shape (n_items, f)."""


def has_factors(model: Model) -> TypeGuard[FactorModel | Factors]:
    """Return whether a model has factors, rather than similarities of items."""
    return hasattr(model, "item_factors")


def as_model(model: Any) -> Model:
    """Return a fitted model on the CPU, given whatever `evaluate_model` takes but for pairs.

    Raises
    ------
    InvalidCheckpointError
        As `read_checkpoint`.
    UnsupportedModelError
        If the model cannot recommend, or was not fitted.
    InvalidDataError
        If the factors are not finite, or those of users and items differ in width; or if a matrix
        holds neither item-item weights nor scores.
    """
    if isinstance(model, str | Path):
        model = read_checkpoint(model).model
    if isinstance(model, Factors):
        check_factors(model.user_factors, model.item_factors)
        return model
    if isinstance(model, ItemItemModel):
        return replace(model, weights=check_weights(model.weights))
    if isinstance(model, Scorer):
        if model.item_item is None:
            return model
        return ItemItemModel(model.item_item, model.item_ids)
    if isinstance(model, Recommender):
        own = model.model if isinstance(model.model, tuple) else as_model(model.model)
        if isinstance(own, tuple | ItemItemModel | Scorer):
            raise UnsupportedModelError(
                "factors, matrices and functions cannot recommend; leave Recommender out"
            )
        return Recommender(own) if has_factors(own) else own
    if hasattr(model, "to_cpu"):
        model = copy_ids(model, model.to_cpu())
    if not callable(getattr(model, "recommend", None)):
        if sparse.issparse(plain_matrix(model)) or is_array(model):
            shape: tuple[int, ...] = getattr(model, "shape", ())
            if len(shape) == 2 and shape[0] != shape[1]:
                return Scorer(model)
            return ItemItemModel(check_weights(model), labels_of(model)[1], may_be_scores=True)
        if callable(model) and not isinstance(model, type):
            return Scorer(model)
        raise UnsupportedModelError(
            f"a {type(model).__name__} cannot recommend; expected a model of implicit, the path of "
            "a checkpoint, a pair of factors, an item-item matrix, scores of users × items, or a "
            "function that takes rows of users and returns their scores of all items; "
            "se.Scorer(frame) makes a model of a frame of scores"
        )
    if hasattr(model, "item_factors"):
        if model.item_factors is None or model.user_factors is None:
            raise UnsupportedModelError(f"the {type(model).__name__} has no factors; fit it first")
        check_factors(model.user_factors, model.item_factors)
    elif getattr(model, "similarity", None) is not None:
        check_similarity(model.similarity)
    else:
        raise UnsupportedModelError(
            f"the {type(model).__name__} has neither factors nor similarities; fit it first, or "
            "give an ALS, BPR, LMF or item-item neighbour model of implicit"
        )
    checked: ImplicitModel = model
    return checked


def takes_zeros(model: object) -> bool:
    """Return whether a model was trained on explicit zeros as positives: implicit's BPR is."""
    return type(own_model(model)).__name__ == "BayesianPersonalizedRanking"


def warn_of_zeros(model: object, train: LabelledMatrix) -> None:
    """Warn of explicit zeros in a matrix that a model took for positives."""
    n_zeros = int(np.count_nonzero(train.data == 0))
    if n_zeros and takes_zeros(model) and not (train.items and train.items.by_id):
        warn(
            f"train stores {n_zeros} explicit zeros (shown, not chosen), which implicit's BPR "
            "takes for positives; train it without them: EvaluationCallback.fit does so, or "
            "call matrix.eliminate_zeros() before fit"
        )


def without_zeros(model: object, train: sparse.csr_matrix) -> sparse.csr_matrix:
    """Remove the explicit zeros of a matrix, in place, if they would change the model.

    Neighbours count them, and divide by 0 where an item has nothing else.
    """
    if takes_zeros(model) or hasattr(model, "similarity"):
        train.eliminate_zeros()
    return train


def catalogue(model: Model) -> tuple[int | None, int]:
    """Return the number of users (None for an item-item model, which takes any) and of items."""
    own = own_model(model)
    n_users = len(own.user_factors) if has_factors(own) else getattr(own, "n_users", None)
    return n_users, count_items(model)


def count_items(model: Model) -> int:
    """Return the number of items."""
    model = own_model(model)
    if has_factors(model):
        return len(model.item_factors)
    if isinstance(model, ItemItemModel):
        return int(model.weights.shape[0])
    if isinstance(model, Scorer):
        assert model.n_items is not None  # noqa: S101 - see `numbered_as`
        return model.n_items
    similarity: CSRMatrix = getattr(model, "similarity")  # noqa: B009 - implicit has no types
    return similarity.shape[0]


def check_shape(
    model: Model, shape: tuple[int, int], only: str | None = None, name: str = "train"
) -> None:
    """Raise `InvalidDataError` unless a model was trained on a matrix of that shape.

    `only` one axis is checked, "users" or "items", if it is given. Messages call
    the matrix `name`.
    """
    n_users, n_items = catalogue(model)
    for axis, size, expected in (("users", shape[0], n_users), ("items", shape[1], n_items)):
        if expected is not None and size != expected and only in (None, axis):
            raise InvalidDataError(
                f"{name} has {size} {axis}, the model {expected}; give the matrix that the model "
                "was trained on"
            )
