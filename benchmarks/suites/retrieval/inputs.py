"""Random factors that are not trained, with seen items and one held-out item of each user."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from harness.draw import Clusters
from harness.files import once

SEED = 0
FACTORS = 64

Floats = npt.NDArray[np.float32]


def draw(folder: Path, n_users: int, n_items: int) -> dict[str, Any]:
    """Draw factors in the shape of ALS models, seen items, and one held-out item of each user.

    Items are ranked by popularity, with a weight of 1 / (rank + 10). The norm of an item falls
    with (rank + 20) ** -0.2, times a log-normal factor with sigma 0.2; a user's norm is
    log-normal with sigma 0.5. There is a cluster for every thousand items. An item's direction is
    the direction of its cluster plus the same amount of noise. A user's direction is that of three
    clusters, weighted 6, 3 and 1 and drawn by popularity, plus noise. All directions have a common
    part. Seen and held-out items are drawn by popularity, four of five from the user's clusters.
    For ALS models of Gowalla and of our synthetic clicks, with 64 factors, norms fall with an
    exponent between 0.2 and 0.35.
    """

    def write(unfinished: Path) -> None:
        rng = np.random.default_rng(SEED)
        clusters = Clusters(rng, n_items, max(4, n_items // 1000))
        shared, *_ = directions(rng, 1)
        centres = unit(directions(rng, clusters.of_item.max() + 1) + 0.3 * shared)
        norms = (np.arange(n_items) + 20) ** -0.2 * rng.lognormal(sigma=0.2, size=n_items)
        items = unit(centres[clusters.of_item] + directions(rng, n_items)) * norms[:, None]
        np.save(unfinished / "items.npy", items.astype(np.float32))
        del items

        favourites = clusters.of_item[clusters.pick(rng, (n_users, 3))]
        tastes = np.einsum("c,ucf->uf", np.float32([0.6, 0.3, 0.1]), centres[favourites])
        users = unit(tastes + 0.7 * directions(rng, n_users))
        users *= rng.lognormal(sigma=0.5, size=(n_users, 1)).astype(np.float32)
        np.save(unfinished / "users.npy", users)
        del tastes, users

        pairs = []
        for place in range(1 + N_SEEN):
            cluster = favourites[np.arange(n_users), rng.choice(3, n_users, p=[0.6, 0.3, 0.1])]
            own = clusters.pick_in(rng, cluster, n_users)
            loyal = rng.random(n_users) < 0.8
            chosen = np.where(loyal, own, clusters.pick(rng, n_users))
            if not place:
                held_out = chosen
            pairs.append(np.arange(n_users) * n_items + chosen)
        np.save(unfinished / "held_out.npy", held_out.astype(np.int32))
        seen = np.setdiff1d(np.concatenate(pairs[1:]), pairs[0])
        counts = np.bincount(seen // n_items, minlength=n_users)
        np.save(unfinished / "seen_indptr.npy", np.concatenate([[0], np.cumsum(counts)]))
        np.save(unfinished / "seen_indices.npy", (seen % n_items).astype(np.int32))

    once(folder, write)
    return {"n_users": n_users, "n_items": n_items, "n_factors": FACTORS, "seed": SEED}


#: The number of seen items drawn for each user; some are drawn twice.
N_SEEN = 20


def directions(rng: np.random.Generator, size: int) -> Floats:
    """Return random vectors with a length of about 1."""
    return rng.standard_normal((size, FACTORS), dtype=np.float32) / np.float32(FACTORS**0.5)


def unit(vectors: Floats) -> Floats:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
