"""Open and check the parts of a split: training data and held-out items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from scipy import sparse

from ...core.csr import training_csr
from ...core.hashing import digest, digest_csr
from ...errors import InvalidDataError, InvalidMetricError
from ...inputs.labelled import LabelledMatrix, check_part
from ...inputs.paths import read_truth
from ...inputs.relevance import Relevance
from .holdout import Holdout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import ArrayLike

    from ...core.types import PathLike, SparseInput
    from ...inputs.candidates import Candidates
    from ...inputs.tables import FrameLike
    from ..interactions import Interactions


#: Training data or held-out items.
TrainLike: TypeAlias = "SparseInput | Interactions | Relevance | FrameLike | PathLike | Holdout"


def training_part(holdout: Holdout) -> LabelledMatrix | Holdout:
    """Return the training data of a split, or a split by users itself, for its users to fold in."""
    return holdout.train if holdout.fold_in is None else holdout


#: Items that can be recommended to users.
CandidatesLike: TypeAlias = "TrainLike | Candidates | Mapping[Any, Iterable[Any]] | ArrayLike"

#: Candidates, or a function of a split that returns its own.
CandidatesOfSplit: TypeAlias = "CandidatesLike | Callable[[Holdout], CandidatesLike]"


def load_split(train: Any) -> Any:
    """Return the split that was saved in the folder `train`, and any other data as they are."""
    if isinstance(train, str | Path) and (Path(train) / "labels.npz").exists():
        return Holdout.load(train)
    return train


def split_arguments(train: Any, validation: Any, metrics: Any) -> tuple[Any, Any, Any]:
    """Return train, validation and metrics, where a `Holdout` may stand for the first two.

    So may the folder where it was saved. Train is the part, or a split by users, see
    `training_part`.
    """
    train = load_split(train)
    if isinstance(train, Holdout):
        if validation is not None and metrics is not None:
            raise InvalidDataError(
                "a Holdout has its own validation part. Pass the Holdout and the metrics, or "
                "its parts: holdout.train, validation, metrics"
            )
        metrics = validation if metrics is None else metrics
        train, validation = training_part(train), train.validation
    elif validation is None and metrics is not None:
        raise InvalidDataError(
            "validation is None, as the test part of a Holdout is if the split made none. Pass "
            "holdout.validation, or the Holdout and metrics",
            argument="validation",
        )
    if metrics is None:
        raise InvalidMetricError(
            "no metrics are given; expected train, validation and metrics, or a Holdout and metrics"
        )
    return train, validation, metrics


def open_train(train: Any, name: str = "the train matrix") -> LabelledMatrix:
    """Return training data, or the train part of a holdout; messages call a matrix `name`.

    Raises `InvalidDataError` if it is not valid for `training_csr`, or is the validation part of a
    holdout.
    """
    opened = train.train if isinstance(train, Holdout) else train
    if not sparse.issparse(opened):
        check_part(opened)
        opened = read_truth(opened)
    if isinstance(opened, Relevance):
        return opened.to_csr()
    # Compiled code takes no csr_array.
    matrix = sparse.csr_matrix(training_csr(opened, name))
    if isinstance(opened, LabelledMatrix):
        return replace(opened, csr=matrix)
    return LabelledMatrix(matrix)


def name_of(role: str, side: Any) -> str:
    """Return the name of an input in messages: its role and, if it is a file, its path."""
    return f"{role} ({side})" if isinstance(side, str | Path) else role


def open_held_out(validation: Any, name: str = "validation") -> Relevance:
    """Return held-out items.

    Raises `InvalidDataError` if no user has a relevant item.
    """
    relevance = open_relevance(validation)
    if not (relevance.gains > 0).any():
        raise InvalidDataError(
            f"{name} has no relevant item: none of the {relevance.shape[0]} users has a stored "
            "value above 0, so there is nothing to evaluate"
        )
    return relevance


def open_relevance(truth: Any) -> Relevance:
    """Return relevant items; there may be none."""
    opened = truth if sparse.issparse(truth) else read_truth(truth)
    return opened if isinstance(opened, Relevance) else Relevance.from_csr(opened)


def digest_of(side: LabelledMatrix | Relevance | Holdout) -> str:
    """Return a digest of a matrix: 16 hexadecimal digits that do not depend on its dtypes.

    Ids of users and items count, if it has any.
    """
    if isinstance(side, Holdout):
        both = [digest_of(part) for part in (side.train, side.fold_in) if part is not None]
        return digest(*both)[:16]
    matrix = side.to_csr() if isinstance(side, Relevance) else side
    of_entries = digest_csr(matrix.shape, matrix.indptr, matrix.indices, matrix.data)
    if matrix.users is matrix.items is None:
        return of_entries[:16]
    labels = (None if axis is None else axis.tolist() for axis in (matrix.users, matrix.items))
    return digest(of_entries, *map(repr, labels))[:16]
