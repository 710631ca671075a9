"""`LabelledMatrix`: a csr_matrix that knows which users and items its rows and columns are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from scipy import sparse

if TYPE_CHECKING:
    from typing import Self

    from .types import CSRMatrix, Labels

#: The parts of a split that a matrix can be.
SplitPart = Literal["train", "validation", "test", "fold_in"]


class LabelledMatrix(sparse.csr_matrix):  # type: ignore[misc]  # SciPy has no types
    """A csr_matrix with the labels of its rows and columns.

    It can be used wherever a csr_matrix can, by every library. Copies, also of another dtype, keep
    the labels; what is selected, transposed or computed from it is a plain matrix.

    Attributes
    ----------
    users, items : pandas.Index or None
        The labels of rows and columns, None where they are numbered only.
    part : {"train", "validation", "test", "fold_in"} or None
        Which part of a `Holdout` it is, if it is one.
    """

    users: Labels | None = None
    items: Labels | None = None
    part: SplitPart | None = None

    @classmethod
    def of(
        cls,
        matrix: CSRMatrix,
        users: Labels | None,
        items: Labels | None,
        part: SplitPart | None = None,
    ) -> Self:
        """Label a matrix, which shares its arrays with the result."""
        labelled = cls((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        labelled.users, labelled.items, labelled.part = own_labels(users), own_labels(items), part
        return labelled

    def copy(self) -> Self:
        """Return a copy with the same labels."""
        copy: Self = self._label(super().copy())
        return copy

    def astype(self, dtype: Any, casting: Any = "unsafe", copy: bool = True) -> Any:
        """Return a copy with values of another dtype and the same labels."""
        return self._label(super().astype(dtype, casting, copy))

    def _label(self, matrix: Any) -> Any:
        if isinstance(matrix, LabelledMatrix):
            matrix.users, matrix.items, matrix.part = self.users, self.items, self.part
        return matrix


def own_labels(labels: Labels | None) -> Labels | None:
    """Return labels, or None if they only count from 0."""
    if labels is None:
        return None
    import pandas as pd

    counts = isinstance(labels, pd.RangeIndex) and (labels.start, labels.step) == (0, 1)
    return None if counts else labels


def labels_of(side: Any) -> tuple[Labels | None, Labels | None]:
    """Return the labels of users and items of a matrix, lists or relevance, None where it has none.

    A matrix that was resized in place has those of the axes that kept their size.
    """
    if hasattr(side, "items_index"):  # Rankings and Relevance, which are above this room
        return side.users, side.items_index
    if not isinstance(side, LabelledMatrix):
        return None, None
    n_users, n_items = side.shape
    users, items = side.users, side.items
    return (
        None if users is None or len(users) != n_users else users,
        None if items is None or len(items) != n_items else items,
    )
