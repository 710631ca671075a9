"""References to files that each worker opens for itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.files import as_input
from ..errors import InvalidFileError
from ..inputs.npy import release, slice_rows
from ..inputs.paths import open_truth
from .accepted import as_model

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.types import PathLike

#: How many samples of a file are hashed to recognize it, and the bytes in each.
_SAMPLES, _SAMPLE_SIZE = 64, 1 << 16


@dataclass(frozen=True)
class FileReference:
    """A model or matrix on disk that each worker opens, instead of receiving a copy.

    Attributes
    ----------
    path : Path
        A checkpoint, a folder of two arrays of factors, or a matrix.
    digest : str
        Of the sizes and of samples of the files, by which a worker recognizes them.
    is_model : bool
        Whether it is a model, rather than training data or held-out items.
    """

    path: Path
    digest: str
    is_model: bool = False

    @classmethod
    def of(cls, path: PathLike, *, is_model: bool = False) -> FileReference:
        """Make a reference to files that this process can read."""
        absolute = as_input(path).absolute()
        return cls(absolute, _digest(absolute), is_model)

    def open(self) -> Any:
        """Return the model or matrix, or raise `InvalidFileError` if the files are others."""
        return _open_reference(self)

    def rows(self, first: int, last: int) -> Any:
        """Return the rows of some users of the matrix, or what the model knows of them."""
        opened = self.open()
        side = opened.known(0) if self.is_model else opened
        rows: Any = side if self.is_model else slice_rows(side, first, last)
        rows = np.array(side[first:last]) if self.is_model else rows.copy()
        release(side)
        return rows


@lru_cache(maxsize=4)
def _open_reference(reference: FileReference) -> Any:
    path = reference.path
    if not path.exists():
        raise InvalidFileError("does not exist where this worker runs", path)
    if _digest(path) != reference.digest:
        raise InvalidFileError(
            "is something else where this worker runs; give all workers the same", path
        )
    return as_model(path, check=False) if reference.is_model else open_truth(path)


def _digest(path: Path) -> str:
    """Hash the sizes and samples of files; reading all of a large file would take too long."""
    digest = hashlib.sha256()
    for file in sorted(path.glob("*.npy")) if path.is_dir() else [path]:
        size = file.stat().st_size
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as stream:
            for sample in range(_SAMPLES):
                stream.seek(sample * size // _SAMPLES)
                digest.update(stream.read(_SAMPLE_SIZE))
    return digest.hexdigest()
