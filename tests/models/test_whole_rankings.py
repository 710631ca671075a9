"""Metrics without a cut-off, of a model: the exact ranks of relevant items in the catalogue."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from raising import raises
from ways_cases import same

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError

METRICS = ["auc", "mrr", "percentile_rank", "mean_rank", "ndcg", "ndcg@10", "recall@5"]


@pytest.fixture(scope="module")
def holdout() -> se.Holdout:
    clicks = se.datasets.synthetic(n_users=300, n_items=120, n_interactions=4000, seed=5)
    return se.split.random(clicks, fraction=0.3, seed=0)


@pytest.fixture(scope="module")
def model(holdout: se.Holdout) -> Any:
    return se.train_als(holdout.train, factors=8, iterations=3)


@pytest.fixture(scope="module")
def expected(model: Any, holdout: se.Holdout) -> se.Evaluation:
    ranks = se.ranks(model, holdout.validation, seen=holdout.train)
    return se.evaluate(ranks, holdout.validation, METRICS, train=holdout.train)


def test_a_model_ranks_everything_where_a_metric_has_no_cutoff(
    model: Any, holdout: se.Holdout, expected: se.Evaluation
) -> None:
    ev = se.evaluate_model(model, holdout, METRICS)
    same(ev, expected)
    assert ev.columns.tobytes() == expected.columns.tobytes()
    assert ev.retrieval is not None
    assert ev.retrieval.via == "full_ranks"
    cut = se.evaluate_model(model, holdout, METRICS[-2:])
    assert cut.columns.tobytes() == ev.columns[-2:].tobytes()
    user = holdout.users[7]
    pd.testing.assert_frame_equal(ev.explain(user), expected.explain(user))


def test_popularity_in_full(model: Any, holdout: se.Holdout) -> None:
    ev = se.evaluate_model(model, holdout, METRICS, baselines=True)
    popular = se.Rankings.from_popularity(holdout.train, k=holdout.train.shape[1])
    by_hand = se.evaluate(popular, holdout.validation, METRICS, train=holdout.train)
    assert ev.baselines["popularity"].mean() == by_hand.mean()
    assert (ev.summary()["popularity"] == list(by_hand.mean().values())).all()


@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        ("auc,coverage@10", {}),
        ("coverage", {}),
        ("auc,diversity", {}),
        ("auc", {"keep": "lists"}),
        ("mrr", {"convention": "trec_eval"}),
    ],
)
def test_refuses_what_ranks_do_not_say(
    metrics: str, options: Any, model: Any, holdout: se.Holdout
) -> None:
    with raises(InvalidMetricError):
        se.evaluate_model(model, holdout, metrics, **options)


def test_a_convention_with_metrics_of_any_list(model: Any, holdout: se.Holdout) -> None:
    options: dict[str, Any] = {"convention": "trec_eval"}
    cut = se.evaluate_model(model, holdout, ["mrr", "recall@5"], **options)
    assert cut["mrr"] == se.evaluate_model(model, holdout, "mrr@5")["mrr@5"]
    beside = se.evaluate_model(model, holdout, ["mrr", "recall@5", "map"], **options)
    assert beside["mrr"] == se.evaluate_model(model, holdout, "mrr")["mrr"] > cut["mrr"]
