"""What some metrics need besides lists and relevance: training data, item groups, item vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .errors import InvalidDataError
from .matrices import Rankings, Relevance, canonical_csr, place, train_csr
from .metrics.lists import Training

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

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
    """

    n_items: int
    training: Training | None = None
    groups: Any = None
    vectors: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        rankings: Rankings,
        relevance: Relevance,
        train: Any = None,
        item_groups: Any = None,
        item_vectors: Any = None,
    ) -> Context:
        """Check and number the inputs of an evaluation whose sides are aligned."""
        n_items = max(rankings.shape[1], relevance.shape[1])
        if train is None and item_groups is None and item_vectors is None:
            return cls(n_items)
        sides = (relevance, rankings)
        labels = max(
            (side.items_index for side in sides if side.items_index is not None),
            key=len,
            default=None,
        )
        matrix = None
        if train is not None:
            matrix, labels = _train_matrix(train, relevance.users, labels)
            n_items = max(n_items, matrix.shape[1])
        groups = None if item_groups is None else _groups(item_groups, n_items, labels)
        vectors = None if item_vectors is None else _vectors(item_vectors, n_items, labels)
        for given in (groups, vectors):  # they may know more items than anyone was shown
            n_items = n_items if given is None else max(n_items, given.shape[0])
        for name, given in (("item_groups", groups), ("item_vectors", vectors)):
            if given is not None and given.shape[0] < n_items:
                raise _not_covered(name, given.shape[0], n_items)
        training = None if matrix is None else _training(matrix, relevance.shape[0], n_items)
        return cls(n_items, training, groups, vectors)

    @cached_property
    def given(self) -> frozenset[str]:
        """Names of the inputs that are there."""
        inputs = {
            "train": self.training,
            "item_groups": self.groups,
            "item_vectors": self.vectors,
        }
        return frozenset(name for name, value in inputs.items() if value is not None)


def _training(matrix: Any, n_users: int, n_items: int) -> Training:
    indptr = matrix.indptr.astype(np.int64, copy=False)
    missing = n_users + 1 - len(indptr)
    if missing > 0:
        indptr = np.concatenate((indptr, np.full(missing, indptr[-1])))
    interacted = matrix.data != 0
    items = np.ascontiguousarray(matrix.indices, np.int32)
    return Training(indptr, items, None if interacted.all() else interacted, n_items)


def _train_matrix(
    train: Any, users: pd.Index[Any] | None, items: pd.Index[Any] | None
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
    rows, _ = _places(train.users, users, train.shape[0])
    columns, items = _places(train.items_index, items, train.shape[1])
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
    """Say where labels stand among the evaluation's, those it lacks behind; and all of them."""
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
    known[lacking] = len(theirs) + np.arange(lacking.sum())
    return known.astype(np.int64), theirs.append(ours[lacking])


def _groups(groups: Any, n_items: int, labels: pd.Index[Any] | None) -> Any:
    """Return each item's shares of the groups, from one label an item or a matrix of weights."""
    if sparse.issparse(groups):
        weights = canonical_csr(groups, "item_groups", sum_duplicates=True).astype(np.float64)
    elif np.ndim(groups) == 2 and not hasattr(groups, "columns"):
        table = np.asarray(groups)
        if table.dtype.kind not in "biuf":
            raise InvalidDataError(
                f"item_groups is an array of {table.dtype}; expected one group for each item, or "
                "items × groups of weights"
            )
        weights = sparse.csr_matrix(table.astype(np.float64))
    else:
        weights = _one_group_each(_by_item(groups, "item_groups", n_items, labels))
    bad = ~(np.isfinite(weights.data) & (weights.data >= 0))
    if bad.any():
        row, column = place(weights, int(np.flatnonzero(bad)[0]))
        raise InvalidDataError(
            f"item_groups gives item {row} the weight {weights.data[bad][0]} in group {column}; "
            "expected finite weights of at least 0"
        )
    totals = np.asarray(weights.sum(axis=1)).ravel()
    if (totals == 0).any():
        item = int(np.flatnonzero(totals == 0)[0])
        raise InvalidDataError(
            f"item_groups puts item {_label(item, labels)} into no group; give every item one, "
            "such as 'unknown'"
        )
    return sparse.csr_matrix(sparse.diags(1.0 / totals) @ weights)


def _one_group_each(values: Any) -> Any:
    import pandas as pd

    codes, _ = pd.factorize(values, use_na_sentinel=True)
    ones = np.ones(len(codes))
    held = codes >= 0  # the others are found to be in no group
    return sparse.csr_matrix(
        (ones[held], (np.flatnonzero(held), codes[held])),
        shape=(len(codes), int(codes.max(initial=-1)) + 1),
    )


def _vectors(vectors: Any, n_items: int, labels: pd.Index[Any] | None) -> NDArray[np.float64]:
    if sparse.issparse(vectors):
        raise InvalidDataError(
            "item_vectors is a sparse matrix; expected a dense array, items × width: .toarray()"
        )
    table = np.asarray(_by_item(vectors, "item_vectors", n_items, labels))
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
    return directions


def _by_item(values: Any, name: str, n_items: int, labels: pd.Index[Any] | None) -> Any:
    """Put what is keyed by items (a mapping, Series or frame) into their order."""
    if isinstance(values, Mapping):
        import pandas as pd

        values = pd.Series(values, dtype=object)
    if not hasattr(values, "reindex"):
        try:
            return np.asarray(values) if np.ndim(values) else list(values)
        except (TypeError, ValueError):
            raise InvalidDataError(
                f"{name} is a {type(values).__name__}; expected one entry for each item, in order "
                "or keyed by item"
            ) from None
    import pandas as pd

    if values.index.has_duplicates:
        twice = values.index[values.index.duplicated()].tolist()[0]
        raise InvalidDataError(f"{name} names item {twice!r} twice; give each item one entry")
    wanted = pd.RangeIndex(n_items) if labels is None else labels
    if labels is None and len(values) and pd.api.types.is_integer_dtype(values.index):
        wanted = pd.RangeIndex(max(n_items, int(values.index.max()) + 1))
    lacking = ~wanted.isin(values.index)
    if lacking.any():
        raise InvalidDataError(
            f"{name} has no entry for item {wanted[lacking].tolist()[0]!r} ({int(lacking.sum())} "
            f"of {len(wanted)} items lack one); give every item of the catalogue one"
        )
    return values.reindex(wanted).to_numpy()


def _not_covered(name: str, n: int, n_items: int) -> InvalidDataError:
    return InvalidDataError(
        f"{name} covers {n} items, but there are {n_items}: item {n} has no entry; give every "
        "item of the catalogue one"
    )


def _label(item: int, labels: pd.Index[Any] | None) -> Any:
    return repr(labels.tolist()[item]) if labels is not None and item < len(labels) else item
