"""Which models are accepted, and a model of `implicit` from whatever is given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from threadpoolctl import threadpool_limits

from ..errors import InvalidDataError, UnsupportedModelError
from ..retrieval.factors import check_factors
from .checkpoints import Checkpoint, Factors, check_similarity, read_checkpoint
from .identifiers import copy_ids, keep_ids

if TYPE_CHECKING:
    from ..core.types import AnyArray, CSRMatrix, Integers, PathLike


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
        model = copy_ids(model, model.to_cpu())
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


def takes_zeros(model: object) -> bool:
    """Return whether a model was trained on explicit zeros as positives: implicit's BPR is."""
    return type(model).__name__ == "BayesianPersonalizedRanking"


def without_zeros(model: object, train: CSRMatrix) -> CSRMatrix:
    """Remove the explicit zeros of a matrix, in place, if the model would take them."""
    if takes_zeros(model):
        train.eliminate_zeros()
    return train


def catalogue(model: ImplicitModel | Factors) -> tuple[int | None, int]:
    """Return the number of users (None for a neighbour model, which takes any) and of items."""
    if has_factors(model):
        return len(model.user_factors), len(model.item_factors)
    similarity: CSRMatrix = getattr(model, "similarity")  # noqa: B009 - implicit has no types
    return None, similarity.shape[0]


def check_shape(
    model: ImplicitModel | Factors, shape: tuple[int, int], only: str | None = None
) -> None:
    """Raise `InvalidDataError` unless a model was trained on a matrix of that shape.

    `only` one axis is checked, "users" or "items", if it is given.
    """
    n_users, n_items = catalogue(model)
    for axis, size, expected in (("users", shape[0], n_users), ("items", shape[1], n_items)):
        if expected is not None and size != expected and only in (None, axis):
            raise InvalidDataError(
                f"train has {size} {axis}, the model {expected}; give the matrix that the model "
                "was trained on"
            )


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
        # Only ALS saves an alpha; others do not say how the factors of a new user are found.
        parameters = checkpoint.parameters if "alpha" in checkpoint.parameters else {}
        model.regularization = parameters.get("regularization")
        model.alpha = parameters.get("alpha")
        model.user_factors = checkpoint.user_factors
        model.item_factors = checkpoint.item_factors
    keep_ids(model, checkpoint.user_ids, checkpoint.item_ids)
    fitted: ImplicitModel = model
    return fitted
