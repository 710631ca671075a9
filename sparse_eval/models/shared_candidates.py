"""Candidates that several evaluations share: checked once, named, and identified by content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..core.hashing import digest_csr
from ..errors import InvalidDataError
from ..inputs.candidates import JUDGED, Candidates, as_candidates, is_sampled, name_among
from .matching import match_sides

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..datasets.split.holdout import Holdout
    from ..inputs.labelled import LabelledMatrix
    from ..inputs.relevance import Relevance
    from ..metrics.request import Request
    from .inputs import CandidatesLike

#: Candidates, or a function of a split that returns its own.
CandidatesOfSplit: TypeAlias = "CandidatesLike | Callable[[Holdout], CandidatesLike]"


class SharedCandidates(NamedTuple):
    """The candidates of several evaluations of the same data; those of no candidates are None.

    Attributes
    ----------
    candidates : Candidates or None
        Matched with the data.
    digest : str or None
        16 hexadecimal digits that identify them, beside the data.
    """

    candidates: Candidates | None = None
    digest: str | None = None

    @property
    def kind(self) -> str | None:
        """What they are called."""
        return None if self.candidates is None else self.candidates.kind

    @property
    def inputs(self) -> dict[str, Any]:
        """What evaluations are given of them."""
        return {} if self.candidates is None else {"candidates": self.candidates}

    def corrected(self, request: Request) -> Request:
        """Return the request that estimates metrics from ranks among them, if it is to."""
        return request.corrected_by(None if self.candidates is None else self.candidates.estimator)

    def names(self, request: Request) -> dict[str, str]:
        """Return what each metric of a request is called in a table."""
        kind = JUDGED if request.judged_only else self.kind
        return {name: name_among(name, kind, request.corrected) for name in request.names}


def share_candidates(
    given: CandidatesLike | None,
    train: LabelledMatrix,
    relevance: Relevance,
    request: Request,
    names: tuple[str, str] = ("train", "validation"),
) -> SharedCandidates:
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
    candidates = sides.candidates
    if candidates is None:
        return SharedCandidates()
    shared = SharedCandidates(candidates, _digest(candidates))
    truth = sides.relevance
    is_relevant = truth.gains > 0
    n_outside = np.count_nonzero(is_relevant & ~candidates.hold(truth.indptr, truth.items))
    if n_outside and is_sampled(candidates.kind):
        raise InvalidDataError(
            f"candidates are sampled ({candidates.kind}), and {n_outside} of "
            f"{np.count_nonzero(is_relevant)} relevant items of {names[1]} are not among them; "
            "sample them beside these items, as se.sample_negatives does; cross_validate and tune "
            "take a function of the split that returns them"
        )
    return shared


def _digest(candidates: Candidates) -> str:
    indptr = candidates.indptr
    bounds = np.array([0, len(candidates.items)]) if indptr is None else indptr
    digest = digest_csr(candidates.shape, bounds, candidates.items)[:16]
    return digest if candidates.estimator is None else f"{digest} {candidates.estimator}"
