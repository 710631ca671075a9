"""What models are trained and evaluated on: checked, and told apart by content."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from ..core.csr import train_csr
from ..core.hashing import digest
from ..errors import InvalidDataError
from ..inputs.relevance import Relevance

__all__ = ["digest_of", "held_out_part", "train_part"]


def train_part(train: Any) -> Any:
    """Return `train` as a canonical csr_matrix, for compiled code that takes no csr_array."""
    matrix = train_csr(train)
    return matrix if isinstance(matrix, sparse.csr_matrix) else sparse.csr_matrix(matrix)


def held_out_part(held: Any, shape: tuple[int, int], name: str = "validation") -> Relevance:
    """Return what is held out, of a split whose train part has that shape.

    Raises
    ------
    InvalidDataError
        If it has more users or items, or nobody has a relevant item.
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


def digest_of(part: Any) -> str:
    """Return 16 hexadecimal digits that tell what a CSR or a Relevance holds, not its dtypes."""
    columns, values = (
        (part.items, part.gains) if isinstance(part, Relevance) else (part.indices, part.data)
    )
    return digest(part.shape, part.indptr, columns, values)[:16]
