"""Loading sparse matrices that were saved with `scipy.sparse.save_npz`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.csr import coordinates
from ..core.files import as_input
from ..errors import InvalidDataError
from ..inputs.axes import Axis
from ..inputs.npy import read_sparse
from ..inputs.tables import naming
from .interactions import Interactions

if TYPE_CHECKING:
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
    with naming(path):
        rows, columns, values, shape = coordinates(read_sparse(path))
        if not len(values):
            raise InvalidDataError("there are no interactions: the matrix is empty")
    return Interactions(
        user_codes=rows,
        item_codes=columns,
        values=values,
        timestamps=None,
        users=Axis.numbers(shape[0]),
        items=Axis.numbers(shape[1]),
    )
