"""Popularity bias and fairness of exposure, against their definitions."""

import numpy as np
import popularity_oracle as plain
import pytest
from hypothesis import given, settings
from list_cases import GROUPS, N_ITEMS, list_cases
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

CUTOFFS = (1, 3, 20)
TAILS = {
    "": plain.tail_of_interactions,
    **{
        f"(tail={ratio:g})": lambda *data, ratio=ratio: plain.tail_of_recbole(*data, ratio)
        for ratio in (0.1, 0.5, 1, 2)
    },
}
EXPOSURES = {"": 0.85, "(p=0.3)": 0.3, "(weights=log)": None}


@settings(max_examples=30)
@given(list_cases())
def test_every_metric_equals_its_definition(case):
    expected = {}
    for k in CUTOFFS:
        for options, find_tail in TAILS.items():
            tail = find_tail(case.train, N_ITEMS)
            expected[f"aplt{options}@{k}"] = plain.aplt(case, tail, k)
            expected[f"aclt{options}@{k}"] = plain.aclt(case, tail, k)
            in_tail = [item in tail for item in range(N_ITEMS)]
            for name in ("reo", "rsp"):
                found = plain.variation(case, in_tail, k, of_relevant=name == "reo")
                expected[f"pop_{name}{options}@{k}"] = found
                assert not found > 1 + 1e-12  # of two groups
        for name in ("reo", "rsp"):
            expected[f"{name}@{k}"] = plain.variation(case, GROUPS, k, of_relevant=name == "reo")
        for options, p in EXPOSURES.items():
            expected[f"exposure_gini{options}@{k}"] = plain.exposure_gini(case, N_ITEMS, k, p)
    ev = case.evaluate(list(expected))
    for name, truth in expected.items():
        found = ev[name] if isinstance(truth, float) else ev.values(name)
        np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.filterwarnings("ignore:1 of 4 relevant items")
def test_candidates_are_what_groups_could_have():
    lists = se.Rankings.from_topk([[0, 1], [1, 2]], shape=(2, 4))
    truth = csr_matrix([[1, 0, 0, 1], [0, 0, 1, 1]])
    among = csr_matrix([[1, 1, 0, 1], [0, 1, 1, 0]])
    items = se.ItemData(groups=["a", "b", "a", "b"])
    ev = se.evaluate(lists, truth, ["reo@2", "rsp@2"], candidates=among, item_data=items)
    # Relevant candidates: a 0 and 2, both hit; b 3 of user 0, not hit. Candidates: a 2, b 3.
    assert ev["reo@2"] == pytest.approx(1.0)
    assert ev["rsp@2"] == pytest.approx(abs(1 - 2 / 3) / (1 + 2 / 3))


def test_refuses_items_in_several_groups():
    data = (se.Rankings.from_topk([[0, 1]]), csr_matrix([[1, 1]]))
    groups = np.array([[1.0, 1.0], [0.0, 1.0]])
    for metric in ("reo@1", "rsp@1"):
        with raises(InvalidDataError):
            se.evaluate(*data, metric, item_data=se.ItemData(groups=groups))
    one = se.ItemData(groups=np.diag([1.0, 3.0]))
    assert se.evaluate(*data, "reo@1", item_data=one)["reo@1"] == 1
