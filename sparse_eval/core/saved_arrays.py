"""Reading arrays that others saved, in ``.npy`` and ``.npz`` files, whatever is in them.

NumPy's parser of headers raises anything, to errors of Python's tokenizer; and NumPy allocates what
a header says before it looks whether the file has that. So headers are parsed here alone, and
compared with the size of the file first. Nothing is unpickled.
"""

from __future__ import annotations

import io
import math
import sys
import zipfile
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .types import AnyArray

#: How a ``.npy`` file begins.
NPY = b"\x93NUMPY"

#: Bytes that say how long a header is, and NumPy's parser of it, by version.
_HEADERS: dict[tuple[int, int], tuple[int, Callable[..., Any]]] = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}

#: Bytes of the longest header that NumPy parses; what claims to be longer is not read.
_LONGEST_HEADER = 10_000

#: The constructors of SciPy's formats, and the parts that each is made of.
_FORMATS: dict[str, Callable[[dict[str, AnyArray], tuple[int, ...]], Any]] = {
    "csr": lambda a, shape: sparse.csr_matrix((a["data"], a["indices"], a["indptr"]), shape),
    "csc": lambda a, shape: sparse.csc_matrix((a["data"], a["indices"], a["indptr"]), shape),
    "coo": lambda a, shape: sparse.coo_matrix((a["data"], (a["row"], a["col"])), shape),
}


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
    with path.open("rb") as stream:
        _check_header(stream, path.stat().st_size)
    array: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
    _check_text(array)
    return array


def _check_text(array: AnyArray) -> None:
    """Raise if text has characters that do not exist, of which Python makes no str."""
    if array.dtype.kind == "U" and array.nbytes:
        kind = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        if array.ravel(order="K").view(kind).max() > sys.maxunicode:
            raise UnreadableError("holds text of characters that do not exist")


def read_arrays(stream: BinaryIO) -> dict[str, AnyArray]:
    """Return the arrays of an ``.npz`` file by name.

    Raises
    ------
    UnreadableError
        If the file is something else, a part of it is damaged, two arrays have one name, or the
        arrays take far more memory than the file, see `most_unpacked`.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as error:
        raise UnreadableError(f"is not an .npz file ({_reason(error)})") from None
    with archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise UnreadableError("holds two arrays of one name; save it again")
        size, unpacked = stream.seek(0, 2), sum(one.file_size for one in members.values())
        if unpacked > most_unpacked(size):
            raise UnreadableError(
                f"would take {unpacked / 1e9:,.1f} GB of memory, {unpacked // size:,} times as "
                "much as the file; if that is right, save it without compression"
            )
        return {name: _read_member(archive, member) for name, member in members.items()}


def most_unpacked(size: int) -> int:
    """Return how many bytes a compressed file of `size` bytes may unpack to.

    1 GiB, or 200 times its size if that is more: a compressed file that is larger in memory is
    made to exhaust it, or as easily kept uncompressed.
    """
    return max(1 << 30, 200 * size)


def read_sparse(stream: BinaryIO) -> Any:
    """Return the matrix in a file of `scipy.sparse.save_npz`, its parts unchecked.

    Raises
    ------
    UnreadableError
        As `read_arrays` does, or if the arrays are not the parts of a matrix.
    """
    arrays = read_arrays(stream)
    try:
        name = arrays["format"].item()
        kind = name.decode("ascii") if isinstance(name, bytes) else str(name)
        shape = tuple(arrays["shape"].tolist())
        if any(not isinstance(size, int) or size < 0 for size in shape):
            raise ValueError(f"its shape is {shape}")
        if len(shape) != 2:
            raise ValueError(f"expected users × items, found {len(shape)}-D")
        matrix = _FORMATS[kind](arrays, shape)
    except KeyError as error:
        raise UnreadableError(f"holds no CSR, CSC or COO matrix: there is no {error}") from None
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise UnreadableError(f"holds no sparse matrix: {_reason(error)}") from None
    return matrix


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> AnyArray:
    name = member.filename
    try:
        with archive.open(member) as stream:
            _check_header(stream, member.file_size)
        with archive.open(member) as stream:
            array: AnyArray = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read(1)  # compares the checksum
        _check_text(array)
    except UnreadableError as error:
        raise UnreadableError(f"{name} {error}") from None
    except MemoryError as error:
        raise UnreadableError(f"{name} is too large ({_reason(error)})") from None
    except Exception as error:  # noqa: BLE001 - of any decompressor
        raise UnreadableError(f"{name} is damaged ({_reason(error)})") from None
    return array


def _check_header(stream: Any, size: int) -> None:
    """Raise unless a file of `size` bytes holds the array that its header describes."""
    try:
        version = np.lib.format.read_magic(stream)
        n_bytes, parse = _HEADERS[version]
        length = stream.read(n_bytes)
        header = stream.read(min(int.from_bytes(length, "little"), _LONGEST_HEADER))
        shape, _, dtype = parse(io.BytesIO(length + header))
    except Exception as error:  # noqa: BLE001 - see the module's docstring
        raise UnreadableError(f"has no readable header ({_reason(error)})") from None
    if dtype.hasobject:
        raise UnreadableError("holds objects that only pickle could read, which is unsafe")
    if dtype.itemsize == 0 or any(type(size) is not int or size < 0 for size in shape):
        raise UnreadableError(f"is no array: of {dtype} with shape {shape}")
    needed, there = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if needed != there:
        raise UnreadableError(f"has {there} bytes of numbers instead of {needed}")


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
