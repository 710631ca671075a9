"""Read arrays from ``.npy`` and ``.npz`` files of NumPy and SciPy. Nothing is unpickled."""

from __future__ import annotations

import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .types import AnyArray

#: The first bytes of a ``.npy`` file.
NPY = b"\x93NUMPY"


class UnreadableError(ValueError):
    """Raised if a file was not saved by NumPy or SciPy; the message has the reason."""


def map_array(path: Path) -> AnyArray:
    """Return the array of a ``.npy`` file, memory-mapped and read-only.

    Raises
    ------
    UnreadableError
        If the file is not such an array, or is shorter or longer than its header states.
    OSError
        If it cannot be opened.
    """
    size = path.stat().st_size
    with _reading():
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.memmap) or array.offset + array.nbytes != size:
            raise UnreadableError("is not a NumPy array, or is longer than its header states")
    return array


def read_arrays(stream: BinaryIO) -> dict[str, AnyArray]:
    """Return the arrays of an ``.npz`` file by their names.

    Raises `UnreadableError` if the stream is not an ``.npz`` file, is damaged, or would take much
    more memory than its size.
    """
    with _reading():
        _check_size(stream)
        arrays = dict(np.load(stream, allow_pickle=False))
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise UnreadableError(f"contains {name!r}, which is not an array")
    return arrays


def read_sparse(stream: BinaryIO) -> Any:
    """Return a matrix saved by `scipy.sparse.save_npz`.

    Raises `UnreadableError` as from `read_arrays`, or if the arrays are not a sparse matrix.
    """
    with _reading():
        _check_size(stream)
        with np.load(stream, allow_pickle=False) as arrays:
            if "format" not in arrays.files:
                raise UnreadableError("does not contain a matrix saved by scipy.sparse.save_npz")
            for name in {"indptr", "indices", "row", "col"}.intersection(arrays.files):
                if arrays[name].dtype.kind not in "iu":  # SciPy cuts fractions off
                    raise UnreadableError(f"its {name} are not whole numbers")
        stream.seek(0)
        return sparse.load_npz(stream)


@contextmanager
def _reading() -> Iterator[None]:
    """Convert any error of NumPy, SciPy and the decompressors to an `UnreadableError`."""
    try:
        yield
    except UnreadableError:
        raise
    except Exception as error:  # noqa: BLE001 - headers are parsed as Python
        reason = " ".join(str(error).split())[:120]
        if "pickle" in reason or "Python objects" in reason:
            raise UnreadableError("is not an array of numbers or text") from None
        raise UnreadableError(f"{type(error).__name__}: {reason}") from None


def _check_size(stream: BinaryIO) -> None:
    size = stream.seek(0, 2)
    with zipfile.ZipFile(stream) as archive:
        unpacked = sum(one.file_size for one in archive.infolist())
    # Data rarely expand to 200 times their compressed size, and a gigabyte does no harm.
    if unpacked > max(1 << 30, 200 * size):
        raise UnreadableError(
            f"would take {unpacked / 1e9:,.1f} GB of memory, {unpacked // size:,} times as much "
            "as the file; if that is right, save it without compression"
        )
    stream.seek(0)
