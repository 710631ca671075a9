"""Align sides: the same users in the rows, the same items in the columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.csr import find_entries
from ..errors import InvalidDataError
from .labelled import labels_of

if TYPE_CHECKING:
    from ..core.types import Integers
    from .axes import Axis
    from .rankings import Rankings
    from .relevance import Relevance

_SIDES = ("validation", "the predictions")

#: How what has no ids gets them.
_REMEDIES = {
    "the model": "from se.train_als, or saved by se.save_model(model, path, users=…, items=…)",
    "candidates": "such as a mapping, a frame or pandas.Index(ids)",
}


class Place(NamedTuple):
    """Where the rows or columns of a side go among those of another.

    Attributes
    ----------
    places : ndarray of int64 or None
        The place of each; None if they stay.
    labels : Axis or None
        The labels of all, first those of the other side.
    size : int
        The number of all.
    """

    places: Integers | None
    labels: Axis | None
    size: int

    def sources(self, n: int) -> Integers:
        """Return which of the `n` rows or columns of the side goes to each place; -1 for none."""
        rows = np.full(self.size, -1)
        rows[slice(n) if self.places is None else self.places] = np.arange(n)
        return rows


def place(
    role: str,
    known: Axis | None,
    given: Axis | None,
    sizes: tuple[int, int],
    names: tuple[str, str],
) -> Place:
    """Match the rows or columns of a side with those of another: by id, or else by number.

    Those that the other side lacks come behind its own.

    Parameters
    ----------
    role : {"users", "items"}
    known, given : Axis or None
        The labels of the other side, and those to be matched with them.
    sizes : tuple of int
        The numbers of rows or columns of the two. If there are fewer labels than `sizes` has, there
        are none for what comes behind.
    names : tuple of str
        What messages call the two.

    Raises
    ------
    InvalidDataError
        If one was numbered from ids here and the other has none; or if ids are text on one side and
        something else on the other, so that none can match.
    """
    if known is None or given is None:
        labels, numbered, labelled = (given, *names) if known is None else (known, *names[::-1])
        if labels is not None and labels.by_id and min(sizes):
            remedy = _REMEDIES.get(
                numbered, "such as a frame, Interactions, or users=… and items=…"
            )
            raise InvalidDataError(
                f"there are ids of {role} in {labelled} ({labels[0]!r}, …), and only numbers in "
                f"{numbered}, so they cannot be matched; give {numbered} with ids, {remedy}; "
                "or give both as matrices with the same rows and columns"
            )
        return Place(None, labels, max(sizes))
    if known.is_text != given.is_text:
        known, given = known.as_text(), given.as_text()
    if given is known or given.equals(known):
        return Place(None, known, max(sizes))
    size = max(sizes[0], len(known))
    places, union = known.union(given)
    unknown = places >= len(known)
    if unknown.all() and len(known) and len(given) and known.is_text != given.is_text:
        raise InvalidDataError(
            f"no id of {names[1]} ({given[0]!r}, …) can be among the {role} of {names[0]} "
            f"({known[0]!r}, …): one has text and the other has not; give both ids of one type"
        )
    places[unknown] += size - len(known)
    labels = union if size == len(known) else known
    return Place(places, labels, size + int(np.count_nonzero(unknown)))


def moved(matrix: Any, rows: Place, columns: Place) -> Any:
    """Return a CSR with its rows and columns at their places, as it is if they stay."""
    if rows.places is None and columns.places is None:
        return matrix
    coo = matrix.tocoo()
    row, column = (
        entries if axis.places is None else axis.places[entries]
        for axis, entries in ((rows, coo.row), (columns, coo.col))
    )
    shape = [
        size if axis.places is None else axis.size
        for axis, size in zip((rows, columns), matrix.shape, strict=True)
    ]
    return sparse.csr_matrix((coo.data, (row, column)), tuple(shape))


def match(rankings: Any, relevance: Any) -> tuple[Place, Place]:
    """Return the places of the users and items of lists among those of relevance, or of matrices.

    Raises
    ------
    InvalidDataError
        As from `place`, or if the sides look transposed.
    """
    users, items = (
        place(role, known, given, sizes, _SIDES)
        for role, known, given, sizes in zip(
            ("users", "items"),
            labels_of(relevance),
            labels_of(rankings),
            zip(relevance.shape, rankings.shape, strict=True),
            strict=True,
        )
    )
    n_users, n_items = rankings.shape
    unlabelled = users.labels is None and items.labels is None
    if unlabelled and n_users != n_items and relevance.shape == (n_items, n_users):
        raise InvalidDataError(
            f"the predictions are {n_users} × {n_items} and validation is {n_items} × {n_users}: "
            "one of them is transposed; give both as users × items"
        )
    return users, items


def align(rankings: Rankings, relevance: Relevance) -> tuple[Rankings, Relevance]:
    """Return both sides with the same rows and columns; nothing is cut off.

    Raises
    ------
    InvalidDataError
        As from `match`; or if only one side has labels of users, and they are too few.
    """
    users, items = match(rankings, relevance)
    if users.labels is not None and len(users.labels) != users.size:
        raise InvalidDataError(
            f"one side has {users.size} users, the other side labels {len(users.labels)}; label "
            "both sides, or give the rows of validation that the lists are for, as in "
            "Rankings.from_topk(ids, user_rows=…)"
        )
    n_lists, n_listed = rankings.shape
    if users.places is not None or n_lists < users.size:
        rankings = rankings.take(users.sources(n_lists))
    if items.places is not None:
        n_listed = items.size
        rankings = replace(rankings, items=items.places[rankings.items].astype(np.int32))
    relevance = relevance.part(0, users.size)
    sides: list[Any] = []
    for side, n in ((rankings, n_listed), (relevance, relevance.shape[1])):
        labels = None if items.labels is None or n > len(items.labels) else items.labels
        shape = (users.size, n)
        sides.append(replace(side, shape=shape, users=users.labels, items_index=labels))
    rankings, relevance = sides
    if rankings.relevant_last:
        rankings = _put_relevant_last(rankings, relevance)
    return rankings, relevance


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
