"""The kernels of list and catalogue metrics against plain Python, on every path."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sparse_eval.kernels import structures
from sparse_eval.kernels.catalogue import (
    count_unseen_candidates,
    draw_lists,
    draw_ranks,
    pack_bits,
    set_bits,
    sum_similarities,
)

Rows = list[list[int]]


def to_csr(rows):
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return structures.Rows(indptr, np.array([x for row in rows for x in row], np.int32))


def cosine(a, b):
    return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0


def cosines_by_hand(lists, item_users, k):
    users = [set(row) for row in item_users]
    pairs = [itertools.combinations(row[:k], 2) for row in lists]
    return [sum(cosine(users[i], users[j]) for i, j in of_list) for of_list in pairs]


def cosines(lists, item_users, k, bits, bit_row, slots=64):
    list_indptr, list_items = to_csr(lists)
    out = np.full(len(lists), np.nan)
    cache = np.zeros((slots, 2), np.int64)
    for user in range(len(lists)):  # in blocks of one, which share the cache
        sum_similarities(
            structures.Rows(list_indptr[user : user + 2], list_items),
            *(k, to_csr(item_users), bits, bit_row, cache, False, out[user : user + 1]),
        )
    return out


def bitmaps(item_users, n_users, items):
    """Return bitmaps of the given items, whatever `pack_bits` would choose."""
    bits = np.zeros((len(items), (n_users + 63) // 64), np.uint64)
    set_bits(*to_csr(item_users), np.array(items, np.int64), bits)
    bit_row = np.full(len(item_users), -1, np.int64)
    bit_row[items] = np.arange(len(items))
    return bits, bit_row


@st.composite
def catalogues(draw):
    """Draw lists, the users of each item, the number of users, and the items with bitmaps."""
    n_users = draw(st.sampled_from([1, 7, 64, 65, 150]))
    n_items = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    # From nobody to everybody: below and above the number of users from which pairs are cached.
    shares = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=1, max_size=4))
    item_users = [np.flatnonzero(rng.random(n_users) < rng.choice(shares)) for _ in range(n_items)]
    items = st.integers(0, n_items - 1)
    lists = draw(st.lists(st.lists(items, unique=True), max_size=6))
    popular = draw(st.lists(items, unique=True))
    return lists, [row.tolist() for row in item_users], n_users, popular


@given(catalogues(), st.integers(1, 12), st.sampled_from([1, 2, 1024]))
def test_cosines_equal_those_by_hand(case, k, slots):
    lists, item_users, n_users, popular = case
    found = cosines(lists, item_users, k, *bitmaps(item_users, n_users, popular), slots)
    np.testing.assert_allclose(found, cosines_by_hand(lists, item_users, k), rtol=1e-13)
    for others in (pack_bits(*to_csr(item_users), n_users), bitmaps(item_users, n_users, [])):
        np.testing.assert_array_equal(cosines(lists, item_users, k, *others), found)


def test_bitmaps_take_at_most_eight_bytes_per_interaction():
    n_users = 64 * 20
    item_users = [list(range(size)) for size in (5, 6, 30, 7, 30, 8)]  # 86 interactions
    bits, bit_row = pack_bits(*to_csr(item_users), n_users)
    assert bits.shape == (4, 20)
    assert np.flatnonzero(bit_row >= 0).tolist() == [2, 3, 4, 5]


@st.composite
def seen_rows(draw):
    n_items = draw(st.integers(1, 10))
    row = st.lists(st.integers(0, n_items - 1), unique=True).map(sorted)
    return draw(st.lists(row, min_size=1, max_size=5)), n_items


def test_the_largest_number_draws_the_last_place():
    sizes = np.concatenate([np.arange(1, 10_000), 2 ** np.arange(1, 31), 2 ** np.arange(1, 31) + 1])
    assert (((1 - 2.0**-53) * sizes).astype(np.int64) == sizes - 1).all()
    out = np.empty(4, np.int64)
    draw_ranks(np.full(4, 1 - 2.0**-53), np.array([4]), np.array([0, 4]), out)
    assert sorted(out) == [1, 2, 3, 4]


def check_equally_likely(drawn, possible):
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(row) for row in found.tolist()} == possible
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("most", "n"), [(5, 1), (5, 2), (3, 3), (4, 3), (4, 4)])
def test_every_choice_of_ranks_is_equally_likely(most, n):
    n_users = 4000
    indptr = np.arange(n_users + 1) * n
    out = np.empty(indptr[-1], np.int64)
    draw_ranks(np.random.default_rng(most).random(indptr[-1]), np.full(n_users, most), indptr, out)
    possible = set(itertools.permutations(range(1, most + 1), n))
    check_equally_likely(out.reshape(-1, n), possible)


@pytest.mark.parametrize("seen", [[], [0], [0, 1], [1, 3], [3, 4], [0, 4], [2, 4]])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_every_list_is_equally_likely(seen, k):
    n_users = 4000
    n = min(k, 5 - len(seen))
    out = np.empty((n_users, k), np.int32)
    numbers = np.random.default_rng(k).random(out.shape)
    draw_lists(numbers, *to_csr([seen] * n_users), 5, out)
    unseen = [item for item in range(5) if item not in seen]
    check_equally_likely(out[:, :n], set(itertools.permutations(unseen, n)))
    assert (out[:, n:] == -1).all()


@st.composite
def evaluations(draw):
    """Draw seen items, relevant items with gains, lists, and the number of items."""
    seen, n_items = draw(seen_rows())
    items = st.integers(0, n_items - 1)
    gains = st.sampled_from([0.0, 0.5, 1.0])
    n_users = len(seen)
    relevant = st.dictionaries(items, gains).map(lambda row: dict(sorted(row.items())))
    lists = st.lists(items, unique=True)
    return (
        seen,
        draw(st.lists(relevant, min_size=n_users, max_size=n_users)),
        draw(st.lists(lists, min_size=n_users, max_size=n_users)),
        n_items,
    )


def relevance(rows):
    gains = np.array([gain for row in rows for gain in row.values()], np.float64)
    return to_csr([list(row) for row in rows]), gains


@given(evaluations())
def test_count_unseen_candidates(case):
    seen, relevant, lists, n_items = case
    out = np.full(len(seen), -1, np.int64)
    count_unseen_candidates(to_csr(seen), *relevance(relevant), to_csr(lists), n_items, out)
    for found, items, gains, row in zip(out, seen, relevant, lists, strict=True):
        wanted = {item for item, gain in gains.items() if gain > 0} | set(row)
        assert found == n_items - len(set(items) - wanted)
