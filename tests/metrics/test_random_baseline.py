"""The random baseline: exact where it says so, within its standard error elsewhere; its bits."""

import math
from contextlib import suppress
from itertools import permutations

import numpy as np
import oracle
import pandas as pd
import pytest
from cases import of_sets, to_csr
from hypothesis import given, settings
from hypothesis import strategies as st
from public_calls import spellings
from raising import warns
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError
from sparse_eval.metrics import CONVENTIONS
from sparse_eval.metrics.random_baseline import is_exact
from sparse_eval.metrics.request import Request

N_USERS, N_ITEMS = 60, 25


def many_users():
    rng = np.random.default_rng(5)
    train = rng.random((N_USERS, N_ITEMS)) < rng.random(N_ITEMS) * 0.6
    relevant = (rng.random((N_USERS, N_ITEMS)) < 0.2) & ~train
    relevant[:, 0] |= ~relevant.any(axis=1)
    train &= ~relevant
    gains = relevant * rng.integers(1, 4, relevant.shape)
    lists = se.Rankings.from_scores(rng.random(train.shape), k=5, seen=csr_matrix(train))
    return lists, csr_matrix(gains), csr_matrix(train)


EXACT = [
    row
    for row in oracle.spelled(oracle.METRICS)
    if all(is_exact(plan) for plan in Request.parse(se.Protocol(row[0])).plans)
]


def test_few_expectations_have_to_be_estimated():
    exact = {name for _, name, *_ in EXACT}
    estimated = {name for name, _ in oracle.METRICS} - exact
    assert {"ndcg", "precision", "recall", "mrr", "map", "mar", "fcp", "auc", "rbp"} <= exact
    assert "err" in estimated


@st.composite
def users(draw):
    n_candidates = draw(st.integers(1, 5))
    items = st.integers(0, n_candidates - 1)
    relevant = draw(st.dictionaries(items, st.sampled_from([0.0, 1.0, 2.0, 4.0])))
    return n_candidates, relevant | {draw(items): 1.0}, draw(st.integers(0, n_candidates))


@settings(max_examples=25)
@given(users())
def test_expectations_are_means_over_all_orders(user):
    n_candidates, relevant, length = user
    n_items, seen = n_candidates + 2, {n_candidates, n_candidates + 1}
    context = oracle.Context(n_items=n_items, seen=seen, largest_gain=max(relevant.values()))
    ev = se.evaluate(
        to_csr([{item: item + 1 for item in range(length)}], np.int64, n_items),
        to_csr([relevant], np.float64, n_items),
        [spelling for spelling, *_ in EXACT],
        train=of_sets([seen], n_items),
    )
    assert (ev.summary()["random_se"] == 0).all()
    for spelling, name, options, k in EXACT:
        if k is None and name not in oracle.NO_CUTOFF and length < n_candidates:
            continue  # the random list is as long as the user's own, and the oracle's is full
        expected = oracle.expected_at_random(
            name, options, k, range(n_candidates), relevant, context
        )
        if not math.isnan(expected) and not math.isnan(ev[spelling]):
            found = ev.random(spelling).mean
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-15), spelling


@pytest.mark.parametrize("names", ["recall@2,ndcg@2,fcp@2,map@2", "err@2,jaccard@2"])
def test_users_who_count_zero_do_so_at_random_too(names):
    lists = se.Rankings.from_topk([[0, 1], [3, 2], [2, 1]], shape=(3, 5))
    relevant = csr_matrix([[1, 0, 0, 2, 0], [0, 1, 0, 0, 0], [0] * 5])
    left_out = se.evaluate(lists, relevant, names).summary()
    zero = se.evaluate(lists, relevant, se.Protocol(names, no_relevant="zero")).summary()
    scale = (left_out["n_users"] / zero["n_users"]).to_numpy()
    assert zero["random"].to_numpy() == pytest.approx(left_out["random"].to_numpy() * scale)
    assert (zero["n_users"] == 3 - (left_out["n_users"].max() - left_out["n_users"])).all()


def test_shown_items_are_candidates_where_they_are_hits():
    shown = to_csr([{0: 1, 1: 0, 2: 0, 3: 0}], float, 6)
    lists, names = se.Rankings.from_topk([[0, 4]]), ["precision@2", "jaccard@2"]
    ev = se.evaluate(lists, shown, names, train=of_sets([{1, 2}], 6), convention="mind-notebook")
    assert ev.random("precision@2").mean == pytest.approx(4 / 6)
    assert ev.random("jaccard@2").mean > 0
    assert ev.explain(0)["cumulative"].iloc[1] == 1.0


def test_who_has_seen_everything_is_left_out_of_the_expectation():
    lists = se.Rankings.from_topk([[0, 1], [1, 2]], shape=(2, 4))
    train = csr_matrix([[1, 1, 1, 1], [1, 0, 0, 0]])
    names = ["popularity@2", "novelty@2", "diversity@2"]
    summary = se.evaluate(lists, csr_matrix(np.eye(2, 4)), names, train=train).summary()
    assert summary.loc["popularity@2", "random"] == pytest.approx(1.0)
    assert summary["random"].notna().all()


def test_a_metric_that_is_not_always_defined_is_estimated_where_it_is():
    lists, gains, train = many_users()
    se.register_metric("share", "share of hits at rank 1", uses=["hits"])(
        lambda s: s.hits_within(np.ones(len(s.hits), int)) / s.hits
    )
    row = se.evaluate(lists, gains, "share@3", train=train).summary().iloc[0]
    assert row["random"] == pytest.approx(1 / 3, abs=5 * row["random_se"])
    # ten draws of a share among at most 60 users, whose deviation is below 1 / 2
    assert 0.002 < row["random_se"] < 0.06


def spelled(convention):
    """Every metric with every choice of every option, as far as the convention defines it."""
    found = []
    for name in spellings():
        for metric in (f"{name}@4", name):
            with suppress(InvalidMetricError):
                se.Protocol(metric, convention=convention)
                found.append(metric)
                break
    return found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*not candidates for their users")
@pytest.mark.parametrize(
    ("among", "convention"),
    [
        (None, "standard"),
        ("of each user", "standard"),
        ("of all", "standard"),
        (None, "lenskit"),
        (None, "rectools"),
        (None, "irspack"),
    ],
)
def test_random_lists_scatter_around_the_expectation(among, convention):
    _, gains, train = many_users()
    rng = np.random.default_rng(9)
    pool = train.toarray() == 0
    more = {"train": train}
    if among == "of all":
        more["candidates"] = np.arange(0, N_ITEMS, 2)
        pool[:, 1::2] = False
    elif among:
        pool &= rng.random(pool.shape) < 0.6
        more["candidates"] = csr_matrix(pool)
    has_zeros = CONVENTIONS[convention].zeros != "error"
    stored = pool & ((gains.toarray() > 0) | (rng.random(pool.shape) < 0.2 * has_zeros))
    gains = csr_matrix((gains.toarray()[stored], np.nonzero(stored)), pool.shape)
    more["items"] = se.ItemData(
        vectors=rng.normal(size=(N_ITEMS, 4)),
        groups=np.arange(N_ITEMS) % 3,
        propensity=np.linspace(0.1, 1, N_ITEMS),
    )
    protocol = se.Protocol(spelled(convention), convention=convention)
    draws = []
    for _ in range(30):
        lists = se.Rankings.from_scores(rng.random(pool.shape), seen=csr_matrix(~pool))
        ev = se.evaluate(lists, gains, protocol, **more)
        draws.append(list(ev.mean().values()))
    means, errors = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / math.sqrt(30)
    summary = ev.summary()
    spread = np.hypot(errors, summary["random_se"].to_numpy())
    off = np.abs(summary["random"].to_numpy() - means)
    far = ~(off <= 4.5 * spread + 1e-6) & ~np.isnan(means)
    assert not far.any(), list(zip(summary.index[far], off[far], spread[far], strict=True))


def test_what_was_seen_is_drawn_where_it_may_be_recommended_again():
    clicks = se.datasets.synthetic(n_users=60, n_items=40, seed=1)
    holdout = se.split.random(clicks, seed=1)
    model = se.baselines.popularity(holdout)
    with warns():
        again = se.evaluate_model(model, holdout, se.Protocol("gini@5", filter_seen=False))
    every = se.evaluate(se.recommend(model, holdout, 5), holdout.validation, "gini@5")
    assert again.random("gini@5") == every.random("gini@5")
    new = se.evaluate_model(model, holdout, "gini@5")
    assert new.random("gini@5") != every.random("gini@5")


def test_random_lists_are_as_long_as_those_of_the_users():
    lists = se.Rankings.from_topk([[4], [-1], [-1]], shape=(3, 10))
    row = se.evaluate(lists, csr_matrix(np.eye(3, 10)), "gini").summary().loc["gini"]
    assert row["mean"] == row["random"] == pytest.approx(0.9)  # one item, whichever it is
    assert row["random_se"] == 0


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("convention", ["rectools", "irspack", "recsys2019"])
def test_ideal_lists_of_random_ones_are_those_of_the_convention(convention, k):
    """Ideal lists that are longer than the catalogue, as long as the list, or not cut."""
    truth, name = csr_matrix([[1.0, 0.0, 1.0]]), f"ndcg@{k}"
    found = [
        se.evaluate(se.Rankings.from_topk([order[:k]]), truth, name, convention=convention)
        for order in map(list, permutations(range(3)))
    ]
    expected = math.fsum(ev[name] for ev in found) / len(found)
    assert found[0].random(name).mean == pytest.approx(expected, rel=1e-12)
    with warns():
        ev = se.evaluate(
            se.Rankings.from_topk([[0]], shape=(1, 3)), truth, name,
            convention=convention, candidates=[0],
        )  # fmt: skip
    assert ev.random(name).mean == pytest.approx(ev[name], rel=1e-12)


def test_the_popularity_ranking():
    train = csr_matrix([[1, 0, 1, 0], [1, 0, 0, 1], [0, 0, 0, 1]])
    lists = se.Rankings.from_popularity(train, k=2)
    assert lists.to_positions().toarray().tolist() == [[0, 2, 0, 1], [0, 2, 1, 0], [1, 0, 2, 0]]
    assert se.Rankings.from_popularity(train, k=9).lengths.tolist() == [2, 2, 3]


def test_lists_without_training_data_and_cutoffs_are_drawn_too(monkeypatch):
    lists, gains, train = many_users()
    names = ["gini", "entropy@3", "coverage", "personalization@3"]
    summary = se.evaluate(lists, gains, names).summary()
    assert summary["random"].notna().all()
    assert summary.loc["gini", "random_se"] > 0
    # every list is of five of 25 items
    assert summary.loc["coverage", "random"] == pytest.approx(1 - 0.8**N_USERS)
    alone = se.evaluate(lists, csr_matrix(gains[:1]), "personalization@3").summary()
    assert math.isnan(alone.loc["personalization@3", "random"])
    monkeypatch.setattr("sparse_eval.metrics.random_baseline._MOST_ITEMS", 10)
    too_long = se.evaluate(lists, gains, ["gini@3", "coverage@3"], train=train).summary()
    assert too_long["random"].isna().tolist() == [True, False]


#: Metrics whose expectation is unknown, of statistics and of lists, with a cut-off and without.
DRAWN = ["err@3", "jaccard@4", "err", "diversity@4", "gini@4", "entropy@3", "gini"]


LABELS = np.array([f"u{number * 7919 % 1000:03}" for number in range(N_USERS)])


def random_of(names, order=slice(None), labels=LABELS, **options):
    """Return the random baselines of users in some order, under their labels."""
    lists, gains, train = many_users()
    ev = se.evaluate(
        se.Rankings.from_positions(lists.to_positions()[order]),
        gains[order]
        if labels is None
        else se.Relevance.from_csr(gains[order], users=labels[order]),
        names,
        train=train[order],
        **options,
    )
    return ev.summary()[["random", "random_se"]]


@pytest.mark.long
@settings(max_examples=8)
@given(st.permutations(range(N_USERS)), st.integers(1, 4))
def test_neither_order_nor_threads_change_a_bit(order, threads):
    names = [*DRAWN, "ndcg@4", "recall(average=micro)@3", "mrr"]
    found = random_of(names, np.array(order), num_threads=threads)
    pd.testing.assert_frame_equal(found, random_of(names), check_exact=True)


def test_labels_decide_what_is_drawn():
    numbered = random_of(DRAWN, labels=None)["random"]
    for users, same in ((np.arange(N_USERS), True), (LABELS, False), (np.arange(1, 61), False)):
        equal = random_of(DRAWN, labels=users)["random"] == numbered
        assert equal.tolist() == [same] * len(DRAWN)
