"""`evaluate` and `Evaluation`: options, counts, what is read out and written down."""

import gc
import json
import weakref
from itertools import product

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

LISTS = se.Rankings.from_topk([[0, 1], [2, 3], [-1, -1], [0, 1]], shape=(4, 4))
GAINS = csr_matrix([[1, 0, 0, 0], [0, 0, 0, 2], [1, 1, 0, 0], [0, 0, 0, 0]])


@pytest.fixture
def ev():
    return se.evaluate(LISTS, GAINS, ["ndcg@2", "recall@1"])


def test_silence_counts_nothing_known_does_not(ev):
    expected = [1.0, 1 / np.log2(3), 0.0, np.nan]
    np.testing.assert_allclose(ev.values("ndcg@2"), expected)
    assert (ev.n_users, ev.n_skipped, ev.n_without_list) == (3, 1, 1)
    assert ev["recall@1"] == pytest.approx(1 / 3)
    assert ev.mean() == {"ndcg@2": ev["ndcg@2"], "recall@1": ev["recall@1"]}
    assert se.evaluate(LISTS, GAINS, "coverage@2").n_users_of == {"coverage@2": 3}


def test_memory_is_free_without_the_garbage_collector():
    gc.disable()
    try:
        ev = se.evaluate(LISTS, GAINS, ["ndcg@2", "gini@2", "precision(average=micro)@1"])
        assert "ndcg@2" in repr(ev)
        part = weakref.ref(ev._part)
        del ev
        assert part() is None
    finally:
        gc.enable()


def test_per_user_and_summary(ev):
    assert ev.per_user.index.tolist() == [0, 1, 2, 3]
    assert ev.per_user.dtypes.tolist() == [np.float64] * 2
    assert ev.per_user["recall@1"].isna().tolist() == [False, False, False, True]
    summary = ev.summary()
    assert summary.index.tolist() == ["ndcg@2", "recall@1"]
    row = summary.loc["recall@1"].drop(["ci_low", "ci_high"])
    assert row.to_dict() == {
        "mean": pytest.approx(1 / 3), "std": pytest.approx(np.std([1, 0, 0], ddof=1)),
        "interval": "bca", "random": pytest.approx(1 / 4), "random_se": 0.0,
        "lift": pytest.approx(4 / 3), "n_users": 3, "n_skipped": 1,
    }  # fmt: skip


def test_one_user_has_no_spread():
    one = se.evaluate(se.Rankings.from_topk([[0]]), csr_matrix([[1]]), "mrr@1")
    assert np.isnan(one.summary()["std"]).all()
    assert json.loads(one.to_json())["metrics"]["mrr@1"] == {
        "mean": 1.0, "std": None, "ci_low": None, "ci_high": None, "interval": "none",
        "random": 1.0, "random_se": 0.0, "lift": 1.0, "n_users": 1, "n_skipped": 0,
    }  # fmt: skip


def test_nobody_to_evaluate():
    nothing = csr_matrix((4, 4)), csr_matrix((0, 4)), csr_matrix(([0.0], ([0], [1])), (4, 4))
    for truth, keep in product(nothing, ("values", "totals")):
        lists = LISTS if truth.shape[0] else se.Rankings.from_topk(np.empty((0, 2), int))
        with raises(InvalidDataError):
            se.evaluate(lists, truth, "ndcg@2", keep=keep)


@pytest.mark.filterwarnings("ignore:overflow")  # from kernels that run as Python
def test_gains_too_large_to_sum():
    lists = se.Rankings.from_topk([[0, 1, 2], [0, 1, 2]])
    large = csr_matrix([[1.0, 1.0, 1.0], [1100.0, 1.0, 0.0]])
    huge = csr_matrix([[1.0, 1.0, 1.0], [1.5e308, 1.5e308, 1.0]])
    for gains, metric in ((large, "ndcg(gain=exp)@2"), (huge, "ndcg@2"), (huge, "cg@2")):
        with raises(InvalidDataError, row=1):
            se.evaluate(lists, gains, metric)
    with raises(InvalidDataError, row=1):
        se.evaluate(lists, csr_matrix([[1.0, 1, 1], [1e308, 1, 1]]), "percentile_rank")
    assert se.evaluate(lists, large, "ndcg(gain=binary)@2")["ndcg(gain=binary)@2"] == 1.0


@pytest.mark.parametrize("metric", ["ndcg@3", "ndcg(gain=exp)@3"])
def test_gains_too_small_to_sum(metric):
    lists = se.Rankings.from_topk([[0, 1, 2], [0, 1, 2]])
    one_user = np.array([1.0, 0.5, 0.25])
    for smallest, fits in ((1e-306, True), (1e-310, False), (5e-324, False)):
        tiny = csr_matrix([[5.0, 1.0, 5e-324], one_user[[2, 0, 1]] * smallest])
        if fits:
            expected = se.evaluate(lists, csr_matrix([[5.0, 1.0, 0], [0.25, 1, 0.5]]), "ndcg@3")
            found = se.evaluate(lists, tiny, "ndcg@3")
            np.testing.assert_allclose(found.per_user, expected.per_user, rtol=1e-15)
        else:
            with raises(InvalidDataError, row=1):
                se.evaluate(lists, tiny, metric)


def test_refuses_wrong_options():
    for threads in (0, -1, 2.0, "two", True):
        with raises(InvalidDataError, argument="num_threads"):
            se.evaluate(LISTS, GAINS, "mrr@1", num_threads=threads)
    with raises(InvalidDataError, argument="no_relevant"):
        se.evaluate(LISTS, GAINS, se.Protocol("mrr@1", no_relevant="skip"))
    with raises(InvalidDataError):
        se.evaluate(LISTS, GAINS, "err(max=1)@2")  # the gains go to 2


def test_means_and_ratios_of_the_largest_numbers():
    first = se.Rankings.from_topk([[0], [0]])
    assert se.evaluate(first, csr_matrix([[1.7e308], [1.7e308]]), "cg@1")["cg@1"] == 1.7e308
    spread = se.evaluate(first, csr_matrix([[1e200], [3.0]]), "cg@1")
    assert spread.summary().loc["cg@1", "std"] == 7.071067811865475e199
    lists, name = se.Rankings.from_topk([[1, 0]] * 20), "percentile_rank(average=micro)"
    ratio = se.evaluate(lists, csr_matrix([[1.7e307, 0.0]] * 20), name)
    assert ratio[name] == pytest.approx(1.0)


def test_refuses_gaps_in_lists_of_which_items_are_counted():
    lists = csr_matrix([[0, 0, 3, 0]])
    for options in ({}, {"keep": "totals"}, {"memory": 1 << 24}):
        with raises(InvalidDataError, user=0):
            se.evaluate(lists, csr_matrix([[0, 0, 1, 0]]), ["ndcg@3", "coverage@3"], **options)
    assert se.evaluate(lists, csr_matrix([[0, 0, 1, 0]]), "ndcg@3").n_users == 1


def test_train_of_other_items_is_refused():
    lists = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "rank": [1, 1]})
    relevant = pd.DataFrame({"user": ["a", "b"], "item": ["x", "z"]})
    train = pd.DataFrame({"user": ["a", "b"], "item": ["sku:x", "sku:y"]})
    with raises(InvalidDataError):
        se.evaluate(lists, relevant, "novelty@1", train=train)
