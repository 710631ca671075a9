"""The random baseline's bits: what is exact never changes, what is drawn depends on users alone."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import N_ITEMS, N_USERS, many_users

import sparse_eval as se
from sparse_eval.metrics import random_baseline

#: Metrics whose expectation is unknown, of statistics and of lists, with a cut-off and without.
DRAWN = ["err@3", "jaccard@4", "err", "diversity@4", "gini@4", "entropy@3", "gini"]

OF_RANDOM = ["random", "random_se"]


def random_of(ev: se.Evaluation, names: list[str]) -> pd.DataFrame:
    return ev.summary().loc[names, OF_RANDOM]


def same_random(found: se.Evaluation, whole: se.Evaluation, names: list[str]) -> None:
    pd.testing.assert_frame_equal(
        random_of(found, names), random_of(whole, names), check_exact=True
    )


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


@settings(max_examples=8)
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
