"""Lists beside judgements: what is judged is what the relevance stores, explicit zeros included."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidDataError
from .candidates import JUDGED, Candidates, mark_seen

if TYPE_CHECKING:
    from .rankings import Rankings
    from .relevance import Relevance


def condense(rankings: Rankings, relevance: Relevance) -> Rankings:
    """Return lists without the items that nobody has judged; the others move up.

    Raises
    ------
    InvalidDataError
        If items are tied for positions some of which are beyond the end of the list.

    References
    ----------
    T. Sakai, "Alternatives to Bpref", SIGIR 2007. doi:10.1145/1277741.1277756
    """
    kept = mark_seen(rankings.indptr, rankings.items, relevance.indptr, relevance.items)
    condensed = rankings.keep(kept)
    indptr = condensed.indptr
    condensed = replace(condensed, gapped_positions=None, lengths=np.diff(indptr))
    if rankings.last_positions is None:
        return condensed
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(rankings.indptr))
    is_cut = rankings.last_positions > rankings.lengths[rows]
    if is_cut.any():
        raise InvalidDataError(
            f"the list of user {rows[is_cut][0]} ends among items that are tied, so that nothing "
            "says which of them are in it; for judged items alone make lists of all items, without "
            'k=, or with ties="item"',
            user=rows[is_cut][0],
        )
    rows, first = rows[kept], rankings.positions[kept]
    begins = np.append(True, (rows[1:] != rows[:-1]) | (first[1:] != first[:-1]))[: len(rows)]
    starts = np.flatnonzero(begins)
    group = np.cumsum(begins) - 1
    position = starts[group] - indptr[rows] + 1
    sizes = np.diff(np.append(starts, len(rows)))
    return replace(
        condensed,
        gapped_positions=position.astype(np.int32),
        last_positions=(position + sizes[group] - 1).astype(np.int32),
    )


def check_judged_listed(rankings: Rankings, relevance: Relevance) -> None:
    """Raise if nothing says at which positions of a list judged items are.

    A list may have positions without an item only if all judged items of its user are at others.
    """
    counts = np.diff(rankings.indptr)
    gapped = counts < rankings.lengths
    if rankings.last_positions is not None or not gapped.any():
        return
    listed = mark_seen(rankings.indptr, rankings.items, relevance.indptr, relevance.items)
    rows = np.repeat(np.arange(len(counts)), counts)
    missing = np.diff(relevance.indptr) - np.bincount(rows[listed], minlength=len(counts))
    unknown = np.flatnonzero(gapped & (missing > 0))
    if len(unknown):
        user = unknown[0]
        raise InvalidDataError(
            f"the list of user {user} has positions without an item, and {missing[user]} of the "
            "user's judged items (stored in validation, zeros too) are at no other, so that nothing"
            " says where they are; give complete lists, or evaluate the model by evaluate_model",
            user=user,
        )


def judged_candidates(relevance: Relevance) -> Candidates:
    """Return the judged items of each user, as what it can be recommended."""
    return Candidates(relevance.shape, relevance.indptr, relevance.items, JUDGED)
