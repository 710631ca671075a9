"""The random baseline's bits: what is exact never changes, what is drawn depends on users alone."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import N_ITEMS, N_USERS, many_users
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.metrics import random_baseline

#: Expectations of `many_users` as an earlier implementation computed them.
EXACT = {
    "cg@4": "0x1.b91b9fa45f27cp+0",
    "dcg@4": "0x1.1a7c777c25aadp+0",
    "idcg@4": "0x1.3f791a5403154p+2",
    "ndcg@4": "0x1.b108342d1b87bp-3",
    "precision@4": "0x1.ad084ccc68e6fp-3",
    "recall@4": "0x1.dcc5e000f29fcp-3",
    "hit_rate@4": "0x1.3772c1b030dbbp-1",
    "f1@4": "0x1.a7dc3eae8fd15p-3",
    "mrr@4": "0x1.720d008dfd8aap-2",
    "arhr@4": "0x1.bee8a554ed45ep-2",
    "map@4": "0x1.1d0876157556ep-3",
    "mar@4": "0x1.ab74eaa269085p-4",
    "r_precision@4": "0x1.7453281e005adp-3",
    "fcp@4": "0x1.0000000000000p-1",
    "auc@4": "0x1.0000000000000p-1",
    "rbp@4": "0x1.fa99fad6555dbp-4",
    "mean_rank": "0x1.2800000000000p+3",
    "percentile_rank": "0x1.0000000000000p-1",
    "coverage@4": "0x1.ffda39138449dp-1",
    "user_coverage@4": "0x1.0000000000000p+0",
    "popularity@4": "0x1.e12c9cceebc69p+3",
    "novelty@4": "0x1.4211c384af30cp+1",
    "personalization@4": "0x1.a88fc2dcdc0f0p-1",
    "serendipity@4": "0x1.44b9719720d2ep-3",
    "ndcg": "0x1.de63ce60d3c45p-3",
    "recall": "0x1.29fbac0097a3ep-2",
    "map": "0x1.44321aeb0e660p-3",
    "mrr": "0x1.82c821c392edbp-2",
    "precision(average=micro)@3": "0x1.ad084ccc68e6fp-3",
    "recall(average=micro)@4": "0x1.d62c2a149d0b2p-3",
    "ndcg(gain=exp)@3": "0x1.660e98ba10db7p-3",
    "coverage": "0x1.fffae5b602843p-1",
    "personalization@2": "0x1.d447e16e6e078p-1",
}

#: Metrics whose expectation is unknown, of statistics and of lists, with a cut-off and without.
DRAWN = ["err@3", "jaccard@4", "err", "diversity@4", "gini@4", "entropy@3", "gini"]
DRAWN_PER_USER = DRAWN[:4]

OF_RANDOM = ["random", "random_se"]


def random_of(ev: se.Evaluation, names: list[str]) -> pd.DataFrame:
    return ev.summary().loc[names, OF_RANDOM]


def same_random(found: se.Evaluation, whole: se.Evaluation, names: list[str]) -> None:
    pd.testing.assert_frame_equal(
        random_of(found, names), random_of(whole, names), check_exact=True
    )


def test_exact_expectations_have_the_bits_of_an_earlier_version() -> None:
    lists, gains, train, _ = many_users()
    summary = se.evaluate(lists, gains, list(EXACT), train=train).summary()
    assert [value.hex() for value in summary["random"].tolist()] == list(EXACT.values())
    assert (summary["random_se"] == 0).all()


def test_drawn_expectations_are_near_the_mean_of_many_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lists, gains, train, _ = many_users()
    few = se.evaluate(lists, gains, DRAWN, train=train).summary()
    monkeypatch.setattr(random_baseline, "DRAWS", 600)
    many = se.evaluate(lists, gains, DRAWN, train=train).summary()
    off = np.abs(few["random"] - many["random"])
    assert (few["random_se"] > 0).all()
    assert (off <= 4.5 * np.hypot(few["random_se"], many["random_se"])).all()
    # the standard error of ten draws is itself uncertain, by a factor of 2.5 at most
    ratio = few["random_se"] / many["random_se"] / math.sqrt(60)
    assert ((ratio > 1 / 2.5) & (ratio < 2.5)).all(), ratio


def test_drawn_ranks_give_the_expectation_over_all_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    lists, gains, train, _ = many_users()
    monkeypatch.setattr(random_baseline, "DRAWS", 600)
    row = se.evaluate(lists, gains, "jaccard@4", train=train).summary().iloc[0]
    expected = []
    for user in range(N_USERS):
        n_relevant = int((gains[user].toarray() > 0).sum())
        n_candidates = N_ITEMS - train[user].nnz
        k = min(4, n_candidates)
        expected.append(
            sum(
                math.comb(n_relevant, hits)
                * math.comb(n_candidates - n_relevant, k - hits)
                / math.comb(n_candidates, k)
                * hits
                / (k + n_relevant - hits)
                for hits in range(1, min(k, n_relevant) + 1)
            )
        )
    assert row["random"] == pytest.approx(np.mean(expected), abs=4.5 * row["random_se"])
    assert row["random_se"] < 0.02 * row["random"]


LABELS = np.array([f"u{number * 7919 % 1000:03}" for number in range(N_USERS)])


def labelled(rows: np.ndarray, names: list[str], **options: int) -> se.Evaluation:
    """Evaluate some users, in some order, under their own labels."""
    lists, gains, train, _ = many_users()
    ids = lists.items.reshape(N_USERS, -1)[rows]  # of five items each
    return se.evaluate(
        se.Rankings.from_topk(ids, shape=(len(rows), N_ITEMS)),
        se.Relevance.from_csr(gains[rows], users=LABELS[rows]),
        names,
        train=train[rows],
        **options,
    )


@settings(max_examples=20)
@given(st.permutations(range(N_USERS)), st.integers(1, 4))
def test_neither_order_nor_threads_change_a_bit(order: list[int], threads: int) -> None:
    names = [*DRAWN, "ndcg@4", "recall(average=micro)@3", "mrr"]
    whole = labelled(np.arange(N_USERS), names)
    same_random(labelled(np.array(order), names, num_threads=threads), whole, names)


def test_labels_decide_what_is_drawn() -> None:
    lists, gains, train, _ = many_users()
    numbered = se.evaluate(lists, gains, DRAWN, train=train)
    for users, same in ((range(N_USERS), True), (LABELS, False), (range(1, N_USERS + 1), False)):
        relevance = se.Relevance.from_csr(gains, users=users)
        found = se.evaluate(lists, relevance, DRAWN, train=train)
        equal = random_of(found, DRAWN)["random"] == random_of(numbered, DRAWN)["random"]
        assert equal.tolist() == [same] * len(DRAWN)


def test_metrics_evaluated_beside_others_change_no_bit() -> None:
    """A longer list is drawn for all of them; its first items are those of a shorter one."""
    lists, gains, train, _ = many_users()
    names = ["err@3", "jaccard@2", "diversity@2", "gini@3"]
    together = se.evaluate(lists, gains, [*names, "err@9", "diversity@9"], train=train)
    for name in names:
        same_random(se.evaluate(lists, gains, name, train=train), together, [name])


@given(st.integers(1, 12), st.integers(0, 6), st.integers(1, 8), st.data())
def test_expectations_follow_the_formulas(
    n_unseen: int, n_seen: int, k: int, data: st.DataObject
) -> None:
    """Of a user with n relevant items among C candidates: n/C, k/C, (Σg/C)·Σ discounts, …"""
    n = data.draw(st.integers(1, n_unseen))
    gains = data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    n_items = n_unseen + n_seen
    relevant = csr_matrix((np.array(gains, float), ([0] * n, range(n))), shape=(1, n_items))
    seen = csr_matrix((np.ones(n_seen), ([0] * n_seen, range(n_unseen, n_items))), (1, n_items))
    lists = se.Rankings.from_topk([list(range(n_unseen))[:k]], shape=(1, n_items))
    names = [f"{name}@{k}" for name in ("precision", "recall", "dcg", "hit_rate", "mrr")]
    random = se.evaluate(lists, relevant, names, train=seen).summary()["random"].tolist()
    deepest = min(k, n_unseen)
    without_hit = [
        math.prod((n_unseen - n - j) / (n_unseen - j) for j in range(rank))
        for rank in range(deepest + 1)
    ]
    assert random == pytest.approx(
        [
            n / n_unseen * deepest / k,
            deepest / n_unseen,
            sum(gains) / n_unseen * sum(1 / math.log2(r + 1) for r in range(1, deepest + 1)),
            1 - without_hit[deepest],
            sum((without_hit[r - 1] - without_hit[r]) / r for r in range(1, deepest + 1)),
        ],
        rel=1e-12,
    )
