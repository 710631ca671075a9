"""`evaluate` and `Evaluation`: options, counts, what is read out and written down."""

import gc
import json
import warnings
import weakref
from itertools import product

import numpy as np
import pandas as pd
import pytest
from raising import raises, warns
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

LISTS = se.Rankings.from_topk([[0, 1], [2, 3], [-1, -1], [0, 1]], shape=(4, 4))
GAINS = csr_matrix([[1, 0, 0, 0], [0, 0, 0, 2], [1, 1, 0, 0], [0, 0, 0, 0]])


def test_users_without_a_list_count_and_users_without_relevant_items_do_not():
    ev = se.evaluate(LISTS, GAINS, ["ndcg@2", "recall@1"])
    expected = {"ndcg@2": [1.0, 1 / np.log2(3), 0.0, np.nan], "recall@1": [1.0, 0.0, 0.0, np.nan]}
    pd.testing.assert_frame_equal(ev.per_user, pd.DataFrame(expected), check_names=False)
    assert (ev.n_users, ev.to_dict()["n_skipped"], ev.to_dict()["n_without_list"]) == (3, 1, 1)
    assert ev.mean() == {name: ev[name] for name in expected}
    summary = ev.summary()
    assert summary.index.tolist() == ["ndcg@2", "recall@1"]
    row = summary.loc["recall@1"].drop(["ci_low", "ci_high"])
    assert row.to_dict() == {
        "mean": pytest.approx(1 / 3),
        "std": pytest.approx(np.std([1, 0, 0], ddof=1)),
        "interval": "bca",
        "random": pytest.approx(1 / 4),
        "random_se": 0.0,
        "lift": pytest.approx(4 / 3),
        "n_users": 3,
        "n_skipped": 1,
    }
    assert se.evaluate(LISTS, GAINS, "coverage@2").summary()["n_users"].tolist() == [3]


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


def test_one_user_has_no_spread():
    one = se.evaluate(se.Rankings.from_topk([[0]]), csr_matrix([[1]]), "mrr@1")
    assert np.isnan(one.summary()["std"]).all()
    assert json.loads(json.dumps(one.to_dict()))["metrics"]["mrr@1"] == {
        "mean": 1.0, "std": None, "ci_low": None, "ci_high": None, "interval": "none",
        "random": 1.0, "random_se": 0.0, "lift": 1.0, "n_users": 1, "n_skipped": 0,
    }  # fmt: skip


def test_nobody_to_evaluate():
    nothing = csr_matrix((4, 4)), csr_matrix((0, 4)), csr_matrix(([0.0], ([0], [1])), (4, 4))
    for truth, keep in product(nothing, ("values", "totals")):
        lists = LISTS if truth.shape[0] else se.Rankings.from_topk(np.empty((0, 2), int))
        with raises(InvalidDataError):
            se.evaluate(lists, truth, "ndcg@2", keep=keep).mean()


def shown(n_users=30, n_items=50, n=10):
    """Return lists of shown items, and which of these were clicked."""
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(n_items), (n_users, 1)), axis=1)[:, :n]
    clicked = (np.arange(n) % 3 == 0) * 1.0
    rows, gains = np.repeat(np.arange(n_users), n), np.tile(clicked, n_users)
    truth = csr_matrix((gains, (rows, items.ravel())), (n_users, n_items))
    return items, truth


@pytest.mark.parametrize("metric", ["auc", "auc@5", "gauc", "mean_rank", "percentile_rank"])
def test_warns_if_the_rest_of_the_catalogue_counts_as_ranked_below_shown_items(metric):
    items, truth = shown()
    lists = se.Rankings.from_topk(items, shape=truth.shape)
    with warns():
        se.evaluate(lists, truth, metric)


def test_does_not_warn_of_lists_that_are_no_lists_of_shown_items():
    items, truth = shown()
    lists = se.Rankings.from_topk(items, shape=truth.shape)
    own = csr_matrix((np.ones(items.size), truth.indices, truth.indptr), truth.shape)
    se.evaluate(lists, truth, ["auc(among=list)", "ndcg@5", "mrr"])
    se.evaluate(lists, truth, "auc", candidates=own)
    se.evaluate(lists, truth, se.Protocol("auc", judged_only=True))
    se.evaluate(lists.head(9), truth, "auc")  # which end at k, before a relevant item
    se.evaluate(se.Rankings.from_topk(items[:9], shape=(9, 50)), truth[:9], "auc")  # few users
    ranks_of_hits = csr_matrix(np.tile([2, 5] + [0] * 18, (30, 1)))
    se.evaluate(se.Rankings.from_positions(ranks_of_hits), ranks_of_hits > 0, "mean_rank")
    # Ranks of all unseen items, though most were seen.
    model, seen = se.Scorer(np.arange(30 * 50.0).reshape(30, 50)), csr_matrix(1 - own.toarray())
    se.evaluate(se.ranks(model, truth, train=seen), truth, "auc", train=seen)


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
    with raises(InvalidDataError):
        se.evaluate(lists, large, "err(max=1)@2")


@pytest.mark.parametrize("metric", ["ndcg@3", "ndcg(gain=exp)@3"])
def test_gains_too_small_to_sum(metric):
    lists = se.Rankings.from_topk([[0, 1, 2], [0, 1, 2]])

    def tiny(scale):
        return csr_matrix([[5.0, 1.0, 5e-324], np.array([0.25, 1.0, 0.5]) * scale])

    expected = se.evaluate(lists, csr_matrix([[5.0, 1.0, 0], [0.25, 1, 0.5]]), "ndcg@3")
    found = se.evaluate(lists, tiny(1e-306), "ndcg@3")
    np.testing.assert_allclose(found.per_user, expected.per_user, rtol=1e-15)
    for scale in (1e-310, 5e-324):
        with raises(InvalidDataError, row=1):
            se.evaluate(lists, tiny(scale), metric)


def test_means_and_ratios_of_the_largest_numbers():
    first = se.Rankings.from_topk([[0], [0]])
    assert se.evaluate(first, csr_matrix([[1.7e308], [1.7e308]]), "cg@1")["cg@1"] == 1.7e308
    spread = se.evaluate(first, csr_matrix([[1e200], [3.0]]), "cg@1")
    assert spread.summary().loc["cg@1", "std"] == 7.071067811865475e199
    lists, name = se.Rankings.from_topk([[1, 0]] * 20), "percentile_rank(average=micro)"
    ratio = se.evaluate(lists, csr_matrix([[1.7e307, 0.0]] * 20), name)
    assert ratio[name] == pytest.approx(1.0)


def test_train_of_other_items_is_refused():
    held = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    with raises(InvalidDataError):
        se.evaluate(held.assign(rank=1), held, "novelty@1", train=held.assign(item="sku:x"))


THREE = [[0, 1, 2], [2, 1, 0]]
JUDGED = csr_matrix(([1.0, 0.0], ([0, 0], [0, 1])), (1, 3))


@pytest.mark.parametrize("options", [{}, {"memory": 2**27}, {"keep": "totals"}])
@pytest.mark.parametrize(
    ("lists", "gains", "metrics", "value"),
    [
        (THREE, [[1, 0, 3], [0, 2, 0]], "utility@3", 0.0),  # 2 hits less 1 miss, 1 less 2
        ([[0, 2]], [[1, 0, 3]], "fcp@2", 0.0),
        ([[1, 2, 0]], [[1, 0, 0]], "auc", 0.0),
        ([[1, 0]], JUDGED, "bpref", 0.0),
        ([[1, 2, 0]], [[1, 0, 0]], "auc, mrr@1", 0.0),
        (THREE, [[0, 0, 0, 1], [0, 0, 0, 2]], "utility@3", -3.0),
        (THREE, [[0, 0, 1], [1, 0, 0]], "ndcg@2, coverage@3", 0.0),
    ],
)
def test_warns_of_lists_without_hits_whatever_the_metrics(lists, gains, metrics, value, options):
    gains = csr_matrix(gains, dtype=float)
    ranked = se.Rankings.from_topk(lists, shape=gains.shape)
    cutoff = int(metrics[5]) if metrics.startswith("ndcg") else 3
    hits = se.evaluate(ranked, gains, f"num_rel_ret@{cutoff}").values(f"num_rel_ret@{cutoff}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ev = se.evaluate(ranked, gains, metrics, **options)
    assert ev[ev.request.metrics[0]] == value
    said = [warning for warning in caught if "no list contains" in str(warning.message)]
    assert len(said) == (not hits.any())


def test_many_users_without_a_list_whose_values_are_not_kept():
    lists = se.Rankings.from_topk([[0]], shape=(30, 2))
    with warns():
        ev = se.evaluate(lists, csr_matrix(np.ones((30, 2))), "mrr@1", keep="totals")
    assert ev["mrr@1"] == 1 / 30
