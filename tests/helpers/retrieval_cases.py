"""Factors of every kind with seen and held-out items, and what retrieval must return for them.

The definition shares no code with the package: the score of a user and an item is the dot product
of their stored factors, accumulated in float64 in the order of the factors; a list goes by score
downward, then by item number upward.
"""

import math
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.retrieval import search

#: The attributes of `SearchSettings` that divide the work, with values that make many small pieces.
#: None of them may change a result.
TILES = {
    "users_per_block": (1, 2, 7),
    "max_group": (1, 2, 5),
    "users_per_centre": (1, 3),
    "max_centres": (1, 2),
    "tile": (1, 3),
    "chunk": (1, 7, 64),
    "min_parts": (1, 2, 64),
    "items_per_part": (1, 2),
    "max_cells": (1, 100),
    "order_tile": (1, 5),
    "order_chunk": (16, 64),
    "order_block": (1, 7),
    "most_held_out": (0, 2, 4096, 4096),
    "plain_candidates": (1, 3, 1 << 20, 1 << 20),
    "small_catalogue": (0, 5, 20_000),
    "large_catalogue": (0, 60_000),
    "few_users": (0, 2),
    "easy_for_few": (0, 10, 10_000),
    "easy_for_ranks": (0, 10, 10_000),
    "wide": (1, 128),
    "wide_tile": (2, 7),
    "tried_users": (1, 3),
    "tried_share": (1, 4),
    "easy_items": (0, 10, 10_000),
    "worth_keeping": (0, 2 * 10**11),
    "work_of_threads": (0, 0, 10**6),
}
DTYPES = (np.float16, np.float32, np.float64)

#: Powers of two that both sides are multiplied by: small and large numbers, subnormal ones, and
#: float64 ones that no float32 can hold.
SCALES = {
    np.float16: [(0, 0), (-10, -10), (9, 9), (-20, 0), (10, -18)],
    np.float32: [(0, 0), (-100, -100), (110, 110), (-140, 0), (-60, -140), (110, -120)],
    np.float64: [(0, 0), (-200, -200), (400, 400), (-1030, 0), (-520, -520), (700, -900)],
}


def _whole(rng, n_users, n_items, f):
    """Ties everywhere."""
    return rng.integers(-2, 3, (n_users, f)), rng.integers(-1, 2, (n_items, f))


def _normal(rng, n_users, n_items, f):
    return rng.normal(size=(n_users, f)), rng.normal(size=(n_items, f))


def _unit(rng, n_users, n_items, f):
    """Equal lengths, which say nothing about the scores."""
    users, items = _normal(rng, n_users, n_items, f)
    return tuple(side / np.linalg.norm(side, axis=1, keepdims=True) for side in (users, items))


def _same_length(rng, n_users, n_items, f):
    """The same numbers in another order, and sums of them that differ in rounding alone."""
    base = rng.normal(size=f)
    return np.ones((n_users, f)), np.array([rng.permutation(base) for _ in range(n_items)])


def _duplicates(rng, n_users, n_items, f):
    """A few vectors only, each shared by more items than a list holds."""
    users, items = _normal(rng, n_users, 3, f)
    return users, items[rng.choice(3, n_items, p=[0.2, 0.7, 0.1])]


def _near_ties(rng, n_users, n_items, f):
    """Scores that differ by less than float32 resolves, and some equal ones."""
    users, items = _normal(rng, n_users, 1, f)
    items = np.repeat(items, n_items, axis=0)
    column = rng.integers(f)
    items[:, column] = rng.integers(0, 40, n_items) * 1e-12  # the others are of the order of 1
    return users, items


def _last_bits(rng, n_users, n_items, f):
    """Parallel vectors, which `make_factors` moves by a few units in the last place.

    Every score is all that its bound allows, so that no bound has room to be wrong.
    """
    base = rng.uniform(0.5, 1.5, f)
    return rng.uniform(0.5, 2, (n_users, 1)) * base, np.tile(base, (n_items, 1))


def _cancelling(rng, n_users, n_items, f):
    """Large products that cancel: what is left depends on the precision and the order."""
    users, items = np.ones((n_users, f)), rng.normal(size=(n_items, f))
    if f > 2:
        items[:, 0] = 2.0**40 * rng.integers(1, 3, n_items)
        items[:, -1] = -items[:, 0]
    return users, items


def _absorbed(rng, n_users, n_items, f):
    """Many products, each too small to change a float32 sum that starts with 1: it is wrong by
    as much as its bound allows for this number of factors.
    """
    users, items = np.full((n_users, f), 2.0**-12), np.full((n_items, f), 0.99 * 2.0**-12)
    items[np.arange(f) > rng.integers(f, size=(n_items, 1))] = 0
    users[:, 0] = rng.choice([1.0, 0.75], n_users)
    items[:, 0] = 1 + rng.integers(0, f // 2 + 1, n_items) * 2.0**-23
    return users, items


def _skewed(rng, n_users, n_items, f):
    """Lengths over 60 orders of magnitude: float32 products overflow and vanish."""
    users, items = _normal(rng, n_users, n_items, f)
    return (
        users * 10.0 ** rng.uniform(-30, 30, (n_users, 1)),
        items * 10.0 ** rng.uniform(-30, 30, (n_items, 1)),
    )


def _wide(rng, n_users, n_items, f):
    """Single numbers over 60 orders of magnitude."""
    users, items = _normal(rng, n_users, n_items, f)
    return (
        users * 10.0 ** rng.uniform(-30, 30, users.shape),
        items * 10.0 ** rng.uniform(-30, 30, items.shape),
    )


def _negative(rng, n_users, n_items, f):
    """Negative scores only: the longest vectors have the lowest."""
    users, items = _normal(rng, n_users, n_items, f)
    return np.abs(users), -np.abs(items) * rng.lognormal(size=(n_items, 1))


def _popular(rng, n_users, n_items, f):
    """Like ALS: users in groups, and a few items with long vectors."""
    tastes = rng.normal(size=(10, f)) + 0.5
    users = tastes[rng.integers(10, size=n_users)] + 0.3 * rng.normal(size=(n_users, f))
    items = tastes[rng.integers(10, size=n_items)] + rng.normal(size=(n_items, f))
    lengths = (1.0 + rng.permutation(n_items)) ** -0.7
    return users * rng.lognormal(size=(n_users, 1)), items * lengths[:, None]


def _biased(rng, n_users, n_items, f):
    """Like BPR: a column with the items' biases, and 1 on the users' side."""
    users, items = _normal(rng, n_users, n_items, f)
    users[:, -1] = 1.0
    items[:, -1] = -3 * rng.exponential(size=n_items)
    return users, items


KINDS = {
    kind.__name__.strip("_"): kind
    for kind in (
        *(_whole, _normal, _unit, _same_length, _duplicates, _near_ties, _last_bits, _cancelling),
        *(_absorbed, _skewed, _wide, _negative, _popular, _biased),
    )
}


def make_factors(rng, kind, shape, dtype=np.float32, scale=(0, 0), cold=0.0):
    """Make both sides for (users, items, factors); a share `cold` of each has zeros only."""
    sides = []
    for side, power in zip(KINDS[kind](rng, *shape), scale, strict=True):
        power = 0 if kind in ("skewed", "wide") else power  # which have a scale of their own
        values = np.ldexp(np.asarray(side, np.float64), power)
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


@dataclass(frozen=True)
class Case:
    users: np.ndarray
    items: np.ndarray
    k: int
    seen: Any
    held_out: Any
    candidates: list[int] | np.ndarray | None = None  # of all users, or a mask of each user's
    exclude: list[int] | None = None

    @property
    def shape(self):
        return len(self.users), len(self.items)

    @property
    def eligible(self):
        """Mark the candidates of each user, seen ones included."""
        mask = np.ones(self.shape, bool)
        if isinstance(self.candidates, list):
            mask &= np.isin(np.arange(self.shape[1]), self.candidates)
        elif self.candidates is not None:
            mask &= self.candidates
        mask[:, self.exclude or []] = False
        return mask

    @cached_property
    def orders(self):
        """Each user's unseen candidates, best first, with their scores."""
        return self._orders(self.users, self.items)

    def _orders(self, users, items):
        allowed = self.eligible
        if self.seen is not None:
            seen = self.seen.tocoo()
            allowed[seen.row, seen.col] = False
        columns = np.ascontiguousarray(items.T, np.float64)
        orders = []
        for user, own in zip(users.astype(np.float64), allowed, strict=True):
            scores = np.zeros(len(own))
            for of_user, of_items in zip(user, columns, strict=True):
                scores += of_user * of_items
            ids = np.flatnonzero(own)
            ids = ids[np.argsort(-scores[ids], kind="stable")]
            orders.append((ids, scores[ids]))
        return orders

    @cached_property
    def are_lost(self):
        """Mark users whose scores are all below the smallest normal number, and in a wrong order.

        Scaling by powers of two makes the scores larger and keeps their right order.
        """
        for_all = self if isinstance(self.candidates, list) else replace(self, candidates=None)
        items = self.items[for_all.eligible[0]].astype(np.float64)
        longest = max(math.hypot(*item) for item in items)
        lost = np.zeros(len(self.users), bool)
        lengths = np.array([math.hypot(*user) for user in self.users.astype(np.float64)])
        small = (lengths > 0) & (longest > 0) & (lengths * longest < sys.float_info.min)
        if small.any():
            users = np.ldexp(self.users, -np.frexp(lengths)[1][:, None])
            right = self._orders(users, np.ldexp(self.items, -math.frexp(longest)[1]))
            for user in np.flatnonzero(small):
                lost[user] = self.orders[user][0].tolist() != right[user][0].tolist()
        return lost

    def held_out_of(self, user):
        row = slice(self.held_out.indptr[user], self.held_out.indptr[user + 1])
        return self.held_out.indices[row][self.held_out.data[row] > 0]

    def top_k(self, k=None, **options):
        return se.top_k((self.users, self.items), k or self.k, **self._given | options)

    def ranks(self, k=None, **options):
        return se.ranks((self.users, self.items), self.held_out, k, **self._given | options)

    @property
    def _given(self):
        own = self.candidates
        if isinstance(own, np.ndarray):
            own = sparse.csr_matrix(own)
        return {"train": self.seen, "candidates": own, "exclude": self.exclude}

    def check(self, *cutoffs, **options):
        """Compare the lists and ranks up to each cut-off, by default `k`, and all ranks."""
        lost = self.are_lost
        of_ranks = lost[[len(self.held_out_of(user)) > 0 for user in range(len(lost))]]
        for k in cutoffs or (self.k,):
            with refused(lost.any()):
                self.check_top_k(self.top_k(k, **options), k)
            with refused(of_ranks.any()):
                self.check_ranks(self.ranks(k, **options), k)
        with refused(of_ranks.any()):
            self.check_ranks(self.ranks(**options))

    def check_top_k(self, result, k):
        lengths = np.array([len(order) for order, _ in self.orders])
        most = self.eligible.sum(axis=1).max()
        width = min(k, lengths.max() if isinstance(self.candidates, np.ndarray) else most)
        ids = np.full((len(self.users), width), -1, np.int32)
        scores = np.full(ids.shape, -np.inf)
        for row, (best, of_best) in enumerate(self.orders):
            n = min(width, len(best))
            ids[row, :n], scores[row, :n] = best[:n], of_best[:n]
        assert (result.ids.dtype, result.scores.dtype) == (np.int32, np.float64)
        assert result.ids.shape == result.scores.shape == ids.shape
        np.testing.assert_array_equal(result.ids, ids)
        np.testing.assert_array_equal(result.scores, scores)
        assert result.scores.tobytes() == scores.tobytes()  # no -0.0 for 0.0
        assert result.lengths.tolist() == np.minimum(lengths, width).tolist()

    def check_ranks(self, result, k=math.inf):
        assert result.shape == self.shape
        parts = (result.indptr, result.items, result.positions, result.lengths)
        assert [part.dtype for part in parts] == [np.int64, np.int32, np.int32, np.int64]
        assert result.last_positions is None
        assert (result.indptr[0], result.indptr[-1]) == (0, len(result.items))
        assert len(result.items) == len(result.positions)
        for user, (order, _) in enumerate(self.orders):
            relevant = self.held_out_of(user)
            ranks = np.flatnonzero(np.isin(order, relevant))
            ranks = ranks[ranks < k]
            row = slice(result.indptr[user], result.indptr[user + 1])
            assert result.items[row].tolist() == order[ranks].tolist(), user
            assert result.positions[row].tolist() == (ranks + 1).tolist(), user
            assert result.lengths[user] == (min(k, len(order)) if len(relevant) else 0), user


def refused(is_lost):
    """Expect an error if scores underflow."""
    return pytest.raises(InvalidDataError, match="underflow") if is_lost else nullcontext()


def to_csr(mask, values):
    """Store the marked values, zeros included."""
    rows, columns = np.nonzero(mask)
    return sparse.csr_matrix((values[rows, columns].astype(float), (rows, columns)), mask.shape)


def make_case(rng, users, items, k, seen="some", restricted=False):
    """Draw seen and held-out items; at least one is held out unless everything is seen."""
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
def cases(draw):
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
    k = draw(st.one_of(st.integers(1, 5), st.integers(1, n_items + 3), st.just(2**63)))
    case = make_case(rng, users, items, k, draw(st.sampled_from(SEEN)), draw(st.booleans()))
    assume(case.eligible.any())
    return case


@st.composite
def cases_of_any_floats(draw):
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
def tilings(draw):
    return {name: draw(st.sampled_from(values)) for name, values in TILES.items()}


@contextmanager
def cut_into(tiling):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search.Search, "settings", search.SearchSettings(**tiling))
        yield


threads = st.sampled_from([None, 1, 2, 7])


def results_of(case, **options):
    """Return the lists and all ranks of a case, as bytes."""
    lists = case.top_k(**options)
    parts = [lists.ids, lists.scores]
    for ranks in (case.ranks(case.k, **options), case.ranks(**options)):
        parts += [ranks.indptr, ranks.items, ranks.positions, ranks.lengths]
    return b"|".join(part.tobytes() for part in parts)
