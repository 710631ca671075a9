"""Training data and held-out items of models: opened, checked, and identified by content."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from scipy import sparse

from ..core.csr import training_csr
from ..core.hashing import digest_csr
from ..datasets.split.holdout import Holdout
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.labelled import LabelledMatrix, check_part, labels_of
from ..inputs.paths import read_truth
from ..inputs.relevance import Relevance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike

    from ..core.types import PathLike, SparseInput
    from ..datasets import Interactions
    from ..inputs.candidates import Candidates
    from ..inputs.scan import FrameLike

#: What a model was trained on, or what is held out.
TrainLike: TypeAlias = "SparseInput | Interactions | Relevance | FrameLike | PathLike | NewUsers"


@dataclass(frozen=True, eq=False)
class NewUsers:
    """A split by users, in place of training data: what to train on, and what to fold in.

    Attributes
    ----------
    holdout : Holdout
        With a part to fold in.
    """

    holdout: Holdout

    @property
    def train(self) -> LabelledMatrix:
        """What a model is trained on."""
        return self.holdout.train

    @property
    def fold_in(self) -> LabelledMatrix:
        """What a model is given of users whom it was not trained on."""
        part = self.holdout.fold_in
        assert part is not None  # noqa: S101 - see `training_part`
        return part

    @cached_property
    def seen(self) -> LabelledMatrix:
        """Both."""
        return self.holdout.seen


def training_part(holdout: Holdout) -> LabelledMatrix | NewUsers:
    """Return what stands for the training data of a holdout."""
    return holdout.train if holdout.fold_in is None else NewUsers(holdout)


#: What users can be recommended.
CandidatesLike: TypeAlias = "TrainLike | Candidates | Mapping[Any, Iterable[Any]] | ArrayLike"


def split_arguments(train: Any, validation: Any, metrics: Any) -> tuple[Any, Any, Any]:
    """Return train, validation and metrics, where a `Holdout` may stand for the first two.

    Of a split by users `train` is `NewUsers`.
    """
    if isinstance(train, Holdout):
        if validation is not None and metrics is not None:
            raise InvalidDataError(
                "a Holdout has a validation part of its own; give the Holdout and the metrics, or "
                "its parts: holdout.train, validation, metrics"
            )
        metrics = validation if metrics is None else metrics
        train, validation = training_part(train), train.validation
    if metrics is None:
        raise InvalidMetricError(
            "no metrics are given; expected train, validation and metrics, or a Holdout and metrics"
        )
    return train, validation, metrics


def open_train(train: Any, name: str = "the train matrix") -> LabelledMatrix:
    """Return training data, or the train part of a holdout; messages call a matrix `name`.

    Raises
    ------
    InvalidDataError
        If it is refused by `training_csr`, or is the validation part of a holdout.
    """
    train = train.train if isinstance(train, Holdout) else train
    check_part(train)
    opened = read_truth(train)
    if isinstance(opened, Relevance):
        return opened.to_csr()
    # Compiled code takes no csr_array.
    matrix = sparse.csr_matrix(training_csr(opened, name))
    if isinstance(opened, LabelledMatrix):
        return replace(opened, csr=matrix)
    return LabelledMatrix(matrix, *labels_of(opened))


def name_of(role: str, side: Any) -> str:
    """Return what messages call an input: its role and, if it is a file, its path."""
    return f"{role} ({side})" if isinstance(side, str | Path) else role


def open_held_out(validation: Any, name: str = "validation") -> Relevance:
    """Return held-out items.

    Raises
    ------
    InvalidDataError
        If no user has a relevant item.
    """
    relevance = open_relevance(validation)
    if not relevance.n_relevant.any():
        raise InvalidDataError(
            f"{name} has no relevant item: none of the {relevance.shape[0]} users has a stored "
            "value above 0, so there is nothing to evaluate"
        )
    return relevance


def open_relevance(truth: Any) -> Relevance:
    """Return relevant items, of which there may be none."""
    opened = read_truth(truth)
    return opened if isinstance(opened, Relevance) else Relevance.from_csr(opened)


def digest_of(side: LabelledMatrix | Relevance | NewUsers) -> str:
    """Return 16 hexadecimal digits that identify what a matrix holds, whatever its dtypes.

    Ids of users and items count, where it has any.
    """
    if isinstance(side, NewUsers):
        both = digest_of(side.train) + digest_of(side.fold_in)
        return sha256(both.encode()).hexdigest()[:16]
    matrix = side.to_csr() if isinstance(side, Relevance) else side
    digest = digest_csr(matrix.shape, matrix.indptr, matrix.indices, matrix.data)
    labels = matrix.users, matrix.items
    if any(axis is not None for axis in labels):
        hashed = sha256(digest.encode())
        for axis in labels:
            hashed.update(repr(None if axis is None else axis.tolist()).encode())
        digest = hashed.hexdigest()
    return digest[:16]
