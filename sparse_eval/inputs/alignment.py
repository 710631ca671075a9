"""Align both sides of an evaluation: the same users in the rows, the same items in the columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidDataError
from .rankings import Rankings

if TYPE_CHECKING:
    from ..core.types import Integers, Labels
    from .relevance import Relevance


def align(rankings: Rankings, relevance: Relevance) -> tuple[Rankings, Relevance]:
    """Return both sides with the same rows and columns; nothing is cut off."""
    if rankings.users is not None and relevance.users is not None:
        rankings, relevance = _match_users(rankings, relevance)
    if rankings.items_index is not None and relevance.items_index is not None:
        rankings = _match_items(rankings, relevance.items_index)
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
            "or none"
        )
    return (
        replace(rankings, shape=(n_users, rankings.shape[1]), users=labels),
        replace(relevance, shape=(n_users, relevance.shape[1]), users=labels),
    )


def _check_common(labels: Labels, others: Labels, role: str) -> None:
    """Raise if no label is on both sides, as if one has numbers and the other text."""
    if len(labels) and len(others) and not labels.isin(others).any():
        raise InvalidDataError(
            f"no {role} of the rankings ({labels.tolist()[0]!r}, …, {labels.dtype}) is among those "
            f"of the relevance ({others.tolist()[0]!r}, …, {others.dtype}); give both the same "
            "ids, of one type"
        )


def _pad_rows(indptr: Integers, missing: int) -> Integers:
    return np.concatenate((indptr, np.full(missing, indptr[-1])))


def _match_users(rankings: Rankings, relevance: Relevance) -> tuple[Rankings, Relevance]:
    """Order the lists as the users of the relevance; users that it lacks come after them."""
    assert rankings.users is not None and relevance.users is not None  # noqa: S101, PT018
    labels: Labels = relevance.users.append(rankings.users[~rankings.users.isin(relevance.users)])
    _check_common(rankings.users, relevance.users, "user")
    source = rankings.users.get_indexer(labels)
    has_list = source >= 0
    counts = np.zeros(len(labels), np.int64)
    counts[has_list] = np.diff(rankings.indptr)[source[has_list]]
    lengths = np.zeros(len(labels), np.int64)
    lengths[has_list] = rankings.lengths[source[has_list]]
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    starts = np.zeros(len(labels), np.int64)
    starts[has_list] = rankings.indptr[source[has_list]]
    taken = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
    last = rankings.last_positions
    matched = Rankings(
        (len(labels), rankings.shape[1]),
        indptr,
        rankings.items[taken],
        rankings.positions[taken],
        lengths,
        None if last is None else last[taken],
        labels,
        rankings.items_index,
    )
    return matched, replace(
        relevance,
        indptr=_pad_rows(relevance.indptr, len(labels) - len(relevance.users)),
        users=labels,
    )


def _match_items(rankings: Rankings, labels: Labels) -> Rankings:
    """Renumber items as the relevance numbers them; items that it lacks come after them."""
    assert rankings.items_index is not None  # noqa: S101 - for the type checker
    _check_common(rankings.items_index, labels, "item")
    columns = labels.get_indexer(rankings.items_index)
    unknown = columns < 0
    columns[unknown] = len(labels) + np.arange(unknown.sum())
    union = labels.append(rankings.items_index[unknown])
    return replace(
        rankings,
        shape=(rankings.shape[0], len(union)),
        items=columns[rankings.items].astype(np.int32),
        items_index=union,
    )
