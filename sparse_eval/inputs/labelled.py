"""`LabelledMatrix`: a csr_matrix with the labels of its rows and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from scipy import sparse

from ..errors import InvalidDataError
from .axes import Axis

if TYPE_CHECKING:
    from typing import Self

    from ..core.types import CSRMatrix

#: The parts of a split that a matrix can be.
SplitPart = Literal["train", "validation", "test", "fold_in"]


class LabelledMatrix(sparse.csr_matrix):  # type: ignore[misc]  # SciPy has no types
    """A csr_matrix with the labels of its rows and columns.

    It can be used wherever a csr_matrix can, by every library. Copies, also of another dtype, keep
    the labels; selections, transposes and results of arithmetic are plain matrices.

    Attributes
    ----------
    users, items : Axis or None
        The labels of rows and columns, None where they are only numbered.
    part : {"train", "validation", "test", "fold_in"} or None
        Which part of a `Holdout` it is, if it is one.
    """

    users: Axis | None = None
    items: Axis | None = None
    part: SplitPart | None = None

    @classmethod
    def of(
        cls,
        matrix: CSRMatrix,
        users: Axis | None,
        items: Axis | None,
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


def own_labels(labels: Axis | None) -> Axis | None:
    """Return labels, or None if they are only the numbers of rows or columns."""
    return None if labels is None or labels.are_numbers else labels


def labels_of(side: Any) -> tuple[Axis | None, Axis | None]:
    """Return the labels of users and items of a matrix, lists or relevance, None where it has none.

    A matrix that was resized in place has those of the axes that kept their size.
    """
    if hasattr(side, "items_index"):  # Rankings and Relevance
        return side.users, side.items_index
    if not isinstance(side, LabelledMatrix):
        return None, None
    n_users, n_items = side.shape
    users, items = side.users, side.items
    return (
        None if users is None or len(users) != n_users else users,
        None if items is None or len(items) != n_items else items,
    )


def matrix_labels(
    matrix: object, shape: tuple[int, int], users: Any, items: Any
) -> tuple[Axis | None, Axis | None]:
    """Return the labels of rows and columns: those given, or else those of a `LabelledMatrix`.

    Raises
    ------
    InvalidDataError
        As from `Axis.of`.
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
            "train is the validation part of a holdout, so that everything relevant would count as "
            "seen; give train=holdout.train, and holdout.validation as validation"
        )
