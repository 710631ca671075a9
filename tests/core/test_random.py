"""Random numbers of users: uniform, and the same whoever is drawn for beside them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparse_eval.core.hashing import uniforms

KEYS = np.random.default_rng(0).integers(0, 2**64, 3000, np.uint64)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 5)), max_size=8))
def test_numbers_depend_on_key_place_and_seed_only(users: list[tuple[int, int]]) -> None:
    keys = np.array([key for key, _ in users], np.uint64)
    counts = np.array([count for _, count in users], np.int64)
    together = uniforms(keys, counts, 3)
    assert len(together) == counts.sum()
    first = 0
    for key, count in users:
        alone = uniforms(np.array([key], np.uint64), np.array([7]), 3)
        assert together[first : first + count].tolist() == alone[:count].tolist()
        first += count


def test_numbers_are_uniform_and_independent() -> None:
    drawn = np.stack([uniforms(KEYS, np.full(3000, 4), seed) for seed in range(3)])
    assert ((drawn >= 0) & (drawn < 1)).all()
    assert len(np.unique(drawn)) == drawn.size
    columns = drawn.reshape(3, 3000, 4).transpose(1, 0, 2).reshape(3000, 12)
    # of 3000 numbers: standard errors 0.0053 of a mean, 0.0183 of a correlation
    assert np.abs(columns.mean(axis=0) - 0.5).max() < 4.5 * 0.0053
    assert np.abs(np.corrcoef(columns.T) - np.eye(12)).max() < 4.5 * 0.0183
    in_tenths = np.histogram(drawn, 10, (0, 1))[0]
    assert np.abs(in_tenths / drawn.size - 0.1).max() < 4.5 * 0.3 / drawn.size**0.5
