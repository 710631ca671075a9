"""Recognize the content of a path, and open recommendations and relevant items."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy.sparse import issparse

from ..core.atomic_files import as_input
from ..errors import InvalidDataError, InvalidFileError
from .columns import USUAL, Usual
from .input_files import find_files, is_uri, naming
from .lists_by_user import of_series, rows_by_user
from .npy import open_csr, read_sparse, sliceable_csr
from .rankings import Rankings
from .relevance import Relevance
from .tables import RankingsScan, RelevanceScan, engine_of, open_table
from .trec import read_qrels, read_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import CSRMatrix, PathLike
    from .rankings import Ties

_EXPECTED = (
    ".parquet, .csv, .tsv, .jsonl, .arrow, .npz, a folder of tables or of .npy files, or .run or "
    ".qrels for the files of TREC (se.trec.read_run and read_qrels read files of any name)"
)


class PathKind(Enum):
    """The content of a file or folder."""

    PARQUET = "Parquet"
    TABLE = "a table"
    CSR_FOLDER = "a CSR matrix in .npy files"
    MATRIX = "a sparse matrix"
    FACTORS_FOLDER = "factors in .npy files"
    CHECKPOINT = "a model"
    RUN = "a TREC run"
    QRELS = "TREC qrels"

    @property
    def is_table(self) -> bool:
        """Whether it has named columns."""
        return self in (PathKind.PARQUET, PathKind.TABLE)


def kind_of(path: PathLike) -> PathKind:
    """Return the kind of content of a file or folder, by its name.

    ===========================================  =========================================
    Name                                         Kind
    ===========================================  =========================================
    a folder with ``indptr.npy``                 a CSR matrix that stays on disk
    a folder with ``user_factors.npy``           the factors of a model, staying on disk
    ``.parquet``                                 Parquet
    ``.csv``, ``.tsv``, ``.jsonl``, ``.arrow``   a table
    a folder, a pattern or a URI of tables       Parquet or a table
    ``.npz`` of `scipy.sparse.save_npz`          a matrix
    ``.npz`` with factors or similarities        a model that implicit saved
    ``.run``                                     a TREC run
    ``.qrels``                                   TREC qrels
    ===========================================  =========================================

    Raises `InvalidFileError` if the path does not exist, cannot be read or has another name.
    """
    if not is_uri(path):
        folder = as_input(path)
        if (folder / "indptr.npy").exists():
            return PathKind.CSR_FOLDER
        if any((folder / f"{side}_factors.npy").exists() for side in ("user", "item")):
            return PathKind.FACTORS_FOLDER
    first = find_files(path)[0][0]
    if first.format is not None:
        return PathKind.PARQUET if first.format == "parquet" else PathKind.TABLE
    name = Path(first.path).name.lower().removesuffix(".gz")
    if name.endswith(".npz"):
        return _kind_of_npz(Path(first.path))
    for kind, suffix in ((PathKind.RUN, ".run"), (PathKind.QRELS, ".qrels")):
        if name.endswith(suffix):
            return kind
    if not first.exists():
        raise InvalidFileError("there is no such file", path)
    raise InvalidFileError(f"the name does not show the content; expected {_EXPECTED}", path)


def _kind_of_npz(path: Path) -> PathKind:
    with naming(path):
        try:
            with zipfile.ZipFile(path) as archive:
                names = {Path(name).stem for name in archive.namelist() if name.endswith(".npy")}
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise InvalidFileError(f"cannot be read ({error})", path) from None
    if not names:
        raise InvalidFileError("is a .zip without arrays; expected a matrix or a model", path)
    # Similarities of neighbour models are saved by SciPy's parts, without its format.
    return PathKind.MATRIX if "format" in names else PathKind.CHECKPOINT


def open_lists(side: Any, ties: Ties = "item") -> Any:
    """Return recommendations.

    Paths are opened; tables and folders of arrays stay on disk. Frames and mappings become tables;
    runs, with ties ordered by `ties`, and lists of lists become `Rankings`. Anything else is
    returned unchanged.
    """
    readers: dict[PathKind, Any] = {
        PathKind.RUN: partial(read_run, ties=ties),
        PathKind.MATRIX: partial(_read_matrix, sum_duplicates=False),
    }
    expected = "recommendations: positions of users × items, a run or a table"
    side = _open(side, Rankings.scan, readers, expected)
    if isinstance(side, Mapping) and not issparse(side):  # a dok_matrix is a mapping
        return Rankings.scan(rows_by_user(side, "predictions", "score"))
    if isinstance(side, list | tuple) and len(side) and isinstance(side[0], list | tuple):
        if isinstance(side[0], tuple):
            raise InvalidDataError(
                "the recommendations are tuples. Pass a list of items for each user, or rows of "
                "user, item and score as pandas.DataFrame(x, columns=['user', 'item', 'score'])"
            )
        return Rankings.from_topk(side)
    return side


def open_truth(side: Any, gain: str | Usual | None = USUAL) -> Any:
    """Return relevant items, training data or candidates.

    A path is opened, a frame becomes a table, `Interactions` become their matrix, and a mapping of
    users to items becomes `Relevance`. Anything else is kept as it is. `gain` is a column of a
    table.
    """
    readers: dict[PathKind, Any] = {
        PathKind.QRELS: read_qrels,
        PathKind.MATRIX: partial(_read_matrix, sum_duplicates=True),
    }
    expected = "gains: values of users × items, qrels or a table"
    side = _open(side, partial(Relevance.scan, gain=gain), readers, expected)
    if isinstance(side, Mapping) and not issparse(side):
        frame = rows_by_user(side, "the relevant items", "gain")
        return Relevance.from_frame(frame, gain="gain" if "gain" in frame else None)
    # Interactions, without importing pandas if there are none.
    return side.matrix() if callable(getattr(side, "matrix", None)) else side


def _open(
    side: Any,
    scan: Callable[[Any], Any],
    readers: Mapping[PathKind, Callable[[Any], Any]],
    expected: str,
) -> Any:
    """Open a path by the reader of its kind, and a frame or a list of paths as a table.

    A Series becomes a mapping by user. Anything else is returned unchanged.
    """
    if isinstance(side, str | Path):
        kind = kind_of(side)
        if kind.is_table:
            return scan(side)
        readers = {PathKind.CSR_FOLDER: open_csr, **readers}
        if kind not in readers:
            raise InvalidFileError(f"holds {kind.value}; expected {expected}", side)
        return readers[kind](side)
    are_many = isinstance(side, list | tuple) and len(side) > 0
    are_paths = are_many and all(isinstance(one, str | Path) for one in side)
    return scan(side) if are_paths or engine_of(side) is not None else of_series(side)


def open_side(
    side: Any,
    ties: Ties = "item",
    relevance: Relevance | None = None,
    threshold: float | None = None,
) -> Any:
    """Read a table into memory, with ties ordered by `ties`; return anything else unchanged.

    Lists are numbered as the relevance, if it is given. `threshold` is for relevant items.
    """
    if not isinstance(side, RankingsScan | RelevanceScan):
        return side
    table = replace(open_table(side.table), empty=f"{side.content} have no rows")
    columns = side.choose(table)
    if isinstance(side, RelevanceScan):
        return Relevance.of_table(table, columns, threshold)
    return Rankings.of_table(table, columns, ties, relevance)


def read_truth(side: Any, gain: str | Usual | None = USUAL) -> Any:
    """Return the result of `open_truth`, with tables read into memory."""
    return open_side(open_truth(side, gain))


def _read_matrix(path: PathLike, *, sum_duplicates: bool) -> CSRMatrix:
    with naming(Path(path)):
        return sliceable_csr(read_sparse(Path(path)), "the matrix", sum_duplicates=sum_duplicates)
