"""Metrics of what is recommended: against the oracle, and the inputs they need."""

import math

import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import given
from list_cases import GROUPS, N_ITEMS, Case, list_cases
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError


@given(list_cases())
def test_every_metric_of_all_users_equals_the_oracle(case):
    rows = [(name, k) for name in oracle.ONE_NUMBER_LIST_METRICS for k in (2, 3, 20)]
    ev = case.evaluate([f"{name}@{k}" for name, k in rows])
    assert ev.per_user.shape[1] == 0
    for name, k in rows:
        expected = getattr(oracle, name)(case.lists, case.relevant, case.train, N_ITEMS, k)
        assert ev[f"{name}@{k}"] == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


SMALL = Case([[0, 1], [2, 0]], [{0: 1.0}, {2: 1.0}], [{3}, {0, 4}])


def test_groups_are_distinguished_by_type_and_not_by_scale():
    data = (se.Rankings.from_topk([[0], [1]]), csr_matrix(np.eye(2)), "calibration")

    def calibration(groups):
        items = se.ItemData(groups=groups)
        return se.evaluate(*data, train=csr_matrix(np.eye(2)[::-1]), item_data=items)["calibration"]

    expected = calibration(["a", "b"])
    assert expected == pytest.approx(-math.log2(0.01))
    for groups in ([1, "1"], [2**53 + 1, 2.0**53], csr_matrix([[1, 0], [0, 1]])):
        assert calibration(groups) == expected
    for weight in (1.7e308, 5e-324):
        assert calibration(np.diag([weight, weight])) == expected
        assert calibration(np.full((2, 2), weight)) == 0.0


def test_many_groups_take_bounded_memory(monkeypatch):
    expected = SMALL.evaluate("calibration@2")._values.columns
    monkeypatch.setattr("sparse_eval.metrics.beyond_accuracy._MIXES", 1)
    np.testing.assert_array_equal(SMALL.evaluate("calibration@2")._values.columns, expected)


def test_data_of_items_may_be_keyed_by_item():
    groups = {item: GROUPS[item] for item in reversed(range(N_ITEMS))}
    keyed = SMALL.evaluate("calibration@2", item_data=se.ItemData(groups=groups))
    plain = SMALL.evaluate("calibration@2")
    np.testing.assert_allclose(keyed._values.columns, plain._values.columns, rtol=1e-12)


def test_labels_of_items_are_matched():
    lists = pd.DataFrame({"user": ["u", "u", "v"], "item": ["y", "x", "z"], "rank": [1, 2, 1]})
    truth = pd.DataFrame({"user": ["u", "v"], "item": ["x", "z"]})
    seen = pd.DataFrame({"user": ["v", "w", "u"], "item": ["x", "y", "q"]})
    ev = se.evaluate(
        se.Rankings.from_frame(lists, rank="rank"),
        se.Relevance.from_frame(truth),
        ["popularity@2", "calibration@2", "diversity(similarity=vectors)@2"],
        train=se.Relevance.from_frame(seen),
        item_data=se.ItemData(
            groups={"q": 1, "x": 1, "y": 2, "z": 1},
            vectors=pd.DataFrame({"a": [1, 0, 1, 1], "b": [0, 1, 0, 1]}, index=[*"xyzq"]),
        ),
    )
    assert ev.per_user["popularity@2"].tolist() == [1.0, 0.0]
    assert ev.per_user["calibration@2"].tolist() == [pytest.approx(-math.log2(0.505)), 0.0]
    assert ev.per_user.loc["u", "diversity(similarity=vectors)@2"] == pytest.approx(1.0)


def test_training_data_may_hold_zeros_and_other_numbers_of_users_and_items():
    shown = csr_matrix(([1.0, 0.0], ([0, 0], [0, 1])), shape=(2, N_ITEMS))
    history = SMALL.evaluate("calibration@1", train=shown).values("calibration@1")
    np.testing.assert_array_equal(history, [0.0, np.nan])
    more = csr_matrix(([1, 1], ([2, 3], [0, 0])), shape=(4, N_ITEMS + 3))
    ev = SMALL.evaluate(["popularity@2", "coverage@2"], train=more, item_data=None)
    assert ev.values("popularity@2").tolist() == [1.0, 1.0]
    assert ev["coverage@2"] == 3 / (N_ITEMS + 3)
    assert SMALL.evaluate("popularity@2", train=csr_matrix((1, 2)))["popularity@2"] == 0.0


@pytest.mark.parametrize(
    "inputs",
    [
        {"groups": GROUPS[:5]},
        {"groups": [*GROUPS[:5], None, *GROUPS[6:]]},
        {"groups": {0: "a"}},
        {"groups": pd.Series(["a", "b"], index=[1, 1])},
        {"groups": [*GROUPS[:8], math.nan]},
        {"groups": -np.ones((9, 2))},
        {"groups": np.full((9, 2), np.nan)},
        {"groups": pd.Series([{}] * 9)},
        {"groups": {**dict(enumerate(GROUPS)), 10**12: "e"}},
        {"groups": GROUPS, "vectors": np.full((9, 2), np.nan)},
    ],
)
def test_refuses_data_of_items_that_do_not_fit(inputs):
    with raises(InvalidDataError):
        SMALL.evaluate("calibration@2", item_data=se.ItemData(**inputs))


def test_refuses_lists_with_unknown_items():
    gap = se.Rankings.from_topk([[0, -1, 2]])
    relevant = csr_matrix([[1, 0, 0]])
    assert se.evaluate(gap, relevant, "coverage@1")["coverage@1"] == 1 / 3
    with raises(InvalidDataError, user=0):
        se.evaluate(gap, relevant, "coverage@2")
    far = csr_matrix(([30], ([0], [1])), shape=(1, 3))
    with raises(InvalidDataError):
        se.evaluate(far, relevant, "auc")
