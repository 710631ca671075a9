"""Metrics and their random baselines among candidates, against plain Python."""

import warnings

import numpy as np
import oracle
import pandas as pd
import pytest
from cases import spelled, to_csr
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics import parse

N_ITEMS = 7
ACCURACY = [row for row in spelled(oracle.METRICS) if row[1] != "err"]
DOUBTS = pytest.mark.filterwarnings(
    "ignore:.*(are not candidates|seen|no training data|contains a relevant|have no list)"
)


class User:
    """Random sets of a user: candidates, seen items, gains, and a list of some candidates."""

    def __init__(self, rng, outside):
        def some(share):
            return [int(item) for item in np.flatnonzero(rng.random(N_ITEMS) < share)]

        self.among = set(some(0.6))
        self.seen = set(some(0.2))
        self.pool = self.among - self.seen
        allowed = range(N_ITEMS) if outside else sorted(self.pool)
        self.gains = {item: float(rng.integers(0, 3)) for item in allowed if rng.random() < 0.5}
        listed = rng.permutation(N_ITEMS if outside else sorted(self.pool)).tolist()
        self.items = listed[: rng.integers(0, len(listed) + 1)]
        self.ranked = {item: rank for rank, item in enumerate(self.items, 1)}


@st.composite
def some_users(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    outside = draw(st.booleans())
    users = [User(rng, outside) for _ in range(draw(st.integers(1, 5)))]
    users[0].among |= {0, 1}
    users[0].seen -= {0, 1}
    users[0].pool = users[0].among - users[0].seen
    users[0].gains[0] = 2.0
    return users


def inputs(users):
    sides = {
        "candidates": [dict.fromkeys(user.among, 1.0) for user in users],
        "train": [dict.fromkeys(user.seen, 1.0) for user in users],
    }
    return (
        to_csr([{i: float(r) for i, r in user.ranked.items()} for user in users], int, N_ITEMS),
        to_csr([user.gains for user in users], float, N_ITEMS),
        {name: to_csr(rows, float, N_ITEMS) for name, rows in sides.items()},
    )


@DOUBTS
@settings(max_examples=60)
@given(some_users())
def test_values_are_those_of_plain_python(users):
    lists, gains, beside = inputs(users)
    largest = max(gain for user in users for gain in user.gains.values())
    ev = se.evaluate(lists, gains, [row[0] for row in ACCURACY], **beside)
    for spelling, name, options, k in ACCURACY:
        for user, value in zip(users, ev.values(str(parse(spelling)[0])), strict=True):
            context = oracle.Context(
                n_items=N_ITEMS, seen=user.seen, largest_gain=largest, among=user.among
            )
            expected = oracle.value(name, options, k, user.ranked, user.gains, context)
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-14, nan_ok=True), spelling


def test_serendipity_leaves_out_the_most_popular_candidates():
    train = csr_matrix([[0, 0, 0, 1.0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]])
    held = csr_matrix([[0, 0, 1.0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    lists = se.Rankings.from_topk([[2, 1], [-1, -1], [-1, -1], [-1, -1]], shape=(4, 4))
    whole = se.evaluate(lists, held, "serendipity@2", train=train)
    # Of items 1 and 2 alone, both are the two most popular ones.
    among = se.evaluate(lists, held, "serendipity@2", train=train, candidates=[1, 2])
    assert whole["serendipity@2"] == 0.5
    assert among["serendipity@2"] == 0.0


def test_what_is_outside_is_counted_and_said():
    lists = se.Rankings.from_topk([[0, 1], [2, 3]], shape=(2, 5))
    held = csr_matrix([[1.0, 0, 0, 0, 1], [0, 0, 0, 1, 0]])
    among = csr_matrix([[1, 0, 1, 0, 0], [0, 0, 1, 1, 0]])
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        ev = se.evaluate(lists, held, "recall@2", candidates=among)
    assert [str(one.message)[:46] for one in record] == [
        "1 of 3 relevant items are not candidates for t",
        "1 listed items are not candidates for their us",
    ]
    assert ev.candidates is not None
    assert ev.candidates[:6] == ("candidates", 2, 4, 1, 1, 3)
    with raises(InvalidDataError):
        se.evaluate(lists, held, "recall@2", candidates=[2])


def test_candidates_need_the_ids_of_the_lists():
    frame = pd.DataFrame({"user": ["a"], "item": ["v"]})
    with raises(InvalidDataError):
        se.evaluate(se.Rankings.from_topk([[0]]), csr_matrix([[1.0]]), "mrr", candidates=frame)
    numbers = se.Relevance.from_csr(csr_matrix(np.eye(2)), users=[7, 8], items=[5, 6])
    rankings = se.Rankings.from_topk([[0], [1]], users=[7, 8], items=[5, 6])
    with raises(InvalidDataError):
        se.evaluate(rankings, numbers, "mrr", candidates=[0, 1])
    assert se.evaluate(rankings, numbers, "mrr", candidates=pd.Index([5, 6]))["mrr"] == 1.0


def test_tables_beside_candidates_are_refused(tmp_path):
    frame = pd.DataFrame({"user": ["a"], "item": ["x"], "rank": [1]})
    frame.to_parquet(tmp_path / "lists.parquet")
    frame[["user", "item"]].to_parquet(tmp_path / "truth.parquet")
    with raises(InvalidDataError):
        se.evaluate(tmp_path / "lists.parquet", tmp_path / "truth.parquet", "mrr", candidates=[0])


def test_numbers_among_different_candidates_are_not_compared(tmp_path):
    lists = se.Rankings.from_topk([[0, 1], [2, 3]], shape=(2, 5))
    held = csr_matrix([[1.0, 0, 0, 0, 0], [0, 0, 0, 1, 0]])
    sides = csr_matrix(np.ones((2, 5))), csr_matrix([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]), None
    ev, other, whole = (se.evaluate(lists, held, "ndcg@2", candidates=among) for among in sides)
    for one in (other, whole):
        with raises(InvalidDataError):
            se.compare({"a": ev, "b": one})
    again = se.Evaluation.load(ev.save(tmp_path / "ev"))
    assert again.candidates == ev.candidates
    assert "ndcg@2 (candidates)" in repr(se.compare({"a": ev, "b": again}))
