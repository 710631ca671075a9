"""Read the data of the tables in the authors' formats; write toys in the same formats."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

import sparse_eval as se


class Data(NamedTuple):
    """The data for training and evaluating a model; rows are users, columns are items."""

    train: sparse.csr_matrix
    held_out: sparse.csr_matrix
    candidates: sparse.csr_matrix | None = None


def ncf(folder: Path) -> Data:
    """Read ``ml-1m.train.rating``, or ``train.npz`` of its users and items, and the negatives."""
    ratings = folder / "ml-1m.train.rating"
    if ratings.exists():
        table = pd.read_csv(ratings, sep="\t", header=None, usecols=[0, 1], dtype=np.int64)
        users, items = table.to_numpy().T
    else:
        with np.load(folder / "train.npz", allow_pickle=False) as arrays:
            users, items = (arrays[name].astype(np.int64) for name in ("user", "item"))
    train = sparse.csr_matrix((np.ones(len(users)), (users, items)))
    held_out, candidates = se.read_negatives(folder / "ml-1m.test.negative", train)
    relevant = (np.ones(len(held_out.items)), held_out.items, held_out.indptr)
    return Data(train, sparse.csr_matrix(relevant, shape=train.shape), candidates.to_csr())


def adjacency(folder: Path, *files: str) -> Data:
    parts = (se.datasets.load_adjacency(folder / file) for file in files)
    holdout = se.Holdout.from_frames(*parts)
    return Data(
        *(by_number(part.csr, holdout.items) for part in (holdout.train, holdout.validation))
    )


def by_number(part: sparse.csr_matrix, items: Sequence[int]) -> sparse.csr_matrix:
    """Return the matrix whose columns are the item numbers of the files, used or not.

    The files of SpectralCF leave out an eighth of the numbers, which count as items in TF-IDF.
    """
    numbers, pairs = np.asarray(items, np.int64), part.tocoo()
    shape = (part.shape[0], int(numbers.max()) + 1)
    return sparse.csr_matrix((pairs.data, (pairs.row, numbers[pairs.col])), shape)


#: The training and test files of the tables in the adjacency format.
ADJACENCY = {
    "spectralcf_ml1m": ("train_users.dat", "test_users.dat"),
    "gowalla": ("train.txt", "test.txt"),
}
READERS = {"ncf_ml1m": ncf} | {
    name: partial(lambda files, folder: adjacency(folder, *files), files)
    for name, files in ADJACENCY.items()
}


def write_toys(place: str, n_users: int = 150, n_items: int = 400) -> None:
    """Write a folder for each table, with files in the formats of the published ones."""
    folder = Path(place)
    clicks = se.datasets.synthetic(n_users=n_users, n_items=n_items, seed=0)
    for name in READERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    last = se.split.leave_k_out(clicks, n=1, seed=0)
    users, items = last.train.csr.nonzero()
    frame = pd.DataFrame({"user": users, "item": items, "rating": 5, "time": 0})
    path = folder / "ncf_ml1m" / "ml-1m.train.rating"
    frame.to_csv(path, sep="\t", header=False, index=False)
    rng = np.random.default_rng(0)
    lines = []
    for user, item in zip(*last.validation.csr.nonzero(), strict=True):
        unseen = np.setdiff1d(np.arange(items.max() + 1), items[users == user])
        negatives = rng.choice(unseen, min(20, len(unseen)), replace=False)  # it may be among them
        if item <= items.max() and user <= users.max():
            lines.append("\t".join([f"({user},{item})", *map(str, negatives)]))
    path = folder / "ncf_ml1m" / "ml-1m.test.negative"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    parts = se.split.random(clicks, seed=0)
    for name, files in ADJACENCY.items():
        for file, part in zip(files, (parts.train, parts.validation), strict=True):
            rows = np.split(part.csr.indices, part.csr.indptr[1:-1])
            lines = [" ".join(map(str, [user, *row])) for user, row in enumerate(rows) if len(row)]
            (folder / name / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
