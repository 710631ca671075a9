"""Exact retrieval against its definition, to the last bit."""

from __future__ import annotations

import io
import math
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import oracle
import pytest
import retrieval_oracle
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

import sparse_eval as se
from sparse_eval import Rankings, Relevance
from sparse_eval.errors import InvalidDataError
from sparse_eval.retrieval import search
from sparse_eval.retrieval import top_k as retrieve
from sparse_eval.retrieval.top_k import full_ranks, held_out_ranks, top_k

if numba.config.DISABLE_JIT:  # compiled, kernels do not warn of what they may do with floats
    EXAMPLES = settings(max_examples=20)
    pytestmark = pytest.mark.filterwarnings("ignore:(overflow|divide by zero|invalid value)")
else:
    EXAMPLES = settings(max_examples=100)

Array = NDArray[Any]
Generator = np.random.Generator

#: The constants of `sparse_eval.search` that say how the work is cut into pieces, and values of
#: them that make many pieces of little data. None of them may change a result.
TILES: dict[str, tuple[int, ...]] = {
    "USERS_PER_BLOCK": (1, 2, 7),
    "MAX_GROUP": (1, 2, 5),
    "USERS_PER_CENTRE": (1, 3),
    "MAX_CENTRES": (1, 2),
    "TILE": (1, 3),
    "WIDE_TILE": (1, 3),
    "CHUNK": (1, 7, 64),
    "MIN_PARTS": (1, 2, 64),
    "ITEMS_PER_PART": (1, 2),
    "MAX_CELLS": (1, 100),
}

DTYPES = (np.float16, np.float32, np.float64)
#: Powers of two that both sides are multiplied by: small and large numbers, subnormal ones, and
#: float64 ones that no float32 can hold.
SCALES: dict[type, list[tuple[int, int]]] = {
    np.float16: [(0, 0), (-10, -10), (9, 9), (-20, 0), (10, -18)],
    np.float32: [(0, 0), (-100, -100), (110, 110), (-140, 0), (-60, -140), (110, -120)],
    np.float64: [(0, 0), (-200, -200), (400, 400), (-1030, 0), (-520, -520), (700, -900)],
}


# ---- Factors of every kind: (random numbers, users, items, factors) -> both sides


def _whole(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Ties everywhere."""
    return rng.integers(-2, 3, (n_users, f)), rng.integers(-1, 2, (n_items, f))


def _normal(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    return rng.normal(size=(n_users, f)), rng.normal(size=(n_items, f))


def _unit(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Lengths that tell nothing about the scores."""
    users, items = _normal(rng, n_users, n_items, f)
    return tuple(side / np.linalg.norm(side, axis=1, keepdims=True) for side in (users, items))


def _same_length(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """The same numbers in another order, and sums of them that differ in rounding alone."""
    base = rng.normal(size=f)
    return np.ones((n_users, f)), np.array([rng.permutation(base) for _ in range(n_items)])


def _duplicates(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """A few vectors only, each of many items: more of them than a list has places."""
    users, items = _normal(rng, n_users, 3, f)
    return users, items[rng.choice(3, n_items, p=[0.2, 0.7, 0.1])]


def _near_ties(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Scores that differ by less than a float32 tells, and some that are equal."""
    users, items = _normal(rng, n_users, 1, f)
    items = np.repeat(items, n_items, axis=0)
    column = rng.integers(f)
    items[:, column] = rng.integers(0, 40, n_items) * 1e-12  # the others are of the order of 1
    return users, items


def _last_bits(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Parallel vectors, which `make_factors` moves by a few units in the last place.

    Every score is all that its bound allows, so that no bound has room to be wrong.
    """
    base = rng.uniform(0.5, 1.5, f)
    return rng.uniform(0.5, 2, (n_users, 1)) * base, np.tile(base, (n_items, 1))


def _cancelling(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Large products that cancel: what is left depends on the precision and the order."""
    users, items = np.ones((n_users, f)), rng.normal(size=(n_items, f))
    if f > 2:
        items[:, 0] = 2.0**40 * rng.integers(1, 3, n_items)
        items[:, -1] = -items[:, 0]
    return users, items


def _absorbed(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Many products, each too small to change a float32 sum that starts with 1: it is wrong by
    as much as its bound allows for this number of factors.
    """
    users, items = np.full((n_users, f), 2.0**-12), np.full((n_items, f), 0.99 * 2.0**-12)
    items[np.arange(f) > rng.integers(f, size=(n_items, 1))] = 0
    users[:, 0] = rng.choice([1.0, 0.75], n_users)
    items[:, 0] = 1 + rng.integers(0, f // 2 + 1, n_items) * 2.0**-23
    return users, items


def _skewed(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Lengths over 60 orders of magnitude: float32 products overflow and vanish."""
    users, items = _normal(rng, n_users, n_items, f)
    return (
        users * 10.0 ** rng.uniform(-30, 30, (n_users, 1)),
        items * 10.0 ** rng.uniform(-30, 30, (n_items, 1)),
    )


def _wide(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Single numbers over 60 orders of magnitude."""
    users, items = _normal(rng, n_users, n_items, f)
    return (
        users * 10.0 ** rng.uniform(-30, 30, users.shape),
        items * 10.0 ** rng.uniform(-30, 30, items.shape),
    )


def _negative(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """Negative scores only: the longest vectors have the lowest."""
    users, items = _normal(rng, n_users, n_items, f)
    return np.abs(users), -np.abs(items) * rng.lognormal(size=(n_items, 1))


def _nothing(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    return np.zeros((n_users, f)), rng.normal(size=(n_items, f))


def _popular(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """What ALS makes of tastes: users in groups, and few items with long vectors."""
    tastes = rng.normal(size=(10, f)) + 0.5
    users = tastes[rng.integers(10, size=n_users)] + 0.3 * rng.normal(size=(n_users, f))
    items = tastes[rng.integers(10, size=n_items)] + rng.normal(size=(n_items, f))
    lengths = (1.0 + rng.permutation(n_items)) ** -0.7
    return users * rng.lognormal(size=(n_users, 1)), items * lengths[:, None]


def _biased(rng: Generator, n_users: int, n_items: int, f: int) -> tuple[Array, Array]:
    """What BPR makes: the items' biases are a column, the users' side of it is 1."""
    users, items = _normal(rng, n_users, n_items, f)
    users[:, -1] = 1.0
    items[:, -1] = -3 * rng.exponential(size=n_items)
    return users, items


KINDS = {
    kind.__name__.strip("_"): kind
    for kind in (
        *(_whole, _normal, _unit, _same_length, _duplicates, _near_ties, _last_bits, _cancelling),
        _absorbed,
        *(_skewed, _wide, _negative, _nothing, _popular, _biased),
    )
}
#: Kinds that have a scale of their own.
UNSCALED = {"skewed", "wide"}


def make_factors(
    rng: Generator,
    kind: str,
    shape: tuple[int, int, int],
    dtype: type = np.float32,
    scale: tuple[int, int] = (0, 0),
    cold: float = 0.0,
) -> tuple[Array, Array]:
    """Make both sides for (users, items, factors); a share `cold` of each has zeros only."""
    sides = []
    for side, power in zip(KINDS[kind](rng, *shape), scale, strict=True):
        values = np.ldexp(np.asarray(side, np.float64), 0 if kind in UNSCALED else power)
        if kind == "skewed" and dtype == np.float64:
            values *= np.abs(values) ** 3.5  # up to 1e140, and down to nothing
        if dtype != np.float64:
            most = float(np.finfo(dtype).max)
            values = np.clip(values, -most, most).astype(dtype)
        sides.append(values)
    users, items = sides
    if kind == "last_bits":
        items += (rng.integers(-8, 9, items.shape) * np.spacing(items)).astype(dtype)
    for values in sides:
        values[rng.random(len(values)) < cold] = 0
        assert np.isfinite(values).all()
    return users, items


# ---- Cases: factors with seen and held-out items


@dataclass(frozen=True)
class Case:
    users: Array
    items: Array
    k: int
    seen: Any
    held_out: Any
    among: list[int] | None = None  # items=
    exclude: list[int] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.users), len(self.items)

    @property
    def only(self) -> dict[str, Any]:
        return {"items": self.among, "exclude": self.exclude}

    @property
    def allowed(self) -> list[list[int]]:
        """The candidates of each user."""
        n_users, n_items = self.shape
        base = retrieval_oracle.candidates(n_items, self.among, self.exclude, ())
        rows = [row_of(self.seen, user) if self.seen is not None else [] for user in range(n_users)]
        return [[item for item in base if item not in row] for row in map(set, rows)]

    def orders(self) -> list[retrieval_oracle.Order]:
        """Each user's candidates in order, with their scores."""
        many = self.users.size * len(self.items) > 50_000
        of = retrieval_oracle.orders_of_many if many else retrieval_oracle.orders
        return list(of(self.users, self.items, self.allowed))

    def held_out_of(self, user: int) -> set[int]:
        row = slice(self.held_out.indptr[user], self.held_out.indptr[user + 1])
        return set(self.held_out.indices[row][self.held_out.data[row] > 0].tolist())

    def top_k(self, k: int | None = None, **options: Any) -> retrieve.TopK:
        k = self.k if k is None else k
        return top_k(self.users, self.items, k, self.seen, **self.only, **options)

    def held_out_ranks(self, k: int | None = None, **options: Any) -> Rankings:
        sides = (self.users, self.items, self.held_out)
        return held_out_ranks(*sides, self.k if k is None else k, self.seen, **self.only, **options)

    def full_ranks(self, **options: Any) -> Rankings:
        sides = (self.users, self.items, self.held_out)
        return full_ranks(*sides, self.seen, **self.only, **options)


def row_of(matrix: Any, user: int) -> list[int]:
    return matrix.indices[matrix.indptr[user] : matrix.indptr[user + 1]].tolist()


def to_csr(mask: Array, values: Array) -> sparse.csr_matrix:
    """Store what the mask marks, zeros too."""
    rows, columns = np.nonzero(mask)
    return sparse.csr_matrix((values[rows, columns].astype(float), (rows, columns)), mask.shape)


def make_case(
    rng: Generator,
    users: Array,
    items: Array,
    k: int,
    seen: str = "some",
    restricted: bool = False,
) -> Case:
    """Draw what is seen and held out; somebody has held-out items unless everything is seen."""
    n_users, n_items = shape = len(users), len(items)
    share = {"none": 0.0, "some": 0.2, "most": 0.9}.get(seen, 0.5)
    mask = rng.random(shape) < share
    if seen == "all but one":
        mask[:] = True
        mask[np.arange(n_users), rng.integers(n_items, size=n_users)] = False
    elif seen == "everything of one":
        mask[rng.integers(n_users)] = True
    held = ~mask & (rng.random(shape) < max(3 / n_items, 0.02))
    held[rng.random(n_users) < 0.2] = False
    if not held.any() and not mask.all():
        unseen = np.argwhere(~mask)
        held[tuple(unseen[rng.integers(len(unseen))])] = True
    gains = np.where(held, rng.integers(1, 5, shape), 0)  # zeros are stored beside them
    return Case(
        users,
        items,
        k,
        None if seen == "none" else to_csr(mask, rng.integers(0, 3, shape)),
        to_csr(held | (rng.random(shape) < 0.02), gains),
        rng.integers(n_items, size=n_items).tolist() if restricted else None,
        rng.integers(n_items, size=n_items // 4).tolist() if restricted else None,
    )


SEEN = ["none", "some", "most", "all but one", "everything of one"]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(sorted(KINDS)))
    dtype = draw(st.sampled_from(DTYPES))
    n_items = draw(st.one_of(st.integers(1, 12), st.integers(13, 300), st.integers(520, 1100)))
    n_users, f = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 3, 8, 33, 200]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    users, items = make_factors(
        rng,
        kind,
        (n_users, n_items, f),
        dtype,
        draw(st.sampled_from(SCALES[dtype])),
        draw(st.sampled_from([0.0, 0.0, 0.3])),
    )
    k = draw(st.one_of(st.integers(1, 5), st.integers(1, n_items + 3)))
    case = make_case(rng, users, items, k, draw(st.sampled_from(SEEN)), draw(st.booleans()))
    assume(retrieval_oracle.candidates(n_items, case.among, case.exclude, ()))
    return case


@st.composite
def cases_of_any_floats(draw: st.DrawFn) -> Case:
    """Few factors, each any float of its dtype; those of float64 have finite scores."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    most = min(float(np.finfo(dtype).max), 2.0**500)
    width = dtype.itemsize * 8
    floats = st.floats(-most, most, width=width)
    few = draw(st.lists(floats, min_size=1, max_size=3))
    elements = st.one_of(floats, st.sampled_from(few))
    f = draw(st.integers(1, 4))
    users, items = (
        draw(arrays(dtype, (draw(st.integers(1, most_rows)), f), elements=elements, fill=elements))
        for most_rows in (3, 8)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return make_case(rng, users, items, draw(st.integers(1, 9)), draw(st.sampled_from(SEEN)))


@st.composite
def tilings(draw: st.DrawFn) -> dict[str, int]:
    return {name: draw(st.sampled_from(values)) for name, values in TILES.items()}


@contextmanager
def cut_into(tiling: dict[str, int]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in tiling.items():
            patch.setattr(search, name, value)
        yield


threads = st.sampled_from([None, 1, 2, 7])


# ---- What must come out


Orders = list[retrieval_oracle.Order]


def check_top_k(case: Case, found: retrieve.TopK, *, k: int, orders: Orders | None = None) -> None:
    base = retrieval_oracle.candidates(len(case.items), case.among, case.exclude, ())
    width = min(k, len(base))
    ids = np.full((len(case.users), width), -1, np.int32)
    scores = np.full(ids.shape, -np.inf)
    for row, (best, of_best) in enumerate(orders or case.orders()):
        n = min(width, len(best))
        ids[row, :n], scores[row, :n] = best[:n], of_best[:n]
    assert (found.ids.dtype, found.scores.dtype) == (np.int32, np.float64)
    assert found.ids.shape == found.scores.shape == ids.shape
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_array_equal(found.scores, scores)
    assert found.scores.tobytes() == scores.tobytes()  # no -0.0 for 0.0
    assert found.lengths.tolist() == (ids >= 0).sum(axis=1).tolist()


def check_ranks(
    case: Case, found: Rankings, *, k: float = math.inf, orders: Orders | None = None
) -> None:
    n_users, n_items = case.shape
    assert found.shape == (n_users, n_items)
    parts = (found.indptr, found.items, found.positions, found.lengths)
    assert [part.dtype for part in parts] == [np.int64, np.int32, np.int32, np.int64]
    assert found.last_positions is None
    assert (found.indptr[0], found.indptr[-1]) == (0, len(found.items))
    assert len(found.items) == len(found.positions)
    for user, (order, _) in enumerate(orders or case.orders()):
        wanted = case.held_out_of(user)
        ranks = np.flatnonzero(np.isin(order, list(wanted)))
        ranks = ranks[ranks < k]
        row = slice(found.indptr[user], found.indptr[user + 1])
        assert found.items[row].tolist() == order[ranks].tolist(), user
        assert found.positions[row].tolist() == (ranks + 1).tolist(), user
        assert found.lengths[user] == (min(k, len(order)) if wanted else 0), user


def accuracy(cutoffs: list[int | None]) -> list[str]:
    return [
        oracle.spelling(name, options, k)
        for name, options in oracle.METRICS + oracle.MICRO
        for k in cutoffs
        if not (k is None and name in oracle.NEEDS_CUTOFF)
        and not (k is not None and name in oracle.NO_CUTOFF)
    ]


OF_FULL_LISTS = [*accuracy([None]), "auc@5", "ndcg@3"]


def check_same_metrics(
    one: Rankings, other: Rankings, case: Case, metrics: list[str], **options: Any
) -> None:
    """Compare the metrics of each user, bit for bit, and the means."""
    left, right = (
        se.evaluate(lists, case.held_out, metrics, train=case.seen, **options)
        for lists in (one, other)
    )
    assert left.columns.tobytes() == right.columns.tobytes()
    assert left.mean() == pytest.approx(right.mean(), rel=0, abs=0, nan_ok=True)
    assert (left.n_users, left.n_without_list) == (right.n_users, right.n_without_list)


def complete_lists(case: Case) -> Rankings:
    ids = np.full(case.shape, -1)
    for row, (order, _) in zip(ids, case.orders(), strict=True):
        row[: len(order)] = order
    return Rankings.from_topk(ids, shape=case.shape)


def cutoffs_around(k: int) -> list[int | None]:
    return [*sorted({1, (k + 1) // 2, k, k + 2}), None]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_both_oracles_agree(kind: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    for scale in SCALES[dtype]:
        users, items = make_factors(rng, kind, (2, 30, 5), dtype, scale)
        case = make_case(rng, users, items, 5)
        given_to_both = users, items, case.allowed
        plain = retrieval_oracle.orders(*given_to_both)
        for one, other in zip(plain, retrieval_oracle.orders_of_many(*given_to_both), strict=True):
            assert one[0].tolist() == other[0].tolist()
            assert one[1].tobytes() == other[1].tobytes()


def test_by_hand() -> None:
    users = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], np.float32)
    items = np.array([[1, 9], [3, -4], [1, 0], [2, 1], [0, 0]], np.float32)
    seen = sparse.csr_matrix([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 0, 1, 1]])
    found = top_k(users, items, 3, seen)
    assert found.ids.tolist() == [[3, 0, 2], [0, 1, 3], [2, -1, -1]]
    inf = math.inf
    assert found.scores.tolist() == [[2.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, -inf, -inf]]
    assert found.lengths.tolist() == [3, 3, 1]
    ids, scores = found
    assert ids is found.ids
    assert scores is found.scores
    held_out = sparse.csr_matrix([[0, 0, 1, 0, 1], [0, 0, 0, 2, 0], [0, 0, 0, 0, 0]])
    ranks = held_out_ranks(users, items, held_out, 3, seen)
    assert ranks.to_positions().toarray().tolist() == [[0, 0, 3, 0, 0], [0, 0, 0, 3, 0], [0] * 5]
    assert ranks.lengths.tolist() == [3, 3, 0]
    ranks = full_ranks(users, items, held_out, seen)
    assert ranks.to_positions().toarray().tolist() == [[0, 0, 3, 0, 4], [0, 0, 0, 3, 0], [0] * 5]
    assert ranks.lengths.tolist() == [4, 4, 0]


def test_arguments_by_position() -> None:
    rng = np.random.default_rng(0)
    users, items = make_factors(rng, "normal", (3, 6, 2))
    seen = sparse.csr_matrix(np.eye(3, 6))
    held_out = sparse.csr_matrix(np.eye(3, 6, k=2))
    lists = top_k(users, items, 2, seen, [2, 0], [0, 1, 2, 3], [3])
    assert (
        lists.ids.tolist() == top_k(users, items, 2, seen, exclude=[3, 4, 5]).ids[[2, 0]].tolist()
    )
    for of, k in ((held_out_ranks, [2]), (full_ranks, [])):
        ranks = of(users, items, held_out, *k, seen, [0, 1, 2, 3], [3])
        expected = of(users, items, held_out, *k, seen=seen, exclude=[3, 4, 5])
        assert ranks.to_positions().toarray().tolist() == expected.to_positions().toarray().tolist()


def test_exported() -> None:
    assert (se.top_k, se.held_out_ranks, se.full_ranks) == (top_k, held_out_ranks, full_ranks)


# ---- Against the oracle


@EXAMPLES
@given(cases(), tilings(), threads)
def test_top_k_is_the_oracle_s(case: Case, tiling: dict[str, int], num_threads: int | None) -> None:
    with cut_into(tiling):
        found = case.top_k(num_threads=num_threads)
    check_top_k(case, found, k=case.k)


@EXAMPLES
@given(cases(), tilings(), threads)
def test_ranks_are_the_oracle_s(
    case: Case, tiling: dict[str, int], num_threads: int | None
) -> None:
    with cut_into(tiling):
        found = case.held_out_ranks(num_threads=num_threads)
        full = case.full_ranks(num_threads=num_threads)
    check_ranks(case, found, k=case.k)
    check_ranks(case, full)


@EXAMPLES
@given(cases_of_any_floats(), tilings())
def test_any_floats(case: Case, tiling: dict[str, int]) -> None:
    with cut_into(tiling):
        lists, ranks, full = case.top_k(), case.held_out_ranks(), case.full_ranks()
    check_top_k(case, lists, k=case.k)
    check_ranks(case, ranks, k=case.k)
    check_ranks(case, full)


@EXAMPLES
@given(cases(), tilings())
def test_ranks_give_the_metrics_of_the_lists(case: Case, tiling: dict[str, int]) -> None:
    assume(any(case.held_out_of(user) for user in range(len(case.users))))
    with cut_into(tiling):
        ranks, lists = case.held_out_ranks(), case.top_k()
    check_same_metrics(
        ranks,
        Rankings.from_topk(lists.ids, shape=case.shape),
        case,
        accuracy(cutoffs_around(case.k)),
    )


@EXAMPLES
@given(cases())
def test_full_ranks_give_the_metrics_of_complete_lists(case: Case) -> None:
    assume(any(case.held_out_of(user) for user in range(len(case.users))))
    check_same_metrics(case.full_ranks(), complete_lists(case), case, OF_FULL_LISTS)


def test_full_ranks_give_the_oracle_s_metrics() -> None:
    rng = np.random.default_rng(4)
    users, items = make_factors(rng, "whole", (12, 30, 3), cold=0.2)
    case = make_case(rng, users, items, 5)
    metrics = ["auc", "mean_rank", "percentile_rank"]
    found = se.evaluate(case.full_ranks(), case.held_out, metrics, train=case.seen).columns
    for user, (order, _) in enumerate(case.orders()):
        context = oracle.Context(n_items=30, seen=frozenset(row_of(case.seen, user)))
        ranked = {item: rank for rank, item in enumerate(order.tolist(), 1)}
        gains = {item: case.held_out[user, item] for item in case.held_out_of(user)}
        expected = [oracle.value(name, {}, None, ranked, gains, context) for name in metrics]
        assert found[:, user] == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
def test_tiles_change_nothing(kind: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(2 if numba.config.DISABLE_JIT else 8):
        dtype = DTYPES[rng.integers(3)]
        scale = SCALES[dtype][rng.integers(len(SCALES[dtype]))]
        users, items = make_factors(rng, kind, (9, 900, 4), dtype, scale, cold=0.05)
        case = make_case(rng, users, items, int(rng.choice([1, 5, 20])))
        orders = case.orders()
        tiling = {name: int(rng.choice(values)) for name, values in TILES.items()}
        with cut_into(tiling):
            lists, ranks, full = case.top_k(), case.held_out_ranks(), case.full_ranks()
        check_top_k(case, lists, k=case.k, orders=orders)
        check_ranks(case, ranks, k=case.k, orders=orders)
        check_ranks(case, full, orders=orders)


# ---- Thousands of items: several tiles, several groups of users, pruning


@pytest.mark.slow  # where kernels run as Python
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_items_of_every_kind(kind: str, dtype: type) -> None:
    rng = np.random.default_rng(3)
    f = 200 if kind == "absorbed" else 12
    users, items = make_factors(rng, kind, (150, 2500, f), dtype, cold=0.02)
    case = make_case(rng, users, items, 20)
    orders = case.orders()
    for k in (1, 20, 600):
        check_top_k(case, case.top_k(k), k=k, orders=orders)
        check_ranks(case, case.held_out_ranks(k), k=k, orders=orders)
    check_ranks(case, case.full_ranks(), orders=orders)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["popular", "unit", "near_ties"])
def test_groups_of_users_and_threads(kind: str) -> None:
    rng = np.random.default_rng(5)
    n_users = 400 if kind == "near_ties" else 1100  # nothing can be left out
    users, items = make_factors(rng, kind, (n_users, 3000, 16), cold=0.02)
    case = make_case(rng, users, items, 10)
    one = found_in(case, num_threads=1)
    orders = case.orders()
    check_top_k(case, case.top_k(num_threads=1), k=10, orders=orders)
    check_ranks(case, case.held_out_ranks(num_threads=1), k=10, orders=orders)
    check_ranks(case, case.full_ranks(num_threads=1), orders=orders)
    for num_threads in (2, 7, None):
        assert found_in(case, num_threads=num_threads) == one


@pytest.mark.slow
@pytest.mark.parametrize("f", [1, 64, 300])
def test_lists_of_every_length(f: int) -> None:
    rng = np.random.default_rng(6)
    users, items = make_factors(rng, "popular", (40, 3000, f))
    items[1000:2000] = items[:1000]  # every long vector twice, and
    items[2000:2200] = items[0]  # one of them more often than a list is long
    for seen in SEEN:
        case = make_case(rng, users, items, 1, seen)
        orders = case.orders()
        for k in (1, 100, 700, 3001):
            check_top_k(case, case.top_k(k), k=k, orders=orders)
            check_ranks(case, case.held_out_ranks(k), k=k, orders=orders)


@pytest.mark.slow
def test_many_ranks_give_the_metrics_of_the_lists() -> None:
    rng = np.random.default_rng(7)
    for kind in ("popular", "biased", "whole", "duplicates"):
        users, items = make_factors(rng, kind, (400, 3000, 16), cold=0.05)
        case = make_case(rng, users, items, 50)
        ranks, metrics = case.held_out_ranks(), accuracy([1, 10, 50])
        lists = Rankings.from_topk(case.top_k().ids, shape=case.shape)
        check_same_metrics(ranks, lists, case, metrics)
        # Where users without relevant items count, the lists they are given would as well.
        judged = [user for user in range(len(users)) if case.held_out_of(user)]
        assert len(judged) < len(users)
        lists = Rankings.from_topk(case.top_k(users=judged).ids, judged, case.shape)
        for no_relevant in ("zero", "judged"):
            check_same_metrics(ranks, lists, case, metrics, no_relevant=no_relevant)


def real_case(folder: Path) -> Case:
    """Return the real checkpoint with its split."""
    train, test = se.datasets.load_adjacency(folder / "train.txt", folder / "test.txt")
    with np.load(folder / "als64.npz", allow_pickle=False) as model:
        return Case(model["user_factors"], model["item_factors"], 20, train.matrix(), test.matrix())


@pytest.mark.slow
def test_real_factors(gowalla: Path) -> None:
    case = real_case(gowalla)
    sample = np.random.default_rng(8).permutation(len(case.users))[:300]
    found = top_k(case.users, case.items, 20, case.seen, users=sample)
    some = replace(
        case,
        users=case.users[sample],
        seen=case.seen[sample],
        held_out=case.held_out[sample],
    )
    orders = some.orders()
    check_top_k(some, found, k=20, orders=orders)
    check_ranks(some, some.held_out_ranks(), k=20, orders=orders)
    check_ranks(some, some.full_ranks(), orders=orders)


@pytest.mark.slow
def test_real_ranks_give_the_metrics_of_the_lists(gowalla: Path) -> None:
    case = real_case(gowalla)
    lists = Rankings.from_topk(case.top_k().ids, shape=case.shape)
    check_same_metrics(case.held_out_ranks(), lists, case, accuracy([1, 10, 20]))


# ---- What is handed in


@pytest.fixture(scope="module")
def plain() -> Case:
    rng = np.random.default_rng(9)
    users, items = make_factors(rng, "whole", (9, 40, 6))
    return make_case(rng, users, items, 7)


def found_in(case: Case, **options: Any) -> bytes:
    """All that is found, as bytes."""
    lists = case.top_k(**options)
    parts: list[Array] = [lists.ids, lists.scores]
    for ranks in (case.held_out_ranks(**options), case.full_ranks(**options)):
        parts += [ranks.indptr, ranks.items, ranks.positions, ranks.lengths]
    return b"|".join(part.tobytes() for part in parts)


def read_only(array: Array, folder: Path) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


def memory_mapped(array: Array, folder: Path) -> Array:
    path = folder / f"{len(array)}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def strided(array: Array, folder: Path) -> Array:
    room = np.full((2 * len(array), 3 * array.shape[1]), np.nan, array.dtype)
    room[::2, ::3] = array
    return room[::2, ::3]


def reversed_view(array: Array, folder: Path) -> Array:
    return array[::-1, ::-1].copy()[::-1, ::-1]


def fortran(array: Array, folder: Path) -> Array:
    return np.asfortranarray(array)


def other_byte_order(array: Array, folder: Path) -> Array:
    return array.astype(array.dtype.newbyteorder())


def double(array: Array, folder: Path) -> Array:
    return array.astype(np.float64)


def half(array: Array, folder: Path) -> Array:
    return array.astype(np.float16)


@pytest.mark.parametrize(
    "form",
    [read_only, memory_mapped, strided, reversed_view, fortran, other_byte_order, double, half],
)
def test_factors_of_any_layout(
    plain: Case, form: Callable[[Array, Path], Array], tmp_path: Path
) -> None:
    users, items = form(plain.users, tmp_path), form(plain.items, tmp_path)
    expected = found_in(plain)
    for one, other in ((users, items), (users, plain.items), (plain.users, items)):
        before = one.tobytes(), other.tobytes()
        assert found_in(replace(plain, users=one, items=other)) == expected
        assert (one.tobytes(), other.tobytes()) == before


def wide_indices(matrix: Any) -> Any:
    matrix = matrix.copy()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def unsorted_rows(matrix: Any) -> Any:
    shuffled = matrix.copy()
    for first, last in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        shuffled.indices[first:last] = matrix.indices[first:last][::-1]
        shuffled.data[first:last] = matrix.data[first:last][::-1]
    shuffled.has_sorted_indices = False
    return shuffled


def twice(matrix: Any) -> Any:
    coo = matrix.tocoo()
    rows, columns = np.tile(coo.row, 2), np.tile(coo.col, 2)
    return sparse.coo_matrix((np.tile(coo.data, 2), (rows, columns)), matrix.shape)


MATRICES: dict[str, Callable[[Any], Any]] = {
    "csr_array": sparse.csr_array,
    "int64 indices": wide_indices,
    "unsorted rows": unsorted_rows,
    "csc": lambda matrix: matrix.tocsc(),
    "coo": lambda matrix: matrix.tocoo(),
    "pairs stored twice": twice,
    "int8": lambda matrix: matrix.astype(np.int8),
}


@pytest.mark.parametrize("form", MATRICES)
def test_seen_and_held_out_of_any_form(plain: Case, form: str) -> None:
    expected = found_in(plain)
    for name in ("seen", "held_out"):
        given_matrix = MATRICES[form](getattr(plain, name))
        parts = [value for value in vars(given_matrix).values() if isinstance(value, np.ndarray)]
        before = [part.copy() for part in parts]
        assert found_in(replace(plain, **{name: given_matrix})) == expected
        for part, old in zip(parts, before, strict=True):
            assert part.dtype == old.dtype
            assert part.tobytes() == old.tobytes()


def test_read_only_matrices(plain: Case) -> None:
    expected = found_in(plain)
    seen, held_out = plain.seen.copy(), plain.held_out.copy()
    for matrix in (seen, held_out):
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
    assert found_in(replace(plain, seen=seen, held_out=held_out)) == expected


def test_held_out_may_be_relevance(plain: Case) -> None:
    relevance = Relevance.from_csr(plain.held_out)
    assert found_in(replace(plain, held_out=relevance)) == found_in(plain)
    # what is below the threshold is not relevant
    graded = Relevance.from_csr(plain.held_out, threshold=3)
    by_hand = plain.held_out.copy()
    by_hand.data[by_hand.data < 3] = 0
    assert 0 < np.count_nonzero(by_hand.data) < np.count_nonzero(plain.held_out.data)
    assert found_in(replace(plain, held_out=graded)) == found_in(replace(plain, held_out=by_hand))


def test_a_smaller_held_out_matrix_is_padded(plain: Case) -> None:
    rows, columns = 6, 31
    small = plain.held_out[:rows, :columns]
    assert np.count_nonzero(small.data)
    padded = small.copy()
    padded.resize(plain.shape)
    expected = found_in(replace(plain, held_out=padded))
    for held_out in (small, Relevance.from_csr(small)):
        assert found_in(replace(plain, held_out=held_out)) == expected
    check_ranks(
        replace(plain, held_out=padded), replace(plain, held_out=small).held_out_ranks(), k=7
    )


def test_users_in_any_order_and_more_than_once(plain: Case) -> None:
    everyone = plain.top_k()
    picked = [8, 0, 3, 3, 8, 1]
    for users in (
        picked,
        tuple(picked),
        np.array(picked, np.uint8),
        np.array(picked, np.int32),
        np.array([8, -1, 0, -1, 3, -1, 3, -1, 8, -1, 1, -1])[::2],
    ):
        found = plain.top_k(users=users)
        assert found.ids.tolist() == everyone.ids[picked].tolist()
        assert found.scores.tobytes() == everyone.scores[picked].tobytes()
    for nobody in ([], np.array([], np.int64)):
        assert plain.top_k(users=nobody).ids.shape == (0, 7)


def test_items_and_exclude(plain: Case) -> None:
    for among, exclude in (
        ([5, 1, 5, 30, 2], None),
        (None, [0, 39, 0]),
        (range(20), range(3, 30, 2)),
        (np.array([7], np.uint16), np.array([8], np.int8)),
        (None, []),
    ):
        case = replace(plain, among=among, exclude=exclude)
        base = retrieval_oracle.candidates(40, among, exclude, ())
        for k in (3, 100):
            found = case.top_k(k)
            assert found.ids.shape == (9, min(k, len(base)))
            check_top_k(case, found, k=k)
            check_ranks(case, case.held_out_ranks(k), k=k)
        check_ranks(case, case.full_ranks())


def test_held_out_items_that_are_no_candidates_are_not_ranked() -> None:
    users, items = np.ones((1, 1)), np.array([[3.0], [2.0], [1.0]])
    held_out = sparse.csr_matrix([[1, 0, 1]])
    ranks = held_out_ranks(users, items, held_out, 5, exclude=[0])
    assert ranks.to_positions().toarray().tolist() == [[0, 0, 2]]
    ranks = full_ranks(users, items, held_out, items=[1])
    assert (ranks.items.tolist(), ranks.lengths.tolist()) == ([], [1])


def test_lists_are_as_long_as_there_are_candidates(plain: Case) -> None:
    for k in (40, 41, 10**6, 2**40, np.int64(50)):
        assert found_in(replace(plain, k=k)) == found_in(replace(plain, k=40))
    assert plain.top_k(10**9).ids.shape == (9, 40)


def test_whoever_has_seen_everything_has_an_empty_list(plain: Case) -> None:
    mask = np.zeros(plain.shape, bool)
    mask[[2, 4]] = True
    held_out = plain.held_out.toarray()
    held_out[[2, 4]] = 0
    held_out[4, :3] = 1
    seen = to_csr(mask, np.ones(mask.shape))
    case = replace(plain, seen=seen, held_out=sparse.csr_matrix(held_out))
    found = case.top_k()
    assert (found.ids[[2, 4]] == -1).all()
    assert np.isneginf(found.scores[[2, 4]]).all()
    assert found.lengths.tolist() == [7, 7, 0, 7, 0, 7, 7, 7, 7]
    with pytest.warns(UserWarning, match=r"\b3\b"):
        ranks = case.held_out_ranks(overlap="report")
    check_ranks(case, ranks, k=7)
    # The candidates may be fewer than the catalogue; a held-out item that is none is no overlap.
    only_seen = sparse.csr_matrix(np.tile(np.arange(40.0) == 0, (9, 1)))
    never_seen = sparse.csr_matrix(np.tile(np.arange(40.0) == 5, (9, 1)))
    case = Case(plain.users, plain.items, 7, only_seen, never_seen, [0, 1], [1])
    assert case.top_k().ids.tolist() == [[-1]] * 9
    for ranks in (case.held_out_ranks(), case.full_ranks()):
        assert (ranks.items.tolist(), ranks.lengths.tolist()) == ([], [0] * 9)


def test_nothing_held_out_and_nobody(plain: Case) -> None:
    for nothing in (sparse.csr_matrix(plain.shape), plain.held_out * 0, sparse.csr_matrix((0, 0))):
        for ranks in (
            held_out_ranks(plain.users, plain.items, nothing, 5, plain.seen),
            full_ranks(plain.users, plain.items, nothing, plain.seen),
        ):
            assert ranks.shape == plain.shape
            assert ranks.indptr.tolist() == [0] * 10
            assert ranks.lengths.tolist() == [0] * 9
    none = np.empty((0, 6), np.float32)
    assert top_k(none, plain.items, 5).ids.shape == (0, 5)
    ranks = held_out_ranks(none, plain.items, sparse.csr_matrix((0, 40)), 5)
    assert (ranks.shape, ranks.lengths.tolist()) == ((0, 40), [])


def test_no_factors_at_all_are_ties() -> None:
    users, items = np.empty((2, 0), np.float32), np.empty((5, 0), np.float32)
    seen = sparse.csr_matrix([[0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    found = top_k(users, items, 2, seen)
    assert found.ids.tolist() == [[0, 2], [0, 1]]
    assert found.scores.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_scores_need_not_fit_where_factors_do() -> None:
    """Lengths beyond the square root of what a float holds, or below; and the other way round."""
    rng = np.random.default_rng(10)
    for dtype, *powers in (
        (np.float64, 900, -900), (np.float64, -700, -300), (np.float64, 500, 500),
        (np.float64, -1070, 0), (np.float64, -1070, 900), (np.float64, -560, -560),
        (np.float32, 120, 120), (np.float32, -140, -140), (np.float16, 12, 12),
    ):  # fmt: skip
        users, items = make_factors(rng, "normal", (5, 50, 4), dtype, (powers[0], powers[1]))
        case = make_case(rng, users, items, 9)
        check_top_k(case, case.top_k(), k=9)
        check_ranks(case, case.held_out_ranks(), k=9)
        check_ranks(case, case.full_ranks())


def test_what_was_hit_is_not_taken_for_a_list(plain: Case) -> None:
    """Metrics of what was recommended need the lists."""
    with pytest.raises(InvalidDataError):
        se.evaluate(plain.held_out_ranks(), plain.held_out, "coverage@7")
    first = replace(  # its hits have no gap between them
        plain,
        users=np.ones((1, 1)),
        items=np.array([[3.0], [2.0], [1.0]]),
        seen=None,
        held_out=sparse.csr_matrix([[1, 0, 0]]),
    )
    with pytest.raises(InvalidDataError):
        se.evaluate(first.held_out_ranks(3), first.held_out, "coverage@3")


# ---- Held-out items that were seen


@pytest.fixture
def overlapping() -> Case:
    rng = np.random.default_rng(11)
    users, items = make_factors(rng, "whole", (60, 45, 3))
    case = make_case(rng, users, items, 8)
    seen, held_out = case.seen.tolil(), case.held_out.tolil()
    for user, item in ((17, 23), (17, 31), (38, 2), (52, 44)):
        seen[user, item], held_out[user, item] = 2, 3
    held_out[51, 3], seen[51, 3] = 0, 1
    held_out = held_out.tocsr()
    rows, columns, gains = sparse.find(held_out)
    # known not to be relevant, and seen: no overlap
    zero = sparse.csr_matrix(
        (np.append(gains, 0.0), (np.append(rows, 5), np.append(columns, row_of(case.seen, 5)[0]))),
        case.shape,
    )
    return replace(case, seen=seen.tocsr(), held_out=zero)


@pytest.mark.parametrize("of", ["held_out_ranks", "full_ranks"])
def test_seen_items_that_are_held_out_are_an_error(overlapping: Case, of: str) -> None:
    for options in ({}, {"overlap": "error"}):
        with pytest.raises(InvalidDataError, match="seen") as raised:
            getattr(overlapping, of)(**options)
        says = str(raised.value)
        for number in ("17", "23", "4"):
            assert number in says.replace(",", " ").replace(";", " ").replace(")", " ").split()


@pytest.mark.parametrize("of", ["held_out_ranks", "full_ranks"])
def test_seen_items_that_are_held_out_may_be_reported(overlapping: Case, of: str) -> None:
    with pytest.warns(UserWarning, match=r"\b4\b") as caught:
        ranks = getattr(overlapping, of)(overlap="report")
    assert len(caught) == 1
    check_ranks(overlapping, ranks, k=8 if of == "held_out_ranks" else math.inf)
    if of == "held_out_ranks":  # they count as misses
        lists = Rankings.from_topk(overlapping.top_k().ids, shape=overlapping.shape)
        check_same_metrics(ranks, lists, overlapping, accuracy([1, 8]))


@pytest.mark.parametrize("of", ["held_out_ranks", "full_ranks"])
def test_nothing_to_report_warns_of_nothing(plain: Case, of: str) -> None:
    assert (
        getattr(plain, of)(overlap="report").items.tolist() == getattr(plain, of)().items.tolist()
    )


# ---- What is refused


def spoiled(array: Array, row: int, value: float) -> Array:
    array = array.copy()
    array[row, -1] = value
    return array


def call(of: str, case: Case, **changes: Any) -> object:
    """Call a function on a case, some of its arguments replaced."""
    arguments: dict[str, Any] = {
        "user_factors": case.users,
        "item_factors": case.items,
        "k": case.k,
        "seen": case.seen,
        "held_out": case.held_out,
        **changes,
    }
    if of == "top_k":
        arguments.pop("held_out")
    elif of == "full_ranks":
        arguments.pop("k")
    return getattr(retrieve, of)(**arguments)


ALL = ["top_k", "held_out_ranks", "full_ranks"]


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("side", ["user_factors", "item_factors"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_factors_that_are_not_finite(
    plain: Case, of: str, side: str, dtype: type, value: float
) -> None:
    whole = (plain.users if side == "user_factors" else plain.items).astype(dtype)
    spoilt = spoiled(whole, 6, value)
    with pytest.raises(InvalidDataError, match=f"{side}.* row 6 "):
        call(of, plain, **{side: spoilt})


NO_FACTORS: dict[str, Callable[[Array], object]] = {
    "one dimension": lambda array: array[0],
    "three dimensions": lambda array: array[None],
    "int": lambda array: array.astype(np.int64),
    "complex": lambda array: array.astype(np.complex64),
    "object": lambda array: array.astype(object),
    "longdouble": lambda array: array.astype(np.longdouble),
    "masked": lambda array: np.ma.masked_equal(array, 0),
    "list": lambda array: array.tolist(),
    "sparse": sparse.csr_matrix,
    "None": lambda array: None,
}


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("side", ["user_factors", "item_factors"])
@pytest.mark.parametrize("found", NO_FACTORS)
def test_factors_that_are_none(plain: Case, of: str, side: str, found: str) -> None:
    whole = plain.users if side == "user_factors" else plain.items
    with pytest.raises(InvalidDataError, match=side):
        call(of, plain, **{side: NO_FACTORS[found](whole)})


@pytest.mark.parametrize("of", ALL)
def test_factors_of_two_models(plain: Case, of: str) -> None:
    with pytest.raises(InvalidDataError, match=r"6\b.*\b5\b"):
        call(of, plain, item_factors=plain.items[:, :5])


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize(
    ("user", "item"),
    [
        ([1e200, 0.0], [1e200, 0.0]),
        ([1e200, -1e200], [1e200, 1e200]),  # ∞ − ∞
        ([-1e160], [1e160]),
        ([1e154] * 2, [1.7e154] * 2),  # each product fits
    ],
)
def test_scores_that_could_overflow(of: str, user: list[float], item: list[float]) -> None:
    users, items = np.zeros((3, len(user))), np.ones((4, len(item)))
    users[1], items[2] = user, item
    arguments: dict[str, Any] = {"held_out": sparse.csr_matrix(np.eye(3, 4)), "seen": None}
    case = Case(users, items, 2, None, arguments["held_out"])
    with pytest.raises(InvalidDataError, match="overflow|too large"):
        call(of, case)


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seen": sparse.csr_matrix((8, 40))}, "seen.*8"),
        ({"seen": sparse.csr_matrix((10, 40))}, "seen.*10"),
        ({"seen": sparse.csr_matrix((9, 39))}, "seen.*39"),
        ({"seen": sparse.csr_matrix((9, 41))}, "seen.*41"),
        ({"seen": np.zeros((9, 40))}, "seen.*ndarray"),
        ({"seen": [[1]]}, "seen.*list"),
        ({"items": [3, 40]}, "items.*40"),
        ({"items": [-1]}, "items.*-1"),
        ({"items": [0.5]}, "items"),
        ({"items": [1.0]}, "items"),
        ({"items": np.ones(40, bool)}, "items"),
        ({"items": [[0, 1]]}, "items"),
        ({"items": 3}, "items"),
        ({"items": "3"}, "items"),
        ({"items": np.array([2**64 - 1], np.uint64)}, "items"),
        ({"exclude": [40]}, "exclude.*40"),
        ({"exclude": [0, -2]}, "exclude.*-2"),
        ({"exclude": [0.0]}, "exclude"),
        ({"exclude": np.zeros(40, bool)}, "exclude"),
        ({"exclude": [["a"]]}, "exclude"),
        ({"items": []}, "no (candidate|item)"),
        ({"exclude": range(40)}, "no (candidate|item)"),
        ({"items": [1, 2], "exclude": [2, 1]}, "no (candidate|item)"),
        ({"item_factors": np.empty((0, 6)), "seen": None, "held_out": sparse.csr_matrix((9, 0))},
         "no (candidate|item)"),
        ({"num_threads": 0}, "num_threads"),
        ({"num_threads": -1}, "num_threads"),
        ({"num_threads": 1.5}, "num_threads"),
        ({"num_threads": True}, "num_threads"),
        ({"num_threads": "2"}, "num_threads"),
        ({"progress": "yes"}, "progress"),
        ({"progress": 2}, "progress"),
    ],
)  # fmt: skip
def test_inputs_that_are_none(plain: Case, of: str, change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidDataError, match=says):
        call(of, plain, **change)


def test_a_damaged_matrix_is_not_read(plain: Case) -> None:
    for name in ("seen", "held_out"):
        damaged = getattr(plain, name).copy()
        damaged.indices[3] = 40
        for of in ALL[name == "held_out" :]:
            with pytest.raises(InvalidDataError, match="40"):
                call(of, plain, **{name: damaged})


@pytest.mark.parametrize("of", ["top_k", "held_out_ranks"])
@pytest.mark.parametrize("k", [0, -1, 2.5, 2.0, "3", None, True, math.nan])
def test_cutoffs_that_are_none(plain: Case, of: str, k: object) -> None:
    with pytest.raises(InvalidDataError, match=r"\bk\b"):
        call(of, plain, k=k)


@pytest.mark.parametrize(
    ("users", "says"),
    [
        ([0, 9], "users.*9"),
        ([-1], "users.*-1"),
        ([0.5], "users"),
        ([1.0], "users"),
        (np.ones(9, bool), "users"),
        ([[0, 1]], "users"),
        (3, "users"),
        (["a"], "users"),
        ([None], "users"),
    ],
)
def test_users_that_are_none(plain: Case, users: object, says: str) -> None:
    with pytest.raises(InvalidDataError, match=says):
        plain.top_k(users=users)


@pytest.mark.parametrize("of", ["held_out_ranks", "full_ranks"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"held_out": sparse.csr_matrix((10, 40))}, r"held_out.*\b10\b"),
        ({"held_out": sparse.csr_matrix((9, 41))}, r"held_out.*\b41\b"),
        ({"held_out": Relevance.from_csr(sparse.csr_matrix((9, 41)))}, r"held_out.*\b41\b"),
        ({"held_out": np.zeros((9, 40))}, "ndarray"),
        ({"held_out": None}, "NoneType"),
        ({"held_out": sparse.csr_matrix(-np.eye(9, 40))}, "gain in row 0, column 0"),
        ({"held_out": sparse.csr_matrix(np.nan * np.eye(9, 40))}, "gain in row 0, column"),
        ({"overlap": "drop"}, "overlap.*'drop'"),
        ({"overlap": None}, "overlap"),
    ],
)
def test_held_out_that_is_none(plain: Case, of: str, change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidDataError, match=says):
        call(of, plain, **change)


# ---- Threads, progress, interruption


def settings_of_the_process() -> object:
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return pools, np.geterr(), signal.getsignal(signal.SIGINT)


def test_no_setting_of_the_process_is_left_changed(plain: Case) -> None:
    with threadpool_limits(3, "blas"):  # not what a call would set
        before = settings_of_the_process()
        found_in(plain, num_threads=2)
        assert settings_of_the_process() == before
        for wrong in ({"users": [99]}, {"k": 0}, {"num_threads": 0}, {"progress": "yes"}):
            with pytest.raises(InvalidDataError):
                plain.top_k(**wrong)
            assert settings_of_the_process() == before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("of", ALL)
def test_progress(plain: Case, of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(stream: io.StringIO, **options: Any) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        call(of, plain, **options)
        return stream.getvalue()

    assert "100%" in shown(io.StringIO(), progress=True)
    assert "100%" in shown(Terminal())
    assert "100%" in shown(io.StringIO(), progress=True, num_threads=2)
    for options in ({}, {"progress": None}, {"progress": False}):
        assert shown(io.StringIO(), **options) == ""
    assert shown(Terminal(), progress=False) == ""


@pytest.fixture(scope="module")
def long_work() -> Case:
    """Return what takes half a second or more."""
    rng = np.random.default_rng(13)
    users, items = make_factors(rng, "unit", (40_000, 40_000, 64))
    held_out = (np.ones(120_000), rng.integers(40_000, size=120_000), np.arange(0, 120_001, 3))
    return Case(users, items, 5000, None, sparse.csr_matrix(held_out, (40_000, 40_000)))


@pytest.mark.slow  # a block of users, run as Python, would not come to its end
@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_interrupt_ends_the_work(
    plain: Case, long_work: Case, of: str, num_threads: int
) -> None:
    call(of, plain, num_threads=num_threads)  # compiles
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    with threadpool_limits(3, "blas"):
        before = settings_of_the_process()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                call(of, long_work, k=10 if of == "top_k" else 5000, num_threads=num_threads)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        assert settings_of_the_process() == before
    check_top_k(plain, plain.top_k(), k=plain.k)


def test_any_k_is_as_good_as_the_catalogue(plain: Case) -> None:
    sides = (plain.users, plain.items)
    whole = held_out_ranks(*sides, plain.held_out, plain.items.shape[0], overlap="report")
    for k in (2**31, 2**63, 10**30):
        ranks = held_out_ranks(*sides, plain.held_out, k, overlap="report")
        assert ranks.to_positions().toarray().tolist() == whole.to_positions().toarray().tolist()
        assert ranks.lengths.tolist() == whole.lengths.tolist()


def test_what_no_option_is(plain: Case) -> None:
    for overlap in ("none", ["error"], np.array(["error", "report"])):
        with pytest.raises(InvalidDataError, match="expected 'error' or 'report'"):
            held_out_ranks(plain.users, plain.items, plain.held_out, 3, overlap=overlap)  # type: ignore[arg-type]
    with pytest.raises(InvalidDataError, match="item_factors have no rows"):
        top_k(plain.users, plain.items[:0], 3)
