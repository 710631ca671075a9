"""Products of directions in 16-bit integers, against plain arithmetic."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import config, njit

from sparse_eval.kernels import products
from sparse_eval.kernels.products import ROWS_AT_ONCE, UNIT, cosine_error, mark_above, multiply
from sparse_eval.kernels.vectors import COMPARED_AT_ONCE, LANES, count_in_line


@njit
def multiply_all(directions, rows, strips, weights, out):
    for first in range(0, len(rows), ROWS_AT_ONCE):
        for strip in range(len(strips)):
            multiply(directions, rows, first, strips, strip, weights, out)


@njit
def pack(directions, rows, strips):
    products.pack(directions, rows, len(rows), strips)


@njit
def mark_all(directions, rows, strips, weights, margins, limits, marks):
    for first in range(0, len(rows), ROWS_AT_ONCE):
        for strip in range(len(strips)):
            mark_above(directions, rows, first, strips, strip, weights, margins, limits, marks)


def directions_of(vectors):
    """Whole numbers of a unit, 16 bits each, by the kernel."""
    n, width = vectors.shape
    norms = np.linalg.norm(vectors.astype(float), axis=1)
    out = np.full((n, width + width % 2), 77, np.int16)
    products.to_directions(0, n, vectors, np.arange(n), norms, out)
    return out


def strips_of(directions, rows):
    n_strips = -(-len(rows) // LANES)
    strips = np.full((n_strips, directions.shape[1] // 2, LANES), 77, np.int32)
    pack(directions.view(np.int32), rows, strips)
    return strips


sizes = st.integers(1, 3 * LANES + 1)


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 8, 33, 64]), sizes, sizes, st.booleans())
def test_products_are_those_of_whole_numbers(seed, width, n_rows, n_lanes, is_large):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rng.integers(1, 41), width))
    if is_large:  # all of a direction in one number: the largest products
        vectors[np.arange(len(vectors)), rng.integers(width, size=len(vectors))] *= 1e9
    rows, lanes = (rng.integers(len(vectors), size=n) for n in (n_rows, n_lanes))
    directions = directions_of(vectors)
    before = directions.copy()
    strips = strips_of(directions, lanes)
    n_lanes = len(strips) * LANES
    weights = rng.random(n_lanes, np.float32)
    exact = directions[rows].astype(np.int64) @ directions[lanes].astype(np.int64).T
    assert np.abs(exact).max() < 2**31

    out = np.full((len(rows) + ROWS_AT_ONCE, n_lanes), np.nan, np.float32)
    multiply_all(directions.view(np.int32), rows, strips, weights, out)
    expected = exact.astype(np.float32) * weights[: len(lanes)]
    np.testing.assert_array_equal(out[: len(rows), : len(lanes)], expected)
    assert not out[: len(rows), len(lanes) :].any()

    whole = np.full(out.shape, 77, np.int16)
    multiply_all(directions.view(np.int32), rows, strips, weights * np.float32(2**-16), whole)
    expected = np.rint(exact.astype(np.float32) * (weights * np.float32(2**-16))[: len(lanes)])
    np.testing.assert_array_equal(whole[: len(rows), : len(lanes)], expected)

    of_rows = rng.random(len(vectors), np.float32) / np.float32(UNIT**2)
    margins = rng.random(len(vectors), np.float32) / np.float32(100)
    limits = rng.normal(size=n_lanes).astype(np.float32)
    limits[rng.random(n_lanes) < 0.1] = -np.inf
    marks = np.zeros((len(rows) + ROWS_AT_ONCE, len(strips)), np.uint16)
    mark_all(directions.view(np.int32), rows, strips, of_rows, margins, limits, marks)
    most = exact.astype(np.float32) * of_rows[rows][:, None] + margins[rows][:, None]
    marked = (marks[: len(rows), :, None] >> np.arange(LANES)) & 1
    marked = marked.reshape(len(rows), -1)[:, : len(lanes)]
    np.testing.assert_array_equal(marked, most > limits[: len(lanes)])
    np.testing.assert_array_equal(directions, before)


@njit
def count(line, low, high, selected, n):
    return count_in_line(line, low, high, 1000, selected, n)


@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from([3, 200, 2**15 - 1]))
def test_what_is_above_and_what_is_near_is_counted(seed, n_words, most):
    rng = np.random.default_rng(seed)
    line = rng.integers(-most - 1, most + 1, n_words * COMPARED_AT_ONCE).astype(np.int16)
    low, high = np.sort(rng.integers(-most - 1, most + 1, 2)).tolist()
    near = 1000 + np.flatnonzero((line > low) & (line <= high))
    selected = np.full(3 + len(near) + LANES, 7, np.int32)
    assert count(line, low, high, selected, 3) == ((line > high).sum(), 3 + len(near))
    assert selected[: 3 + len(near)].tolist() == [7, 7, 7, *near.tolist()]


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 20)),
        elements=st.floats(-1e6, 1e6, allow_subnormal=False),
    )
)
def test_the_error_of_a_cosine_is_bounded(vectors):
    vectors = vectors[np.linalg.norm(vectors, axis=1) > 1e-3]
    directions = directions_of(vectors).astype(np.int64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = directions @ directions.T / UNIT**2
    assert (np.abs(cosines - unit @ unit.T) <= cosine_error(vectors.shape[1]) + 1e-15).all()


@pytest.mark.parametrize("scale", [1.0, 1e-320, 5e-324, 1e300])
def test_directions_of_any_length(scale):
    vectors = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) * scale
    norms = np.array([np.sqrt(2.0) * scale, 0.0, scale])
    out = np.full((3, 4), 77, np.int16)
    products.to_directions(0, 3, vectors, np.arange(3), norms, out)
    if scale > 1e-300:
        assert out[0].tolist() == [23170, -23170, 0, 0]
    assert out[1:].tolist() == [[0] * 4, [0, UNIT, 0, 0]]
    assert np.abs(out).max() <= UNIT


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(config.DISABLE_JIT, reason="is about compiled code")
@pytest.mark.parametrize(
    ("cpu", "features"),
    [
        ("x86-64", ""),
        ("x86-64-v3", "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"),
        ("x86-64-v4", "+avx,+avx2,+fma,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"),
    ],
)
def test_older_processors_multiply_alike(cpu, features, tmp_path):
    if config.CPU_NAME or platform.machine() != "x86_64":
        pytest.skip("these are processors of another kind")
    if cpu == "x86-64-v4" and "avx512bw" not in Path("/proc/cpuinfo").read_text("ascii"):
        pytest.skip("this one has no AVX-512")
    chosen = [__file__, "-k", "whole_numbers or near"]
    numba = {"CPU_NAME": cpu, "CPU_FEATURES": features, "CACHE_DIR": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
        env=os.environ | {f"NUMBA_{name}": value for name, value in numba.items()},
        check=True,
        capture_output=True,
    )
