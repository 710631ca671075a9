"""Metrics without a cut-off, of a model: the exact ranks of relevant items in the catalogue."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from commands import Command
from hypothesis import given, settings
from hypothesis import strategies as st
from implicit.cpu.als import AlternatingLeastSquares
from implicit.nearest_neighbours import ItemItemRecommender
from raising import raises, warns
from rules import accepted, each_convention
from scipy import sparse
from threadpoolctl import threadpool_limits
from ways_cases import of_users_with_relevant, same

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError, UnsupportedModelError
from sparse_eval.metrics.conventions import CONVENTIONS
from sparse_eval.models import source as model_source

METRICS = ["auc", "mrr", "percentile_rank", "mean_rank", "ndcg", "ndcg@10", "recall@5"]


def model_of(users: Any, items: Any) -> AlternatingLeastSquares:
    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(factors=users.shape[1])
    model.user_factors, model.item_factors = users, items
    return model


def metrics_of(convention: str) -> list[str]:
    """Return metrics with and without a cut-off that a convention has."""
    rules = CONVENTIONS[convention]
    names = ["auc", "mean_rank", "percentile_rank", "mrr", "recall@3", "ndcg@3"]
    names += [] if rules.ideal == "slots" else ["ndcg"]
    names += [] if "mrr" in rules.uncut else ["mrr@2"]
    return [name for name in names if name.partition("@")[0] not in rules.unlike]


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


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Draw a model with ties, and what its users have seen and not, gains of 0 among it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_users, n_items = int(rng.integers(1, 7)), int(rng.integers(3, 30))
    users = rng.integers(-1, 2, (n_users, 2)).astype(np.float32)
    items = rng.integers(-2, 3, (n_items, 2)).astype(np.float32)
    part = rng.choice(3, (n_users, n_items), p=[0.5, 0.3, 0.2])
    part[0, :2] = 0, 2
    train = sparse.csr_matrix((part == 1).astype(np.float64))
    rows, columns = np.nonzero(part == 2)
    gains = rng.choice([0.0, 1.0, 2.0], len(rows))
    gains[0] = 1.0
    held = sparse.csr_matrix((gains, (rows, columns)), shape=part.shape)
    return model_of(users, items), train, held


@pytest.mark.filterwarnings("ignore:.* evaluated users have nothing in train")
@pytest.mark.parametrize("convention", each_convention())
@settings(max_examples=3)
@given(problem=problems(), no_relevant=st.sampled_from([None, "zero", "judged"]))
def test_every_way_gives_one_number(
    convention: str, no_relevant: Any, problem: tuple[Any, Any, Any]
) -> None:
    model, train, held = problem
    held = accepted(held, convention)
    names = se.Protocol(metrics_of(convention), convention=convention, no_relevant=no_relevant)
    judged = np.unique(held.nonzero()[0])
    lists = se.top_k(model, k=train.shape[1], seen=train, users=judged).ids
    whole = se.Rankings.from_topk(lists, user_rows=judged, shape=train.shape)
    expected = se.evaluate(whole, held, names, train=train)
    popular = se.Rankings.from_popularity(train, k=train.shape[1])
    popular = of_users_with_relevant(popular, held)
    by_popularity = se.evaluate(popular, held, names, train=train)

    def check(model: Any = model, **more: Any) -> None:
        found = se.evaluate_model(model, train, held, names, **more)
        same(found, expected)
        assert found.retrieval is not None
        assert found.retrieval.via == "full_ranks"
        if more.get("baselines"):
            same(found.baselines["popularity"], by_popularity)

    check(baselines=True)
    check(num_threads=1)
    check(keep="totals", baselines=True)
    check((model.user_factors, model.item_factors))
    with (
        mock.patch.object(model_source, "users_within", return_value=2),
        ThreadPoolExecutor(2) as pool,
    ):
        check(memory=1 << 28, baselines=True)
        check(memory=1 << 28, keep="totals", baselines=True)
        check(client=pool, baselines=True)
    if not CONVENTIONS[convention].stored_zeros:
        ranks = se.ranks(model, held, seen=train)
        same(se.evaluate(ranks, held, names, train=train), expected)


def test_a_model_ranks_everything_where_a_metric_has_no_cutoff(
    model: Any, holdout: se.Holdout, expected: se.Evaluation, tmp_path: Path
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
    ev.save(tmp_path / "saved")
    loaded = se.Evaluation.load(tmp_path / "saved")
    assert loaded.mean() == ev.mean()
    assert loaded.retrieval == ev.retrieval
    assert se.compare({"a": ev, "b": loaded}, "percentile_rank").table is not None


def test_data_with_ids_are_matched(model: Any, holdout: se.Holdout, tmp_path: Path) -> None:
    se.save_model(model, tmp_path / "als.npz")
    frames = []
    for part in (holdout.train, holdout.validation):
        rows, columns = part.nonzero()
        frame = pd.DataFrame({"user": holdout.users[rows], "item": holdout.items[columns]})
        frames.append(frame.sample(frac=1, random_state=0))
    ev = se.evaluate_model(tmp_path / "als.npz", *frames, METRICS)
    expected = se.evaluate_model(model, holdout, METRICS)
    assert ev.mean() == pytest.approx(expected.mean(), rel=1e-12)
    new = pd.DataFrame({"user": ["U1", "nobody"], "item": ["nothing", frames[0]["item"].iloc[0]]})
    with warns():
        ev = se.evaluate_model(
            model, frames[0], pd.concat([frames[1], new]), METRICS, baselines=True
        )
    assert ev.retrieval is not None
    assert (ev.retrieval.n_unknown_users, ev.retrieval.n_unknown_items) == (1, 1)


def test_popularity_in_full(model: Any, holdout: se.Holdout) -> None:
    ev = se.evaluate_model(model, holdout, METRICS, baselines=True)
    popular = se.Rankings.from_popularity(holdout.train, k=holdout.train.shape[1])
    by_hand = se.evaluate(popular, holdout.validation, METRICS, train=holdout.train)
    assert ev.baselines["popularity"].mean() == by_hand.mean()
    assert (ev.summary()["popularity"] == list(by_hand.mean().values())).all()


def test_sweep_tune_and_callback(
    model: Any, holdout: se.Holdout, expected: se.Evaluation, tmp_path: Path
) -> None:
    worse = se.train_als(holdout.train, factors=1, iterations=1)
    for number, one in enumerate((worse, model)):
        one.save(tmp_path / f"als{number}.npz")
    neighbours = ItemItemRecommender(K=5)
    neighbours.fit(sparse.csr_matrix(holdout.train, dtype=np.float64), show_progress=False)
    neighbours.save(tmp_path / "knn.npz")
    table = se.sweep(tmp_path, holdout.train, holdout.validation, ["mpr", "ndcg@10"])
    table = table.set_index(table["file"].map(lambda file: Path(file).stem))
    assert table.loc["als1", "percentile_rank"] == expected["percentile_rank"]
    assert table["percentile_rank"].nunique() == 2
    assert table.index[table["best"]].tolist() == [table["percentile_rank"].idxmin()]
    assert "percentile_rank has no cut-off" in table.loc["knn", "error"]

    callback = se.EvaluationCallback(holdout, ["mean_rank", "auc"], patience=2)
    trained = se.train_als(holdout.train, factors=4, iterations=6, callback=callback)
    ev = se.evaluate_model(trained, holdout, "mean_rank")
    assert ev["mean_rank"] == callback.history["mean_rank"].min()
    result = se.tune(holdout, "auc", space={"factors": [1, 8], "iterations": 2})
    assert result.best["factors"] == result.trials.sort_values("auc")["factors"].iloc[-1]


def test_on_the_command_line(
    model: Any, holdout: se.Holdout, tmp_path: Path, command: Command
) -> None:
    holdout.save(tmp_path / "split")
    se.save_model(model, tmp_path / "als.npz")
    arguments = ("score", tmp_path / "als.npz", "--split", tmp_path / "split", "-m", "mpr,auc")
    status, printed, _ = command(*arguments, "--format", "json", "--out", tmp_path / "out")
    assert status == 0
    ev = se.evaluate_model(model, holdout, ["mpr", "auc"], baselines=True)
    found = json.loads(printed)["metrics"]
    for name in ("percentile_rank", "auc"):
        assert found[name]["mean"] == ev[name]
        assert found[name]["popularity"] == ev.baselines["popularity"][name]
    assert se.Evaluation.load(tmp_path / "out").mean() == ev.mean()


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


def test_refuses_models_without_factors(holdout: se.Holdout) -> None:
    neighbours = ItemItemRecommender(K=5)
    neighbours.fit(sparse.csr_matrix(holdout.train, dtype=np.float64), show_progress=False)
    with raises(UnsupportedModelError):
        se.evaluate_model(neighbours, holdout, ["auc", "ndcg@10"])
