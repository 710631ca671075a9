"""Align both sides of an evaluation: the same users in the rows, the same items in the columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..core.csr import find_entries
from ..errors import InvalidDataError
from .training import take_rows

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, Integers
    from .axes import Axis
    from .rankings import Rankings
    from .relevance import Relevance


Side = TypeVar("Side", "Rankings", "Relevance")


def align(rankings: Rankings, relevance: Relevance) -> tuple[Rankings, Relevance]:
    """Return both sides with the same rows and columns; nothing is cut off.

    Raises
    ------
    InvalidDataError
        If one side has ids, and the other is numbered by row and column, so that nothing says which
        row is whose; if the sides look transposed; or if ids are numbers on one side and text on
        the other.
    """
    check_numbering(rankings, relevance)
    if rankings.users is not None and relevance.users is not None:
        rankings, relevance = _match_users(rankings, relevance)
    if rankings.items_index is not None and relevance.items_index is not None:
        if rankings.items_index is not relevance.items_index:
            # Items that the relevance lacks come after those that it numbers.
            columns, union = locate(relevance.items_index, rankings.items_index, "item", _SIDES)
            rankings = replace(
                rankings,
                shape=(rankings.shape[0], len(union)),
                items=columns[rankings.items].astype(np.int32),
                items_index=union,
            )
    else:  # columns of one number are the same item
        rankings, relevance = (
            _share_items(rankings, relevance.items_index),
            _share_items(relevance, rankings.items_index),
        )
    missing = len(relevance.indptr) - len(rankings.indptr)
    if missing > 0:
        rankings = replace(
            rankings,
            indptr=_pad_rows(rankings.indptr, missing),
            lengths=np.concatenate((rankings.lengths, np.zeros(missing, np.int64))),
        )
    elif missing < 0:
        relevance = replace(relevance, indptr=_pad_rows(relevance.indptr, -missing))
    n_users = len(relevance.indptr) - 1
    labels = rankings.users if relevance.users is None else relevance.users
    if labels is not None and len(labels) != n_users:
        raise InvalidDataError(
            f"one side has {n_users} users, the other side labels {len(labels)}; label both sides, "
            "or give the rows of validation that the lists are for, as in "
            "Rankings.from_topk(ids, user_rows=…)"
        )
    if rankings.relevant_last:
        rankings = _put_relevant_last(rankings, relevance)
    return (
        replace(rankings, shape=(n_users, rankings.shape[1]), users=labels),
        replace(relevance, shape=(n_users, relevance.shape[1]), users=labels),
    )


def check_numbering(rankings: Rankings | CSRMatrix, relevance: Relevance | CSRMatrix) -> None:
    """Raise if rows or columns of the sides cannot be those of the same users or items."""
    sides = tuple(zip(_SIDES, (rankings, relevance), strict=True))
    unlabelled = True
    for axis in ("users", "items_index"):
        labels = [getattr(side, axis, None) for _, side in sides]
        unlabelled = unlabelled and all(one is None for one in labels)
        if (labels[0] is None) == (labels[1] is None):
            continue
        (numbered, _), (labelled, side) = sides if labels[0] is None else sides[::-1]
        if getattr(side, "encoded", False):
            name = axis.removesuffix("_index")
            example = next(iter(getattr(side, axis)), None)
            raise InvalidDataError(
                f"{labelled} name {name} by id ({example!r}, …), and {numbered} number them, so "
                f"nothing says which is which; give {numbered} the ids too, such as "
                f"Rankings.from_topk(ids, users=…, items=…) or Relevance.from_csr(matrix, users=…, "
                "items=…), or give both as frames, or both as matrices"
            )
    n_users, n_items = rankings.shape
    if unlabelled and n_users != n_items and relevance.shape == (n_items, n_users):
        raise InvalidDataError(
            f"the predictions are {n_users} × {n_items} and validation is {n_items} × {n_users}: "
            "one of them is transposed; give both as users × items"
        )


def check_types(labels: Axis, others: Axis, role: str, sides: tuple[str, str]) -> None:
    """Raise if ids are text on one side and something else on the other, so that none can match."""
    if len(labels) and len(others) and labels.is_text != others.is_text:
        raise InvalidDataError(
            f"no {role} of {sides[0]} ({labels[0]!r}, …) can be among those of {sides[1]} "
            f"({others[0]!r}, …): one has text and the other has not; give both ids of "
            "one type"
        )


def locate(
    known: Axis, given: Axis, role: str, sides: tuple[str, str], n: int = 0
) -> tuple[Integers, Axis]:
    """Return the positions of given labels among those known, and the union of both.

    Axis that are not known come behind the known ones, and behind `n` positions: only if these
    all have labels are there labels for what comes behind. Raises as `check_types` does, which
    takes the labels of `sides` in the order given, known.
    """
    positions, union = known.union(given)
    unknown = positions >= len(known)
    if unknown.all():
        check_types(given, known, role, sides)
    positions[unknown] += max(n - len(known), 0)
    return positions, union if n <= len(known) else known


_SIDES = ("the predictions", "validation")


def _share_items(side: Side, labels: Axis | None) -> Side:
    """Label the items of a side that only numbers them, as far as the labels go."""
    if labels is None or side.shape[1] > len(labels):
        return side
    return replace(side, items_index=labels)


def _pad_rows(indptr: Integers, missing: int) -> Integers:
    return np.concatenate((indptr, np.full(missing, indptr[-1])))


def _match_users(rankings: Rankings, relevance: Relevance) -> tuple[Rankings, Relevance]:
    """Order the lists as the users of the relevance; users that it lacks come after them."""
    assert rankings.users is not None and relevance.users is not None  # noqa: S101, PT018
    if rankings.users is relevance.users and len(rankings.indptr) == len(relevance.indptr):
        return rankings, relevance
    _, labels = relevance.users.union(rankings.users)
    source = rankings.users.locate(labels)  # -1, of no list, is the empty row at the end
    if (source[: len(relevance.users)] < 0).all():
        check_types(rankings.users, relevance.users, "user", _SIDES)
    padded = _pad_rows(rankings.indptr, 1)
    indptr, taken = take_rows(padded, source, np.arange(len(rankings.items)))
    gapped, last = rankings.gapped_positions, rankings.last_positions
    matched = replace(
        rankings,
        shape=(len(labels), rankings.shape[1]),
        indptr=indptr,
        items=rankings.items[taken],
        gapped_positions=None if gapped is None else gapped[taken],
        lengths=np.append(rankings.lengths, 0)[source],
        last_positions=None if last is None else last[taken],
        users=labels,
        encoded=False,
    )
    return matched, replace(
        relevance,
        indptr=_pad_rows(relevance.indptr, len(labels) - len(relevance.users)),
        users=labels,
    )


def _put_relevant_last(rankings: Rankings, relevance: Relevance) -> Rankings:
    """Order items of equal score by gain, then by id, and cut each list at its length."""
    n_users = len(rankings.indptr) - 1
    n_items = max(rankings.shape[1], relevance.shape[1])
    rows = np.repeat(np.arange(n_users), np.diff(rankings.indptr))
    entries = find_entries(rows, rankings.items, relevance.indptr, relevance.items, n_items)
    gains = np.append(relevance.gains, 0.0)[entries]
    order = np.lexsort((rankings.items, gains, rankings.positions, rows))
    ranks = np.arange(len(rows)) - rankings.indptr[:-1][rows]
    kept = ranks < rankings.lengths[rows]
    return replace(
        rankings,
        indptr=np.concatenate((np.zeros(1, np.int64), np.cumsum(rankings.lengths))),
        items=rankings.items[order][kept],
        gapped_positions=None,
        last_positions=None,
        relevant_last=False,
    )
