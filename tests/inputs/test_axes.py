"""Ids of whole numbers as codes: the same from a table of all numbers as from a sort."""

import numpy as np
import pyarrow as pa
import pytest

from sparse_eval.inputs.axes import Axis, encode


@pytest.mark.parametrize("step", [1, 7, 2**31, 2**58])
@pytest.mark.parametrize("least", [0, -5, -(2**63)])
@pytest.mark.parametrize("spread", [3, 30, 1000])  # the last one is too far apart for a table
def test_whole_numbers_have_the_codes_of_their_order(step, least, spread):
    rng = np.random.default_rng(0)
    drawn = [[least + step * int(n) for n in rng.integers(0, spread, size)] for size in (20, 0, 9)]
    rows = [np.array([n for n in side if n < 2**63], np.int64) for side in drawn]
    ids, expected = np.unique(np.concatenate(rows), return_inverse=True)
    codes, axis = encode([pa.array(side) for side in rows])
    assert axis.tolist() == ids.tolist()
    assert np.concatenate(codes).tolist() == expected.tolist()
    given = Axis.of(ids[::-2].tolist())
    codes, _ = encode([pa.array(side) for side in rows], given)
    assert np.concatenate(codes).tolist() == given.locate(np.concatenate(rows)).tolist()


@pytest.mark.parametrize(
    "ids",
    [
        [*range(0, 6000, 5), 6001],  # the last id is no multiple of the step of the first ones
        [-(2**62), 2**62, 0, -(2**62)],  # no int64 holds the difference of the ends
    ],
)
def test_codes_of_uneven_and_distant_whole_numbers(ids):
    distinct, expected = np.unique(np.array(ids, np.int64), return_inverse=True)
    (codes,), axis = encode([pa.array(ids)])
    assert axis.tolist() == distinct.tolist()
    assert codes.tolist() == expected.tolist()
