"""Numbers by which data are known: one for each user's relevant items, one for a whole matrix."""

from __future__ import annotations

from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["digest", "digest_labels", "fingerprints", "hash_labels", "scattered"]


def fingerprints(
    indptr: NDArray[Any],
    items: NDArray[Any],
    gains: NDArray[Any],
    labels: pd.Index[Any] | None,
) -> NDArray[np.uint64]:
    """Return a number for the items of each row, which does not depend on their order.

    Parameters
    ----------
    indptr, items, gains : ndarray
        Of a `Relevance`. Entries without gain count too: some conventions use them.
    labels : pandas.Index, optional
        Of the items, which then stand for themselves, whatever their column.

    Returns
    -------
    ndarray of uint64, shape (n_rows,)
        Equal for equal items and gains, and for hardly any others; 0 for an empty row. The same
        on every machine.
    """
    if labels is None:
        keys = items.astype(np.uint64)
    else:
        keys = np.array(
            [
                int.from_bytes(blake2b(str(label).encode(), digest_size=8).digest(), "little")
                for label in labels.tolist()
            ],
            np.uint64,
        )[items]
    bits = (gains.astype(np.float64) + 0.0).view(np.uint64)  # −0 is 0
    mixed = scattered(scattered(keys) ^ bits)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)))
    return np.asarray(sums[indptr[1:]] - sums[indptr[:-1]])


def digest(shape: tuple[int, int], indptr: Any, columns: Any, values: Any = None) -> str:
    """Return a SHA-256, in hexadecimal, of what sparse rows hold, whatever their dtypes."""
    found = sha256()
    arrays = ((shape, "<i8"), (indptr, "<i8"), (columns, "<i4"), (values, "<f8"))
    for array, dtype in arrays:
        if array is not None:
            found.update(np.ascontiguousarray(array, dtype).data)
    return found.hexdigest()


def scattered(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter numbers, as the generator splitmix64 does."""
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return numbers ^ (numbers >> np.uint64(31))


def hash_labels(labels: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash of each label, an int64 or text, which is the same everywhere."""
    if labels.dtype.kind in "iu":
        return scattered(labels.astype(np.int64, copy=False).view(np.uint64))
    from pandas.util import hash_array  # only where labels are text

    return hash_array(labels.astype(object), categorize=False)


def digest_labels(labels: NDArray[Any]) -> str:
    """Return 16 hexadecimal digits that identify labels in their order."""
    if labels.dtype.kind in "iu":
        data = labels.astype("<i8").tobytes()
    else:
        data = "\n".join(f"{type(label).__name__} {label!r}" for label in labels.tolist()).encode()
    return sha256(data).hexdigest()[:16]
