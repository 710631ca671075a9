"""How often intervals of numbers about all users together contain the truth.

Coverage, the Gini index and micro averages are not means of values of single users. Their intervals
have the standard error of a jackknife that leaves out one group of users after the other.

Each user belongs to a cluster of items. A list of 10 has four of five items from the cluster and
the others from the whole catalogue, both in proportion to 1 / (rank + 10) by popularity; one list
in ten is shorter. Hits and relevant items are drawn as in `probe.py`. Relevant items that are not
listed are at the end of the catalogue, and in no list. Coverage and the Gini index depend on the
number of users, so their truth is the mean over many samples of the same size. For micro averages,
too, the truth is the mean over these samples.
"""

from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from harness.draw import Clusters, first_distinct
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se

from .probe import LEVEL, MOST_RELEVANT, by_metric, draw_users, repeat, scaled

METRICS = (
    "coverage@10",
    "gini@10",
    "precision(average=micro)@10",
    "recall(average=micro)@10",
)
K = 10
NORMAL = float(stats.norm.ppf((1 + LEVEL) / 2))
POPULATION_SIZE = 200_000
POPULATION_OF_TOYS = 20_000
SEED = 1
#: Items of the catalogue: a large sample recommends nearly all items of the smaller one.
CATALOGUES = (5_000, 50_000)
#: Users of a sample: the number of samples with intervals, and of samples for the truth.
SAMPLES = {200: (2000, 20_000), 2_000: (1000, 10_000), 20_000: (240, 1200)}

Integers = npt.NDArray[np.int64]


class Population(NamedTuple):
    """The lists of users, padded with -1, the hits in them, and the numbers of relevant items."""

    lists: Integers
    hits: npt.NDArray[np.bool_]
    n_relevant: Integers


@cache  # once in a process
def population(n_items: int, size: int) -> Population:
    rng = np.random.default_rng([SEED, n_items])
    clusters = Clusters(rng, n_items, max(10, n_items // 500))
    shape = (size, 4 * K)
    any_item = clusters.pick(rng, shape)
    own = clusters.of_item[clusters.pick(rng, size)]
    of_own = clusters.pick_in(rng, own[:, None], shape)
    drawn = np.where(rng.random(shape) < 0.8, of_own, any_item)
    lists = first_distinct(drawn, K)
    short = np.flatnonzero(rng.random(size) < 0.1)
    lengths = np.full(size, K)
    lengths[short] = rng.integers(1, K, len(short))
    lists[np.arange(K) >= lengths[:, None]] = -1

    n_relevant, quality = draw_users(rng, size)
    hits = rng.random(lists.shape) < quality[:, None] / np.sqrt(np.arange(1, K + 1))
    hits &= lists >= 0
    hits &= hits.cumsum(axis=1) <= n_relevant[:, None]
    return Population(lists, hits, n_relevant)


class Draw(NamedTuple):
    """The source of samples, and their number of users."""

    n_items: int
    size: int
    n_users: int

    def __call__(self, number: int) -> se.Evaluation:
        """Evaluate a sample."""
        rng = np.random.default_rng([SEED, self.n_items, self.n_users, number])
        drawn = rng.integers(self.size, size=self.n_users)
        lists, hits, n_relevant = (part[drawn] for part in population(self.n_items, self.size))
        users, places = np.nonzero(hits)
        missed = n_relevant - hits.sum(axis=1)
        others = np.arange(missed.sum()) - np.repeat(missed.cumsum() - missed, missed)
        rows = np.concatenate([users, np.repeat(np.arange(self.n_users), missed)])
        columns = np.concatenate([lists[users, places], self.n_items + others])
        shape = (self.n_users, self.n_items + MOST_RELEVANT)
        relevant = csr_matrix((np.ones(len(rows)), (rows, columns)), shape)
        rankings = se.Rankings.from_topk(lists, shape=shape)
        return se.evaluate(rankings, relevant, list(METRICS), num_threads=1)


def values(draw: Draw, number: int) -> list[float]:
    ev = draw(number)
    return [ev[name] for name in METRICS]


def interval(draw: Draw, number: int) -> Any:
    return draw(number).summary(level=LEVEL)[["ci_low", "ci_high"]].to_numpy()


def simulate(scale: float) -> dict[str, Any]:
    size = POPULATION_SIZE if scale >= 0.1 else POPULATION_OF_TOYS
    catalogues: dict[str, Any] = {}
    for n_items, (n_users, (n_samples, n_truth)) in product(CATALOGUES, SAMPLES.items()):
        draw = Draw(n_items, size, n_users)
        found = one_size(draw, scaled(n_samples, scale), scaled(n_truth, scale))
        catalogues.setdefault(f"{n_items:,} items", {})[f"{n_users:,} users"] = found
    return {"level": LEVEL, "population": size, "catalogues": catalogues}


def one_size(draw: Draw, n_samples: int, n_truth: int) -> dict[str, Any]:
    population(draw.n_items, draw.size)  # before the fork, so that all processes share it
    low, high = np.moveaxis(repeat(partial(interval, draw), n_samples), 2, 0)
    every = np.array(repeat(partial(values, draw), n_truth))
    truth, best = every.mean(axis=0), 2 * NORMAL * every.std(axis=0, ddof=1)
    width = (high - low).mean(axis=0) / np.maximum(best, 1e-12)
    return {
        "samples": n_samples,
        "truth": by_metric(every, METRICS),
        "held": by_metric((low <= truth) & (truth <= high), METRICS),
        "width_by_best": by_metric([width], METRICS),
    }
