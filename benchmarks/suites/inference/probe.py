"""How often our intervals contain the truth, and how often our tests show false differences.

Each function takes a scale, which multiplies the repetitions; there are at least four. Every
repetition has its own seed, so nothing depends on the number of processes.

Users are drawn as follows. The number of relevant items of a user follows Zipf's law with exponent
2, up to 100, so most users have one. The quality of a user's list follows Beta(1/4, 4), so most
lists find almost nothing. Position r of a list of 20 has a relevant item with probability
quality / √r, until no relevant items are left. The metrics depend on nothing else, so each user has
separate item numbers: from 0 for items that fill a list, from 20 for relevant items.
"""

import math
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se

warnings.simplefilter("ignore", UserWarning)  # about few users and lists without hits

METRICS = ["ndcg@10", "recall@20", "mrr@20"]
LENGTH = 20
MOST_RELEVANT = 100
POPULATION_SIZE = 400_000
LEVEL = 0.95
SIGNIFICANCE = 0.05

SEED = 0
# The purposes of random numbers, a part of their seeds.
POPULATION, SAMPLES, PAIRS, MEANS, DIFFERENCES = 1, 2, 3, 6, 7

#: Users: repetitions. Below 200 users, the kind of interval is different.
COVERAGE = {50: 1000, 200: 4000, 2000: 4000, 50_000: 1000}
#: The rate of relevant items in a list, relative to the other simulations.
LISTS = {"moderate": 1.0, "sparse": 0.3}
#: The rate of relevant items in the second model's lists, relative to the first model.
SECOND = {"equal": 1.0, "better": 1.3}
#: Metrics of the simulations with both kinds of lists, and users: repetitions.
BOTH_METRICS = ["ndcg@10", "map@10", "recall@20", "mrr@20"]
MEAN_SIZES = {20: 1000, 50: 1000, 100: 1000, 200: 1000, 500: 1000}
DIFFERENCE_SIZES = {20: 1000, 50: 1000, 150: 1000, 200: 1000, 2000: 1000, 50_000: 200}
#: Test, users: metrics, repetitions. A permutation test of 2,000 users takes a tenth of a second.
FALSE_POSITIVES = {
    ("t", 200): (METRICS, 5000),
    ("t", 2000): (METRICS, 5000),
    ("wilcoxon", 200): (METRICS, 5000),
    ("wilcoxon", 2000): (METRICS, 5000),
    ("permutation", 200): (METRICS[:1], 3000),
    ("permutation", 2000): (METRICS[:1], 3000),
}

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Users(NamedTuple):
    n_relevant: Integers
    quality: Floats


def draw_users(rng: np.random.Generator, n: int) -> Users:
    return Users(np.minimum(rng.zipf(2.0, n), MOST_RELEVANT), rng.beta(0.25, 4.0, n))


def draw_lists(rng: np.random.Generator, users: Users, times: float = 1.0) -> Integers:
    """Draw a model's recommendations; a model that is twice as good has hits twice as often."""
    ranks = np.arange(1, LENGTH + 1)
    hit = rng.random((len(users.quality), LENGTH)) < times * users.quality[:, None] / np.sqrt(ranks)
    found = hit.cumsum(axis=1)
    hit &= found <= users.n_relevant[:, None]
    return np.where(hit, LENGTH + found - 1, ranks - 1)


def evaluate(lists: Integers, n_relevant: Integers, metrics: Any = METRICS) -> se.Evaluation:
    indptr = np.concatenate(([0], np.cumsum(n_relevant)))
    items = LENGTH + np.arange(indptr[-1]) - np.repeat(indptr[:-1], n_relevant)
    shape = (len(n_relevant), LENGTH + MOST_RELEVANT)
    relevant = csr_matrix((np.ones(indptr[-1]), items, indptr), shape=shape)
    # Each core already has a process.
    return se.evaluate(se.Rankings.from_topk(lists), relevant, metrics, num_threads=1)


class Pair(NamedTuple):
    """The lists of two models, the users' numbers of relevant items, and the means of metrics."""

    lists: tuple[Integers, Integers]
    n_relevant: Integers
    means: tuple[dict[str, float], dict[str, float]]
    found: dict[str, float]


@cache  # once in a process
def pair_of(kind: str, second: str) -> Pair:
    """Return two models of the same users."""
    rng = np.random.default_rng([SEED, POPULATION])
    users = draw_users(rng, POPULATION_SIZE)
    first = LISTS[kind]
    lists = draw_lists(rng, users, first), draw_lists(rng, users, first * SECOND[second])
    one, other = (evaluate(some, users.n_relevant, BOTH_METRICS) for some in lists)
    found = {name: float((one.values(name) > 0).mean()) for name in BOTH_METRICS}
    return Pair(lists, users.n_relevant, (one.mean(), other.mean()), found)


def coverage(scale: float) -> dict[str, Any]:
    """Count how often the interval of a sample's mean contains the population's mean."""
    everybody = pair_of("moderate", "equal")
    ev = evaluate(everybody.lists[0], everybody.n_relevant)
    values = {name: ev.values(name) for name in METRICS}
    population = {
        "n_users": ev.n_users,
        "one_relevant": float((everybody.n_relevant == 1).mean()),
        "mean": ev.mean(),
        "zero": {name: float((column == 0).mean()) for name, column in values.items()},
        "skewness": {name: float(stats.skew(column)) for name, column in values.items()},
    }
    sample = partial(interval_of_mean, "moderate", SAMPLES, METRICS)
    sizes = count_held(sample, COVERAGE, ev.mean(), scale)
    return {"level": LEVEL, "population": population, "sizes": sizes}


def means(scale: float) -> dict[str, Any]:
    """Count how often intervals contain the mean, for few users and sparse lists."""
    kinds = {}
    for kind in LISTS:
        everybody = pair_of(kind, "equal")
        sample = partial(interval_of_mean, kind, MEANS, BOTH_METRICS)
        sizes = count_held(sample, MEAN_SIZES, everybody.means[0], scale)
        kinds[kind] = {"mean": everybody.means[0], "found": everybody.found, "sizes": sizes}
    return {"level": LEVEL, "lists": kinds}


def interval_of_mean(
    kind: str, purpose: int, metrics: list[str], n_users: int, repetition: int
) -> pd.DataFrame:
    """Return the summary of a sample."""
    everybody = pair_of(kind, "equal")
    rng = np.random.default_rng([SEED, purpose, n_users, repetition])
    drawn = rng.integers(POPULATION_SIZE, size=n_users)
    ev = evaluate(everybody.lists[0][drawn], everybody.n_relevant[drawn], metrics)
    return ev.summary(level=LEVEL)


def differences(scale: float) -> dict[str, Any]:
    """Count how often intervals contain the difference."""
    kinds: dict[str, Any] = {kind: {} for kind in LISTS}
    for kind, second in product(LISTS, SECOND):
        a, b = pair_of(kind, second).means
        truth = {name: 0.0 if second == "equal" else a[name] - b[name] for name in BOTH_METRICS}
        sample = partial(interval_of_difference, kind, second)
        sizes = count_held(sample, DIFFERENCE_SIZES, truth, scale)
        kinds[kind][second] = {"truth": list(truth.values()), "sizes": sizes}
    return {"level": LEVEL, "lists": kinds}


def interval_of_difference(kind: str, second: str, n_users: int, repetition: int) -> pd.DataFrame:
    """Return the comparison of two models on a sample."""
    everybody = pair_of(kind, second)
    rng = np.random.default_rng([SEED, DIFFERENCES, n_users, repetition])
    drawn = rng.integers(POPULATION_SIZE, size=n_users)
    lists = [some[drawn] for some in everybody.lists]
    if second == "equal":  # each user's two lists are swapped at random: the true difference is 0
        swapped = rng.random((n_users, 1)) < 0.5
        lists = [np.where(swapped, *lists), np.where(swapped, *lists[::-1])]
    a, b = (evaluate(some, everybody.n_relevant[drawn], BOTH_METRICS) for some in lists)
    return se.compare({"a": a, "b": b}, correction="none", level=LEVEL).table


def count_held(
    sample: Callable[[int, int], pd.DataFrame],
    sizes: dict[int, int],
    means: dict[str, float],
    scale: float,
) -> dict[int, dict[str, Any]]:
    """Draw samples of each number of users; return the shares of intervals that hold the truth."""
    truth = np.array(list(means.values()))
    counted = {}
    for n_users, repetitions in sizes.items():
        found = repeat(partial(sample, n_users), scaled(repetitions, scale))
        low, high = (np.array([one[end] for one in found]) for end in ("ci_low", "ci_high"))
        counted[n_users] = {
            "interval": "/".join(sorted({kind for one in found for kind in one["interval"]})),
            **noise(LEVEL, len(found)),
            "held": by_metric((low <= truth) & (truth <= high), means),
        }
    return counted


def false_positives(scale: float) -> dict[str, Any]:
    """Count how often a test shows a difference between two models that are equally good."""
    entries = []
    for (test, n_users), (metrics, most) in FALSE_POSITIVES.items():
        found = repeat(partial(p_of_equals, test, n_users, metrics), scaled(most, scale))
        shown = by_metric(np.array(found) < SIGNIFICANCE)
        entry = {"test": test, "n_users": n_users, "shown": shown}
        entries.append(entry | noise(SIGNIFICANCE, len(found)))
    return {"significance": SIGNIFICANCE, "tests": entries}


def p_of_equals(test: Any, n_users: int, metrics: list[str], repetition: int) -> list[float]:
    rng = np.random.default_rng([SEED, PAIRS, n_users, repetition])
    users = draw_users(rng, n_users)
    pair = {name: evaluate(draw_lists(rng, users), users.n_relevant, metrics) for name in "ab"}
    return se.compare(pair, test=test, correction="none").table["p"].tolist()


def repeat(measure: Callable[[int], Any], repetitions: int) -> list[Any]:
    """Measure each repetition, on all cores."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(measure, range(repetitions), chunksize=10))


def scaled(repetitions: int, scale: float) -> int:
    return max(4, round(scale * repetitions))


def by_metric(happened: Any, metrics: Any = METRICS) -> dict[str, float]:
    """Return the shares of the repetitions, one for each of the metrics or of the first ones."""
    return dict(zip(metrics, np.mean(happened, axis=0).tolist(), strict=False))


def noise(chance: float, repetitions: int) -> dict[str, float]:
    """Return the number of repetitions, and the standard error of a share with this chance."""
    error = math.sqrt(chance * (1 - chance) / repetitions)
    return {"repetitions": repetitions, "standard_error": error}
