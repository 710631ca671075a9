"""The random baseline: exact where it says so, within its standard error elsewhere; its bits."""

import math
import warnings
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import oracle
import pandas as pd
import pytest
from cases import of_sets, to_csr
from evaluations import random_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from public_calls import spelled
from raising import warns
from scipy.sparse import csr_matrix

import sparse_eval as se
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
    lists = se.Rankings.from_scores(rng.random(train.shape), k=5, train=csr_matrix(train))
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


class User(NamedTuple):
    """What is known of a user, and the rules."""

    n_items: int
    stored: dict  # gains by item, zeros too
    seen: set
    listed: list
    candidates: set | None
    rules: dict
    by_model: bool


@st.composite
def users(draw):
    n_items = draw(st.integers(1, 6))
    item = st.integers(0, n_items - 1)
    gains = st.sampled_from([0.0, 1.0, *draw(st.sampled_from([[], [2.0, 4.0]]))])
    judged_only = draw(st.booleans())
    return User(
        n_items,
        draw(st.dictionaries(item, gains)) | {draw(item): 1.0},
        draw(st.sets(item)),
        draw(st.lists(item, unique=True)),
        None if judged_only else draw(st.none() | st.sets(item, min_size=1)),
        {"judged_only": judged_only, "filter_seen": draw(st.booleans())},
        draw(st.booleans()),
    )


def evaluated(user, metrics):
    """Evaluate the list of a user, or a model, whose scores do not matter."""
    protocol = se.Protocol(metrics, **user.rules)
    train, truth = of_sets([user.seen], user.n_items), to_csr([user.stored], float, user.n_items)
    among = None if user.candidates is None else of_sets([user.candidates], user.n_items)
    if user.by_model:
        model = se.Scorer(np.arange(user.n_items)[None] * 1.0)
        return se.evaluate_model(model, train, truth, protocol, candidates=among)
    lists = to_csr([{item: rank for rank, item in enumerate(user.listed, 1)}], int, user.n_items)
    return se.evaluate(lists, truth, protocol, train=train, candidates=among)


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(users())
def test_expectations_are_means_over_all_lists_of_unseen_candidates(user):
    excluded = user.seen if user.rules["filter_seen"] else set()
    judged = set(user.stored) if user.rules["judged_only"] else None
    relevant = {item for item, gain in user.stored.items() if gain > 0}
    assume(user.candidates is None or relevant & user.candidates)
    assume(not user.by_model or relevant - excluded)
    # Without a cut-off, the random list is as long as the user's own.
    length = len([item for item in user.listed if judged is None or item in judged])
    context = oracle.Context(
        n_items=user.n_items,
        seen=excluded,
        largest_gain=max(user.stored.values()),
        among=judged or user.candidates,
    )
    ev = evaluated(user, [spelling for spelling, *_ in EXACT])
    for spelling, name, options, k in EXACT:
        is_whole = k is not None or user.by_model
        expected = oracle.expected_at_random(
            name, options, k, user.stored, context, None if is_whole else length
        )
        found, error = random_of(ev, spelling)
        assert error == 0
        if not math.isnan(ev[spelling]) and not (name == "fcp" and math.isnan(expected)):
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-14, nan_ok=True), spelling


#: The rules of an evaluation, and the items that lists can hold.
RULES = {
    "plain": ({}, range(5)),
    "candidates": ({}, (0, 1, 3, 4)),
    "judged": ({"judged_only": True}, None),
    "again": ({"filter_seen": False}, range(5)),
    "candidates again": ({"filter_seen": False}, (0, 1, 3, 4)),
}

#: The seen items and the gains of some users.
KINDS = [
    ({0, 1}, {0: 1.0, 2: 1.0, 3: 1.0}),  # a relevant item was seen
    ({2}, {0: 2.0, 1: 1.0, 2: 3.0}),
    (set(), {4: 1.0}),
    ({3, 4}, {3: 1.0, 0: 1.0}),
]
WITH_ZEROS = [(seen, {**gains, 4: 0.0, 1: 0.0} | gains) for seen, gains in KINDS]


def every_list(convention, rule):
    """Return a user for each list of two items that a kind of user can get: lists, data, options.

    The mean over these users is the expectation over random lists.
    """
    options, pool = RULES[rule]
    kinds = KINDS if CONVENTIONS[convention].zeros == "error" else WITH_ZEROS
    lists, seen, stored, scores = [], [], [], []
    for known, gains in kinds:
        excluded = known if options.get("filter_seen", True) else set()
        eligible = [item for item in (gains if pool is None else pool) if item not in excluded]
        for order in permutations(eligible):
            lists.append([*order[:2], -1, -1, -1][:5])
            scores.append([-order.index(i) if i in order else -9.0 for i in range(5)])
            seen.append(known)
            stored.append(gains)
    items = se.ItemData(
        groups=np.arange(5) % 3, vectors=np.eye(5, 3) + 1, propensity=np.linspace(0.2, 1, 5)
    )
    more = {"item_data": items} | ({"candidates": np.array(pool)} if "candidates" in rule else {})
    rankings = se.Rankings.from_topk(lists, shape=(len(lists), 5))
    sides = of_sets(seen, 5), to_csr(stored, float, 5)
    return rankings, se.Scorer(np.array(scores)), *sides, {"convention": convention} | options, more


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("convention", "rule"),
    [
        *((convention, "plain") for convention in CONVENTIONS),
        *product(("standard", "implicit", "mind-notebook"), list(RULES)[1:]),
    ],
)
def test_all_lists_together_are_as_good_as_random_ones(convention, rule, monkeypatch):
    monkeypatch.setattr("sparse_eval.metrics.random_baseline.DRAWS", 20)
    rankings, model, train, truth, rules, more = every_list(convention, rule)
    protocol = se.Protocol(spelled(convention, "@2") + spelled(convention, ""), **rules)
    assert_as_random(se.evaluate(rankings, truth, protocol, train=train, **more))
    protocol = se.Protocol(spelled(convention, "@2"), **rules)
    assert_as_random(se.evaluate_model(model, train, truth, protocol, **more))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("convention", ["standard", "implicit", "mind-notebook"])
def test_auc_counts_misses_that_no_list_can_hold(convention):
    """The catalogue of implicit has seen items, and a zero is a hit of the notebook on MIND."""
    rankings, model, train, truth, rules, more = every_list(convention, "plain")
    names = ["auc(weights=ips)", "auc(weights=snips)", "auc", "gauc", "percentile_rank"]
    protocol = se.Protocol(names, **rules)
    assert_as_random(se.evaluate(rankings, truth, protocol, train=train, **more))
    assert_as_random(se.evaluate_model(model, train, truth, protocol, **more))


def assert_as_random(ev):
    """Compare means, of metrics of single users, with the expectations of random lists."""
    for name, plan in zip(ev.keys(), ev.request.plans, strict=True):
        found, error = random_of(ev, name)
        if plan.definition.per_user:
            apart = 6 * error + 1e-12
            assert found == pytest.approx(ev[name], rel=1e-10, abs=apart, nan_ok=True), name


@pytest.mark.parametrize("rule", RULES)
def test_random_lists_of_all_users_are_drawn_from_unseen_candidates(rule):
    options, pool = RULES[rule]
    more = {"candidates": np.array(pool)} if "candidates" in rule else {}
    kinds = [({0, 1}, {0: 1.0, 2: 1.0, 3: 0.0}), ({3}, {3: 2.0, 1: 1.0, 4: 0.0})]
    sides = of_sets([kind[0] for kind in kinds], 5), to_csr([kind[1] for kind in kinds], float, 5)
    names = ["coverage@2", "user_coverage@2", "personalization@2"]
    found = []
    choices = [
        [item for item in (gains if pool is None else pool) if "again" in rule or item not in seen]
        for seen, gains in kinds
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for lists in product(*(permutations(items, 2) for items in choices)):
            rankings = se.Rankings.from_topk(lists, shape=(2, 5))
            protocol = se.Protocol(names, **options)
            ev = se.evaluate(rankings, sides[1], protocol, train=sides[0], **more)
            found.append(list(ev.mean().values()))
    expected = [random_of(ev, name).mean for name in names]
    assert expected == pytest.approx(np.mean(found, axis=0), rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*(in train|were seen)")
def test_own_lists_do_not_matter_to_random_ones():
    """Neither seen items that are listed nor seen items that are relevant are candidates."""
    train = csr_matrix([[1] * 5 + [0] * 5] * 3)
    truth = csr_matrix([[0, 0, 0, 1, 2, 1, 0, 0, 0, 0]] * 3)
    names = ["precision@5", "ndcg@3", "auc", "mean_rank", "hit_rate@2", "err@3", "gini@3"]
    protocols = se.Protocol(names), se.Protocol(names, convention="implicit")
    for protocol in protocols:
        found = [
            se.evaluate(
                se.Rankings.from_topk([items] * 3, shape=(3, 10)), truth, protocol, train=train
            ).summary()[["random", "random_se"]]
            for items in ([5, 6, 7, 8, 9], [0, 1, 2, 3, 5])
        ]
        pd.testing.assert_frame_equal(*found, check_exact=True)
        assert found[0]["random"].iloc[0] == pytest.approx(
            0.2 if protocol is protocols[0] else 1 / 3
        )
    model = se.Scorer(np.random.default_rng(0).random((3, 10)))
    for options in ({}, {"memory": 1 << 28}, {"keep": "totals"}):
        row = se.evaluate_model(model, train, truth, names[0], **options).summary().iloc[0]
        assert row[["mean", "random", "lift"]].tolist() == pytest.approx([0.2, 0.2, 1.0])


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
    assert random_of(ev, "precision@2").mean == pytest.approx(2 / 4)  # of items 0, 3, 4 and 5
    assert random_of(ev, "jaccard@2").mean > 0
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
    more["item_data"] = se.ItemData(
        vectors=rng.normal(size=(N_ITEMS, 4)),
        groups=np.arange(N_ITEMS) % 3,
        propensity=np.linspace(0.1, 1, N_ITEMS),
    )
    protocol = se.Protocol(spelled(convention, "@4", ""), convention=convention)
    draws = []
    for _ in range(30):
        lists = se.Rankings.from_scores(rng.random(pool.shape), train=csr_matrix(~pool))
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
    assert random_of(again, "gini@5") == random_of(every, "gini@5")
    new = se.evaluate_model(model, holdout, "gini@5")
    assert random_of(new, "gini@5") != random_of(every, "gini@5")


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
    assert random_of(found[0], name).mean == pytest.approx(expected, rel=1e-12)
    with warns():
        ev = se.evaluate(
            se.Rankings.from_topk([[0]], shape=(1, 3)), truth, name,
            convention=convention, candidates=[0],
        )  # fmt: skip
    assert random_of(ev, name).mean == pytest.approx(ev[name], rel=1e-12)


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


def baselines_of(names, order=slice(None), labels=LABELS, **options):
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
    found = baselines_of(names, np.array(order), num_threads=threads)
    pd.testing.assert_frame_equal(found, baselines_of(names), check_exact=True)


def test_labels_decide_what_is_drawn():
    numbered = baselines_of(DRAWN, labels=None)["random"]
    for users, same in ((np.arange(N_USERS), True), (LABELS, False), (np.arange(1, 61), False)):
        equal = baselines_of(DRAWN, labels=users)["random"] == numbered
        assert equal.tolist() == [same] * len(DRAWN)
