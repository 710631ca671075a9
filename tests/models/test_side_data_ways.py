"""Metrics of side data in blocks, in other processes, and in evaluations that are merged."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.models import source

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N_USERS, N_ITEMS = 40, 25
RNG = np.random.default_rng(0)
TABLE = RNG.random((N_USERS, N_ITEMS))
TRAIN = csr_matrix((TABLE < 0.15).astype(np.float64))
HELD = csr_matrix(np.where(TABLE > 0.85, RNG.integers(1, 4, TABLE.shape), 0).astype(np.float64))
FACTORS = (RNG.normal(size=(N_USERS, 4)), RNG.normal(size=(N_ITEMS, 4)))
SIDE_DATA: dict[str, Any] = {
    "groups": RNG.integers(0, 3, N_ITEMS),
    "vectors": RNG.normal(size=(N_ITEMS, 3)),
    "propensity": RNG.uniform(0.1, 1, N_ITEMS),
}


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("propensity", "recall(weights=snips)@3"),
        ("groups", "categorical_diversity@3"),
        ("vectors", "diversity(similarity=vectors)@3"),
    ],
)
def test_different_side_data_are_not_merged(name: str, metric: str) -> None:
    given = SIDE_DATA[name]
    halves = [
        se.evaluate_model(
            FACTORS, TRAIN, HELD, metric, users=rows, items=se.ItemData(**{name: values})
        )
        for values, rows in (
            (given, range(20)),
            (given[::-1], range(20, 40)),
            (given, range(20, 40)),
        )
    ]
    with raises(InvalidDataError):
        halves[0].merge(halves[1])
    assert halves[0].merge(halves[2]).n_users == halves[0].n_users + halves[2].n_users


def test_metrics_must_declare_that_they_need_the_training_data() -> None:
    def popularity(lists: Any) -> Any:
        return lists.mean_of(lists.train.item_counts.astype(np.float64))

    options: dict[str, Any] = {"over": "lists", "range": (0.0, np.inf)}
    se.register_metric("asks", "popularity", needs=["train"], **options)(popularity)
    se.register_metric("asks_not", "popularity", **options)(popularity)
    arguments = (FACTORS, TRAIN, HELD)
    whole = se.evaluate_model(*arguments, ["asks@3", "asks_not@3", "popularity@3"])
    assert len(set(whole.mean().values())) == 1
    with mock.patch.object(source, "users_per_block", return_value=7):
        cut = se.evaluate_model(*arguments, ["asks@3", "popularity@3"], memory=1 << 28)
        assert cut.mean() == {name: whole[name] for name in cut.names}
        with raises(InvalidMetricError):
            se.evaluate_model(*arguments, "asks_not@3", memory=1 << 28)
