"""How often `compare --fail-if-worse` stops a nightly run, for equal models and for worse ones.

Each night has different users. Users and lists are drawn as in
`suites/inference/probe.py`. Two equally good models draw their lists in the same way,
independently. A model that has lost something finds fewer items, such that the mean difference is
what `compare` calls detectable for this number of users. This loss is determined once, with many
users.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import typer
from suites.inference.probe import LEVEL, draw_lists, draw_users, evaluate, repeat, scaled

import sparse_eval as se
from sparse_eval.cli.nightly import fail_if_last_is_worse
from sparse_eval.results.differences import POWER, detectable_standard_errors

NIGHTS = 400
METRIC = ["ndcg@10"]
FEW = ["ndcg@10", "recall@20", "mrr@20"]
MANY = [f"{name}@{k}" for name in ("ndcg", "recall", "precision", "hit_rate") for k in (5, 10, 20)]

SEED = 0
# The purposes of random numbers, a part of their seeds.
LISTS, POPULATION = 1, 4
#: The number of users for determining the loss, and the number of bisection steps.
POPULATION_SIZE, STEPS = 200_000, 12


class Case(NamedTuple):
    """The users, metrics and models of a night, and whether the last model has lost something."""

    n_users: int
    metrics: list[str]
    n_models: int = 2
    loses: bool = False


EQUAL = {
    "1 metric, 200 users": Case(200, METRIC),
    "1 metric": Case(2000, METRIC),
    "3 metrics": Case(2000, FEW),
    "12 metrics": Case(2000, MANY),
    "3 metrics, 5 models": Case(2000, FEW, 5),
}
LOST = {
    "1 metric, 200 users": Case(200, METRIC, loses=True),
    "1 metric": Case(2000, METRIC, loses=True),
    "3 metrics": Case(2000, FEW, loses=True),
    "3 metrics, 5 models": Case(2000, FEW, 5, loses=True),
}


def simulate(scale: float) -> dict[str, Any]:
    nights = scaled(NIGHTS, scale)
    population = max(scaled(POPULATION_SIZE, scale), 2000)
    sizes = {case.n_users for case in LOST.values()}
    kept = {size: what_is_kept(size, population) for size in sizes}

    def share(case: Case, times: float) -> float:
        return float(np.mean(repeat(partial(lists_of, case, times), nights)))

    return {
        "level": LEVEL,
        "power": POWER,
        "nights": nights,
        "n_users": EQUAL["1 metric"].n_users,
        "equal": {title: share(case, 1.0) for title, case in EQUAL.items()},
        "lost": {title: share(case, kept[case.n_users]) for title, case in LOST.items()},
    }


def lists_of(case: Case, times: float, night: int) -> bool:
    """Return whether the last model, which finds items `times` as often, is stopped."""
    rng = np.random.default_rng([SEED, LISTS, *case[::2], len(case.metrics), case.loses, night])
    users = draw_users(rng, case.n_users)
    evs = {}
    for model in range(1, case.n_models + 1):
        lists = draw_lists(rng, users, times if model == case.n_models else 1.0)
        evs[f"model {model}"] = evaluate(lists, users.n_relevant, case.metrics)
    return is_stopped(evs)


def is_stopped(evs: dict[str, se.Evaluation]) -> bool:
    """Return whether the command line would stop the last model."""
    try:
        fail_if_last_is_worse(se.compare(evs, level=LEVEL), {})
    except typer.Exit:
        return True
    return False


def what_is_kept(n_users: int, population: int) -> float:
    """Return how often a model finds items after the loss that is detectable for `n_users` users.

    This is relative to the other model. For each share, the same random numbers are used.
    """
    rng = np.random.default_rng([SEED, POPULATION])
    users = draw_users(rng, population)
    before = evaluate(draw_lists(rng, users), users.n_relevant, METRIC).values(METRIC[0])
    errors = detectable_standard_errors(LEVEL, n_users - 1)
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        times = (low + high) / 2
        drawn = draw_lists(np.random.default_rng([SEED, POPULATION, 1]), users, times)
        difference = before - evaluate(drawn, users.n_relevant, METRIC).values(METRIC[0])
        lost = float(difference.mean())
        detectable = errors * float(difference.std(ddof=1)) / math.sqrt(n_users)
        low, high = (times, high) if lost > detectable else (low, times)
    return (low + high) / 2
