"""Loading sparse matrices that were saved with `scipy.sparse.save_npz`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core import saved_arrays
from ..core.csr import coordinates
from ..core.files import as_input
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.axes import Axis
from .interactions import Interactions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..core.types import PathLike


def load_npz(path: PathLike) -> Interactions:
    """Read a matrix of users × items that `scipy.sparse.save_npz` wrote. Nothing is unpickled.

    Parameters
    ----------
    path : str or Path
        The file: CSR, CSC or COO, any real dtype; values finite and >= 0.

    Returns
    -------
    Interactions
        One event per stored value, explicit zeros included; users and items are range indexes.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, is damaged, holds something else (pickled objects included),
        or has a value that is negative or not finite.

    See Also
    --------
    scipy.sparse.save_npz : Write such a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy import sparse
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.npz"
    ...     sparse.save_npz(path, sparse.csr_matrix([[0, 2], [1, 0]]))
    ...     load_npz(path)
    Interactions(2 users × 2 items, 2 events)
    """
    path = as_input(path)
    try:
        rows, columns, values, shape = coordinates(read_sparse(path))
    except InvalidDataError as error:
        raise InvalidFileError(str(error), path) from error
    if not len(values):
        raise InvalidFileError("there are no interactions: the matrix is empty", path)
    return Interactions(
        user_codes=rows,
        item_codes=columns,
        values=values,
        timestamps=None,
        users=Axis.numbers(shape[0]),
        items=Axis.numbers(shape[1]),
    )


def read_sparse(path: Path) -> Any:
    """Return the CSR, CSC or COO matrix in a file, or raise `InvalidFileError`."""
    with (
        reading_npz(path, "a matrix saved by scipy.sparse.save_npz"),
        path.open("rb") as file,
    ):
        matrix = saved_arrays.read_sparse(file)
    if matrix.format not in ("csr", "csc", "coo"):
        raise InvalidFileError(f"expected CSR, CSC or COO, found {matrix.format}", path)
    return matrix


@contextmanager
def reading_npz(path: Path, expected: str) -> Iterator[None]:
    """Turn any error from reading an npz file into `InvalidFileError`."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidFileError("there is no such file", path) from None
    except (OSError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidFileError(f"expected {expected} ({error})", path) from error
