"""Every metric and option against the oracle, on lists and relevance of every shape."""

import numpy as np
import oracle
import pytest
from cases import cases, of_sets, same_values
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.metrics import REGISTRY

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")

ALL = oracle.spelled(oracle.METRICS)
NAMES = [spelling for spelling, *_ in ALL]


def test_the_oracle_has_every_accuracy_metric():
    found = {name for name, entry in REGISTRY.items() if entry.over == "statistics"}
    found -= {name for name in found if name.startswith(("set_", "num_", "ps"))}
    apart = {"gauc", "iprec_at_recall", "bpref", "infap", "judged", "utility"}
    assert {name for name, _ in oracle.METRICS} == found - apart


@settings(max_examples=50)
@given(cases())
def test_every_metric_equals_the_oracle(case):
    ev = se.evaluate(*case.matrices, NAMES, train=case.train)
    same_values(ev, ALL, case.users())
    for plan in ev.request.plans:
        values = ev.values(plan.metric)
        mean = oracle.mean_of_defined(values)
        assert ev[plan.metric] == pytest.approx(mean, rel=1e-12, nan_ok=True)
        defined = values[~np.isnan(values)]
        assert (defined >= plan.definition.range[0] - 1e-12).all(), plan.metric
        assert (defined <= plan.upper * (1 + 1e-12)).all(), plan.metric


@pytest.mark.filterwarnings("ignore:.*are not candidates")
@given(cases(), st.lists(st.sets(st.integers(0, 15)), min_size=6, max_size=6))
def test_every_metric_among_candidates_equals_the_oracle(case, among):
    case, among = case.without_gaps(), among[: len(case.ranked)]
    among[0] |= {*case.relevant[0]}
    case.seen[0].difference_update(case.relevant[0])
    options = {"train": case.train, "candidates": of_sets(among)}
    ev = se.evaluate(*case.matrices, NAMES, **options)
    same_values(ev, ALL, case.users(among))


@given(cases())
def test_every_ratio_of_sums_equals_the_oracle(case):
    rows = oracle.spelled(oracle.MICRO)
    weights = ("impressions", "relevant")
    expected = {
        **{row[0]: oracle.micro(*row[1:], case.users()) for row in rows},
        **{f"gauc(weight={w})": oracle.gauc(w, None, case.users()) for w in weights},
        **{f"gauc(weight={w})@3": oracle.gauc(w, 3, case.users()) for w in weights},
    }
    ev = se.evaluate(*case.matrices, list(expected), train=case.train)
    for name, ratio in expected.items():
        assert ev[name] == pytest.approx(ratio, rel=1e-12), name
    assert ev.per_user.shape == (len(case.ranked), 0)


def test_the_order_of_lists_without_a_miss_and_without_a_hit():
    lists = se.Rankings.from_topk([[0, 1], [1, 0]], shape=(2, 3))
    truth = csr_matrix([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    name = "auc(among=list)@2"
    assert se.evaluate(lists, truth, name).values(name).tolist() == [1.0, 0.0]
