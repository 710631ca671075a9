"""Ids of whole numbers as codes: the same from a table of all numbers as from a sort."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from sparse_eval.inputs.axes import Axis, encode

STEPS, LEAST = (1, 7, 2**31, 2**58), (0, -5, -(2**63))
SPREADS = (3, 30, 1000)  # the last one is too far apart for a table


def drawn(step, least, spread):
    numbers = np.random.default_rng(0).integers(0, spread, 29).tolist()
    return [least + step * n for n in numbers if least + step * n < 2**63]


@pytest.mark.parametrize(
    "ids",
    [
        *(drawn(*case) for case in product(STEPS, LEAST, SPREADS)),
        [*range(0, 6000, 5), 6001],  # the last id is no multiple of the step of the first ones
        [-(2**62), 2**62, 0, -(2**62)],  # no int64 holds the difference of the ends
    ],
)
def test_whole_numbers_have_the_codes_of_their_order(ids):
    rows = [np.array(part, np.int64) for part in (ids[:20], [], ids[20:])]
    labels, expected = np.unique(np.array(ids, np.int64), return_inverse=True)
    codes, axis = encode([pa.array(side) for side in rows])
    assert axis.tolist() == labels.tolist()
    assert np.concatenate(codes).tolist() == expected.tolist()
    given = Axis.of(labels[::-2].tolist())
    codes, _ = encode([pa.array(side) for side in rows], given)
    assert np.concatenate(codes).tolist() == given.locate(np.concatenate(rows)).tolist()
