"""Items of equal score: the expectation over their orders, and the worst of them."""

from itertools import groupby, permutations, product

import numpy as np
import oracle
import pytest
from cases import gains, spelled, to_csr
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

scores = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6)


def orders(row):
    """The positions of items in every order that scores allow."""
    by_score = sorted(range(len(row)), key=lambda item: -row[item])
    groups = [list(group) for _, group in groupby(by_score, key=lambda item: row[item])]
    return [
        {item: rank for rank, item in enumerate((i for group in order for i in group), 1)}
        for order in product(*(permutations(group) for group in groups))
    ]


def relevant_of(row, relevant):
    return {item: gain for item, gain in relevant.items() if item < len(row)} | {0: 1.0}


@settings(max_examples=40)
@given(scores, st.dictionaries(st.integers(0, 5), gains), st.integers(1, 7))
@example([0.5, 0.5, 0.5, 1.0], {1: 0.25, 2: 0.25, 3: 0.25}, 7)  # no miss, and thirds of ranks
def test_the_expectation_is_the_mean_over_all_orders(row, relevant, depth):
    """Of whole lists, and of lists whose end is in a group of ties."""
    relevant = relevant_of(row, relevant)
    metrics = spelled(AVERAGED)
    lists = se.Rankings.from_scores([row], k=depth, ties="average")
    truth = to_csr([relevant], np.float64, len(row))
    ev = se.evaluate(lists, truth, [name for name, *_ in metrics])
    cut_orders = [{item: r for item, r in order.items() if r <= depth} for order in orders(row)]
    context = oracle.Context(n_items=len(row), list_length=min(depth, len(row)))
    for spelling, name, options, cut in metrics:
        values = [oracle.value(name, options, cut, o, relevant, context) for o in cut_orders]
        expected = np.mean(values)
        assert ev[spelling] == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True), spelling


@settings(max_examples=40)
@given(scores, st.dictionaries(st.integers(0, 5), gains), st.integers(1, 7), st.booleans())
def test_pessimistic_is_the_worst_of_all_orders(row, relevant, k, is_cut):
    relevant = relevant_of(row, relevant)
    metrics = [case for case in spelled(MONOTONE) if not is_cut or case[3] in range(1, k + 1)]
    metrics = [case for case in metrics if case[1] != "auc" or case[3] is None]
    lists = se.Rankings.from_scores([row], k=k if is_cut else None, ties="pessimistic")
    truth = to_csr([relevant], np.float64, len(row))
    ev = se.evaluate(lists, truth, [name for name, *_ in metrics])
    context = oracle.Context(n_items=len(row), largest_gain=max(relevant.values()))
    for spelling, name, options, cut in metrics:
        values = [oracle.value(name, options, cut, o, relevant, context) for o in orders(row)]
        assert ev[spelling] == pytest.approx(min(values), rel=1e-12, nan_ok=True), spelling


def test_an_expectation_is_saved(tmp_path):
    lists = se.Rankings.from_scores([[1.0, 1.0, 2.0]], ties="average")
    ev = se.evaluate(lists, csr_matrix([[1, 0, 0]]), "ndcg@2")
    assert saved(ev, tmp_path).mean() == ev.mean()


def test_pessimistic_lists_are_in_the_order_that_counts():
    lists = se.Rankings.from_scores([[1.0, 1.0, 1.0, 2.0]], k=3, ties="pessimistic")
    ev = se.evaluate(lists, csr_matrix([[3, 0, 1, 0]]), ["dcg@3", "mrr"])
    assert ev.explain(0)["item"].tolist() == [3, 1, 2, 0]
    assert ev["mrr"] == pytest.approx(1 / 3)


def test_refuses_what_has_no_expectation():
    lists = se.Rankings.from_scores([[1.0, 1.0]], ties="average")
    truth = csr_matrix([[1, 0]])
    for name in ("mrr", "map@2", "hit_rate@1", "jaccard@1", "r_precision", "coverage@1"):
        with raises(InvalidMetricError):
            se.evaluate(lists, truth, name)
    averaged = {
        name
        for name, entry in REGISTRY.items()
        if entry.formula.averages_ties({option.name: option.default for option in entry.options})
    }
    assert {name for name, _ in AVERAGED} <= averaged


def test_pessimistic_positions_are_uncertain_before_evaluation():
    lists = se.Rankings.from_scores([[1.0, 1.0]], ties="pessimistic")
    for use in (lists.to_positions, lists.to_frame):
        with raises(InvalidDataError):
            use()
