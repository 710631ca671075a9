"""Rank-biased overlap of lists: against its definition, published values, and what is refused."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

N_ITEMS = 8
lists = st.lists(st.integers(0, N_ITEMS - 1), unique=True)


def plain(one, other, p):
    """Webber, Moffat and Zobel 2010, equation 32."""
    short, long = sorted((one, other), key=len)
    s, n = len(short), len(long)
    if n == 0:
        return math.nan
    if s == 0:
        return 0.0
    x = [len(set(short[:d]) & set(long[:d])) for d in range(n + 1)]
    total = math.fsum(x[d] / d * p**d for d in range(1, n + 1))
    total += math.fsum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    return (1 - p) / p * total + ((x[n] - x[s]) / n + x[s] / s) * p**n


def rankings(rows):
    ids = [row + [-1] * (N_ITEMS - len(row)) for row in rows]
    return se.Rankings.from_topk(ids, shape=(len(rows), N_ITEMS))


@given(st.lists(st.tuples(lists, lists), min_size=1, max_size=5), st.floats(0.05, 0.99))
def test_equals_its_definition(pairs, p):
    ones, others = rankings([a for a, _ in pairs]), rankings([b for _, b in pairs])
    found = se.rbo(ones, others, p=p)
    expected = [plain(*pair, p) for pair in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(se.rbo(others, ones, p=p), found, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(se.rbo(ones, ones, p=p).dropna(), 1.0)


def test_evaluations_are_matched_by_label():
    items = ["x", "y", "z"]
    ones = se.Rankings.from_topk([[0, 1], [1, 2]], users=["ann", "bob"], items=items)
    others = se.Rankings.from_topk([[1, 2], [2, 1]], users=["bob", "cid"], items=items)
    assert se.rbo(ones, others).to_dict() == {"bob": 1.0, "cid": 0.0, "ann": 0.0}
    truth = se.Relevance.from_csr(csr_matrix(np.eye(2, 3)), users=["ann", "bob"], items=items)
    evs = [se.evaluate(each, truth, "mrr") for each in (ones, others)]
    assert se.rbo(*evs)["bob"] == 1.0


def test_refuses_what_are_no_complete_lists_and_other_weights():
    whole = rankings([[0, 1, 2]])
    gapped = se.Rankings.from_positions(csr_matrix([[1, 0, 3]]))
    tied = se.Rankings.from_scores([[1.0, 1.0, 0.0]], ties="average")
    for other in (gapped, tied, [[0, 1]]):
        with raises(InvalidDataError):
            se.rbo(other, whole)
    with raises(InvalidDataError, argument="p"):
        se.rbo(whole, whole, p=1)
