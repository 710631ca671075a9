"""Read and validate models that `implicit` saved, without pickle."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from ..core.csr import canonical_csr
from ..errors import InvalidCheckpointError, InvalidDataError
from ..retrieval.factors import check_factors

if TYPE_CHECKING:
    from ..core.types import AnyArray, CSRMatrix, PathLike


class Factors(NamedTuple):
    """The factors of users and items, in place of a model.

    Attributes
    ----------
    user_factors, item_factors : ndarray of float, shape (n_users, f), (n_items, f)
        They may be memory-mapped.
    """

    user_factors: AnyArray
    item_factors: AnyArray


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint:
    """A saved model.

    Attributes
    ----------
    path : Path
        The file.
    user_factors, item_factors : ndarray of float, shape (n_users, f), (n_items, f), or None
        Of a factor model (ALS, BPR, LMF).
    similarity : csr_matrix, shape (n_items, n_items), or None
        Of an item-item neighbour model.
    parameters : dict
        The other single values in the file, such as ``regularization``.
    """

    path: Path
    user_factors: AnyArray | None = None
    item_factors: AnyArray | None = None
    similarity: CSRMatrix | None = None
    parameters: dict[str, object] = field(default_factory=dict)


def read_checkpoint(path: PathLike) -> Checkpoint:
    """Read a model that `implicit` saved (``model.save(path)``).

    Parameters
    ----------
    path : str or Path
        An ``.npz`` file with ``user_factors`` and ``item_factors``, or with the ``data``,
        ``indices``, ``indptr`` and ``shape`` of a neighbour model.

    Returns
    -------
    Checkpoint
        The factors of users and items have the same dtype, float32 or float64.

    Raises
    ------
    InvalidCheckpointError
        If the file is missing, truncated or not an ``.npz`` file, holds objects that need pickle
        or has no factors, or if the factors are not finite (the error names the row) or those of
        users and items differ in width.
    """
    path = Path(path)
    arrays = _read_arrays(path)
    parameters = {name: a.item() for name, a in arrays.items() if a.ndim == 0}
    if "user_factors" in arrays or "item_factors" in arrays:
        for name in ("user_factors", "item_factors"):
            if name not in arrays:
                raise InvalidCheckpointError(
                    f"has no {name}, only {', '.join(arrays)}; save the fitted model again", path
                )
        users, items = arrays["user_factors"], arrays["item_factors"]
        try:
            check_factors(users, items)
        except InvalidDataError as error:
            raise InvalidCheckpointError(str(error), path) from None
        # implicit's compiled code takes these two dtypes, the same for users and items.
        single = max(users.dtype.itemsize, items.dtype.itemsize) <= 4
        dtype = np.dtype(np.float32 if single else np.float64)
        users, items = (factors.astype(dtype, copy=False) for factors in (users, items))
        return Checkpoint(path, users, items, parameters=parameters)
    parts = [arrays.get(name) for name in ("data", "indices", "indptr")]
    if "shape" in arrays and all(part is not None for part in parts):
        try:
            if any(part.dtype.kind not in "iu" for part in parts[1:] if part is not None):
                raise InvalidDataError("its indices are not whole numbers")
            similarity = sparse.csr_matrix(tuple(parts), shape=tuple(arrays["shape"].tolist()))
            similarity = check_similarity(similarity)
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidCheckpointError(
                f"holds a SciPy matrix, but no similarity matrix: {error}", path
            ) from None
        return Checkpoint(path, similarity=similarity, parameters=parameters)
    raise InvalidCheckpointError(
        f"has neither factors nor similarities, only {', '.join(arrays) or 'nothing'}; expected "
        "a file that a fitted model of implicit saved",
        path,
    )


def check_similarity(similarity: object) -> CSRMatrix:
    """Return a neighbour model's matrix in canonical form, or raise `InvalidDataError`.

    It must be square and finite, because implicit's compiled code does not check it.
    """
    csr: CSRMatrix = canonical_csr(similarity, "the similarity matrix", sum_duplicates=True)
    if csr.shape[0] != csr.shape[1]:
        raise InvalidDataError(f"the similarity matrix has shape {csr.shape}; expected a square")
    if not np.isfinite(csr.data).all():
        raise InvalidDataError("the similarity matrix holds numbers that are not finite")
    return csr


def _read_arrays(path: Path) -> dict[str, AnyArray]:
    try:
        # Opened here, so that it is closed even if np.load raises.
        with path.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise InvalidCheckpointError("is a single array; expected an .npz file", path)
            arrays = {name: archive[name] for name in archive.files}
            if not all(isinstance(array, np.ndarray) for array in arrays.values()):
                raise InvalidCheckpointError(
                    "holds other content than arrays; expected a model that implicit saved", path
                )
            return arrays
    except InvalidCheckpointError:
        raise
    except FileNotFoundError:
        raise InvalidCheckpointError(
            "does not exist; expected an .npz file saved by a model of implicit", path
        ) from None
    except OSError as error:
        raise InvalidCheckpointError(f"cannot be read: {error.strerror or error}", path) from None
    except (
        EOFError,
        KeyError,
        MemoryError,
        NotImplementedError,
        OverflowError,
        RuntimeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        reason = str(error)
        if "pickle" in reason.lower():
            reason = (
                "is not an .npz file, or holds objects that only pickle could read, which is unsafe"
            )
        raise InvalidCheckpointError(
            f"{reason or 'ends early'}; expected an .npz file saved by a model of implicit", path
        ) from None
