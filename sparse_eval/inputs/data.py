"""`Data`: the inputs of an evaluation, opened and aligned once, and cut into blocks of users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from ..core.arrays import is_array
from ..core.csr import bounds_of, training_csr
from ..core.hashing import digest
from ..errors import InvalidDataError
from .alignment import align, align_candidates, align_train, match
from .item_data import as_groups, as_propensity, as_vectors, written
from .labelled import UserRows
from .npy import slice_rows, sliceable_csr
from .rankings import Rankings
from .relevance import Relevance
from .training import ItemStatistics, Training, digest_by_item

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..core.types import AnyArray, CSRMatrix, Floats, Integers
    from .alignment import Place
    from .axes import Axis
    from .candidates import Candidates


@dataclass(frozen=True, eq=False)
class Data:
    """The inputs of an evaluation, or of a block of its users, with the same rows and columns.

    Attributes
    ----------
    relevance : Relevance, or CSR matrix that is not checked yet
    side_data : SideData or None
        Of all users, also in a block. None in a task of a worker, which gets it once.
    rankings : Rankings, CSR matrix that is not checked yet, or None
        None if a model makes the lists.
    train : csr_matrix or None
        What users have seen, for a model.
    known : ndarray or None
        The users that the model knows, which come first: what it has for each of them.
    candidates : Candidates or None
        Of these users, in a task of a worker; otherwise `side_data` has them.
    first : int
        The number of the first user.
    is_read : bool
        Whether `train` was checked; otherwise it stays on disk, and blocks of it are checked.
    """

    relevance: Any
    side_data: SideData | None = None
    rankings: Any = None
    train: Any = None
    known: Any = None
    candidates: Candidates | None = None
    first: int = 0
    is_read: bool = True

    @classmethod
    def of_lists(
        cls, rankings: Any, relevance: Any, inputs: dict[str, Any], *, whole: bool
    ) -> Data:
        """Align lists, relevance and the other `inputs` of `SideData.of`.

        Unless `whole`, matrices are not read but only compared by their shapes.

        Raises `InvalidDataError` as from `match`, `align` and `SideData.of`.
        """
        if whole:
            rankings, relevance = _checked(rankings, relevance)
        if not isinstance(rankings, Rankings):
            rankings = sliceable_csr(rankings, "the position matrix", sum_duplicates=False)
        if not isinstance(relevance, Relevance):
            relevance = sliceable_csr(relevance, "the validation matrix")
        users, items = match(rankings, relevance)
        if isinstance(rankings, Rankings) and isinstance(relevance, Relevance):
            rankings, relevance = align(rankings, relevance, users, items)
        return cls(relevance, SideData.of(users, items, **inputs), rankings)

    @property
    def n_users(self) -> int:
        """The number of users, who may lack rows of a matrix that is not checked yet."""
        n_users, lists = int(self.relevance.shape[0]), self.rankings
        return n_users if lists is None else max(n_users, int(lists.shape[0]))

    @property
    def rows(self) -> dict[str, Any]:
        """Everything that has a row or entry for each user, by name."""
        names = ("relevance", "rankings", "train", "known", "candidates")
        return {name: side for name in names if (side := getattr(self, name)) is not None}

    def part(self, first: int, last: int) -> Data:
        """Return the users from `first` to `last`."""
        rows: dict[str, Any] = {name: cut(side, first, last) for name, side in self.rows.items()}
        return replace(self, first=self.first + first, **rows)

    def checked(self) -> Data:
        """Return the same data with matrices that are checked, as lists and relevance.

        Raises `InvalidDataError` as from `Rankings.from_positions`, `Relevance.from_csr` and
        `training_csr`.
        """
        rankings, relevance, train = self.rankings, self.relevance, self.train
        if not self.is_read:
            train = csr_matrix(training_csr(train, "the train matrix"))
        if rankings is None and not isinstance(relevance, Relevance):
            relevance = Relevance.from_csr(relevance)
        elif rankings is not None:
            rankings, relevance = _checked(rankings, relevance)
            rankings, relevance = align(rankings, relevance, *match(rankings, relevance))
        return replace(self, rankings=rankings, relevance=relevance, train=train, is_read=True)


def _checked(rankings: Any, relevance: Any) -> tuple[Rankings, Relevance]:
    """Return both sides as `Rankings` and `Relevance`, which check matrices."""
    if not isinstance(rankings, Rankings):
        rankings = Rankings.from_positions(rankings)
    if not isinstance(relevance, Relevance):
        relevance = Relevance.from_csr(relevance)
    return rankings, relevance


def cut(side: Any, first: int, last: int) -> Any:
    """Return the users from `first` to `last` of lists, a matrix or an array by user."""
    if isinstance(side, UserRows):
        return side.part(first, last)
    if is_array(side):
        return side[first:last]
    return side if (first, last) == (0, side.shape[0]) else slice_rows(side, first, last)


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

        Raises `InvalidDataError` if an input is not valid, does not cover the items, or is numbered
        instead of having ids.

        Parameters
        ----------
        users, items : Place
            The users and items of both sides, from `match`.
        train, candidates
            As in `evaluate`; files and frames are opened already.
        item_groups, item_vectors, propensity
            As in `ItemData`.
        """
        matrix = None
        if train is not None:
            matrix, items = align_train(train, users, items)
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
