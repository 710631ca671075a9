"""Candidates: what is counted, compared and refused; values are in test_oracle."""

import warnings

import numpy as np
import pandas as pd
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

LISTS = se.Rankings.from_topk([[0, 1], [2, 3]], shape=(2, 5))


def test_serendipity_leaves_out_the_most_popular_candidates():
    train = csr_matrix([[0, 0, 0, 1.0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]])
    lists = se.Rankings.from_topk([[2, 1]], shape=(1, 4))
    data = (lists, csr_matrix([[0, 0, 1.0, 0]]), "serendipity@2")
    assert se.evaluate(*data, train=train)["serendipity@2"] == 0.5
    # Of items 1 and 2 alone, both are the two most popular ones.
    assert se.evaluate(*data, train=train, candidates=[1, 2])["serendipity@2"] == 0.0


def test_what_is_outside_is_counted_and_said():
    held = csr_matrix([[1.0, 0, 0, 0, 1], [0, 0, 0, 1, 0]])
    among = csr_matrix([[1, 0, 1, 0, 0], [0, 0, 1, 1, 0]])
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        ev = se.evaluate(LISTS, held, "recall@2", candidates=among)
    assert [str(one.message)[:46] for one in record] == [
        "1 of 3 relevant items are not candidates for t",
        "1 listed items are not candidates for their us",
    ]
    assert ev._part.candidates[:6] == ("candidates", 2, 4, 1, 1, 3)


def test_a_removed_correction_is_an_error_that_shows_the_way():
    negatives = se.sample_negatives(csr_matrix(np.eye(3, 9)), csr_matrix(np.eye(3, 9, 4)), 2)
    with raises(AttributeError):
        negatives.corrected("unbiased")
    with raises(AttributeError):
        negatives.nothing  # noqa: B018


def test_refuses_candidates_that_do_not_fit(tmp_path):
    frame = pd.DataFrame({"user": ["a"], "item": ["v"], "rank": [1]})
    frame.to_parquet(tmp_path / "lists.parquet")
    numbers = se.Relevance.from_csr(csr_matrix(np.eye(2)), users=[7, 8], items=[5, 6])
    rankings = se.Rankings.from_topk([[0], [1]], users=[7, 8], items=[5, 6])
    for lists, truth, candidates in (
        (LISTS, csr_matrix(np.eye(2, 5)), [4]),
        (LISTS, csr_matrix(np.eye(2, 5)), frame),
        (rankings, numbers, [0, 1]),
        (tmp_path / "lists.parquet", tmp_path / "lists.parquet", [0]),
    ):
        with raises(InvalidDataError):
            se.evaluate(lists, truth, "mrr", candidates=candidates)
    assert se.evaluate(rankings, numbers, "mrr", candidates=pd.Index([5, 6]))["mrr"] == 1.0


def test_numbers_among_different_candidates_are_not_compared(tmp_path):
    held = csr_matrix([[1.0, 0, 0, 0, 0], [0, 0, 0, 1, 0]])
    sides = csr_matrix(np.ones((2, 5))), csr_matrix([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]), None
    ev, other, whole = (se.evaluate(LISTS, held, "ndcg@2", candidates=among) for among in sides)
    for one in (other, whole):
        with raises(InvalidDataError):
            se.compare({"a": ev, "b": one})
    again = se.Evaluation.load(ev.save(tmp_path / "ev"))
    assert again._part.candidates == ev._part.candidates
    assert "ndcg@2 (candidates)" in repr(se.compare({"a": ev, "b": again}))
