"""Items of equal score: the expectation over their orders, and the worst of them."""

import json

import numpy as np
import oracle
import pandas as pd
import pytest
from cases import gains, to_csr
from evaluations import saved
from hypothesis import example, given, settings
from hypothesis import strategies as st
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.metrics import REGISTRY

#: What is linear in sums over single items, so that it has an expectation over orders.
AVERAGED = [
    (name, options)
    for name, options in oracle.METRICS
    if name
    in {
        "cg", "dcg", "idcg", "ndcg", "precision", "recall", "f1", "auc", "mean_rank",
        "percentile_rank",
    }
    and options.get("among") != "list"
]  # fmt: skip

#: What never falls if a relevant item moves forward, or one of larger gain.
MONOTONE = [
    ("dcg", {"gain": "exp"}), ("ndcg", {}), ("precision", {}), ("recall", {}), ("hit_rate", {}),
    ("mrr", {}), ("map", {}), ("r_precision", {}), ("auc", {}), ("rbp", {"gain": "raw"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ties", "of_orders", "metrics"),
    [("average", np.mean, AVERAGED), ("pessimistic", min, MONOTONE)],
)
@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6),
    st.dictionaries(st.integers(0, 5), gains),
    st.integers(1, 7),
)
@example([0.5, 0.5, 0.5, 1.0], {1: 0.25, 2: 0.25, 3: 0.25}, 7)  # no miss, and thirds of ranks
def test_all_orders_of_whole_lists_and_of_lists_that_end_in_a_tie(
    ties, of_orders, metrics, scores, relevant, depth
):
    relevant = {item: gain for item, gain in relevant.items() if item < len(scores)} | {0: 1.0}
    metrics = oracle.spelled(metrics)
    lists = se.Rankings.from_scores([scores], k=depth, ties=ties)
    truth = to_csr([relevant], np.float64, len(scores))
    ev = se.evaluate(lists, truth, [name for name, *_ in metrics])
    orders = [
        {item: rank for item, rank in order.items() if rank <= depth}
        for order in oracle.orders(scores)
    ]
    context = oracle.Context(n_items=len(scores), list_length=min(depth, len(scores)))
    for spelling, name, options, cut in metrics:
        values = [oracle.value(name, options, cut, one, relevant, context) for one in orders]
        expected = of_orders(values)
        assert ev[spelling] == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True), spelling


def test_an_expectation_is_saved(tmp_path):
    lists = se.Rankings.from_scores([[1.0, 1.0, 2.0]], ties="average")
    ev = se.evaluate(lists, csr_matrix([[1, 0, 0]]), "ndcg@2")
    assert saved(ev, tmp_path).mean() == ev.mean()


def test_pessimistic_lists_are_in_the_order_that_counts():
    lists = se.Rankings.from_scores([[1.0, 1.0, 1.0, 2.0]], k=3, ties="pessimistic")
    with raises(InvalidDataError):
        lists.to_positions()
    ev = se.evaluate(lists, csr_matrix([[3, 0, 1, 0]]), ["dcg@3", "mrr"])
    assert ev.explain(0)["item"].tolist() == [3, 1, 2, 0]
    assert ev["mrr"] == pytest.approx(1 / 3)


def test_refuses_what_has_no_expectation():
    lists = se.Rankings.from_scores([[1.0, 1.0]], ties="average")
    for name in ("mrr", "coverage@1"):
        with raises(InvalidMetricError):
            se.evaluate(lists, csr_matrix([[1, 0]]), name)
    averaged = {
        name
        for name, entry in REGISTRY.items()
        if entry.formula.averages_ties({option.name: option.default for option in entry.options})
    }
    assert {name for name, _ in AVERAGED} <= averaged
    assert not averaged & {"map", "hit_rate", "jaccard", "r_precision"}


@pytest.mark.parametrize(
    ("convention", "expected"), [(None, 1 / 3), ("trec_eval", 1.0), ("sklearn", None)]
)
def test_a_convention_orders_equal_scores_wherever_they_are_opened(
    convention, expected, tmp_path, command
):
    frame = pd.DataFrame({"user": ["q"] * 3, "item": ["d1", "d2", "d3"], "score": [1.0] * 3})
    truth = pd.DataFrame({"user": ["q"], "item": ["d3"]})
    (tmp_path / "a.run").write_text("".join(f"q Q0 d{n} {n} 1.0 t\n" for n in (1, 2, 3)))
    (tmp_path / "a.qrels").write_text("q 0 d3 1\n")
    frame.to_csv(tmp_path / "recs.csv", index=False)
    frame.to_parquet(tmp_path / "recs.parquet")
    truth.to_parquet(tmp_path / "truth.parquet")
    run, qrels, csv, *parquet = (
        tmp_path / name
        for name in ("a.run", "a.qrels", "recs.csv", "recs.parquet", "truth.parquet")
    )
    metric = "ndcg" if expected is None else "mrr"
    if expected is None:  # the expectation over all orders
        expected = np.mean([1.0, 1 / np.log2(3), 1 / 2])
    mapping = {"q": dict.fromkeys(frame["item"], 1.0)}
    for lists, relevant in (
        (run, qrels), (run, {"q": {"d3": 1}}), (mapping, qrels), (frame, truth), (csv, truth),
        (se.Rankings.scan(frame), truth), parquet, (parquet[0], truth),
    ):  # fmt: skip
        found = se.evaluate(lists, relevant, metric, convention=convention)
        assert found[metric] == pytest.approx(expected, rel=1e-12)
    found = se.evaluate(*parquet, metric, convention=convention, memory=1 << 26)
    assert found[metric] == pytest.approx(expected, rel=1e-12)
    options = (
        "-m",
        metric,
        "--format",
        "json",
        *(("--convention", convention) if convention else ()),
    )
    for paths in ((run, qrels), (csv, parquet[1]), parquet):
        status, printed, said = command("evaluate", *paths, *options)
        assert status == 0, said
        assert json.loads(printed)["metrics"][metric]["mean"] == pytest.approx(expected)


def test_metrics_without_an_expectation_need_scores_without_ties():
    truth = {"u": {"b": 1}, "v": {"a": 1}}
    options = {"metrics": ["mrr", "ndcg"], "convention": "torchmetrics"}
    untied = {"u": {"a": 2.0, "b": 1.0}, "v": {"a": 2.0, "b": 1.0}}
    assert se.evaluate(untied, truth, **options)["mrr"] == 0.75
    with raises(InvalidMetricError):
        se.evaluate(untied | {"v": {"a": 1.0, "b": 1.0}}, truth, **options)
