"""Read arrays that NumPy and SciPy saved, in ``.npy`` and ``.npz`` files. Nothing is unpickled."""

from __future__ import annotations

import sys
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .types import AnyArray

#: The arrays of a sparse matrix that say where its values are.
_INDICES = ("indices", "indptr", "row", "col", "offsets")

#: How a ``.npy`` file begins.
NPY = b"\x93NUMPY"


class UnreadableError(ValueError):
    """A file is not what NumPy or SciPy saved; the message says why."""


def map_array(path: Path) -> AnyArray:
    """Return the array of a ``.npy`` file, memory-mapped and read-only.

    Raises
    ------
    UnreadableError
        If the file is something else, or shorter or longer than it says.
    OSError
        If it cannot be opened.
    """
    size = path.stat().st_size
    with _reading():
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.memmap) or array.offset + array.nbytes != size:
            raise UnreadableError("is no array, or longer than it says")
        _check_text(array)
    return array


def read_arrays(stream: BinaryIO) -> dict[str, AnyArray]:
    """Return the arrays of an ``.npz`` file by their names.

    Raises
    ------
    UnreadableError
        If the stream is something else or damaged, or would take much more memory than its size.
    """
    arrays = {}
    with _reading(), zipfile.ZipFile(stream) as archive:
        _check_size(archive, stream)
        for member in archive.infolist():
            with archive.open(member) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
                if file.read(1):
                    raise UnreadableError(f"{member.filename} is longer than it says")
            _check_text(array)
            arrays[member.filename.removesuffix(".npy")] = array
    return arrays


def read_sparse(stream: BinaryIO) -> Any:
    """Return a matrix saved by `scipy.sparse.save_npz`.

    Raises
    ------
    UnreadableError
        As from `read_arrays`, or if the arrays are no sparse matrix.
    """
    with _reading():
        with zipfile.ZipFile(stream) as archive:
            _check_size(archive, stream)
            members = archive.namelist()
            if "format.npy" not in members:
                raise UnreadableError("holds no sparse matrix")
            for name in {f"{index}.npy" for index in _INDICES}.intersection(members):
                with archive.open(name) as file:  # SciPy would cut fractions off
                    if _dtype(file).kind not in "iu":
                        raise UnreadableError(f"{name} holds no whole numbers")
        stream.seek(0)
        return sparse.load_npz(stream)


def most_unpacked(size: int) -> int:
    """Return the most bytes that a file of `size` bytes may take in memory.

    Compressed data is seldom 200 times as large, and a gigabyte does no harm.
    """
    return max(1 << 30, 200 * size)


@contextmanager
def _reading() -> Iterator[None]:
    """Raise any error of NumPy, SciPy and the decompressors as an `UnreadableError`."""
    try:
        yield
    except UnreadableError:
        raise
    except Exception as error:  # noqa: BLE001 - headers are parsed as Python
        reason = " ".join(str(error).split())[:120]
        if "pickle" in reason or "Python objects" in reason:
            raise UnreadableError("is no array of numbers or text") from None
        raise UnreadableError(f"{type(error).__name__}: {reason}") from None


def _check_size(archive: zipfile.ZipFile, stream: BinaryIO) -> None:
    size, unpacked = stream.seek(0, 2), sum(one.file_size for one in archive.infolist())
    if unpacked > most_unpacked(size):
        raise UnreadableError(
            f"would take {unpacked / 1e9:,.1f} GB of memory, {unpacked // size:,} times as much "
            "as the file; if that is right, save it without compression"
        )


def _dtype(file: Any) -> np.dtype[Any]:
    """Return the dtype in the header of a ``.npy`` file."""
    major, _ = np.lib.format.read_magic(file)
    read = getattr(np.lib.format, f"read_array_header_{major}_0")
    dtype: np.dtype[Any] = read(file)[2]
    return dtype


def _check_text(array: AnyArray) -> None:
    """Raise for codes of no character, on which `tolist` would raise an error later."""
    if array.dtype.kind == "U" and array.nbytes:
        kind = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        if array.ravel(order="K").view(kind).max() > sys.maxunicode:
            raise UnreadableError("holds text of characters that do not exist")
