"""Every metric and option against the oracle, on lists and relevance of every shape."""

import math

import numpy as np
import oracle
import pytest
from cases import cases, spelled
from hypothesis import given, settings
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics import REGISTRY

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")

ALL = spelled(oracle.METRICS)
MICRO = spelled(oracle.MICRO)
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
    users = list(zip(case.ranked, case.relevant, case.contexts, strict=True))
    for spelling, name, options, k in ALL:
        expected = [oracle.value(name, options, k, *user) for user in users]
        np.testing.assert_allclose(
            ev.values(spelling), expected, rtol=1e-12, atol=1e-15, err_msg=spelling
        )
        evaluated = [x for x in expected if not math.isnan(x)]
        mean = math.fsum(evaluated) / len(evaluated) if evaluated else math.nan
        assert ev[spelling] == pytest.approx(mean, rel=1e-12, nan_ok=True)
    for plan in ev.request.plans:
        values = ev.values(plan.metric)
        defined = values[~np.isnan(values)]
        assert (defined >= plan.definition.range[0] - 1e-12).all(), plan.metric
        assert (defined <= plan.upper * (1 + 1e-12)).all(), plan.metric


@given(cases())
def test_every_micro_average_equals_the_oracle(case):
    ev = se.evaluate(*case.matrices, [name for name, *_ in MICRO], train=case.train)
    users = list(zip(case.ranked, case.relevant, case.contexts, strict=True))
    for spelling, name, options, k in MICRO:
        assert ev[spelling] == pytest.approx(oracle.micro(name, options, k, users), rel=1e-12)
    assert ev.per_user.shape == (len(users), 0)


@given(cases())
def test_gauc_equals_the_oracle(case):
    names = ["gauc", "gauc@3", "gauc(weight=relevant)", "gauc(weight=relevant)@3"]
    ev = se.evaluate(*case.matrices, names, train=case.train)
    users = list(zip(case.ranked, case.relevant, case.contexts, strict=True))
    for name in names:
        weight = "relevant" if "relevant" in name else "impressions"
        expected = oracle.gauc(weight, 3 if "@" in name else None, users)
        assert ev[name] == pytest.approx(expected, rel=1e-12), name


def test_gains_whose_sum_is_not_finite():
    truth = csr_matrix([[1.0, 0, 1.0], [1.7e308, 0, 1.7e308]])
    lists = se.Rankings.from_topk([[0, 1], [1, 0]], shape=(2, 3))
    with raises(InvalidDataError, row=1):
        se.evaluate(lists, truth, "ndcg@2")


def test_the_order_of_lists_without_a_miss_and_without_a_hit():
    lists = se.Rankings.from_topk([[0, 1], [1, 0]], shape=(2, 3))
    truth = csr_matrix([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    name = "auc(among=list)@2"
    assert se.evaluate(lists, truth, name).values(name).tolist() == [1.0, 0.0]
