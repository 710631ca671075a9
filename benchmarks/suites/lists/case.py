"""The input of all rivals that score lists."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

#: The metrics that others have, too, at all cut-offs.
NAMES = ("ndcg", "precision", "recall", "hit_rate", "mrr", "map")
CUT_OFFS = (1, 3, 5, 10)
SEVERAL = [f"{name}@{k}" for name in NAMES for k in CUT_OFFS]


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


def dictionaries(lists: Lists) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return the relevant items and the lists of users as dictionaries with text ids."""
    length = lists.ids.shape[1]
    scores = [float(length - rank) for rank in range(length)]
    users = [str(user) for user in lists.users]
    rows = lists.validation[lists.users]
    relevant = {
        user: dict.fromkeys(map(str, items.tolist()), 1)
        for user, items in zip(users, np.split(rows.indices, rows.indptr[1:-1]), strict=True)
    }
    run = {
        user: dict(zip(map(str, items), scores, strict=True))
        for user, items in zip(users, lists.ids.tolist(), strict=True)
    }
    return relevant, run
