"""How often intervals of numbers about all users together contain the truth, for several methods.

Coverage, the Gini index and micro averages are not means of values of single users. Two methods for
their standard error are compared on the same samples:

bootstrap   the standard deviation of the numbers of 100 samples of the users, drawn with
            replacement
jackknife   the delete-a-group jackknife for groups of unequal size, with G groups to which users
            are assigned by a hash of their number (Busing, Meijer and van der Leeden, 1999,
            Statistics and Computing 9); a group without users is left out

The interval is the number plus and minus Student's quantile times the error, with 99 or G − 1
degrees of freedom.

Each user belongs to a cluster of items. A list of 10 has four of five items from the cluster and
the others from the whole catalogue, both in proportion to 1 / (rank + 10) by popularity; one list
in ten is shorter. Hits and relevant items are drawn as in `probe.py`. Coverage and the Gini index
depend on the number of users, so their truth is the mean over many samples of the same size. For
micro averages, too, the truth is the mean over these samples.
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
from sparse_eval.core.hashing import hash_labels
from sparse_eval.results.intervals import jackknife

from .probe import by_metric, repeat, scaled

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

METRICS = (
    "coverage@10",
    "gini@10",
    "precision(average=micro)@10",
    "recall(average=micro)@10",
)
K = 10
LEVEL = 0.95
REPLICATES = 100
GROUPS = (20, 50, 100)
NORMAL = float(stats.norm.ppf((1 + LEVEL) / 2))
POPULATION_SIZE = 200_000
POPULATION_OF_TOYS = 20_000
MOST_RELEVANT = 100
SEED = 1
#: Items of the catalogue: a large sample recommends nearly all items of the smaller one.
CATALOGUES = (5_000, 50_000)
#: Users of a sample: the number of samples with intervals, and of samples for the truth.
SAMPLES = {200: (2000, 20_000), 2_000: (1000, 10_000), 20_000: (240, 1200)}


class Sample(NamedTuple):
    """The lists of some users, padded with -1, their hits and their relevant items."""

    n_items: int
    lists: Integers
    n_hits: Integers
    n_relevant: Integers

    def of(self, users: Integers) -> "Sample":
        return Sample(self.n_items, self.lists[users], self.n_hits[users], self.n_relevant[users])

    def counts(self) -> Integers:
        """Return the number of lists with each item."""
        return np.bincount(self.lists.ravel() + 1, minlength=self.n_items + 1)[1:]

    def sums(self) -> Integers:
        """Return hits, places and relevant items of all users."""
        return np.array([self.n_hits.sum(), K * len(self.n_hits), self.n_relevant.sum()])


@cache  # once in a process
def population(n_items: int, size: int) -> Sample:
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

    n_relevant = np.minimum(rng.zipf(2.0, size), MOST_RELEVANT)
    quality = rng.beta(0.25, 4.0, size)
    hits = rng.random(lists.shape) < quality[:, None] / np.sqrt(np.arange(1, K + 1))
    n_hits = np.minimum((hits & (lists >= 0)).sum(axis=1), n_relevant)
    return Sample(n_items, lists, n_hits, n_relevant)


def numbers(counts: Integers, sums: Integers) -> list[float]:
    """Return the value of each of METRICS."""
    n, total = len(counts), counts.sum()
    ascending = np.sort(counts)
    above = int((np.arange(1 - n, n, 2) * ascending).sum())
    n_hits, n_places, n_relevant = sums
    return [
        np.count_nonzero(counts) / n,
        above / (n * int(total)),
        n_hits / n_places,
        n_hits / n_relevant,
    ]


class Draw(NamedTuple):
    """The source of samples, and their number of users."""

    n_items: int
    size: int
    n_users: int

    def __call__(self, number: int) -> Sample:
        rng = np.random.default_rng([SEED, self.n_items, self.n_users, number])
        return population(self.n_items, self.size).of(rng.integers(self.size, size=self.n_users))


def values(draw: Draw, number: int) -> list[float]:
    sample = draw(number)
    return numbers(sample.counts(), sample.sums())


def intervals(draw: Draw, number: int) -> tuple[list[float], dict[str, Any]]:
    """Return a sample's numbers, and by method their standard errors and Student's quantile."""
    sample = draw(number)
    found = numbers(sample.counts(), sample.sums())
    errors = {"bootstrap": (bootstrap(sample), quantile(REPLICATES))}
    for n_groups in GROUPS:
        error, left = jackknife_errors(sample, found, n_groups)
        errors[f"jackknife, {n_groups} groups"] = (error, quantile(left))
    return found, errors


@cache
def quantile(n: int) -> float:
    return float(stats.t.ppf((1 + LEVEL) / 2, n - 1))


def bootstrap(sample: Sample) -> Floats:
    n_users = len(sample.n_hits)
    replicates = []
    for number in range(REPLICATES):
        rng = np.random.default_rng([0, number])
        drawn = sample.of(np.sort(rng.integers(n_users, size=n_users)))
        replicates.append(numbers(drawn.counts(), drawn.sums()))
    return np.std(replicates, axis=0, ddof=1)


def jackknife_errors(sample: Sample, whole: list[float], n_groups: int) -> tuple[Floats, int]:
    """Return the standard errors, and the number of groups with users."""
    group_of = groups(len(sample.n_hits), n_groups)
    counts, sums = sample.counts(), sample.sums()
    without, sizes = [], []
    for group in np.unique(group_of):
        users = np.flatnonzero(group_of == group)
        part = sample.of(users)
        without.append(numbers(counts - part.counts(), sums - part.sums()))
        sizes.append(len(users))
    pairs = zip(whole, np.transpose(without), strict=True)
    errors = [jackknife(*pair, np.array(sizes)).std(ddof=1) for pair in pairs]
    return np.array(errors), len(sizes)


@cache
def groups(n_users: int, n_groups: int) -> Integers:
    """Return the group of each user, by the hash that the package uses."""
    return (hash_labels(np.arange(n_users)) % np.uint64(n_groups)).astype(np.int64)


def check(size: int) -> None:
    """Raise `RuntimeError` unless the numbers here equal those of the package."""
    sample = Draw(CATALOGUES[0], size, 200)(0)
    relevant = np.zeros((200, sample.n_items))
    for user, items in enumerate(sample.lists):
        listed, hits = items[items >= 0], sample.n_hits[user]
        others = np.setdiff1d(np.arange(sample.n_items), listed)
        relevant[user, listed[:hits]] = 1
        relevant[user, others[: sample.n_relevant[user] - hits]] = 1
    relevance = csr_matrix(relevant)
    ev = se.evaluate(
        se.Rankings.from_topk(sample.lists, shape=relevance.shape), relevance, list(METRICS)
    )
    here = numbers(sample.counts(), sample.sums())
    if not np.allclose([ev[name] for name in METRICS], here, rtol=0, atol=1e-12):
        raise RuntimeError(f"the package has {[ev[name] for name in METRICS]}, not {here}")


def simulate(scale: float) -> dict[str, Any]:
    size = POPULATION_SIZE if scale >= 0.1 else POPULATION_OF_TOYS
    check(size)
    catalogues: dict[str, Any] = {}
    for n_items, (n_users, (n_samples, n_truth)) in product(CATALOGUES, SAMPLES.items()):
        draw = Draw(n_items, size, n_users)
        found = one_size(draw, scaled(n_samples, scale), scaled(n_truth, scale))
        catalogues.setdefault(f"{n_items:,} items", {})[f"{n_users:,} users"] = found
    return {"level": LEVEL, "population": size, "catalogues": catalogues}


def one_size(draw: Draw, n_samples: int, n_truth: int) -> dict[str, Any]:
    population(draw.n_items, draw.size)  # before the fork, so that all processes share it
    found = repeat(partial(intervals, draw), n_samples)
    drawn = np.array([value for value, _ in found])
    every = np.array(repeat(partial(values, draw), n_truth))
    truth, spread = every.mean(axis=0), every.std(axis=0, ddof=1)
    candidates = {}
    for name in found[0][1]:
        error, quantiles = zip(*(errors[name] for _, errors in found), strict=True)
        half = np.array(error) * np.array(quantiles)[:, None]
        held = (drawn - half <= truth) & (truth <= drawn + half)
        width = ratio(half.mean(axis=0), NORMAL * spread)
        candidates[name] = {
            "held": by_metric(held, METRICS),
            "width_by_best": by_metric([width], METRICS),
        }
    return {"samples": n_samples, "truth": by_metric(every, METRICS), "candidates": candidates}


def ratio(above: Floats, below: Floats) -> Floats:
    """Return a quotient, or 1 if both are 0, for a number that is equal in all samples."""
    return np.where(below > 1e-12, above / np.maximum(below, 1e-12), 1.0)
