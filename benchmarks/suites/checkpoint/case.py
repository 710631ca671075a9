"""The input of all contestants that rank the unseen items of a trained model's users."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, load_npz


class Checkpoint(NamedTuple):
    """Factors and data of one case.

    `user_factors` and `item_factors` are float32. `train` (seen items) and `validation` (held-out
    items) have a row for each row of `user_factors`, and float32 values. `users`, ascending, are
    the users with held-out items, who get a list of `k` items.
    """

    user_factors: npt.NDArray[np.float32]
    item_factors: npt.NDArray[np.float32]
    train: csr_matrix
    validation: csr_matrix
    users: npt.NDArray[np.int64]
    k: int
    threads: int


def read(path: Path) -> Checkpoint:
    """Read a case: a JSON file that names the other files in its folder."""
    case = json.loads(path.read_text(encoding="utf-8"))
    train, validation = (
        load_npz(path.with_name(f"{case['data']}-{part}.npz")) for part in ("train", "validation")
    )
    with np.load(path.with_name(f"{case['model']}.npz"), allow_pickle=False) as saved:
        user_factors, item_factors = saved["user_factors"], saved["item_factors"]
    users = np.flatnonzero(np.diff(validation.indptr))
    return Checkpoint(
        user_factors, item_factors, train, validation, users, case["k"], case["threads"]
    )
