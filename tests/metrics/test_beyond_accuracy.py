"""Metrics of what is recommended: against the oracle, and the inputs they need."""

import math

import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import given
from list_cases import GROUPS, N_ITEMS, VECTORS, Case, list_cases
from raising import raises
from scipy import sparse
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

CUTOFFS = [2, 3, 20]


@given(list_cases())
def test_every_metric_of_all_users_equals_the_oracle(case):
    names = [f"{name}@{k}" for name in oracle.ONE_NUMBER_LIST_METRICS for k in CUTOFFS]
    ev = case.evaluate(names)
    assert ev.per_user.shape[1] == 0
    for name in oracle.ONE_NUMBER_LIST_METRICS:
        for k in CUTOFFS:
            function = getattr(oracle, name)
            expected = function(case.lists, case.relevant, case.train, N_ITEMS, k)
            assert ev[f"{name}@{k}"] == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


SMALL = Case([[0, 1], [2, 0]], [{0: 1.0}, {2: 1.0}], [{3}, {0, 4}])


def test_groups_are_distinguished_by_type_and_not_by_scale():
    lists = se.Rankings.from_topk([[0], [1]])
    data = (lists, csr_matrix(np.eye(2)), "calibration")
    train = csr_matrix(np.eye(2)[::-1])
    expected = se.evaluate(*data, train=train, items=se.ItemData(groups=["a", "b"]))["calibration"]
    assert expected > 6
    for groups in ([1, "1"], [2**53 + 1, 2.0**53], pd.Index(["x", "y"])):
        ev = se.evaluate(*data, train=train, items=se.ItemData(groups=groups))
        assert ev["calibration"] == expected
    for weight in (1.7e308, 5e-324):
        ev = se.evaluate(
            *data, train=train, items=se.ItemData(groups=np.array([[weight, 0], [0, weight]]))
        )
        assert ev["calibration"] == expected
        same = np.full((2, 2), weight)
        assert se.evaluate(*data, train=train, items=se.ItemData(groups=same))["calibration"] == 0.0


def test_many_groups_take_bounded_memory(monkeypatch):
    expected = SMALL.evaluate(["calibration@2"]).columns
    monkeypatch.setattr("sparse_eval.metrics.beyond_accuracy._MIXES", 1)
    np.testing.assert_array_equal(SMALL.evaluate(["calibration@2"]).columns, expected)


def test_inputs_may_be_keyed_by_item():
    plain = SMALL.evaluate(["calibration@2", "diversity(similarity=vectors)@2"])
    backwards = list(range(N_ITEMS))[::-1]
    keyed = SMALL.evaluate(
        ["calibration@2", "diversity(similarity=vectors)@2"],
        items=se.ItemData(
            groups={item: GROUPS[item] for item in backwards},
            vectors=pd.DataFrame(VECTORS[backwards], index=backwards),
        ),
    )
    np.testing.assert_allclose(keyed.columns, plain.columns, rtol=1e-12)
    matrix = SMALL.evaluate(
        ["calibration@2"],
        items=se.ItemData(groups=csr_matrix(pd.get_dummies(GROUPS).to_numpy(np.int8))),
    )
    np.testing.assert_array_equal(matrix.columns, plain.columns[:1])


def test_labels_of_items_are_matched():
    lists = pd.DataFrame({"user": ["u", "u", "v"], "item": ["y", "x", "z"], "rank": [1, 2, 1]})
    truth = pd.DataFrame({"user": ["u", "v"], "item": ["x", "z"]})
    seen = pd.DataFrame({"user": ["v", "w", "u"], "item": ["x", "y", "q"]})
    ev = se.evaluate(
        se.Rankings.from_frame(lists, rank="rank"),
        se.Relevance.from_frame(truth),
        ["popularity@2", "calibration@2", "diversity(similarity=vectors)@2"],
        train=se.Relevance.from_frame(seen),
        items=se.ItemData(
            groups={"q": 1, "x": 1, "y": 2, "z": 1},
            vectors=pd.DataFrame({"a": [1, 0, 1, 1], "b": [0, 1, 0, 1]}, index=[*"xyzq"]),
        ),
    )
    assert ev.per_user.loc["u", "popularity@2"] == 1.0
    assert ev.per_user.loc["v", "popularity@2"] == 0.0
    assert ev.per_user.loc["u", "calibration@2"] == pytest.approx(-math.log2(0.505))
    assert ev.per_user.loc["v", "calibration@2"] == 0.0
    assert ev.per_user.loc["u", "diversity(similarity=vectors)@2"] == pytest.approx(1.0)


def test_explicit_zeros_in_train_are_not_in_the_history():
    shown = csr_matrix(([1.0, 0.0], ([0, 0], [0, 1])), shape=(2, N_ITEMS))
    ev = SMALL.evaluate(["calibration@1"], train=shown)
    assert ev.values("calibration@1")[0] == 0.0
    assert np.isnan(ev.values("calibration@1")[1])
    same = SMALL.evaluate(["calibration@1"], train=se.Relevance.from_csr(shown))
    np.testing.assert_array_equal(same.columns, ev.columns)


def test_smaller_and_larger_training_data_are_aligned():
    more = sparse.lil_matrix((4, N_ITEMS + 3))
    more[3, 0] = more[2, 0] = 1
    ev = SMALL.evaluate(["popularity@2", "coverage@2"], train=more, items=None)
    assert ev.values("popularity@2").tolist() == [1.0, 1.0]
    assert ev["coverage@2"] == 3 / (N_ITEMS + 3)
    assert SMALL.evaluate(["popularity@2"], train=csr_matrix((1, 2)))["popularity@2"] == 0.0


@pytest.mark.parametrize(
    "inputs",
    [
        {"groups": GROUPS[:5]},
        {"groups": [*GROUPS[:5], None, *GROUPS[6:]]},
        {"groups": {0: "a"}},
        {"groups": pd.Series(["a", "b"], index=[1, 1])},
        {"groups": np.zeros((9, 2))},
        {"groups": -np.ones((9, 2))},
        {"groups": np.full((9, 2), np.nan)},
        {"groups": [["a"], ["b", "c"]] + [["a"]] * 7},
        {"groups": pd.Series([{}] * 9)},
        {"groups": [*GROUPS[:8], float("nan")]},
        {"groups": {**dict(enumerate(GROUPS)), 10**12: "e"}},
        {"groups": {-1: "a", **dict(enumerate(GROUPS[:8]))}},
        {"vectors": VECTORS[:8]},
        {"vectors": np.full((9, 2), np.nan)},
        {"vectors": pd.DataFrame(VECTORS[:3])},
        {"train": csr_matrix([[np.nan]])},
    ],
)
def test_refuses_side_data_that_do_not_fit(inputs):
    with raises(InvalidDataError):
        SMALL.evaluate(
            ["calibration@2"],
            **inputs
            if "train" in inputs
            else {"items": se.ItemData(**{"groups": GROUPS} | inputs)},
        )


def test_refuses_lists_with_unknown_items():
    hits_only = csr_matrix(([3], ([0], [1])), shape=(1, N_ITEMS))
    with raises(InvalidDataError, user=0):
        se.evaluate(hits_only, csr_matrix(([1], ([0], [1])), (1, N_ITEMS)), "coverage@3")
    gap = se.Rankings.from_topk([[0, -1, 2]])
    relevant = csr_matrix([[1, 0, 0]])
    assert se.evaluate(gap, relevant, "coverage@1")["coverage@1"] == 1 / 3
    for k in (2, 3):
        with raises(InvalidDataError, user=0):
            se.evaluate(gap, relevant, f"coverage@{k}")


def test_refuses_auc_of_positions_beyond_the_catalogue():
    far = csr_matrix(([30], ([0], [1])), shape=(1, N_ITEMS))
    with raises(InvalidDataError):
        se.evaluate(far, csr_matrix(([1], ([0], [1])), (1, N_ITEMS)), "auc")
