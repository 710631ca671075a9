"""Evaluations of blocks of users: merged in any way, they are the evaluation of all users."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from evaluations import MIXED, as_text, part_of, some, without_values
from hypothesis import given, settings
from hypothesis import strategies as st
from merge_cases import LARGEST, N_ITEMS, every_metric, same_bits
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.inputs.axes import Axis
from sparse_eval.results.counts import CandidateCounts, Retrieval, SeenCounts
from sparse_eval.results.partial_results import merge_parts


@pytest.mark.long
@settings(max_examples=25)
@given(st.data(), st.integers(1, 14), st.integers(0, 2**32 - 1), st.sampled_from([2, 4]))
def test_any_cut_in_any_order_with_repetitions_gives_the_same_bits(data, n_users, seed, n_gains):
    rng = np.random.default_rng(seed)
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (n_users, 1)), axis=1)[:, :6]
    ids[np.arange(6) >= rng.integers(0, 7, n_users)[:, None]] = -1
    gains = rng.integers(0, n_gains, (n_users, N_ITEMS)) * 1.0
    gains[rng.random(n_users) < 0.2] = 0
    gains[0, 0] = 1
    gains = csr_matrix(gains)
    metrics = [name for name in every_metric() if name not in LARGEST]
    inner = data.draw(st.sets(st.integers(0, n_users)))
    ends = list(pairwise(sorted({0, n_users} | inner)))

    def evaluate(a, b, users):
        lists = se.Rankings.from_topk(ids[a:b], shape=(b - a, N_ITEMS))
        return se.evaluate(lists, se.Relevance.from_csr(gains[a:b], users=users), metrics)

    blocks = [evaluate(a, b, range(a, b)) for a, b in ends]
    blocks += data.draw(st.lists(st.sampled_from(blocks), max_size=3))
    while len(blocks) > 1:  # merge any two, until one is left
        a, b = (blocks.pop(data.draw(st.integers(0, len(blocks) - 1))) for _ in range(2))
        blocks.append(a.merge(b))
    same_bits(blocks[0].merge() if len(ends) == 1 else blocks[0], evaluate(0, n_users, None))


def test_a_block_in_which_no_user_counts_is_an_empty_part(tmp_path):
    train = csr_matrix((6, N_ITEMS))
    gains = csr_matrix(([1.0, 2.0, 1.0], ([0, 1, 5], [3, 4, 0])), (6, N_ITEMS))
    model = se.Scorer(-np.arange(6.0 * N_ITEMS).reshape(6, N_ITEMS))
    metrics = ["ndcg@5", "precision(average=micro)@2", "err@3"]
    whole = se.evaluate_model(model, train, gains, metrics)
    for options in ({}, {"memory": 1 << 28}, {"keep": "totals"}):
        parts = [
            se.evaluate_model(model, train, gains, metrics, users=users, **options)
            for users in ([0, 1], [2, 3, 4], [5])
        ]
        empty = parts[1]
        assert (empty.n_users, empty._part.n_users) == (0, 3)
        assert "0 users" in repr(empty)
        for read in (empty.mean, empty.summary, empty.to_dict, empty.merge().mean):
            with raises(InvalidDataError):
                read()
        with raises(InvalidDataError):
            empty["err@3"]
        parts[1] = se.Evaluation.load(empty.save(tmp_path))
        for order in (parts, parts[::-1]):
            merged = order[0].merge(*order[1:])
            assert merged.mean() == whole.mean()
            assert (merged.n_users, merged.to_dict()["n_skipped"]) == (3, 3)


def test_says_what_differs():
    one = some()
    train = csr_matrix(np.eye(10, N_ITEMS))
    novel = {"metrics": ["novelty@3"]}
    graded = se.Relevance.from_csr(csr_matrix([[3]]), users=[99])
    wide = replace(
        some(first=10)._block.aligned.relevance, shape=(10, 20), users=Axis.of(range(10, 20))
    )
    for ours, other in (
        (one, some(first=10, metrics=MIXED[::-1])),
        (one, some(first=10, metrics=se.Protocol(MIXED, no_relevant="zero"))),
        (some(metrics=["ndcg@3"]), some(first=10, metrics=["ndcg@3"], convention="ranx")),
        (one, se.evaluate(some(first=10).rankings, wide, MIXED)),
        (some(**novel, train=train), some(first=10, **novel, train=train[:, ::-1])),
        (some(metrics=["err@3"]), se.evaluate(csr_matrix([[1]]), graded, "err@3")),
        (one, some(first=10, labels=as_text)),
    ):
        for a, b in ((ours, other), (other, ours)):
            with raises(InvalidDataError):
                a.merge(b).mean()


def test_refuses_a_user_in_two_blocks():
    alike = [
        se.evaluate(se.Rankings.from_topk([[item, 3]]), csr_matrix(np.eye(4)[[item]]), "mrr@2")
        for item in (0, 1)
    ]
    assert alike[0].mean() == alike[1].mean()
    for one, other in (
        (some(), some(first=5)),
        (some(), some(first=5, keep="totals")),
        (some(labels=as_text), some(first=5, labels=as_text)),
        (some(), some(seed=1)),  # different results of the same users
        (some(), some(train=csr_matrix(np.eye(10, N_ITEMS)))),
        (some(keep="totals"), some(seed=1, keep="totals")),
        # Users without labels are row numbers; other results or relevant items are other users.
        (some(labels=None), some(12, labels=None)),
        alike,
    ):
        with raises(InvalidDataError):
            one.merge(other)
    assert alike[0].merge(alike[0]).n_users == 1


def test_keeps_the_values_of_a_block_that_is_there_twice():
    one, again = some(), some(keep="totals")
    for found in (one.merge(again), again.merge(one)):
        same_bits(found, some())


def test_accepts_users_between_those_of_another_block_by_their_values():
    one, other = some(labels=[*range(0, 20, 2)]), some(first=1, labels=[*range(1, 20, 2)])
    assert one.merge(other).per_user.index.tolist() == list(range(20))
    with raises(InvalidDataError):
        without_values(one).merge(other)


# Parts, as they come from workers.


def test_values_are_kept_only_if_every_part_has_them():
    parts = [part_of(some(first=10)), part_of(some()), part_of(some(first=20), per_user=False)]
    np.testing.assert_array_equal(merge_parts(parts[:2]).values.user_ids, np.arange(20))
    merged = merge_parts(parts)
    assert merged.values is None
    assert merged.span.n == 30


def test_counts_are_added_up_and_lists_made_in_different_ways_are_not_merged():
    one, other = (
        replace(
            part_of(some(first=first), per_user=False),
            seen=SeenCounts(n, 1, 2, 3),
            candidates=CandidateCounts("1+9", n, 6, 7, 8, 9, 2**64 - n),
            retrieval=Retrieval("top_k", n, 2, 1, 5, 6, 7 * n),
        )
        for first, n in ((0, 1), (10, 2))
    )
    both = one.merge(other)
    assert both.seen == (3, 2, 4, 6)
    assert both.candidates == ("1+9", 3, 12, 14, 16, 18, 2**65 - 3)
    assert both.retrieval == Retrieval("top_k", 3, 4, 2, 5, 12, 21)
    assert one.merge(replace(other, seen=None)).seen is None
    for name, kind in (("retrieval", "top_k"), ("candidates", "1+9")):
        with raises(InvalidDataError):
            one.merge(replace(other, key=other.key | {name: kind}))
