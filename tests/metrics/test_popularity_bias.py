"""Popularity bias and fairness of exposure: against their definitions, in every way."""

import math

import numpy as np
import popularity_oracle as plain
import pytest
from hypothesis import given, settings
from list_cases import GROUPS, N_ITEMS, list_cases
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

TAILS = ["", "tail=0.1", "tail=0.5", "tail=1", "tail=2"]
CUTOFFS = [1, 3, 20]


def spell(name, options, k):
    return f"{name}({options})@{k}" if options else f"{name}@{k}"


def tail_of(option, train, n_items=N_ITEMS):
    if not option:
        return plain.tail_of_interactions(train, n_items)
    return plain.tail_of_recbole(train, n_items, float(option.removeprefix("tail=")))


@settings(max_examples=30)
@given(list_cases())
def test_shares_of_the_long_tail_equal_their_definition(case):
    rows = [(name, tail, k) for name in ("aplt", "aclt") for tail in TAILS for k in CUTOFFS]
    ev = case.evaluate([spell(*row) for row in rows])
    for name, tail, k in rows:
        expected = getattr(plain, name)(case.lists, case.relevant, tail_of(tail, case.train), k)
        found = ev.values(spell(name, tail, k))
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=spell(name, tail, k))


@settings(max_examples=30)
@given(list_cases())
def test_numbers_of_groups_equal_their_definition(case):
    rows = [(name, tail, k) for name in ("pop_reo", "pop_rsp") for tail in TAILS for k in CUTOFFS]
    rows += [(name, "", k) for name in ("reo", "rsp") for k in CUTOFFS]
    ev = case.evaluate([spell(*row) for row in rows])
    for name, option, k in rows:
        groups = GROUPS
        if name.startswith("pop"):
            tail = tail_of(option, case.train)
            groups = [item in tail for item in range(N_ITEMS)]
        expected = plain.variation(*case, groups, k, of_relevant=name.endswith("reo"))
        found = ev[spell(name, option, k)]
        assert found == pytest.approx(expected, rel=1e-12, nan_ok=True), (name, option, k)
        if name.startswith("pop") and not math.isnan(found):
            assert 0 <= found <= 1 + 1e-12


@settings(max_examples=30)
@given(list_cases())
def test_exposure_equals_its_definition(case):
    options = {"": 0.85, "p=0.3": 0.3, "weights=log": None}
    ev = case.evaluate([spell("exposure_gini", o, k) for o in options for k in CUTOFFS])
    for option, p in options.items():
        for k in CUTOFFS:
            expected = plain.exposure_gini(*case, N_ITEMS, k, p)
            found = ev[spell("exposure_gini", option, k)]
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.filterwarnings("ignore:1 of 4 relevant items")
def test_candidates_are_what_groups_could_have():
    lists = se.Rankings.from_topk([[0, 1], [1, 2]], shape=(2, 4))
    truth = csr_matrix([[1, 0, 0, 1], [0, 0, 1, 1]])
    groups = ["a", "b", "a", "b"]
    among = csr_matrix([[1, 1, 0, 1], [0, 1, 1, 0]])
    ev = se.evaluate(
        lists, truth, ["reo@2", "rsp@2"], candidates=among, items=se.ItemData(groups=groups)
    )
    # Relevant candidates: a 0 and 2, both hit; b 3 of user 0, not hit. Candidates: a 2, b 3.
    assert ev["reo@2"] == pytest.approx(1.0)
    assert ev["rsp@2"] == pytest.approx(abs(1 - 2 / 3) / (1 + 2 / 3))


def test_refuses_items_in_several_groups():
    lists = se.Rankings.from_topk([[0, 1]])
    groups = np.array([[1.0, 1.0], [0.0, 1.0]])
    for metric in ("reo@1", "rsp@1"):
        with raises(InvalidDataError):
            se.evaluate(lists, csr_matrix([[1, 0]]), metric, items=se.ItemData(groups=groups))
    one = np.array([[1.0, 0.0], [0.0, 3.0]])
    assert (
        se.evaluate(lists, csr_matrix([[1, 1]]), "reo@1", items=se.ItemData(groups=one))["reo@1"]
        == 1
    )
