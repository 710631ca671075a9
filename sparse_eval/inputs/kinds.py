"""Recognize by its content what a file or folder holds: tables, matrices, models, TREC files."""

from __future__ import annotations

import math
import zipfile
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.files import as_input
from ..errors import InvalidFileError
from .tables import files_at, format_of, read_head
from .text import parse_number

if TYPE_CHECKING:
    from ..core.types import PathLike

_EXPECTED = (
    "Parquet, CSV, JSON lines, Arrow, .npz, a folder of .npy files, a TREC run (six fields in a "
    "line) or qrels (four fields)"
)


class Kind(Enum):
    """What a file or folder holds."""

    PARQUET = "Parquet"
    CSV = "CSV"
    ARROW = "Arrow IPC"
    JSON = "JSON lines"
    CSR_FOLDER = "a CSR matrix in .npy files"
    MATRIX = "a sparse matrix"
    FACTORS_FOLDER = "factors in .npy files"
    CHECKPOINT = "a model"
    RUN = "a TREC run"
    QRELS = "TREC qrels"

    @property
    def is_table(self) -> bool:
        """Whether it has named columns."""
        return self in (Kind.PARQUET, Kind.CSV, Kind.ARROW, Kind.JSON)


def kind_of(path: PathLike) -> Kind:
    """Return what a file or folder holds.

    ===========================================  =========================================
    Holds                                        Kind
    ===========================================  =========================================
    a folder with ``indptr.npy``                 a CSR matrix that stays on disk
    a folder with ``user_factors.npy``           the factors of a model, staying on disk
    Parquet, Arrow IPC, JSON lines               a table
    a folder, or a pattern, of tables            a table
    ``.npz`` of `scipy.sparse.save_npz`          a matrix
    ``.npz`` with factors or similarities        a model that implicit saved
    lines of six fields, ``user Q0 item …``      a TREC run; the last may be several words
    lines of four fields, the last a number      TREC qrels
    any other text with a comma, ``;`` or tab    a table in CSV
    ===========================================  =========================================

    Raises
    ------
    InvalidFileError
        If the path does not exist, cannot be read or holds something else.
    """
    folder = as_input(path)
    if (folder / "indptr.npy").exists():
        return Kind.CSR_FOLDER
    if any((folder / f"{side}_factors.npy").exists() for side in ("user", "item")):
        return Kind.FACTORS_FOLDER
    path = files_at(path)[0]
    head = read_head(path)
    if head.startswith(b"PK"):
        try:
            with zipfile.ZipFile(path) as archive:
                names = {Path(name).stem for name in archive.namelist() if name.endswith(".npy")}
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise InvalidFileError(f"cannot be read ({error})", path) from None
        if not names:
            raise InvalidFileError(f"is a .zip without arrays; expected {_EXPECTED}", path)
        # Similarities of neighbour models are saved by SciPy's parts, without its format.
        return Kind.MATRIX if "format" in names else Kind.CHECKPOINT
    if (found := format_of(head)) is not None:
        return Kind[found.upper()]
    if head.startswith(b"\x93NUMPY"):
        raise InvalidFileError(
            "is a single array; give the folder of the .npy files that belong together", path
        )
    return _kind_of_text(head, path)


def _kind_of_text(head: bytes, path: Path) -> Kind:
    text = head.decode("utf-8", "replace").lstrip("\ufeff")
    lines = [line for line in text.splitlines() if line.strip()]
    line = lines[0] if lines else ""
    # Comments may come before the lines of a run or qrels; a table may have a # in its header.
    fields = next((line for line in lines if not line.lstrip().startswith("#")), "").split()
    # The tag of a run may be several fields, but an item is no tag.
    is_run = len(fields) == 6 or (len(fields) > 6 and not all(map(_is_number, fields)))
    if is_run and _is_number(fields[4]) and "," not in "".join(fields[:5]):
        return Kind.RUN
    if len(fields) == 4 and _is_number(fields[3]) and "," not in "".join(fields):
        return Kind.QRELS
    if "\0" not in text and any(separator in line for separator in ",;\t|"):
        return Kind.CSV
    found = "holds something else" if line else "is empty"
    raise InvalidFileError(f"{found}; expected {_EXPECTED}", path)


def _is_number(text: str) -> bool:
    return not math.isnan(parse_number(text))
