"""`LabelledMatrix` and `UserRows`: items by user, with the labels of users and items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

import numpy as np
from scipy import sparse

from ..core.csr import as_int32, bounds_of, indptr_from_counts, sort_pairs, take_rows
from ..errors import InvalidDataError
from .axes import Axis

if TYPE_CHECKING:
    from typing import Self

    from ..core.types import Booleans, Integers, Items, SparseInput

#: The parts of a split that a matrix can be.
SplitPart = Literal["train", "validation", "test", "fold_in"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelledMatrix:
    """A CSR matrix with the labels of its rows and columns.

    Every function of this package takes it and matches it by id. Labels are never lost silently,
    because it has no slices and no arithmetic: slice and compute on `csr`, and pass `csr` to other
    libraries.

    Attributes
    ----------
    csr : scipy.sparse.csr_matrix
        The matrix without labels.
    users, items : Axis or None
        The labels of rows and columns, None if they are only numbered.
    part : {"train", "validation", "test", "fold_in", "seen"} or None
        The part of a `Holdout`, if it is one; "seen" contains more than the training data.
    before : numpy.datetime64, int or None
        A point in time after all events, if it is known.
    cut : numpy.datetime64, int or None
        Where the next part of a split by time begins, which is later than `before` after a gap.
    parts : tuple of LabelledMatrix
        The parts that `Holdout.for_test` added up to this matrix.
    shape, nnz, dtype, data, indices, indptr
        The attributes of `csr`.

    Examples
    --------
    >>> import sparse_eval as se
    >>> matrix = se.Interactions.from_frame([{"user": "ann", "item": "x"}]).matrix()
    >>> matrix
    <LabelledMatrix: 1 users × 1 items, 1 pairs; labels of users and items>
    >>> matrix.csr.toarray()
    array([[1.]])
    """

    csr: sparse.csr_matrix
    users: Axis | None = None
    items: Axis | None = None
    part: SplitPart | Literal["seen"] | None = None
    before: np.datetime64 | int | None = None
    cut: np.datetime64 | int | None = None
    parts: tuple[LabelledMatrix, ...] = ()

    @classmethod
    def of(
        cls,
        matrix: SparseInput,
        users: Axis | None,
        items: Axis | None,
        part: SplitPart | Literal["seen"] | None = None,
        before: np.datetime64 | int | None = None,
        cut: np.datetime64 | int | None = None,
    ) -> Self:
        """Label a matrix, which shares its arrays with the result."""
        csr = matrix.tocsr()
        csr = sparse.csr_matrix((csr.data, csr.indices, csr.indptr), shape=csr.shape)
        parts = matrix.parts if isinstance(matrix, LabelledMatrix) else ()
        return cls(csr, own_labels(users), own_labels(items), part, before, cut, parts)

    def __getattr__(self, name: str) -> Any:
        if name not in ("shape", "nnz", "dtype", "data", "indices", "indptr"):
            raise AttributeError(f"a LabelledMatrix has no attribute {name!r}; see its csr")
        return getattr(self.csr, name)

    def tocsr(self) -> sparse.csr_matrix:
        """Return `csr`; other libraries call this."""
        return self.csr

    def tocoo(self) -> sparse.coo_matrix:
        """Return the entries by their coordinates, without labels."""
        return self.csr.tocoo()

    def __getitem__(self, key: object) -> NoReturn:
        raise TypeError(
            "a LabelledMatrix cannot be sliced, because a slice would lose its labels; "
            "slice the plain matrix: matrix.csr[...]"
        )

    def __repr__(self) -> str:
        n_users, n_items = self.shape
        named = [name for name in ("users", "items") if getattr(self, name) is not None]
        labels = f"labels of {' and '.join(named)}" if named else "no labels"
        return (
            f"<LabelledMatrix: {n_users:,} users × {n_items:,} items, {self.nnz:,} pairs; {labels}>"
        )


class UserRows:
    """Items by user, with labels: the base class of lists, relevant items and candidates.

    A subclass is a dataclass with these attributes. Without an `indptr` its items are for all
    users.
    """

    __slots__ = ()

    #: Arrays with a value for each entry, and for each user.
    _of_entries: ClassVar[tuple[str, ...]] = ("items",)
    _of_users: ClassVar[tuple[str, ...]] = ()
    #: Whether the items of each user are in the order of their numbers.
    _ascending: ClassVar[bool] = True

    if TYPE_CHECKING:
        shape: tuple[int, int]
        indptr: Any
        items: Items
        users: Axis | None
        items_index: Axis | None

    @property
    def may_be_ids(self) -> bool:
        """Whether the items are numbers without labels and without a known range."""
        return False

    def part(self, first: int, last: int) -> Self:
        """Return the users from `first` to `last`; those beyond the end have no items."""
        if self.indptr is None or (first, last) == (0, self.shape[0]):
            return self
        bounds = bounds_of(self.indptr, first, last)
        users = None if self.users is None else self.users[first:last]
        rows = np.minimum(np.arange(first, last), self.shape[0])
        return self._with(bounds - bounds[0], slice(bounds[0], bounds[-1]), rows, users)

    def take(self, rows: Integers) -> Self:
        """Return some users in their order, without labels; -1 stands for one without items."""
        if self.indptr is None:
            return self
        indptr = np.append(self.indptr, self.indptr[-1])
        indptr, entries = take_rows(indptr, rows, np.arange(len(self.items)))
        return self._with(indptr, entries, rows, None)

    def keep(self, kept: Booleans) -> Self:
        """Return some entries of all users."""
        indptr = None if self.indptr is None else indptr_from_counts(kept)[self.indptr]
        return self._with(indptr, kept, slice(self.shape[0]), self.users)

    def within(self, n_users: int, n_items: int) -> Self:
        """Return at most the first `n_users` users and `n_items` items."""
        side: Any = self if self.shape[0] <= n_users else self.part(0, n_users)
        if side.shape[1] > n_items:
            side = side.keep(side.items < n_items)
        labels = None if side.items_index is None else side.items_index[:n_items]
        cut: Self = replace(side, shape=(side.shape[0], n_items), items_index=labels)
        return cut

    def renumbered(self, numbers: Integers, n_items: int, labels: Axis | None) -> Self:
        """Return the same entries with another number for each item, and the labels of these."""
        side: Any = replace(self, shape=(self.shape[0], n_items), items_index=labels)  # type: ignore[type-var]
        items = as_int32(numbers[self.items])
        order: Any = slice(None)
        if self._ascending:
            indptr = np.array([0, len(items)]) if self.indptr is None else self.indptr
            order = sort_pairs(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), items)[0]
        values = {name: getattr(self, name) for name in self._of_entries} | {"items": items}
        arrays = {name: one if one is None else one[order] for name, one in values.items()}
        changed: Self = replace(side, **arrays)
        return changed

    def _with(self, indptr: Any, entries: Any, rows: Any, users: Axis | None) -> Self:
        values = {name: getattr(self, name) for name in self._of_entries}
        arrays = {name: one if one is None else one[entries] for name, one in values.items()}
        for name in self._of_users:
            arrays[name] = np.append(getattr(self, name), 0)[rows]
        side: Any = self
        shape = (self.shape[0] if indptr is None else len(indptr) - 1, self.shape[1])
        changed: Self = replace(side, shape=shape, indptr=indptr, users=users, **arrays)
        return changed


def own_labels(labels: Axis | None) -> Axis | None:
    """Return labels, or None if they are only the numbers of rows or columns."""
    return None if labels is None or labels.are_numbers else labels


def labels_of(side: Any) -> tuple[Axis | None, Axis | None]:
    """Return the labels of users and items of a matrix, lists or relevance, None if it has none."""
    if hasattr(side, "items_index"):  # Rankings and Relevance
        return side.users, side.items_index
    return (side.users, side.items) if isinstance(side, LabelledMatrix) else (None, None)


def matrix_labels(
    matrix: object, shape: tuple[int, int], users: Any, items: Any
) -> tuple[Axis | None, Axis | None]:
    """Return the given labels of rows and columns, or by default the labels of a `LabelledMatrix`.

    Raises `InvalidDataError` as from `Axis.of`.
    """
    own = labels_of(matrix)
    return (
        own[0] if users is None else Axis.of(users, "users", shape[0]),
        own[1] if items is None else Axis.of(items, "items", shape[1]),
    )


def check_part(train: object) -> None:
    """Raise `InvalidDataError` if the validation part of a holdout is given as training data."""
    if isinstance(train, LabelledMatrix) and train.part == "validation":
        raise InvalidDataError(
            "train is the validation part of a holdout, so all relevant items would count as seen. "
            "Pass train=holdout.train, and holdout.validation as validation"
        )
