"""Open models given by path or as pairs, and refer to files that each worker opens for itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.files import as_input
from ..errors import InvalidFileError
from ..inputs.npy import open_array
from ..inputs.paths import open_truth
from .accepted import as_model
from .checkpoints import Factors
from .identifiers import ITEM_IDS, USER_IDS

if TYPE_CHECKING:
    from ..core.types import PathLike
    from .accepted import ModelLike

_FACTORS = ("user_factors", "item_factors")

#: How many samples of a file are hashed to recognize it, and the bytes in each.
_SAMPLES, _SAMPLE_SIZE = 64, 1 << 16


def open_model(model: ModelLike) -> ModelLike:
    """Return a model, or the factors of one that stay on disk.

    A pair of arrays or of ``.npy`` files, or a folder with ``user_factors.npy`` and
    ``item_factors.npy`` (and, optionally, ``user_ids.npy`` and ``item_ids.npy``), stands for a
    model with these factors.
    """
    if isinstance(model, str | Path) and as_input(model).is_dir():
        folder = Path(model)
        files = [folder / f"{name}.npy" for name in (USER_IDS, ITEM_IDS)]
        ids = [open_array(file) if file.exists() else None for file in files]
        return Factors(*(open_array(folder / f"{name}.npy") for name in _FACTORS), *ids)
    if isinstance(model, tuple) and len(model) == 2:
        users, items = (
            open_array(as_input(side)) if isinstance(side, str | Path) else side for side in model
        )
        return Factors(users, items)
    return model


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


@lru_cache(maxsize=4)
def _open_reference(reference: FileReference) -> Any:
    path = reference.path
    if not path.exists():
        raise InvalidFileError("does not exist where this worker runs", path)
    if _digest(path) != reference.digest:
        raise InvalidFileError(
            "is something else where this worker runs; give all workers the same", path
        )
    if not reference.is_model:
        return open_truth(path)
    opened = open_model(path)
    return opened if isinstance(opened, Factors) else as_model(opened)


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
