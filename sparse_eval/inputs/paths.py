"""Open whatever holds recommendations, relevant items or training data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy.sparse import issparse

from ..errors import InvalidFileError
from .columns import USUAL, Usual
from .kinds import Kind, kind_of
from .nested import rows_by_user, rows_of_columns
from .npy import open_csr, read_sparse, sliceable_csr
from .rankings import Rankings
from .relevance import Relevance
from .scan import RankingsScan, RelevanceScan, engine_of
from .tables import naming, open_table

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, PathLike
    from .rankings import Ties


def open_lists(side: Any) -> Any:
    """Return recommendations.

    A path is opened, a frame becomes a table, mappings and lists of lists become `Rankings`;
    anything else is kept as it is.
    """
    if isinstance(side, str | Path):
        return open_rankings(side)
    if issparse(side):  # a dok_matrix is a mapping
        return side
    if engine_of(side) is not None:
        rows = rows_of_columns(side)
        return Rankings.scan(side if rows is None else rows)
    if isinstance(side, Mapping):
        return Rankings.from_frame(rows_by_user(side, "predictions", "score"))
    if isinstance(side, list | tuple) and len(side) and isinstance(side[0], list | tuple):
        return Rankings.from_topk(side)
    return side


def open_truth(side: Any, gain: str | Usual | None = USUAL) -> Any:
    """Return relevant items, training data or candidates.

    A path is opened, a frame becomes a table, `Interactions` become their matrix, and a mapping of
    users to items becomes `Relevance`; anything else is kept as it is.
    """
    if isinstance(side, str | Path):
        return open_relevance(side, gain)
    if issparse(side):
        return side
    if isinstance(side, Mapping):
        frame = rows_by_user(side, "the relevant items", "gain")
        return Relevance.from_frame(frame, gain="gain" if "gain" in frame else None)
    if engine_of(side) is not None:
        return Relevance.scan(side, gain=gain)
    # Interactions, without importing pandas where there are none.
    return side.matrix() if callable(getattr(side, "matrix", None)) else side


def open_side(side: Any, ties: Ties = "item", relevance: Relevance | None = None) -> Any:
    """Read a table into memory, ordered as `ties` says; return anything else as it is.

    Lists are numbered as the relevance, if it is given.
    """
    if not isinstance(side, RankingsScan | RelevanceScan):
        return side
    table = open_table(side.table)
    columns = side.choose(table)
    if isinstance(side, RelevanceScan):
        return Relevance.of_table(table, columns)
    return Rankings.of_table(table, columns, ties, relevance)


def read_truth(side: Any, gain: str | Usual | None = USUAL) -> Any:
    """Return what `open_truth` returns, with tables read into memory."""
    return open_side(open_truth(side, gain))


def open_rankings(path: PathLike, ties: Ties = "item") -> Rankings | RankingsScan | CSRMatrix:
    """Open the recommendations at a path; tables and folders of arrays stay on disk.

    Raises
    ------
    InvalidFileError
        If it cannot be read, or holds no recommendations.
    """
    from .trec import read_run

    kind = kind_of(path)
    if kind is Kind.RUN:
        return read_run(path, ties=ties)
    if kind.is_table:
        return Rankings.scan(path)
    expected = "recommendations: positions of users × items, a run or a table"
    return _open_matrix(path, kind, expected, sum_duplicates=False)


def open_relevance(
    path: PathLike, gain: str | Usual | None = USUAL
) -> Relevance | RelevanceScan | CSRMatrix:
    """Open the relevant items, or the training data, at a path; `gain` is a column of a table.

    Raises
    ------
    InvalidFileError
        If it cannot be read, or holds no gains.
    """
    from .trec import read_qrels

    kind = kind_of(path)
    if kind is Kind.QRELS:
        return read_qrels(path)
    if kind.is_table:
        return Relevance.scan(path, gain=gain)
    expected = "gains: values of users × items, qrels or a table"
    return _open_matrix(path, kind, expected, sum_duplicates=True)


def _open_matrix(path: PathLike, kind: Kind, expected: str, *, sum_duplicates: bool) -> CSRMatrix:
    if kind is Kind.CSR_FOLDER:
        return open_csr(path)
    if kind is not Kind.MATRIX:
        raise InvalidFileError(f"holds {kind.value}; expected {expected}", path)
    with naming(Path(path)):
        return sliceable_csr(read_sparse(Path(path)), "the matrix", sum_duplicates=sum_duplicates)
