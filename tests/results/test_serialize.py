"""Parts of evaluations as bytes: they come back with the same bits, or not at all."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from evaluations import without_lists
from merge_cases import N_ITEMS, every_metric, same_numbers
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.core.exact_sums import Moments
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics.random_baseline import Expectation, RandomSums
from sparse_eval.results.parts import Part, Retrieval, pack, unpack


def evaluated(n_users: int = 40, *, labels: str = "none", seed: int = 0) -> se.Evaluation:
    rng = np.random.default_rng(seed)
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (n_users, 1)), axis=1)[:, :6]
    gains = csr_matrix(rng.integers(0, 3, (n_users, N_ITEMS)).astype(np.float64))
    users: Any = {
        "none": None,
        "numbers": np.arange(n_users) * 7 - 5,
        "text": np.array([f"Ü{number}\U0001f600\n" for number in range(n_users)], object),
    }[labels]
    lists = se.Rankings.from_topk(ids, shape=(n_users, N_ITEMS))
    relevance = se.Relevance.from_csr(gains, users=users)
    return se.evaluate(replace(lists, users=relevance.users), relevance, every_metric())


def part_of(ev: se.Evaluation, *, per_user: bool = True, random: bool = False) -> Part:
    (part,) = without_lists(ev, per_user=per_user)._parts
    return replace(part, random=ev._random) if random else part


def comes_back(part: Part) -> None:
    """Check that a part is read as it was written, with the same types and every bit."""
    packed = pack(part)
    found = unpack(packed)
    assert found.equals(part)
    assert repr(found.random) == repr(part.random)
    assert pack(found) == packed


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("labels", ["none", "numbers", "text"])
def test_every_metric_comes_back(labels: str, per_user: bool) -> None:
    part = part_of(evaluated(labels=labels), per_user=per_user)
    assert part.ratios
    assert part.lists
    comes_back(part)


def test_rare_values_come_back() -> None:
    part = part_of(evaluated(labels="text"), random=True)
    random, (key, counts) = part.random, next(iter(part.lists.items()))
    assert random is not None
    large = counts._replace(sums=counts.sums * 2**50)
    unknown, zero = Expectation(math.nan, math.nan), Expectation(-0.0, 0.0)
    sums = [
        Moments(3, -(7**700), 11**1200, rest)
        for rest in (math.inf, -math.inf, math.nan, -math.nan, 0.0, -0.0)
    ]
    totals: list[dict[str, Any]] = [
        *({"random": (one, *random[1:])} for one in (None, unknown, zero)),
        {"random": (RandomSums((Moments(),), ()), *random[1:])},
        {"retrieval": Retrieval("top_k", 3, 2, 1, 0)},
        {"retrieval": Retrieval("recommend", 2**40)},
        *({"moments": (large_sum, *part.moments[1:])} for large_sum in sums),
        {"lists": {**part.lists, key: large}},
    ]
    for some in totals:
        comes_back(replace(part, **some))


def test_many_users_have_sums_only() -> None:
    part = part_of(evaluated(3_000), per_user=False)
    assert None in part.samples
    assert len(pack(part)) < 100_000
    comes_back(part)


def test_what_comes_back_is_merged() -> None:
    ev = evaluated(labels="text")
    again = se.Evaluation(ev.request, parts=[unpack(pack(part_of(ev)))]).merge()
    same_numbers(again, ev)
    assert again.per_user.equals(ev.per_user)


def test_damage_is_refused_or_changes_nothing() -> None:
    part = part_of(evaluated(5))
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


def rewritten(**arrays: Any) -> bytes:
    """Return a part some of whose arrays are others."""
    packed = pack(part_of(evaluated(5)))
    with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
        kept = dict(archive.items())
    kept.update(arrays)
    stream = io.BytesIO()
    np.savez(stream, **{name: array for name, array in kept.items() if array is not None})
    return stream.getvalue()


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
def test_refuses_other_arrays(arrays: dict[str, Any]) -> None:
    with raises(InvalidDataError):
        unpack(rewritten(**arrays))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"{}"])
def test_refuses_bytes_that_are_no_archive(data: bytes) -> None:
    with raises(InvalidDataError):
        unpack(data)
