"""Hashes of users, labels, relevant items and matrices, and random numbers derived from them.

They are the same on every machine.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from .threads import for_blocks

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from .types import AnyArray, Floats, Hashes, Integers

#: The number of entries that a thread hashes at once: few enough for its cache.
_BLOCK = 2**15


def fingerprints(indptr: AnyArray, items: AnyArray, gains: AnyArray, keys: Hashes | None) -> Hashes:
    """Return a hash of the items and gains of each row, independent of their order.

    Parameters
    ----------
    indptr, items, gains : ndarray
        Arrays of a `Relevance`. Entries without gain count too, because some conventions use them.
    keys : ndarray of uint64, optional
        A number for each column, which is hashed instead of the column number. For blocks of
        tables these are ids.

    Returns
    -------
    ndarray of uint64, shape (n_rows,)
        0 for an empty row.
    """
    hashes = np.empty(len(items), np.uint64)

    def hash_entries(first: int, last: int) -> None:
        part = items[first:last]
        bits = (gains[first:last].astype(np.float64) + 0.0).view(np.uint64)  # −0 becomes 0
        of_items = splitmix64(part.astype(np.uint64) if keys is None else keys[part])
        hashes[first:last] = splitmix64(of_items ^ bits)

    for_blocks(hash_entries, len(items), block=_BLOCK)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)))
    return np.asarray(sums[indptr[1:]] - sums[indptr[:-1]])


def hash_labels(labels: AnyArray) -> Hashes:
    """Return a hash of each label or row number."""
    if labels.dtype.kind in "iu":
        return splitmix64(labels.astype(np.int64, copy=False).view(np.uint64))
    from pandas.util import hash_array  # slow to import, and only needed for text

    return hash_array(labels.astype(object), categorize=False)


def digest(*parts: str | bytes | AnyArray) -> str:
    """Return the SHA-256, in hexadecimal, of texts, bytes and the bytes of arrays in succession."""
    hashed = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            hashed.update(np.ascontiguousarray(part).data)
        else:
            hashed.update(part.encode() if isinstance(part, str) else part)
    return hashed.hexdigest()


def digest_labels(labels: AnyArray) -> str:
    """Return 16 hexadecimal digits that identify labels in their order."""
    if labels.dtype.kind in "iu":
        data = labels.astype("<i8").tobytes()
    else:
        data = "\n".join(f"{type(label).__name__} {label!r}" for label in labels.tolist()).encode()
    return digest(data)[:16]


def digest_csr(
    shape: tuple[int, int], indptr: ArrayLike, columns: ArrayLike, values: ArrayLike | None = None
) -> str:
    """Return the SHA-256, in hexadecimal, of sparse rows, independent of their dtypes."""
    arrays = ((shape, "<i8"), (indptr, "<i8"), (columns, "<i4"), (values, "<f8"))
    return digest(*(np.asarray(array, dtype) for array, dtype in arrays if array is not None))


def digest_arrays(*arrays: AnyArray) -> str:
    """Return 16 hexadecimal digits that identify the shapes, dtypes and values of arrays."""
    parts: list[str | AnyArray] = []
    for array in arrays:
        little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
        parts += [f"{array.dtype.name} {array.shape}", little_endian]
    return digest(*parts)[:16]


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def splitmix64(numbers: Hashes) -> Hashes:
    """Return the output of the SplitMix64 generator with each number as its state.

    Each step is a bijection, so different numbers have different hashes.

    References
    ----------
    G. L. Steele, D. Lea and C. H. Flood (2014). Fast splittable pseudorandom number generators.
    OOPSLA 2014. https://doi.org/10.1145/2660193.2660195
    """
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return numbers ^ (numbers >> np.uint64(31))


def uniforms(keys: Hashes, counts: Integers, seed: int) -> Floats:
    """Draw numbers uniformly from [0, 1); each depends only on the user's key and its position.

    With one generator for all users, the numbers of a user would depend on the block.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_users,)
        A hash of each user.
    counts : ndarray of int64, shape (n_users,)
        The number of numbers that each user gets.

    Returns
    -------
    ndarray of float64, shape (sum of counts,)
        The numbers of each user in succession.
    """
    ends = np.cumsum(counts)
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    streams = splitmix64(keys ^ splitmix64(np.array([seed], np.uint64)))
    with np.errstate(over="ignore"):
        numbers = splitmix64(np.repeat(streams, counts) + places.astype(np.uint64))
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53
