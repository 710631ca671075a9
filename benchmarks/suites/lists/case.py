"""The input of all rivals that score lists."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix


class Lists(NamedTuple):
    """Row r of `ids` is the list of the user `users[r]`.

    The arrays of an answer are named after our metrics. They have one number per list, or only the
    mean if the library gives no other values.
    """

    ids: npt.NDArray[np.int32]
    users: npt.NDArray[np.int64]
    validation: csr_matrix
    train: csr_matrix


def read(path: Path) -> Lists:
    with np.load(path, allow_pickle=False) as saved:
        parts = (saved["data"], saved["indices"], saved["indptr"])
        validation = csr_matrix(parts, shape=tuple(saved["shape"]))
        columns, bounds = saved["train_indices"], saved["train_indptr"]
        parts = (np.ones(len(columns)), columns, bounds)
        train = csr_matrix(parts, shape=validation.shape)
        return Lists(saved["ids"], saved["users"], validation, train)
