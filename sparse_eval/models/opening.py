"""`as_model`: make a `Model` of any accepted form: paths, arrays, functions, models of implicit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from ..core.arrays import is_array
from ..core.atomic_files import as_input
from ..core.csr import plain_matrix
from ..core.messages import warn
from ..errors import UnsupportedModelError
from ..inputs.labelled import labels_of
from ..inputs.npy import open_array
from ..retrieval.ranker import check_factors
from ..retrieval.score_search import check_weights
from .checkpoints import SavedFactors, check_similarity, read_checkpoint
from .ids import ITEM_IDS, USER_IDS
from .model import Factors, ImplicitFactors, Model
from .own_lists import Recommender
from .scorers import ItemItemModel, Scorer
from .trained_on import copy_ids, without_old_training

if TYPE_CHECKING:
    from ..core.types import AnyArray, PathLike, SparseInput
    from ..inputs.labelled import LabelledMatrix
    from ..retrieval.score_search import ScoreFunction


#: Models for `evaluate_model`: a fitted model of implicit, a checkpoint, only factors, an item-item
#: matrix, scores of users × items, or a function that scores all items.
ModelLike: TypeAlias = (
    "Model | Recommender | Scorer | tuple[Any, Any] | AnyArray | SparseInput | ScoreFunction "
    "| PathLike | Any"
)


def as_model(model: Any, *, check: bool = True) -> Model:
    """Return a fitted model on the CPU, given what `evaluate_model` takes.

    Factors in arrays, which may stay on disk, are not read unless `check`; rankers check theirs.

    Raises
    ------
    InvalidCheckpointError
        As `read_checkpoint`.
    UnsupportedModelError
        If the model cannot recommend, or was not fitted.
    InvalidDataError
        If the factors are not finite, or user and item factors differ in width. If a matrix is
        neither item-item weights nor scores.
    """
    if isinstance(model, str | Path):
        path = as_input(model)
        model = _open_folder(path) if path.is_dir() else read_checkpoint(path).model
    if isinstance(model, tuple) and len(model) == 2:
        sides = (open_array(as_input(x)) if isinstance(x, str | Path) else x for x in model)
        model = Factors(*sides)
    if isinstance(model, Factors):
        given: tuple[Any, ...] = model[:2]
        are_arrays = all(isinstance(x, np.ndarray) or is_array(x) for x in given)
        if check or not (are_arrays and all(getattr(x, "ndim", 2) == 2 for x in given)):
            check_factors(model.user_factors, model.item_factors)
        return model
    if isinstance(model, ItemItemModel):
        return replace(model, weights=check_weights(model.weights))
    if isinstance(model, Scorer) and model.item_item is not None:
        return ItemItemModel(model.item_item, model.item_ids)
    if isinstance(model, Recommender):
        trained = as_model(model.model).trained
        if trained is None:
            raise UnsupportedModelError(
                "factors, matrices and functions have no recommend(); pass them without Recommender"
            )
        is_saved = isinstance(trained, SavedFactors)
        return Recommender(trained.to_implicit() if is_saved else trained)
    if isinstance(model, Model):
        return model
    if hasattr(model, "to_cpu"):
        model = copy_ids(model, model.to_cpu())
    if isinstance(model, SavedFactors) or callable(getattr(model, "recommend", None)):
        return _of_implicit(model, check)
    if sparse.issparse(plain_matrix(model)) or is_array(model):
        shape: tuple[int, ...] = getattr(model, "shape", ())
        if len(shape) == 2 and shape[0] != shape[1]:
            return Scorer(model)
        return ItemItemModel(check_weights(model), labels_of(model)[1], may_be_scores=True)
    if callable(model) and not isinstance(model, type):
        return Scorer(model)
    raise UnsupportedModelError(
        f"{type(model).__name__} is not a model; expected a model of implicit, the path of "
        "a checkpoint, a pair of factors, an item-item matrix, scores of users × items, or a "
        "function that takes rows of users and returns their scores of all items. "
        "For a frame of scores, use se.Scorer(frame)"
    )


def _of_implicit(model: Any, check: bool) -> Model:
    if hasattr(model, "item_factors"):
        if model.item_factors is None or model.user_factors is None:
            raise UnsupportedModelError(f"the {type(model).__name__} has no factors; fit it first")
        if check:
            check_factors(model.user_factors, model.item_factors)
        return ImplicitFactors.of_model(without_old_training(model))
    if getattr(model, "similarity", None) is not None:
        check_similarity(model.similarity)
        return Recommender(without_old_training(model))
    raise UnsupportedModelError(
        f"the {type(model).__name__} has neither factors nor similarities; fit it first, or pass "
        "an ALS, BPR, LMF or item-item neighbour model of implicit"
    )


def _open_folder(folder: Path) -> Factors:
    """Return the factors in the ``.npy`` files of a folder, with the ids there, if any."""
    files = [folder / f"{name}.npy" for name in (USER_IDS, ITEM_IDS)]
    ids = [open_array(file) if file.exists() else None for file in files]
    sides = (open_array(folder / f"{name}.npy") for name in ("user_factors", "item_factors"))
    return Factors(*sides, *ids)


def takes_zeros(trained: object) -> bool:
    """Return whether a model was trained on explicit zeros as positives: implicit's BPR is."""
    return type(trained).__name__ == "BayesianPersonalizedRanking"


def warn_of_zeros(model: Model, train: LabelledMatrix) -> None:
    """Warn about explicit zeros in a matrix that a model took for positives."""
    n_zeros = int(np.count_nonzero(train.data == 0))
    if n_zeros and takes_zeros(model.trained) and not (train.items and train.items.by_id):
        warn(
            f"train stores {n_zeros} explicit zeros (shown, not chosen), which implicit's BPR "
            "treats as positive. Train with EvaluationCallback.fit, which drops them, or call "
            "matrix.eliminate_zeros() before fit"
        )


def without_zeros(model: object, train: sparse.csr_matrix) -> sparse.csr_matrix:
    """Remove the explicit zeros of a matrix, in place, if they would change the model.

    Neighbours count them, and divide by 0 if an item has nothing else.
    """
    if takes_zeros(model) or hasattr(model, "similarity"):
        train.eliminate_zeros()
    return train
