"""What some metrics need besides lists and relevance: training data, item groups, item vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.csr import canonical_csr, place, train_csr
from ..errors import InvalidDataError
from .relevance import Relevance
from .training import Training, TrainingOfBlock

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from .rankings import Rankings

__all__ = ["Context"]


@dataclass(frozen=True, eq=False)
class Context:
    """The inputs of `evaluate` beside the two sides, numbered as these are.

    Attributes
    ----------
    n_items : int
        N, the items of the catalogue: as many as the largest of all inputs has.
    training : Training or None
    groups : scipy csr_matrix of float64, shape (n_items, n_groups), or None
        Each row sums to 1.
    vectors : ndarray of float64, shape (n_items, width), or None
        Each of length 1, or all zeros.
    largest_gain : float, optional
        Of all users, where a block of them is evaluated.
    """

    n_items: int
    training: Training | None = None
    groups: Any = None
    vectors: NDArray[np.float64] | None = None
    largest_gain: float | None = None

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        users: pd.Index[Any] | None,
        labels: pd.Index[Any] | None,
        train: Any = None,
        item_groups: Any = None,
        item_vectors: Any = None,
    ) -> Context:
        """Check and number the inputs of an evaluation.

        `shape` is that of all users and items of both sides, `users` and `labels` are theirs.
        """
        n_items = shape[1]
        if train is None and item_groups is None and item_vectors is None:
            return cls(n_items)
        matrix = None
        if train is not None:
            matrix, labels = _train_matrix(train, users, labels, n_items)
            n_items = max(n_items, matrix.shape[1])
        groups = vectors = None
        if item_groups is not None:
            groups, labels = _groups(item_groups, n_items, labels)
        if item_vectors is not None:
            vectors, labels = _vectors(item_vectors, n_items, labels)
        for given in (groups, vectors):  # they may know more items than anyone was shown
            n_items = n_items if given is None else max(n_items, given.shape[0])
        for name, given in (("item_groups", groups), ("item_vectors", vectors)):
            if given is not None and given.shape[0] < n_items:
                raise _not_covered(name, given.shape[0], n_items)
        training = None if matrix is None else _training(matrix, shape[0], n_items)
        return cls(n_items, training, groups, vectors)

    @classmethod
    def between(cls, rankings: Rankings, relevance: Relevance, **inputs: Any) -> Context:
        """Check and number the inputs of an evaluation whose sides are aligned."""
        sides = (relevance, rankings)
        labels = max(
            (side.items_index for side in sides if side.items_index is not None),
            key=len,
            default=None,
        )
        shape = (relevance.shape[0], max(rankings.shape[1], relevance.shape[1]))
        return cls.of(shape, relevance.users, labels, **inputs)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that tell what is known of the items."""
        found = sha256()
        if self.training is not None:
            found.update(self.training.item_counts.data)
        if self.groups is not None:
            for part in (self.groups.indptr, self.groups.indices, self.groups.data):
                found.update(np.ascontiguousarray(part).data)
        if self.vectors is not None:
            found.update(np.ascontiguousarray(self.vectors).data)
        return found.hexdigest()[:16]

    def of_users(self, first: int, last: int) -> Context:
        """Return what there is for some of the users."""
        if self.training is None:
            return self
        return replace(self, training=TrainingOfBlock(self.training, first, last))


def _training(matrix: Any, n_users: int, n_items: int) -> Training:
    indptr = matrix.indptr.astype(np.int64, copy=False)
    missing = n_users + 1 - len(indptr)
    if missing > 0:
        indptr = np.concatenate((indptr, np.full(missing, indptr[-1])))
    interacted = matrix.data != 0
    items = np.ascontiguousarray(matrix.indices, np.int32)
    if np.shares_memory(items, matrix.indices):
        items = items.view()
        items.flags.writeable = False  # it is the caller's, and formulas may be anybody's
    return Training(indptr, items, None if interacted.all() else interacted, n_items)


def _train_matrix(
    train: Any, users: pd.Index[Any] | None, items: pd.Index[Any] | None, n_items: int
) -> tuple[Any, pd.Index[Any] | None]:
    """Return the training data as a CSR in the numbering of the evaluation, and its items."""
    if not isinstance(train, Relevance):
        if not sparse.issparse(train):
            raise InvalidDataError(
                f"train is a {type(train).__name__}; expected a scipy sparse matrix, or a "
                "Relevance such as Relevance.from_frame(df)"
            )
        matrix = train_csr(train)
        return matrix, items
    parts = (train.gains, train.items, train.indptr)
    matrix = sparse.csr_matrix(parts, shape=train.shape)
    rows, _ = _places(train.users, users, 0)
    columns, items = _places(train.items_index, items, n_items)
    entries = matrix.tocoo()
    if rows is None and columns is None:
        return matrix, items
    row = entries.row if rows is None else rows[entries.row]
    col = entries.col if columns is None else columns[entries.col]
    return canonical_csr(
        sparse.coo_matrix((entries.data, (row, col))), "train", sum_duplicates=True
    ), items


def _places(
    ours: pd.Index[Any] | None, theirs: pd.Index[Any] | None, n: int
) -> tuple[NDArray[np.int64] | None, pd.Index[Any] | None]:
    """Say where labels stand among the evaluation's, and what all the labels are.

    Those that the evaluation lacks come behind its own, and behind the `n` columns there are.
    """
    if ours is None or theirs is None:
        return None, theirs
    known = theirs.get_indexer(ours)
    lacking = known < 0
    if len(ours) and len(theirs) and lacking.all():
        raise InvalidDataError(
            f"no label of train ({ours.tolist()[0]!r}, …, {ours.dtype}) is among those of the "
            f"validation data ({theirs.tolist()[0]!r}, …, {theirs.dtype}); give both the same ids, "
            "of one type"
        )
    known[lacking] = max(len(theirs), n) + np.arange(lacking.sum())
    return known.astype(np.int64), theirs.append(ours[lacking]) if n <= len(theirs) else theirs


def _groups(
    groups: Any, n_items: int, labels: pd.Index[Any] | None
) -> tuple[Any, pd.Index[Any] | None]:
    """Return each item's shares of the groups, from one label an item or a matrix of weights."""
    if sparse.issparse(groups):
        weights = canonical_csr(groups, "item_groups", sum_duplicates=True).astype(np.float64)
    else:
        values, labels = _by_item(groups, "item_groups", n_items, labels)
        if values.ndim > 1:
            if values.ndim > 2 or values.dtype.kind not in "biuf":
                raise InvalidDataError(
                    f"item_groups is an array of {values.dtype} with shape {values.shape}; "
                    "expected one group for each item, or items × groups of weights"
                )
            weights = sparse.csr_matrix(values.astype(np.float64))
        else:
            weights = _one_group_each(values)
    bad = ~(np.isfinite(weights.data) & (weights.data >= 0))
    if bad.any():
        row, column = place(weights, int(np.flatnonzero(bad)[0]))
        raise InvalidDataError(
            f"item_groups gives item {_label(row, labels)} the weight {weights.data[bad][0]} in "
            f"group {column}; expected finite weights of at least 0"
        )
    largest = np.asarray(weights.max(axis=1).todense()).ravel() if weights.shape[1] else None
    if largest is None or (largest == 0).any():
        item = 0 if largest is None else int(np.flatnonzero(largest == 0)[0])
        raise InvalidDataError(
            f"item_groups puts item {_label(item, labels)} into no group; give every item one, "
            "such as 'unknown'"
        )
    # Scaled first, so that the sums are finite.
    owners = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    scaled = weights.data / largest[owners]
    totals = np.bincount(owners, scaled, weights.shape[0])
    parts = (scaled / totals[owners], weights.indices, weights.indptr)
    return sparse.csr_matrix(parts, shape=weights.shape), labels


def _one_group_each(values: NDArray[Any]) -> Any:
    import pandas as pd

    try:
        codes, _ = pd.factorize(values, use_na_sentinel=True)
    except TypeError:
        raise InvalidDataError(
            "item_groups holds groups that cannot be hashed; expected one text or number for each "
            "item, or items × groups of weights"
        ) from None
    held = codes >= 0  # the others are found to be in no group
    return sparse.csr_matrix(
        (np.ones(int(held.sum())), (np.flatnonzero(held), codes[held])),
        shape=(len(codes), int(codes.max(initial=-1)) + 1),
    )


def _vectors(
    vectors: Any, n_items: int, labels: pd.Index[Any] | None
) -> tuple[NDArray[np.float64], pd.Index[Any] | None]:
    if sparse.issparse(vectors):
        raise InvalidDataError(
            "item_vectors is a sparse matrix; expected a dense array, items × width: .toarray()"
        )
    table, labels = _by_item(vectors, "item_vectors", n_items, labels)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"item_vectors is an array of {table.dtype} with shape {table.shape}; expected "
            "numbers, items × width"
        )
    table = table.astype(np.float64)
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        item = int(np.flatnonzero(~finite)[0])
        raise InvalidDataError(
            f"item_vectors of item {_label(item, labels)} are not finite; expected numbers"
        )
    # Scaled first, so that squares neither overflow nor vanish.
    scale = np.abs(table).max(axis=1, initial=0.0, keepdims=True)
    scaled = np.divide(table, scale, out=np.zeros_like(table), where=scale > 0)
    lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    directions: NDArray[np.float64] = np.zeros_like(table)
    np.divide(scaled, lengths, out=directions, where=lengths > 0)
    return directions, labels


def _by_item(
    values: Any, name: str, n_items: int, labels: pd.Index[Any] | None
) -> tuple[NDArray[Any], pd.Index[Any] | None]:
    """Return what is given for each item in their order, and the labels of all items."""
    import pandas as pd

    if isinstance(values, Mapping):
        values = pd.Series(list(values.values()), index=pd.Index(list(values)), dtype=object)
    if isinstance(values, pd.Series | pd.DataFrame):
        keyed, labels = _in_order(values, name, n_items, labels)
        return keyed.to_numpy(), labels
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidDataError(f"{name} is a masked array; expected a plain one, see .filled()")
    if isinstance(values, np.ndarray) and values.dtype != object and values.ndim:
        return values, labels
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InvalidDataError(
            f"{name} is a {type(values).__name__}; expected one entry for each item, in order or "
            "keyed by item"
        )
    rows = list(values)
    if rows and all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        try:
            table = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.empty(0)
        if table.ndim == 2:
            return table, labels
    column = np.empty(len(rows), object)  # np.asarray would make 1 and "1" the same text
    column[:] = rows
    return column, labels


def _in_order(
    values: Any, name: str, n_items: int, labels: pd.Index[Any] | None
) -> tuple[Any, pd.Index[Any] | None]:
    """Put a Series or frame that is keyed by items into the order of the items."""
    import pandas as pd

    if values.index.has_duplicates:
        twice = values.index[values.index.duplicated()].tolist()[0]
        raise InvalidDataError(f"{name} names item {twice!r} twice; give each item one entry")
    if labels is None:
        wanted: pd.Index[Any] = pd.RangeIndex(max(n_items, len(values)))
    else:  # items that nobody was shown are part of the catalogue too
        wanted = labels.append(values.index[~values.index.isin(labels)])
    lacking = ~wanted.isin(values.index)
    if lacking.any():
        raise InvalidDataError(
            f"{name} has no entry for item {wanted[lacking].tolist()[0]!r} ({int(lacking.sum())} "
            f"of {len(wanted)} items lack one); give every item of the catalogue one"
        )
    return values.reindex(wanted), None if labels is None else wanted


def _not_covered(name: str, n: int, n_items: int) -> InvalidDataError:
    return InvalidDataError(
        f"{name} covers {n} items, but there are {n_items}: item {n} has no entry; give every "
        "item of the catalogue one"
    )


def _label(item: int, labels: pd.Index[Any] | None) -> Any:
    return repr(labels.tolist()[item]) if labels is not None and item < len(labels) else item
