"""Parts of evaluations as bytes: they come back with the same bits, or not at all."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from evaluations import some, without_lists
from merge_cases import every_metric
from raising import raises

from sparse_eval.core.exact_sums import Moments
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics.random_baseline import Expectation, RandomSums
from sparse_eval.results.parts import Retrieval, pack, unpack


def part_of(ev, *, per_user=True, random=False):
    (part,) = without_lists(ev, per_user=per_user)._parts
    return replace(part, random=ev._random) if random else part


def comes_back(part):
    """Check that a part is read as it was written, with the same types and every bit."""
    packed = pack(part)
    found = unpack(packed)
    assert found.equals(part)
    assert repr(found.random) == repr(part.random)
    assert pack(found) == packed


LABELS = {
    "none": None,
    "numbers": [number * 7 - 5 for number in range(40)],
    "text": [f"Ü{number}\U0001f600\n" for number in range(40)],
}


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("labels", LABELS)
def test_every_metric_comes_back(labels, per_user):
    ev = some(40, labels=LABELS[labels], metrics=every_metric())
    part = part_of(ev, per_user=per_user)
    assert part.ratios
    assert part.lists
    comes_back(part)


def test_rare_values_come_back():
    part = part_of(some(labels="text", metrics=every_metric()), random=True)
    random, (key, counts) = part.random, next(iter(part.lists.items()))
    assert random is not None
    large = counts._replace(sums=counts.sums * 2**50)
    unknown, zero = Expectation(math.nan, math.nan), Expectation(-0.0, 0.0)
    sums = [
        Moments(3, -(7**700), 11**1200, rest)
        for rest in (math.inf, -math.inf, math.nan, -math.nan, 0.0, -0.0)
    ]
    totals = [
        *({"random": (one, *random[1:])} for one in (None, unknown, zero)),
        {"random": (RandomSums((Moments(),), ()), *random[1:])},
        {"retrieval": Retrieval("top_k", 3, 2, 1, 0)},
        {"retrieval": Retrieval("recommend", 2**40)},
        *({"moments": (large_sum, *part.moments[1:])} for large_sum in sums),
        {"lists": {**part.lists, key: large}},
    ]
    for changed in totals:
        comes_back(replace(part, **changed))


def test_damage_is_refused_or_changes_nothing():
    part = part_of(some(5))
    packed = pack(part)
    refused = 0
    for place in range(0, len(packed), len(packed) // 100):
        damaged = bytearray(packed)
        damaged[place] ^= 0x41
        try:
            found = unpack(bytes(damaged))
        except InvalidDataError:
            refused += 1
        else:  # a date or an attribute of a file in the archive
            assert found.equals(part)
        with raises(InvalidDataError):
            unpack(packed[:place])
    assert refused > 50


@pytest.mark.parametrize(
    "arrays",
    [
        {"header": None},
        {"header": np.frombuffer(b"{", np.uint8)},
        {"header": np.frombuffer(b"[" * 100_000, np.uint8)},
        {"header": np.frombuffer(b'{"other": []}', np.uint8)},
        {"header": np.frombuffer(b'{"Part": [1]}', np.uint8)},
        {"0": None},
        {"0": np.array([{}], object)},  # a pickle
    ],
)
def test_refuses_other_arrays(arrays):
    with np.load(io.BytesIO(pack(part_of(some(5))))) as archive:
        changed = {**archive, **arrays}
    stream = io.BytesIO()
    np.savez(stream, **{name: array for name, array in changed.items() if array is not None})
    for data in (stream.getvalue(), b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"{}"):
        with raises(InvalidDataError):
            unpack(data)
