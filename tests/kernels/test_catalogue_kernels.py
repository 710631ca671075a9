"""The kernels of list and catalogue metrics against plain Python, on every path."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from sparse_eval.core.threads import for_blocks
from sparse_eval.kernels.catalogue import (
    count_bits,
    count_unexpected,
    count_unseen_candidates,
    draw_lists,
    draw_ranks,
    pack_bits,
    popular_unseen,
    set_bits,
    sum_similarities,
)

Rows = list[list[int]]
Array = NDArray[Any]


def to_csr(rows: Rows) -> tuple[Array, Array]:
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return indptr, np.array([x for row in rows for x in row], np.int32)


def cosine(a: set[int], b: set[int]) -> float:
    return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0


def cosines_by_hand(lists: Rows, item_users: Rows, cutoffs: list[int]) -> Array:
    users = [set(row) for row in item_users]
    return np.array(
        [
            [
                sum(cosine(users[i], users[j]) for i, j in itertools.combinations(row[:k], 2))
                for row in lists
            ]
            for k in cutoffs
        ]
    )


def cosines(
    lists: Rows,
    item_users: Rows,
    cutoffs: list[int],
    bits: Array,
    bit_row: Array,
    *,
    slots: int = 64,
    threads: int = 1,
    block: int = 1000,
) -> Array:
    list_indptr, list_items = to_csr(lists)
    item_indptr, users = to_csr(item_users)
    out = np.full((len(cutoffs), len(lists)), np.nan)

    def work(first: int, last: int) -> None:
        sum_similarities(
            *(list_indptr[first : last + 1], list_items, np.array(cutoffs)),
            *(item_indptr, users, bits, bit_row),
            *(np.zeros((slots, 2), np.int64), False, out[:, first:last]),
        )

    for_blocks(work, len(lists), threads, block)
    return out


def bitmaps(item_users: Rows, n_users: int, items: list[int]) -> tuple[Array, Array]:
    """Return bitmaps of the given items, whatever `pack_bits` would choose."""
    bits = np.zeros((len(items), (n_users + 63) // 64), np.uint64)
    set_bits(*to_csr(item_users), np.array(items, np.int64), bits)
    bit_row = np.full(len(item_users), -1, np.int64)
    bit_row[items] = np.arange(len(items))
    return bits, bit_row


@st.composite
def catalogues(draw: st.DrawFn) -> tuple[Rows, Rows, int, list[int]]:
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


@given(
    catalogues(),
    st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True),
    st.sampled_from([1, 2, 1024]),
)
def test_cosines_equal_those_by_hand(
    case: tuple[Rows, Rows, int, list[int]], ks: list[int], slots: int
) -> None:
    lists, item_users, n_users, popular = case
    cutoffs = sorted(ks)
    found = cosines(lists, item_users, cutoffs, *bitmaps(item_users, n_users, popular), slots=slots)
    expected = cosines_by_hand(lists, item_users, cutoffs).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    packed = pack_bits(*to_csr(item_users), n_users)
    for others in (packed, bitmaps(item_users, n_users, [])):
        np.testing.assert_array_equal(cosines(lists, item_users, cutoffs, *others), found)
    for cut, k in enumerate(cutoffs):  # nor do the other cut-offs change a bit
        np.testing.assert_array_equal(cosines(lists, item_users, [k], *packed)[0], found[cut])


@pytest.mark.parametrize("popular", [[], [0], [1], [0, 1], [0, 1, 2]])
@pytest.mark.parametrize("slots", [1, 2, 256])
def test_cosines_on_every_path(popular: list[int], slots: int) -> None:
    rng = np.random.default_rng(1)
    sizes = [150, 120, 40, 31, 3, 0]  # 32 users and more are cached
    item_users = [np.sort(rng.choice(200, size, replace=False)).tolist() for size in sizes]
    lists = [list(order) for order in itertools.permutations(range(6), 4)] + [[], [5], [0], [0, 5]]
    found = cosines(lists, item_users, [2, 4], *bitmaps(item_users, 200, popular), slots=slots)
    np.testing.assert_allclose(
        found, cosines_by_hand(lists, item_users, [2, 4]), rtol=1e-13, atol=0
    )


def test_cosine_of_known_items() -> None:
    item_users = [[0, 1, 2, 3], [2, 3], [7]]
    bits, bit_row = pack_bits(*to_csr(item_users), 8)
    found = cosines([[0, 1], [1, 0, 2], [2]], item_users, [1, 2, 10], bits, bit_row)
    both = [2 / math.sqrt(8), 2 / math.sqrt(8), 0]
    assert found.tolist() == [[0, 0, 0], both, both]


def test_cosines_depend_on_neither_blocks_nor_threads() -> None:
    rng = np.random.default_rng(2)
    item_users = [np.flatnonzero(rng.random(300) < 1 / (i + 1)).tolist() for i in range(40)]
    lists = [rng.permutation(40)[: rng.integers(0, 12)].tolist() for _ in range(60)]
    packed = pack_bits(*to_csr(item_users), 300)
    expected = cosines(lists, item_users, [3, 10], *packed)
    for block, threads in ((1, 1), (7, 3), (59, 2)):
        options = {"threads": threads, "block": block, "slots": 4}
        found = cosines(lists, item_users, [3, 10], *packed, **options)
        np.testing.assert_array_equal(found, expected)


def test_a_cache_serves_many_blocks() -> None:
    rng = np.random.default_rng(3)
    item_users = [np.flatnonzero(rng.random(100) < 0.6).tolist() for _ in range(8)]
    lists = [rng.permutation(8)[:5].tolist() for _ in range(20)]
    list_indptr, list_items = to_csr(lists)
    training = (*to_csr(item_users), *bitmaps(item_users, 100, [1, 2]))
    cache = np.zeros((16, 2), np.int64)
    found = np.empty((1, 20))
    for i in range(20):
        sum_similarities(
            *(list_indptr[i : i + 2], list_items, np.array([5])),
            *(*training, cache, False, found[:, i : i + 1]),
        )
    assert cache[:, 1].any()
    np.testing.assert_array_equal(found, cosines(lists, item_users, [5], *training[2:], slots=1))


def test_popular_items_get_a_bitmap() -> None:
    n_users = 1000
    item_users = [list(range(300)), [], [0, 1, 2], [63, 64, 127, 999], list(range(700, 800))]
    bits, bit_row = pack_bits(*to_csr(item_users), n_users)
    assert bits.shape == (3, 16)  # three users are fewer than one in 256
    assert bit_row.tolist() == [0, -1, -1, 1, 2]
    for item in (0, 3, 4):
        words = bits[bit_row[item]].tolist()
        users = [user for user in range(n_users) if words[user // 64] >> user % 64 & 1]
        assert users == item_users[item]


def test_bitmaps_take_at_most_eight_bytes_per_interaction() -> None:
    n_users = 64 * 20
    item_users = [list(range(size)) for size in (5, 6, 30, 7, 30, 8)]  # 86 interactions
    bits, bit_row = pack_bits(*to_csr(item_users), n_users)
    assert bits.shape == (4, 20)
    assert np.flatnonzero(bit_row >= 0).tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("n_users", [0, 5])
def test_no_training_data(n_users: int) -> None:
    bits, bit_row = pack_bits(np.zeros(4, np.int64), np.empty(0, np.int32), n_users)
    assert len(bits) == 0
    assert cosines([[0, 1, 2], []], [[], [], []], [3], bits, bit_row).tolist() == [[0.0, 0.0]]


@given(st.integers(0, 2**64 - 1))
def test_count_bits(word: int) -> None:
    count = getattr(count_bits, "py_func", count_bits)
    assert count(np.uint64(word)) == word.bit_count()


@st.composite
def seen_rows(draw: st.DrawFn) -> tuple[Rows, int]:
    n_items = draw(st.integers(1, 10))
    row = st.lists(st.integers(0, n_items - 1), unique=True).map(sorted)
    return draw(st.lists(row, min_size=1, max_size=5)), n_items


@given(seen_rows(), st.integers(1, 12), st.randoms(use_true_random=False))
def test_popular_unseen(case: tuple[Rows, int], k: int, random: Any) -> None:
    seen, n_items = case
    order = random.sample(range(n_items), n_items)
    out = np.full((len(seen), k), 99, np.int32)
    popular_unseen(np.array(order, np.int32), *to_csr(seen), out)
    for row, items in zip(out.tolist(), seen, strict=True):
        unseen = [item for item in order if item not in items]
        assert row == (unseen + [-1] * k)[:k]


def uniforms(seed: int, first: int, last: int) -> np.ndarray:
    """Return elements of one sequence of uniform numbers, of which a block has its part."""
    return np.random.default_rng(seed).random(last)[first:]


def test_the_largest_number_draws_the_last_place() -> None:
    sizes = np.concatenate([np.arange(1, 10_000), 2 ** np.arange(1, 31), 2 ** np.arange(1, 31) + 1])
    assert (((1 - 2.0**-53) * sizes).astype(np.int64) == sizes - 1).all()
    out = np.empty(4, np.int64)
    draw_ranks(np.full(4, 1 - 2.0**-53), np.array([4]), np.array([0, 4]), out)
    assert sorted(out) == [1, 2, 3, 4]


@given(
    st.lists(
        st.integers(0, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1
    ),
    st.integers(0, 100),
)
def test_drawn_ranks_are_distinct_and_in_range(sizes: list[tuple[int, int]], seed: int) -> None:
    indptr = np.cumsum([5, *(n for _, n in sizes)])
    n_candidates = np.array([most for most, _ in sizes])
    out = np.empty(indptr[-1] - 5, np.int64)
    draw_ranks(uniforms(seed, 5, indptr[-1]), n_candidates, indptr, out)
    for (most, n), first in zip(sizes, indptr - 5, strict=False):
        drawn = set(out[first : first + n].tolist())
        assert len(drawn) == n
        assert drawn <= set(range(1, most + 1))


@given(seen_rows(), st.integers(1, 12), st.integers(0, 100))
def test_drawn_lists_are_distinct_and_unseen(case: tuple[Rows, int], k: int, seed: int) -> None:
    seen, n_items = case
    out = np.full((len(seen), k), 99, np.int32)
    numbers = uniforms(seed, 0, out.size).reshape(out.shape)
    draw_lists(numbers, *to_csr(seen), n_items, out)
    for row, items in zip(out.tolist(), seen, strict=True):
        unseen = set(range(n_items)) - set(items)
        n = min(k, len(unseen))
        assert len(set(row[:n])) == n
        assert set(row[:n]) <= unseen
        assert row[n:] == [-1] * (k - n)


def check_equally_likely(drawn: Array, possible: set[tuple[int, ...]]) -> None:
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(row) for row in found.tolist()} == possible
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("most", "n"), [(5, 1), (5, 2), (3, 3), (4, 3), (4, 4)])
def test_every_choice_of_ranks_is_equally_likely(most: int, n: int) -> None:
    n_users = 4000
    indptr = np.arange(n_users + 1) * n
    out = np.empty(indptr[-1], np.int64)
    draw_ranks(uniforms(most, 0, indptr[-1]), np.full(n_users, most), indptr, out)
    possible = set(itertools.permutations(range(1, most + 1), n))
    check_equally_likely(out.reshape(-1, n), possible)


@pytest.mark.parametrize("seen", [[], [0], [0, 1], [1, 3], [3, 4], [0, 4], [2, 4]])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_every_list_is_equally_likely(seen: list[int], k: int) -> None:
    n_users = 4000
    n = min(k, 5 - len(seen))
    out = np.empty((n_users, k), np.int32)
    numbers = uniforms(k, 0, out.size).reshape(out.shape)
    draw_lists(numbers, *to_csr([seen] * n_users), 5, out)
    unseen = [item for item in range(5) if item not in seen]
    check_equally_likely(out[:, :n], set(itertools.permutations(unseen, n)))


def test_draws_depend_on_neither_blocks_nor_threads() -> None:
    rng = np.random.default_rng(5)
    n_users, n_items, k = 50, 30, 4
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 9, n_users))])
    n_candidates = rng.integers(9, n_items, n_users)
    seen = [np.flatnonzero(rng.random(n_items) < 0.4).tolist() for _ in range(n_users)]
    seen_indptr, seen_items = to_csr(seen)
    found = []
    for block, threads in ((n_users, 1), (1, 1), (7, 3)):
        ranks = np.empty(indptr[-1], np.int64)
        lists = np.empty((n_users, k), np.int32)

        def work(first: int, last: int, ranks: Array = ranks, lists: Array = lists) -> None:
            bounds = slice(first, last + 1)
            begin, end = indptr[first], indptr[last]
            numbers = uniforms(1, begin, end)
            draw_ranks(numbers, n_candidates[first:last], indptr[bounds], ranks[begin:end])
            numbers = uniforms(2, first * k, last * k).reshape(-1, k)
            draw_lists(numbers, seen_indptr[bounds], seen_items, n_items, lists[first:last])

        for_blocks(work, n_users, threads, block)
        found.append((ranks, lists))
    for ranks, lists in found[1:]:
        np.testing.assert_array_equal(ranks, found[0][0])
        np.testing.assert_array_equal(lists, found[0][1])


@st.composite
def evaluations(draw: st.DrawFn) -> tuple[Rows, list[dict[int, float]], Rows, int]:
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


def relevance(rows: list[dict[int, float]]) -> tuple[Array, Array, Array]:
    gains = np.array([gain for row in rows for gain in row.values()], np.float64)
    return *to_csr([list(row) for row in rows]), gains


@given(evaluations())
def test_count_unseen_candidates(case: tuple[Rows, list[dict[int, float]], Rows, int]) -> None:
    seen, relevant, lists, n_items = case
    out = np.full(len(seen), -1, np.int64)
    count_unseen_candidates(*to_csr(seen), *relevance(relevant), *to_csr(lists), n_items, out)
    for found, items, gains, row in zip(out, seen, relevant, lists, strict=True):
        wanted = {item for item, gain in gains.items() if gain > 0} | set(row)
        assert found == n_items - len(set(items) - wanted)


@given(
    evaluations(),
    st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True).map(sorted),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_count_unexpected(
    case: tuple[Rows, list[dict[int, float]], Rows, int],
    cutoffs: list[int],
    gapped: bool,
    random: Any,
) -> None:
    seen, relevant, lists, n_items = case
    order = random.sample(range(n_items), n_items)
    popularity_ranks = np.empty(n_items, np.int32)
    popularity_ranks[order] = np.arange(n_items)
    places = [
        sorted(random.sample(range(1, 15), len(row))) if gapped else range(1, len(row) + 1)
        for row in lists
    ]
    positions = np.array([p for row in places for p in row] if gapped else [], np.int32)
    out = np.full((len(cutoffs), len(seen)), np.nan)
    count_unexpected(
        *(popularity_ranks, *to_csr(seen), *to_csr(lists), positions, gapped),
        *(*relevance(relevant), np.array(cutoffs), out),
    )
    for user, items in enumerate(seen):
        for cut, k in enumerate(cutoffs):
            popular = [item for item in order if item not in items][:k]
            hits = [
                item
                for item, place in zip(lists[user], places[user], strict=True)
                if place <= k and relevant[user].get(item, 0) > 0 and item not in popular
            ]
            assert out[cut, user] == len(hits)


def test_a_popular_list_is_never_unexpected() -> None:
    seen = [[0, 2], [], [4]]
    popular = np.empty((3, 3), np.int32)
    popular_unseen(np.array([2, 4, 1, 0, 3], np.int32), *to_csr(seen), popular)
    assert popular.tolist() == [[4, 1, 3], [2, 4, 1], [2, 1, 0]]
    relevant = [dict.fromkeys(range(5), 1.0)] * 3
    out = np.empty((3, 3))
    count_unexpected(
        *(np.array([3, 2, 0, 4, 1], np.int32), *to_csr(seen), *to_csr(popular.tolist())),
        *(np.empty(0, np.int32), False, *relevance(relevant), np.array([1, 2, 3]), out),
    )
    assert not out.any()
