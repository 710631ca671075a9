"""Intervals of ratios of sums over users, such as psp: how often they hold, in simulations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import sparse_eval as se

N_POPULATION, N_SAMPLE, N_SAMPLES, N_ITEMS = 6_000, 300, 120, 60

#: Of the share of intervals that hold, where it is 0.95.
ERROR = (0.95 * 0.05 / N_SAMPLES) ** 0.5

METRICS = ["psp(propensity=given)@5", "psndcg(propensity=given)@5", "recall(average=micro)@5"]


class Population(NamedTuple):
    """Users of whom samples are drawn: some have many relevant items, and rare ones weigh more."""

    lists: dict[str, np.ndarray]
    gains: csr_matrix
    propensity: np.ndarray

    def evaluate(self, model: str, users: Any = slice(None)) -> se.Evaluation:
        shape = (len(self.lists[model][users]), N_ITEMS)
        lists = se.Rankings.from_topk(self.lists[model][users], shape=shape)
        return se.evaluate(
            lists, self.gains[users], METRICS, items=se.ItemData(propensity=self.propensity)
        )


@pytest.fixture(scope="module")
def population() -> Population:
    rng = np.random.default_rng(0)
    propensity = 1 / (1 + 0.2 * np.arange(N_ITEMS))
    activity = rng.lognormal(-2.5, 1.0, (N_POPULATION, 1))
    relevant = rng.random((N_POPULATION, N_ITEMS)) < activity * np.sqrt(propensity)
    relevant[~relevant.any(axis=1), 0] = True
    skill = rng.normal(0.5, 0.7, (N_POPULATION, 1))
    lists = {
        model: np.argsort(-rng.gumbel(size=relevant.shape) - gain * skill * relevant)[:, :5]
        for model, gain in (("better", 2.0), ("other", 1.5))
    }
    return Population(lists, csr_matrix(relevant * 1.0), propensity)


def test_intervals_hold_as_often_as_they_say(population: Population) -> None:
    truth = population.evaluate("better").mean()
    rng = np.random.default_rng(1)
    draws = [rng.choice(N_POPULATION, N_SAMPLE, replace=False) for _ in range(N_SAMPLES)]
    summaries = [population.evaluate("better", users).summary() for users in draws]
    for name in METRICS:
        rows = [summary.loc[name] for summary in summaries]
        assert {row["interval"] for row in rows} == {"jackknife"}
        held = np.mean([row["ci_low"] <= truth[name] <= row["ci_high"] for row in rows])
        assert abs(held - 0.95) < 3 * ERROR, name


@pytest.mark.long
def test_tests_of_equal_models_find_a_difference_as_rarely_as_they_say(
    population: Population,
) -> None:
    rng = np.random.default_rng(2)
    p = []
    for _ in range(N_SAMPLES):
        users = rng.choice(N_POPULATION, N_SAMPLE, replace=False)
        swapped = rng.random((N_SAMPLE, 1)) < 0.5  # each user's lists, at random
        one, other = (population.lists[model][users] for model in ("better", "other"))
        lists = {"a": np.where(swapped, one, other), "b": np.where(swapped, other, one)}
        drawn = Population(lists, population.gains[users], population.propensity)
        evs = {model: drawn.evaluate(model) for model in lists}
        p.append(se.compare(evs, METRICS[0]).table["p"][0])
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 3 * ERROR
