"""`SideData`: the inputs of some metrics beside lists and relevance, numbered alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.csr import canonical_csr, entry_position, plain_matrix, training_csr
from ..errors import InvalidDataError
from .alignment import locate
from .by_item import by_item, is_keyed, item_name, weights_of_groups, written
from .candidates import Candidates, align_candidates, as_candidates
from .labelled import labels_of
from .propensity import as_propensity, digest_by_item
from .relevance import Relevance
from .training import Training, TrainingOfBlock

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..core.types import AnyArray, CSRMatrix, Floats, Integers
    from .axes import Axis
    from .rankings import Rankings


@dataclass(frozen=True, eq=False)
class SideData:
    """What is known of users and items, with the rows and columns of the evaluation.

    Attributes
    ----------
    n_items : int
        N, the number of items in the catalogue: that of the largest of all inputs.
    training : Training or None
    groups : scipy csr_matrix of float64, shape (n_items, n_groups), or None
        Each row sums to 1.
    vectors : ndarray of float64, shape (n_items, width), or None
        Each of length 1, or all zeros.
    propensity : ndarray of float64, shape (n_items,), or None
        The chance that an item was observed where it is relevant, above 0 and at most 1.
    largest_gain : float, optional
        That of all users, where only a block of them is evaluated.
    candidates : Candidates or None
        What each user can be recommended; None for all items that the user has not seen.
    propensity_digest : str or None
        As from `digest_by_item`, of the propensities of all items.
    items : pandas.Index or None
        The labels of the items, where they have some.
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
        shape: tuple[int, int],
        users: Axis | None,
        labels: Axis | None,
        train: Any = None,
        item_groups: Any = None,
        item_vectors: Any = None,
        candidates: Any = None,
        propensity: Any = None,
        *,
        encoded: bool = False,
    ) -> SideData:
        """Check the inputs and align them with lists and relevance.

        Parameters
        ----------
        shape : tuple of int
            The number of users and of items on both sides together.
        users, labels : pandas.Index or None
            The labels of these users and items.
        train, candidates
            As in `evaluate`; opened, where they are files or frames.
        item_groups, item_vectors, propensity
            As in `ItemData`.
        encoded : bool
            Whether these users and items were numbered from ids; then only ids say which are meant.

        Raises
        ------
        InvalidDataError
            If an input is refused, does not cover the items, or is numbered where it should have
            ids.
        """
        n_items = shape[1]
        if item_groups is not None:
            item_groups = weights_of_groups(item_groups)
        given_by_item = {
            "groups": item_groups, "vectors": item_vectors, "propensity": propensity,
        }  # fmt: skip
        if all(given is None for given in (train, candidates, *given_by_item.values())):
            return cls(n_items)
        matrix = None
        if train is not None:
            matrix, labels = _train_matrix(train, users, labels, n_items, encoded)
            n_items = max(n_items, matrix.shape[1])
        if candidates is not None:
            candidates, labels = align_candidates(
                as_candidates(candidates), (shape[0], n_items), users, labels, encoded=encoded
            )
            n_items = candidates.shape[1]
        for name, given in given_by_item.items():
            if encoded and given is not None and not is_keyed(given):
                raise InvalidDataError(
                    f"{written(name)} has an entry for each item number, and the items of the "
                    "lists have ids; key it by item: a mapping, or a Series or DataFrame indexed "
                    "by item",
                    argument=name,
                )
        groups = vectors = chances = None
        if item_groups is not None:
            groups, labels = _groups(item_groups, n_items, labels)
        if item_vectors is not None:
            vectors, labels = _vectors(item_vectors, n_items, labels)
        if propensity is not None:
            chances, labels = as_propensity(propensity, n_items, labels)
        aligned = {"groups": groups, "vectors": vectors, "propensity": chances}
        sizes = {name: one.shape[0] for name, one in aligned.items() if one is not None}
        n_items = max([n_items, *sizes.values()])  # they may know more items than anyone was shown
        for name, n in sizes.items():
            if n < n_items:
                raise InvalidDataError(
                    f"{written(name)} covers {n} items, but there are {n_items}; give every item "
                    "of the catalogue one",
                    argument=name,
                )
        digest = None if chances is None else digest_by_item(chances, labels)
        training = None if matrix is None else _training(matrix, shape[0], n_items)
        if candidates is not None:
            candidates = replace(candidates, shape=(candidates.shape[0], n_items))
        return cls(
            n_items,
            training,
            groups,
            vectors,
            candidates=candidates,
            propensity=chances,
            propensity_digest=digest,
            items=labels,
        )

    @classmethod
    def beside(cls, rankings: Rankings, relevance: Relevance, **inputs: Any) -> SideData:
        """Check the inputs and align them with lists and relevance that are aligned already."""
        sides = (relevance, rankings)
        labels = max(
            (side.items_index for side in sides if side.items_index is not None),
            key=len,
            default=None,
        )
        shape = (relevance.shape[0], max(rankings.shape[1], relevance.shape[1]))
        encoded = rankings.encoded or relevance.encoded
        return cls.of(shape, relevance.users, labels, **inputs, encoded=encoded)

    def digest_of(self, inputs: Collection[str]) -> str:
        """Return 16 hexadecimal digits that identify the data about the items in some inputs.

        Other inputs do not count: the training data of a block may cover only its users.
        """
        digest = sha256()
        if "train" in inputs and self.training is not None:
            digest.update(self.training.item_counts.data)
        if "item_groups" in inputs and self.groups is not None:
            for part in (self.groups.indptr, self.groups.indices, self.groups.data):
                digest.update(np.ascontiguousarray(part).data)
        if "item_vectors" in inputs and self.vectors is not None:
            digest.update(np.ascontiguousarray(self.vectors).data)
        if "propensity" in inputs and self.propensity_digest is not None:
            digest.update(self.propensity_digest.encode())
        return digest.hexdigest()[:16]

    def digest_of_propensities(self, source: str) -> str:
        """Return digits that identify what tells the propensities, "train" or "propensity"."""
        if source == "propensity":
            assert self.propensity_digest is not None  # noqa: S101 - the metric is refused else
            return self.propensity_digest
        assert self.training is not None  # noqa: S101 - likewise
        return self.training.digest_of_counts(self.items)

    def allowing_seen(self) -> SideData:
        """Return the same data, where items that users have seen may be recommended again."""
        if self.training is None:
            return self
        return replace(self, training=self.training.allowing_seen())

    def of_users(self, first: int, last: int) -> SideData:
        """Return the side data of the users from `first` to `last`."""
        training, candidates = self.training, self.candidates
        if training is None and candidates is None:
            return self
        if training is not None:
            training = TrainingOfBlock(training, first, last)
        if candidates is not None:
            candidates = candidates.of_users(first, last)
        return replace(self, training=training, candidates=candidates)


def _training(matrix: Any, n_users: int, n_items: int) -> Training:
    indptr = matrix.indptr.astype(np.int64, copy=False)
    missing = n_users + 1 - len(indptr)
    if missing > 0:
        indptr = np.concatenate((indptr, np.full(missing, indptr[-1])))
    interacted = matrix.data != 0
    items = np.ascontiguousarray(matrix.indices, np.int32).view()
    # It may be the caller's array, and formulas are anybody's. Always, since kernels are compiled
    # apart for arrays that can be written.
    items.flags.writeable = False
    return Training(indptr, items, None if interacted.all() else interacted, n_items)


def _train_matrix(
    train: Any, users: Axis | None, items: Axis | None, n_items: int, encoded: bool
) -> tuple[Any, Axis | None]:
    """Return the training data as a CSR aligned with the evaluation, and the items' labels."""
    if isinstance(train, Relevance):
        parts = (train.gains, train.items, train.indptr)
        matrix = sparse.csr_matrix(parts, shape=train.shape)
    else:
        matrix = training_csr(train)
    own, others = labels_of(train), (users, items)
    for axis, labels, aligned in zip(("users", "items"), own, others, strict=True):
        has_ids = encoded if labels is None else getattr(train, "encoded", False)
        if (labels is None) != (aligned is None) and has_ids:
            numbered, labelled = (
                ("train", "the lists") if labels is None else ("the lists", "train")
            )
            raise InvalidDataError(
                f"{labelled} name {axis} by id, and {numbered} number them, so nothing says which "
                "is which; give both as frames or Interactions, or both as matrices"
            )
    rows, _ = _positions(own[0], users, 0)
    columns, items = _positions(own[1], items, n_items)
    if rows is None and columns is None:
        return matrix, items
    entries = matrix.tocoo()
    row = entries.row if rows is None else rows[entries.row]
    col = entries.col if columns is None else columns[entries.col]
    shape = tuple(
        size if places is None else int(places.max(initial=-1)) + 1
        for size, places in zip(matrix.shape, (rows, columns), strict=True)
    )
    located = sparse.coo_matrix((entries.data, (row, col)), shape)
    return canonical_csr(located, "train", sum_duplicates=True), items


def _positions(
    labels: Axis | None, aligned: Axis | None, n: int
) -> tuple[Integers | None, Axis | None]:
    """Return the positions of labels among those of the evaluation, and the union of both.

    Axis that the evaluation lacks come behind its own, and behind its `n` columns.
    """
    if labels is None or aligned is None or labels is aligned:
        return None, aligned
    positions, union = locate(aligned, labels, "id", ("train", "validation"), n)
    if len(labels) and len(aligned) and positions.min() >= len(aligned):
        raise InvalidDataError(
            f"no id of train ({labels.tolist()[0]!r}, …, {labels.dtype}) is among those of the "
            f"validation data ({aligned.tolist()[0]!r}, …, {aligned.dtype}); give both the same "
            "ids, of one type"
        )
    return positions, union


def _groups(groups: Any, n_items: int, labels: Axis | None) -> tuple[Any, Axis | None]:
    """Return each item's shares of the groups, from a label for each item or from weights."""
    if sparse.issparse(plain_matrix(groups)):
        weights = canonical_csr(groups, "groups", sum_duplicates=True).astype(np.float64)
    else:
        values, labels = by_item(groups, "groups", n_items, labels)
        if values.ndim > 1:
            if values.ndim > 2 or values.dtype.kind not in "biuf":
                raise InvalidDataError(
                    f"{written('groups')} is an array of {values.dtype} with shape {values.shape}; "
                    "expected one group for each item, or items × groups of weights",
                    argument="groups",
                )
            weights = sparse.csr_matrix(values.astype(np.float64))
        else:
            weights = _one_group_each(values)
    bad = ~(np.isfinite(weights.data) & (weights.data >= 0))
    if bad.any():
        row, column = entry_position(weights, int(np.flatnonzero(bad)[0]))
        raise InvalidDataError(
            f"{written('groups')} gives item {item_name(row, labels)} the weight "
            f"{weights.data[bad][0]} in group {column}; expected finite weights of at least 0",
            argument="groups",
        )
    largest = np.asarray(weights.max(axis=1).todense()).ravel() if weights.shape[1] else None
    if largest is None or (largest == 0).any():
        item = 0 if largest is None else int(np.flatnonzero(largest == 0)[0])
        raise InvalidDataError(
            f"{written('groups')} puts item {item_name(item, labels)} into no group; give every "
            "item one, such as 'unknown'",
            argument="groups",
        )
    # Scaled first, so that the sums are finite.
    owners = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    scaled = weights.data / largest[owners]
    totals = np.bincount(owners, scaled, weights.shape[0])
    parts = (scaled / totals[owners], weights.indices, weights.indptr)
    return sparse.csr_matrix(parts, shape=weights.shape), labels


def _one_group_each(values: AnyArray) -> Any:
    import pandas as pd

    try:
        codes, _ = pd.factorize(values, use_na_sentinel=True)
    except TypeError:
        raise InvalidDataError(
            f"{written('groups')} holds groups that cannot be hashed; give one text or number "
            "for each item, or items × groups of weights",
            argument="groups",
        ) from None
    grouped = codes >= 0  # an item of no group is refused below
    return sparse.csr_matrix(
        (np.ones(int(grouped.sum())), (np.flatnonzero(grouped), codes[grouped])),
        shape=(len(codes), int(codes.max(initial=-1)) + 1),
    )


def _vectors(vectors: Any, n_items: int, labels: Axis | None) -> tuple[Floats, Axis | None]:
    table, labels = by_item(vectors, "vectors", n_items, labels)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"{written('vectors')} is an array of {table.dtype} with shape {table.shape}; expected "
            "numbers, items × width",
            argument="vectors",
        )
    table = table.astype(np.float64)
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        item = int(np.flatnonzero(~finite)[0])
        raise InvalidDataError(
            f"{written('vectors')} has a vector for item {item_name(item, labels)} that is not "
            "finite; expected numbers",
            argument="vectors",
        )
    # Scaled first, so that squares neither overflow nor vanish.
    scale = np.abs(table).max(axis=1, initial=0.0, keepdims=True)
    scaled = np.divide(table, scale, out=np.zeros_like(table), where=scale > 0)
    lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    directions: Floats = np.zeros_like(table)
    np.divide(scaled, lengths, out=directions, where=lengths > 0)
    return directions, labels
