"""Biases, cosines and distances: every score as written out in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError


def score(u, v, similarity, *biases):
    u, v = [float(x) for x in u], [float(x) for x in v]
    total = 0.0
    if similarity == "cosine":
        u, v = ([x / length(side) if length(side) else 0.0 for x in side] for side in (u, v))
    for a, b in zip(u, v, strict=True):
        total += (2.0 * a if similarity == "euclidean" else a) * b
    if similarity == "euclidean":
        total = total - length(v, squared=True) - length(u, squared=True)
    for bias in biases:
        total += float(bias)
    return total


def length(x, *, squared=False):
    total = 0.0
    for value in x:
        total += value * value
    return total if squared else math.sqrt(total)


DTYPES = st.sampled_from([np.float32, np.float64])


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["dot", "cosine", "euclidean"]),
    DTYPES,
    DTYPES,
    st.sets(st.sampled_from(["user_biases", "item_biases"])),
    st.booleans(),
)
def test_lists_and_ranks_are_exact(seed, similarity, dtype, of_biases, biased, whole):
    rng = np.random.default_rng(seed)
    n_users, n_items, width = 3, int(rng.integers(1, 60)), int(rng.integers(1, 9))
    users, items = (
        (rng.integers(-2, 3, (n, width)) if whole else rng.standard_normal((n, width))).astype(
            dtype
        )
        for n in (n_users, n_items)
    )
    users[0] = 0
    biases = {
        "item_biases": rng.integers(-2, 3, n_items).astype(of_biases),
        "user_biases": rng.standard_normal(n_users).astype(of_biases),
    }
    biases = {side: values for side, values in biases.items() if side in biased}
    held_out = sparse.csr_matrix(np.ones((n_users, n_items)))
    model = se.factor_model(users, items, similarity=similarity, **biases)
    found = se.top_k(model, k=5)
    ranks = [se.ranks(model, held_out, k) for k in (None, n_items)]
    for row in range(n_users):
        scores = [
            score(
                users[row],
                items[i],
                similarity,
                *(values[i if side == "item_biases" else row] for side, values in biases.items()),
            )
            for i in range(n_items)
        ]
        order = sorted(range(n_items), key=lambda i: (-scores[i], i))
        assert found.ids[row].tolist() == order[:5]
        assert found.scores[row].tolist() == [scores[i] for i in order[:5]]
        for one in ranks:
            assert one.items[one.indptr[row] : one.indptr[row + 1]].tolist() == order


@pytest.mark.parametrize("power", [-1000, -500, 300, 500])
def test_cosines_of_any_size(power):
    users, items = np.array([[3.0, 4.0]]), np.ldexp([[3.0, 4.0], [4.0, 3.0], [0.0, 1.0]], power)
    found = se.top_k(se.factor_model(users, items, similarity="cosine"), 3)
    assert found.ids.tolist() == [[0, 1, 2]]
    assert found.scores[0].tolist() == pytest.approx([1.0, 0.96, 0.8])


def test_vectors_of_zeros_have_cosine_0():
    users, items = np.array([[1.0], [0.0]]), np.array([[-1.0], [0.0]])
    model = se.factor_model(users, items, similarity="cosine")
    assert se.top_k(model, 2).scores.tolist() == [[0.0, -1.0], [0.0, 0.0]]


def test_refuses_what_fits_to_no_factors():
    users, items = np.ones((2, 3)), np.ones((4, 3))
    for options in [
        {"similarity": "manhattan"},
        {"item_biases": np.ones(3)},
        {"user_biases": np.ones((2, 1))},
        {"user_biases": [1.0, np.nan]},
    ]:
        with raises(InvalidDataError):
            se.factor_model(users, items, **options)
    with raises(InvalidDataError, argument="item_factors", row=1):
        se.factor_model(users, np.array([[0.0] * 3, [1e200] * 3]), similarity="euclidean")
