"""Lists from scores: their order where some are equal, and scores that are refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval import Rankings
from sparse_eval.errors import InvalidDataError
from sparse_eval.inputs.alignment import align, match


@given(
    st.lists(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 2.5]), min_size=5, max_size=5)),
    st.integers(1, 6),
    st.sampled_from(["item", "item_descending", "average"]),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
    st.sets(st.integers(0, 4)),
)
def test_orders_all_but_what_was_seen_or_is_minus_infinity(scores, k, ties, stored, dtype, hidden):
    dense = np.array(scores, dtype).reshape(len(scores), 5)
    before = dense.copy()
    seen = sparse.csr_matrix(np.isin(np.arange(5), list(hidden)) & np.ones(dense.shape, bool))
    matrix = dense
    if stored:  # every score, zeros too
        parts = (dense.ravel(), np.tile(np.arange(5), len(scores)), np.arange(len(scores) + 1) * 5)
        matrix = sparse.csr_matrix(parts, shape=dense.shape)
    rankings = Rankings.from_scores(matrix, k=k, ties=ties, train=seen)
    assert rankings.shape == dense.shape
    assert (dense == before).all()
    for user, row in enumerate(scores):
        entries = slice(rankings.indptr[user], rankings.indptr[user + 1])
        candidates = [item for item in range(5) if row[item] > -np.inf and item not in hidden]
        sign = -1 if ties == "item_descending" else 1
        ranked = sorted(candidates, key=lambda item: (-row[item], sign * item))
        assert rankings.lengths[user] == min(k, len(candidates))
        if ties != "average":
            assert rankings.items[entries].tolist() == ranked[:k]
            continue
        expected = []
        for item in ranked:
            above = sum(row[other] > row[item] for other in candidates)
            equal = sum(row[other] == row[item] for other in candidates)
            expected += [(item, above + 1, above + equal)] if above < k else []
        found = (rankings.items, rankings.positions, rankings.last_positions)
        assert list(zip(*(part[entries].tolist() for part in found), strict=True)) == expected


def test_equal_scores_in_a_frame():
    df = pd.DataFrame({"user": "u", "item": ["9", "é", "10", "Z"], "score": [1, 1, 1, 2]})

    def found(frame, **options):
        rankings = Rankings.from_frame(frame, score="score", **options)
        return rankings.items_index[rankings.items].tolist()

    assert found(df) == found(df, ties="item") == ["Z", "10", "9", "é"]
    assert found(df, ties="item_descending") == ["Z", "é", "9", "10"]
    numbers = df.assign(item=[9, -1, 10, 3])  # by value, not as text
    assert found(numbers, ties="item") == [3, -1, 9, 10]
    assert found(numbers, ties="item_descending") == [3, 10, 9, -1]


def test_equal_scores_of_one_average_position():
    df = pd.DataFrame({"user": "u", "item": [*"zabc"], "score": [2, 1, 1, 1]})
    average = Rankings.from_frame(df, score="score", ties="average")
    assert average.positions.tolist() == [1, 2, 2, 2]
    assert average.last_positions.tolist() == [1, 4, 4, 4]
    ev = se.evaluate(average, pd.DataFrame({"user": ["u"], "item": ["b"]}), "dcg@4")
    discount = (1 / np.log2(3) + 1 / np.log2(4) + 1 / np.log2(5)) / 3
    assert ev["dcg@4"] == pytest.approx(discount, rel=1e-15)
    assert ev.explain("u")["discount"].tolist() == pytest.approx([1, *[discount] * 3])
    for call in (average.to_frame, average.to_positions):
        with raises(InvalidDataError):
            call()


def test_pessimistic_ties_are_ordered_by_gain_and_then_by_id():
    lists = Rankings.from_scores(np.array([[1.0, 1, 1, 1, 1]]), k=3, ties="pessimistic")
    for gains, expected in (
        ([0.0, 2, 0, 1, 0], [0, 2, 4]),
        ([0.0, 2, 1, 1, 0], [0, 4, 2]),
        ([3.0, 2, 1, 1, 3], [2, 3, 1]),
        ([0.0, 0, 0, 0, 0.5], [0, 1, 2]),
    ):
        relevance = se.Relevance.from_csr(sparse.csr_matrix([gains]))
        aligned, _ = align(lists, relevance, *match(lists, relevance))
        assert aligned.items.tolist() == expected


#: Floats would tie them.
WHOLE = np.array([[2**53, 2**53 + 1]])


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ([[1.0, np.nan]], {}),
        (sparse.csr_matrix([[1.0, np.inf]]), {}),
        ([1.0], {}),
        ([["a"]], {}),
        ([[1.0]], {"k": 0}),
        ([[1.0]], {"ties": "random"}),
        ([[1.0]], {"train": sparse.csr_matrix((2, 1))}),
        (sparse.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1]))), {}),
        (WHOLE, {}),
        (sparse.csr_matrix(WHOLE), {}),
        (WHOLE.astype(np.uint64), {}),
    ],
)
def test_refuses_scores(scores, options):
    with raises(InvalidDataError):
        Rankings.from_scores(scores, **options)


def test_refuses_scores_and_ties_of_frames():
    df = pd.DataFrame({"user": [1, 1], "item": [1, 2], "score": WHOLE[0], "rank": [1, 2]})
    for kind in ("int64", "Int64", "uint64"):
        with raises(InvalidDataError, argument="scores"):
            Rankings.from_frame(df.astype({"score": kind}), score="score")
    for options in ({"rank": "rank", "ties": "item"}, {"score": "score", "ties": "first"}):
        with raises(InvalidDataError, argument="ties"):
            Rankings.from_frame(df, **options)
