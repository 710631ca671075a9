"""Training matrices and held-out items of models: checked, opened, and identified by content."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from scipy import sparse

from ..core.csr import training_csr
from ..core.hashing import digest_csr
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.paths import open_relevance
from ..inputs.relevance import Relevance
from ..inputs.scan import RelevanceScan

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, PathLike, SparseInput

#: What a model was trained on, or what is held out: a matrix with a row for each of its users.
TrainLike: TypeAlias = "SparseInput | PathLike"


def open_matrix(side: Any) -> Any:
    """Return the matrix at a path; return anything else as it is.

    Raises
    ------
    InvalidFileError
        If the path holds a table or qrels, whose users are not numbered as the model's.
    """
    if not isinstance(side, str | Path):
        return side
    opened = open_relevance(side)
    if isinstance(opened, RelevanceScan | Relevance):
        raise InvalidFileError(
            "has users and items with ids, and a model numbers them; give a matrix with its rows "
            "and columns: .npz of scipy.sparse.save_npz, or a folder of .npy files",
            side,
        )
    return opened


def training_matrix(train: SparseInput) -> CSRMatrix:
    """Return `train` as a canonical csr_matrix, for compiled code that takes no csr_array."""
    matrix = training_csr(train)
    if isinstance(matrix, sparse.csr_array):
        converted: CSRMatrix = sparse.csr_matrix(matrix)
        return converted
    return matrix


def held_out(
    held: Relevance | SparseInput, shape: tuple[int, int], name: str = "validation"
) -> Relevance:
    """Return the held-out items of a split whose train part has the given shape.

    Raises
    ------
    InvalidDataError
        If it has more users or items, or no user has a relevant item.
    """
    relevance = held if isinstance(held, Relevance) else Relevance.from_csr(held)
    if any(of > than for of, than in zip(relevance.shape, shape, strict=True)):
        raise InvalidDataError(
            f"{name} has shape {relevance.shape}, train {shape}; give both the users and items of "
            "the same split"
        )
    if not relevance.n_relevant.any():
        raise InvalidDataError(
            f"{name} has no relevant item: none of the {relevance.shape[0]} users has a stored "
            "value above 0, so there is nothing to evaluate"
        )
    return relevance


def digest_of(matrix: CSRMatrix | Relevance) -> str:
    """Return 16 hexadecimal digits that identify what a matrix holds, whatever its dtypes."""
    if isinstance(matrix, Relevance):
        return digest_csr(matrix.shape, matrix.indptr, matrix.items, matrix.gains)[:16]
    return digest_csr(matrix.shape, matrix.indptr, matrix.indices, matrix.data)[:16]
