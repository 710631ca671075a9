"""The kernels of list and catalogue metrics against plain Python, on every path."""

import itertools
import math

import numpy as np
import pytest
from cases import N_ITEMS, cases
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


def to_rows(rows):
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return structures.Rows(indptr, np.array([x for row in rows for x in row], np.int32))


def rows_of(matrix):
    return structures.Rows(matrix.indptr.astype(np.int64), matrix.indices)


def similarities(lists, item_users, k, bits, bit_row, slots=64, *, jaccard=False):
    list_indptr, list_items = to_rows(lists)
    out = np.full(len(lists), np.nan)
    cache = np.zeros((slots, 2), np.int64)
    for user in range(len(lists)):  # in blocks of one, which share the cache
        sum_similarities(
            structures.Rows(list_indptr[user : user + 2], list_items),
            *(k, to_rows(item_users), bits, bit_row, cache, jaccard, out[user : user + 1]),
        )
    return out


def bitmaps(item_users, n_users, items):
    """Return bitmaps of the given items, whatever `pack_bits` would choose."""
    bits = np.zeros((len(items), (n_users + 63) // 64), np.uint64)
    set_bits(*to_rows(item_users), np.array(items, np.int64), bits)
    bit_row = np.full(len(item_users), -1, np.int64)
    bit_row[items] = np.arange(len(items))
    return bits, bit_row


@given(st.data(), st.integers(1, 12), st.sampled_from([1, 2, 1024]), st.booleans())
def test_similarities_equal_those_by_hand(data, k, slots, jaccard):
    n_users = data.draw(st.sampled_from([1, 7, 64, 65, 150]))
    n_items = data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    # From nobody to everybody: below and above the number of users from which pairs are cached.
    shares = data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=1, max_size=4))
    has = rng.random((n_items, n_users)) < rng.choice(shares, (n_items, 1))
    items = st.lists(st.integers(0, n_items - 1), unique=True)
    lists = data.draw(st.lists(items, max_size=6))

    item_users = [np.flatnonzero(row) for row in has]
    popular = bitmaps(item_users, n_users, data.draw(items))
    found = similarities(lists, item_users, k, *popular, slots, jaccard=jaccard)
    common, degrees = has.astype(float) @ has.T, has.sum(axis=1)
    divisors = np.sqrt(np.outer(degrees, degrees))
    if jaccard:
        divisors = np.add.outer(degrees, degrees) - common
    pairs = common / np.maximum(divisors, 1)
    expected = [np.triu(pairs[np.ix_(row[:k], row[:k])], 1).sum() for row in lists]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    for others in (pack_bits(*to_rows(item_users), n_users), bitmaps(item_users, n_users, [])):
        again = similarities(lists, item_users, k, *others, jaccard=jaccard)
        np.testing.assert_array_equal(again, found)


def test_similarities_are_added_in_the_order_of_the_lower_ranked_item():
    """The last bits of a sum depend on the order, so it stays."""
    item_users = [[0, 1, 2, 3, 4], [0, 1, 2], [0]]
    first, second, third = 3 / math.sqrt(15), 1 / math.sqrt(5), 1 / math.sqrt(3)
    expected = first + (second + third)
    assert expected != (first + second) + third
    found = similarities([[0, 1, 2]], item_users, 3, *bitmaps(item_users, 5, []))
    assert found.tolist() == [expected]


def test_bitmaps_take_at_most_eight_bytes_per_interaction():
    n_users = 64 * 20
    item_users = [list(range(size)) for size in (5, 6, 30, 7, 30, 8)]  # 86 interactions
    bits, bit_row = pack_bits(*to_rows(item_users), n_users)
    assert bits.shape == (4, 20)
    assert np.flatnonzero(bit_row >= 0).tolist() == [2, 3, 4, 5]


def check_equally_likely(drawn, possible, n):
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(row) for row in found.tolist()} == set(itertools.permutations(possible, n))
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("most", "n"), [(5, 1), (5, 2), (3, 3), (4, 3), (4, 4)])
def test_every_choice_of_ranks_is_equally_likely(most, n):
    n_users = 4000
    indptr = np.arange(n_users + 1) * n
    out = np.empty(indptr[-1], np.int64)
    draw_ranks(np.random.default_rng(most).random(indptr[-1]), np.full(n_users, most), indptr, out)
    check_equally_likely(out.reshape(-1, n), range(1, most + 1), n)


def test_the_largest_number_draws_the_last_place():
    out = np.empty(4, np.int64)
    draw_ranks(np.full(4, 1 - 2.0**-53), np.array([4]), np.array([0, 4]), out)
    assert sorted(out) == [1, 2, 3, 4]


@pytest.mark.parametrize("seen", [[], [0], [0, 1], [1, 3], [3, 4], [0, 4], [2, 4]])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_every_list_is_equally_likely(seen, k):
    n_users = 4000
    n = min(k, 5 - len(seen))
    out = np.empty((n_users, k), np.int32)
    numbers = np.random.default_rng(k).random(out.shape)
    draw_lists(numbers, *to_rows([seen] * n_users), 5, out)
    check_equally_likely(out[:, :n], sorted({*range(5)} - {*seen}), n)
    assert (out[:, n:] == -1).all()


@given(cases())
def test_count_unseen_candidates(case):
    lists, relevant = case.matrices
    out = np.full(len(case.seen), -1, np.int64)
    sides = rows_of(case.train), rows_of(relevant), relevant.data, rows_of(lists)
    count_unseen_candidates(*sides, N_ITEMS, out)
    for n, seen, gains, ranked in zip(out, case.seen, case.relevant, case.ranked, strict=True):
        wanted = {item for item, gain in gains.items() if gain > 0} | ranked.keys()
        assert n == N_ITEMS - len(seen - wanted)
