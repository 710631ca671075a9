"""Training data, held-out items and candidates of models: opened, checked and identified."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from ..core.csr import training_csr
from ..core.hashing import digest_csr
from ..datasets.split.holdout import Holdout
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.candidates import JUDGED, Candidates, as_candidates, is_sampled, name_among
from ..inputs.labelled import LabelledMatrix, check_part, labels_of
from ..inputs.paths import read_truth
from ..inputs.relevance import Relevance
from .matching import match_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import ArrayLike

    from ..core.types import PathLike, SparseInput
    from ..datasets import Interactions
    from ..inputs.candidates import Candidates
    from ..inputs.scan import FrameLike
    from ..metrics.request import Request


#: What a model was trained on, or what is held out.
TrainLike: TypeAlias = "SparseInput | Interactions | Relevance | FrameLike | PathLike | Holdout"


def training_part(holdout: Holdout) -> LabelledMatrix | Holdout:
    """Return what stands for the training data: a split by users itself, with users to fold in."""
    return holdout.train if holdout.fold_in is None else holdout


#: What users can be recommended.
CandidatesLike: TypeAlias = "TrainLike | Candidates | Mapping[Any, Iterable[Any]] | ArrayLike"


def split_arguments(train: Any, validation: Any, metrics: Any) -> tuple[Any, Any, Any]:
    """Return train, validation and metrics, where a `Holdout` may stand for the first two.

    Train is the part, or a split by users, see `training_part`.
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


def digest_of(side: LabelledMatrix | Relevance | Holdout) -> str:
    """Return 16 hexadecimal digits that identify what a matrix holds, whatever its dtypes.

    Ids of users and items count, where it has any.
    """
    if isinstance(side, Holdout):
        both = [digest_of(part) for part in (side.train, side.fold_in) if part is not None]
        return sha256("".join(both).encode()).hexdigest()[:16]
    matrix = side.to_csr() if isinstance(side, Relevance) else side
    digest = digest_csr(matrix.shape, matrix.indptr, matrix.indices, matrix.data)
    labels = matrix.users, matrix.items
    if any(axis is not None for axis in labels):
        hashed = sha256(digest.encode())
        for axis in labels:
            hashed.update(repr(None if axis is None else axis.tolist()).encode())
        digest = hashed.hexdigest()
    return digest[:16]


#: Candidates, or a function of a split that returns its own.
CandidatesOfSplit: TypeAlias = "CandidatesLike | Callable[[Holdout], CandidatesLike]"


class Shared(NamedTuple):
    """The candidates of several evaluations of the same data.

    Attributes
    ----------
    inputs : dict
        What evaluations are given of them, matched with the data.
    digest : str or None
        16 hexadecimal digits that identify them, beside the data.
    request : Request
        It estimates metrics from ranks among the candidates, if these ask for it.
    names : dict of str to str
        What each metric is called in a table.
    """

    inputs: dict[str, Any]
    digest: str | None
    request: Request
    names: dict[str, str]


def share_candidates(
    given: CandidatesLike | None,
    train: LabelledMatrix,
    relevance: Relevance,
    request: Request,
    names: tuple[str, str] = ("train", "validation"),
) -> Shared:
    """Match both parts of a split, and candidates with them, before any model is evaluated.

    Parameters
    ----------
    given : as `candidates` of `evaluate_model`
    train, relevance, names
        As in `match_sides`.
    request : Request
        What is to be computed.

    Raises
    ------
    InvalidDataError
        As from `match_sides`; if candidates are sampled and lack held-out items, as those do that
        were sampled beside others.
    """
    opened = None if given is None else as_candidates(given)
    sides = match_sides(None, train, relevance, names, opened)
    candidates, truth = sides.candidates, sides.relevance
    inputs, digest, kind = {}, None, None
    if candidates is not None:
        is_relevant = truth.gains > 0
        n_outside = np.count_nonzero(is_relevant & ~candidates.hold(truth.indptr, truth.items))
        if n_outside and is_sampled(candidates.kind):
            raise InvalidDataError(
                f"candidates are sampled ({candidates.kind}), and {n_outside} of "
                f"{np.count_nonzero(is_relevant)} relevant items of {names[1]} are not among them; "
                "sample them beside these items, as se.sample_negatives does; cross_validate and "
                "tune take a function of the split that returns them"
            )
        inputs, kind = {"candidates": candidates}, candidates.kind
        indptr = candidates.indptr
        bounds = np.array([0, len(candidates.items)]) if indptr is None else indptr
        digest = digest_csr(candidates.shape, bounds, candidates.items)[:16]
        if candidates.estimator is not None:
            digest = f"{digest} {candidates.estimator}"
            request = request.corrected_by(candidates.estimator)
    kind = JUDGED if request.judged_only else kind
    shown = {name: name_among(name, kind, request.corrected) for name in request.names}
    return Shared(inputs, digest, request, shown)
