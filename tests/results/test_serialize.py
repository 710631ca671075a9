"""Parts of evaluations as bytes: they come back with the same bits, or not at all."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from evaluations import part_of, some
from merge_cases import every_metric
from raising import raises

from sparse_eval.core.exact_sums import Moments
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics.random_baseline import Expectation, RandomSums
from sparse_eval.results.parts import Retrieval, pack, unpack


def comes_back(part):
    """Check that a part is read as it was written, with the same types and every bit."""
    packed = pack(part)
    found = unpack(packed)
    assert found.equals(part)
    assert repr(found.random) == repr(part.random)
    assert pack(found) == packed


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("labels", [None, lambda n: 7 * n - 5, "Ü{}\U0001f600\n".format])
def test_every_metric_comes_back(labels, per_user):
    comes_back(part_of(some(40, labels=labels, metrics=every_metric()), per_user=per_user))


def test_rare_values_come_back():
    ev = some(metrics=every_metric())
    part, (_, *random) = part_of(ev), ev._random
    key, counts = next(iter(part.lists.items()))
    nobody, zero = RandomSums((Moments(),), ()), Expectation(-0.0, 0.0)
    for changed in (
        *({"random": (one, *random)} for one in (None, nobody, zero, Expectation(math.nan, 0.0))),
        {"retrieval": Retrieval("top_k", 3, 2, 1, 0)},
        {"retrieval": Retrieval("recommend", 2**40)},
        {"lists": {**part.lists, key: counts._replace(sums=counts.sums * 2**50)}},
        *(
            {"moments": (Moments(3, -(7**700), 11**1200, rest), *part.moments[1:])}
            for rest in (math.inf, -math.inf, math.nan, -math.nan, 0.0, -0.0)
        ),
    ):
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


@pytest.mark.parametrize("header", [b"{", b"[" * 100_000, b'{"other": []}', b'{"Part": [1]}', None])
def test_refuses_other_headers_and_pickles(header):
    with np.load(io.BytesIO(pack(part_of(some(5))))) as archive:
        arrays = dict(archive)
    if header is None:
        arrays["0"] = np.array([{}], object)
    else:
        arrays["header"] = np.frombuffer(header, np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    for data in (stream.getvalue(), b"\x93NUMPY\x01\x00", b"{}"):
        with raises(InvalidDataError):
            unpack(data)
