"""Write the lists and the data for all rivals, and compare their answers.

This runs in an environment with a pinned NumPy, so the inputs are the same everywhere. The shape is
that of MIND-small's validation half: 50,000 users, 47,235 of them with relevant items, 51,277
items, a few very popular items and a few very busy users. In the training data, every user has
about 24 items, with the same long tail.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from harness.draw import first_distinct
from harness.values import difference
from scipy.sparse import csr_matrix

SEED = 0
LENGTH = 10


class Size(NamedTuple):
    """The numbers of users, lists and items, and of the lists for first calls."""

    n_users: int
    n_lists: int
    n_items: int
    n_few: int


SIZES = {"full": Size(50_000, 47_235, 51_277, 500), "toy": Size(2_000, 1_900, 3_000, 100)}

Integers = npt.NDArray[np.int64]
Draw = Callable[[int | tuple[int, ...]], Integers]


def write(place: str, name: str) -> dict[str, dict[str, int]]:
    folder, size = Path(place), SIZES[name]
    n_users, n_lists, n_items, n_few = size
    rng = np.random.default_rng(SEED)
    catalogue = rng.permutation(n_items)
    popularity = 1.0 / np.arange(20, n_items + 20)  # Zipf, with a flattened head
    cumulative = np.cumsum(popularity)
    cumulative /= cumulative[-1]

    def draw_items(shape: int | tuple[int, ...]) -> Integers:
        return catalogue[np.searchsorted(cumulative, rng.random(shape), side="right")]

    users = np.sort(rng.choice(n_users, n_lists, replace=False))
    validation = make_clicks(rng, users, draw_items, size, mean=2.4)
    ids = make_lists(rng, validation[users], draw_items)
    train = without(make_clicks(rng, np.arange(n_users), draw_items, size, mean=2.75), users, ids)

    folder.mkdir(parents=True, exist_ok=True)
    few, chosen = slice(n_few), users[:n_few]
    of_few = (ids[few], np.arange(n_few), validation[chosen], train[chosen])
    return {
        "full": save(folder / "full.npz", ids, users, validation, train),
        "few": save(folder / "few.npz", *of_few),
    }


def make_clicks(
    rng: np.random.Generator, users: Integers, draw_items: Draw, size: Size, mean: float
) -> csr_matrix:
    """Draw the clicks of each user: one to a few hundred items, each once, all with gain 1."""
    activity = np.clip(rng.lognormal(mean=mean, sigma=1.0, size=users.size), 1, 400).astype(int)
    rows = np.repeat(users, activity)
    pairs = np.unique(rows * size.n_items + draw_items(rows.size))
    rows, columns = np.divmod(pairs, size.n_items)
    return csr_matrix((np.ones(pairs.size), (rows, columns)), shape=(size.n_users, size.n_items))


def without(train: csr_matrix, users: Integers, ids: Integers) -> csr_matrix:
    """Remove recommended items from the training data, because seen items are not recommended."""
    rows = np.repeat(users, ids.shape[1])
    listed = csr_matrix((np.ones(ids.size), (rows, ids.ravel())), shape=train.shape)
    rest = train - train.multiply(listed)
    rest.eliminate_zeros()
    return rest


def make_lists(rng: np.random.Generator, relevant: csr_matrix, draw_items: Draw) -> Integers:
    """Draw one list per row: popular items, and the row's own items, with more of them on top."""
    shape = (relevant.shape[0], 6 * LENGTH)
    chance_of_own = 0.11 / np.sqrt(np.arange(1, shape[1] + 1))
    counts = np.diff(relevant.indptr)
    chosen = (rng.random(shape) * counts[:, None]).astype(int)
    own = relevant.indices[relevant.indptr[:-1, None] + chosen]
    candidates = np.where(rng.random(shape) < chance_of_own, own, draw_items(shape))

    return first_distinct(candidates, LENGTH)


def save(
    path: Path, ids: Integers, users: Integers, validation: csr_matrix, train: csr_matrix
) -> dict[str, int]:
    """Write one file of lists; return its size and shape."""
    parts = {name: getattr(validation, name) for name in ("data", "indices", "indptr", "shape")}
    parts |= {f"train_{name}": getattr(train, name) for name in ("indices", "indptr")}
    np.savez(path, ids=ids.astype(np.int32), users=users, **parts)  # as a recommender returns ids
    n_users, n_items = validation.shape
    return {
        "n_users": n_users,
        "n_items": n_items,
        "n_lists": len(ids),
        "list_length": ids.shape[1],
        "n_relevant": validation.nnz,
        "n_train": train.nnz,
    }


def compare(reference: str, other: str) -> dict[str, float]:
    """Return the largest difference of each metric that two files of answers have.

    If the other file has a single number, it is a mean, and is compared with the mean.
    """
    ours, theirs = (dict(np.load(path, allow_pickle=False)) for path in (reference, other))
    for name in ours:
        if name in theirs and theirs[name].size == 1:
            ours[name] = np.nanmean(ours[name], keepdims=True)
    both = sorted(ours.keys() & theirs.keys())
    return {name: difference(ours[name].tolist(), theirs[name].tolist()) for name in both}
