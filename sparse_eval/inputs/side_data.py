"""`align` and `SideData`: lists, relevance and all other inputs with the same rows and columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from ..core.csr import bounds_of, find_entries, indptr_from_counts, training_csr
from ..core.hashing import digest
from ..errors import InvalidDataError
from .candidates import Candidates, align_candidates
from .item_data import as_groups, as_propensity, as_vectors, written
from .labelled import Place, labels_of, moved, places
from .relevance import Relevance
from .training import ItemStatistics, Training, digest_by_item

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..core.types import AnyArray, CSRMatrix, Floats, Integers
    from .axes import Axis
    from .rankings import Rankings


@dataclass(frozen=True, eq=False)
class SideData:
    """Training data, candidates and item data, with the rows and columns of the evaluation.

    Attributes
    ----------
    n_items : int
        N, the number of items in the catalogue: the maximum over all inputs.
    training : Training or None
    groups : scipy csr_matrix of float64, shape (n_items, n_groups), or None
        Each row sums to 1.
    vectors : ndarray of float64, shape (n_items, width), or None
        Each of length 1, or all zeros.
    propensity : ndarray of float64, shape (n_items,), or None
        The chance that an item was observed if it is relevant, above 0 and at most 1.
    largest_gain : float, optional
        The largest gain of all users, if only a block of users is evaluated.
    candidates : Candidates or None
        The items that each user can be recommended; None for all items that the user has not seen.
    propensity_digest : str or None
        As from `digest_by_item`, of the propensities of all items.
    items : Axis or None
        The labels of the items, if they have some.
    """

    n_items: int
    training: Training | None = None
    groups: CSRMatrix | None = None
    vectors: Floats | None = None
    largest_gain: float | None = None
    candidates: Candidates | None = None
    propensity: Floats | None = None
    propensity_digest: str | None = None
    items: Axis | None = None

    @classmethod
    def of(
        cls,
        users: Place,
        items: Place,
        train: Any = None,
        item_groups: Any = None,
        item_vectors: Any = None,
        candidates: Any = None,
        propensity: Any = None,
    ) -> SideData:
        """Check the inputs and align them with lists and relevance.

        Parameters
        ----------
        users, items : Place
            The users and items of both sides, from `match`.
        train, candidates
            As in `evaluate`; files and frames are opened already.
        item_groups, item_vectors, propensity
            As in `ItemData`.

        Raises
        ------
        InvalidDataError
            If an input is not valid, does not cover the items, or is numbered instead of having
            ids.
        """
        matrix = None
        if train is not None:
            matrix, items = _align_train(train, users, items)
        if candidates is not None:
            candidates, items = align_candidates(candidates, users, items)
        aligned: dict[str, Any] = {}
        labels = items.labels
        for name, given, read in (
            ("groups", item_groups, as_groups),
            ("vectors", item_vectors, as_vectors),
            ("propensity", propensity, as_propensity),
        ):
            if given is not None:
                aligned[name], labels = read(given, items.size, labels)
        # They may have more items than lists and relevance.
        n_items = max([items.size, *(one.shape[0] for one in aligned.values())])
        for name, one in aligned.items():
            if one.shape[0] < n_items:
                raise InvalidDataError(
                    f"{written(name)} covers {one.shape[0]} items, but there are {n_items}; give "
                    "every item of the catalogue one",
                    argument=name,
                )
        if candidates is not None:
            candidates = replace(candidates, shape=(candidates.shape[0], n_items))
        chances = aligned.get("propensity")
        return cls(
            n_items,
            None if matrix is None else as_training(matrix, users.size, n_items),
            candidates=candidates,
            propensity_digest=None if chances is None else digest_by_item(chances, labels),
            items=labels,
            **aligned,
        )

    def digest_of(self, inputs: Collection[str]) -> str:
        """Return 16 hexadecimal digits that identify the data about the items in some inputs.

        Other inputs do not count: the training data of a block may cover only its users.
        """
        parts: list[str | AnyArray] = []
        if "train" in inputs and self.training is not None:
            parts.append(self.training.item_counts)
        if "item_groups" in inputs and self.groups is not None:
            parts += [self.groups.indptr, self.groups.indices, self.groups.data]
        if "item_vectors" in inputs and self.vectors is not None:
            parts.append(self.vectors)
        if "propensity" in inputs and self.propensity_digest is not None:
            parts.append(self.propensity_digest)
        return digest(*parts)[:16]

    def digest_of_propensities(self, source: str) -> str:
        """Return a digest of the data that propensities are made from, "train" or "propensity"."""
        if source == "propensity":
            assert self.propensity_digest is not None  # noqa: S101 - the metric would not be valid
            return self.propensity_digest
        assert self.training is not None  # noqa: S101 - likewise
        return self.training.digest_of_counts(self.items)

    def allowing_seen(self) -> SideData:
        """Return the same data, but users can be recommended items that they have seen."""
        if self.training is None:
            return self
        return replace(self, training=self.training.allowing_seen())

    def renumbered(self, order: Integers, numbers: Integers, labels: Axis) -> SideData:
        """Return the same data with items in another order.

        Parameters
        ----------
        order : ndarray of int
            The present numbers of the items, in their new order.
        numbers : ndarray of int
            The new number of each item.
        labels : Axis
            The labels in the new order.
        """
        given = self.candidates
        return replace(
            self,
            training=self.training and self.training.renumbered(numbers),
            groups=None if self.groups is None else csr_matrix(self.groups)[order],
            vectors=None if self.vectors is None else self.vectors[order],
            propensity=None if self.propensity is None else self.propensity[order],
            candidates=given and given.renumbered(numbers, self.n_items, labels),
            items=labels,
        )

    def of_users(self, first: int, last: int) -> SideData:
        """Return the side data of the users from `first` to `last`."""
        training = self.training and self.training.part(first, last)
        candidates = self.candidates and self.candidates.part(first, last)
        return replace(self, training=training, candidates=candidates)


def as_training(matrix: Any, n_users: int, n_items: int) -> Training:
    """Return canonical training data of so many users and items as `Training`."""
    indptr = bounds_of(matrix.indptr, 0, max(n_users, matrix.shape[0])).astype(np.int64, copy=False)
    interacted = matrix.data != 0
    items = np.ascontiguousarray(matrix.indices, np.int32).view()
    # It may be the caller's array, and other packages have formulas too. Always, because kernels
    # are compiled separately for arrays that can be written.
    items.flags.writeable = False
    kept = None if interacted.all() else interacted
    return Training(indptr, ItemStatistics(indptr, items, kept, n_items))


def _align_train(train: Any, users: Place, items: Place) -> tuple[Any, Place]:
    """Return the training data as a CSR aligned with the evaluation, and the places of items."""
    if isinstance(train, Relevance):
        train = train.to_csr()
    matrix = training_csr(train)
    rows, columns = places((users, items), train, ("the lists", "train"))
    for axis, one, own in zip((rows, columns), (users, items), labels_of(train), strict=True):
        is_apart = axis.places is not None and axis.places.min(initial=axis.size) >= one.size
        if is_apart and own and one.labels:
            raise InvalidDataError(
                f"no id of train ({own[0]!r}, …, {own.dtype}) occurs in the validation "
                f"data ({one.labels[0]!r}, …, {one.labels.dtype}); use the same ids for both"
            )
    shown = columns if items.labels is not None else items._replace(size=columns.size)
    return moved(matrix, rows, columns), shown


def match(rankings: Any, relevance: Any) -> tuple[Place, Place]:
    """Return where the users and items of lists (or of a matrix) go in the relevance's order.

    Raises
    ------
    InvalidDataError
        As from `place`, or if the sides look transposed.
    """
    labels, shape = labels_of(relevance), relevance.shape
    known = Place(None, labels[0], shape[0]), Place(None, labels[1], shape[1])
    users, items = places(known, rankings)
    n_users, n_items = rankings.shape
    unlabelled = users.labels is None and items.labels is None
    if unlabelled and n_users != n_items and relevance.shape == (n_items, n_users):
        raise InvalidDataError(
            f"the predictions are {n_users} × {n_items} and validation is {n_items} × {n_users}: "
            "one of them is transposed. Pass both as users × items"
        )
    return users, items


def align(
    rankings: Rankings, relevance: Relevance, users: Place, items: Place
) -> tuple[Rankings, Relevance]:
    """Return both sides with the same rows and columns; nothing is cut off.

    Parameters
    ----------
    rankings : Rankings
    relevance : Relevance
    users, items : Place
        From `match`.

    Raises
    ------
    InvalidDataError
        If only one side has labels of users, and they are too few.
    """
    if users.labels is not None and len(users.labels) != users.size:
        raise InvalidDataError(
            f"one side has {users.size} users, the other side labels {len(users.labels)}; label "
            "both sides, or pass the rows of validation that the lists belong to, with "
            "Rankings.from_topk(ids, user_rows=…)"
        )
    n_lists, n_listed = rankings.shape
    if users.places is not None or n_lists < users.size:
        rankings = rankings.take(users.sources(n_lists))
    if items.places is not None:
        n_listed = items.size
        rankings = replace(rankings, items=items.places[rankings.items].astype(np.int32))
    if relevance.shape[0] < users.size:
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
        indptr=indptr_from_counts(rankings.lengths),
        items=rankings.items[order][kept],
        gapped_positions=None,
        last_positions=None,
        relevant_last=False,
    )
