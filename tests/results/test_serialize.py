"""Parts of evaluations as bytes: they come back with the same bits, or not at all."""

from __future__ import annotations

import io
import json
import math
import struct
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from evaluations import without_lists
from merge_cases import N_ITEMS, every_metric
from numpy.testing import assert_array_equal
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.core.exact_sums import Moments
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics.random_baseline import Expectation, RandomSums
from sparse_eval.results.serialize import pack, unpack
from sparse_eval.results.totals import Part, Retrieval, RunningTotals


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


def bits(number: float) -> bytes:
    return struct.pack(">d", number)


def part_of(ev: se.Evaluation, *, per_user: bool = True, random: bool = False) -> Part:
    (part,) = without_lists(ev, per_user=per_user)._parts
    return Part(replace(part.totals, random=ev._random), part.values) if random else part


def changed(part: Part, **totals: Any) -> Part:
    return part._replace(totals=replace(part.totals, **totals))


def same_moments(one: Moments, other: Moments) -> bool:
    return one[:3] == other[:3] and bits(one.non_finite) == bits(other.non_finite)


def assert_same(one: Part, other: Part) -> None:
    for name in ("key", "span", "n_counted", "n_without_list", "retrieval"):
        ours, theirs = getattr(one.totals, name), getattr(other.totals, name)
        assert ours == theirs, name
        assert type(ours) is type(theirs), name
    assert all(map(same_moments, one.totals.moments, other.totals.moments))
    assert len(one.totals.moments) == len(other.totals.moments)
    assert_same_samples(one.totals.samples, other.totals.samples)
    assert one.totals.ratios.keys() == other.totals.ratios.keys()
    for row, ratios in one.totals.ratios.items():
        assert all(
            same_moments(*pair)
            for ours, theirs in zip(ratios, other.totals.ratios[row], strict=True)
            for pair in zip(ours, theirs, strict=True)
        )
    assert list(one.totals.lists) == list(other.totals.lists)
    for key, counts in one.totals.lists.items():
        for field in fields(counts):
            ours = getattr(counts, field.name)
            theirs = getattr(other.totals.lists[key], field.name)
            assert ours.dtype == theirs.dtype
            assert_array_equal(ours, theirs)
    assert_same_random(one.totals.random, other.totals.random)
    assert (one.values is None) == (other.values is None)
    if one.values is not None:
        for field in fields(one.values):
            ours, theirs = getattr(one.values, field.name), getattr(other.values, field.name)
            assert ours.dtype == theirs.dtype, field.name
            assert ours.shape == theirs.shape, field.name
            if ours.dtype == object:
                assert ours.tolist() == theirs.tolist()
            else:
                assert ours.tobytes() == theirs.tobytes(), field.name


def assert_same_samples(one: Any, other: Any) -> None:
    assert [x is None for x in one] == [x is None for x in other]
    for ours, theirs in zip(one, other, strict=True):
        if ours is not None:
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes()


def assert_same_random(one: Any, other: Any) -> None:
    assert (one is None) == (other is None)
    for ours, theirs in zip(one or (), other or (), strict=True):
        assert type(ours) is type(theirs)
        if isinstance(ours, RandomSums):
            for name in ("values", "denominators"):
                assert all(map(same_moments, getattr(ours, name), getattr(theirs, name)))
                assert len(getattr(ours, name)) == len(getattr(theirs, name))
        elif ours is not None:
            assert list(map(bits, ours)) == list(map(bits, theirs))


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("labels", ["none", "numbers", "text"])
def test_every_metric_comes_back(labels: str, per_user: bool) -> None:
    part = part_of(evaluated(labels=labels), per_user=per_user)
    assert part.totals.ratios
    assert part.totals.lists
    assert_same(unpack(pack(part)), part)


def test_random_baseline_comes_back() -> None:
    part = part_of(evaluated(labels="text"), random=True)
    random = part.totals.random
    assert random is not None
    kinds = {type(total) for total in random}
    assert kinds == {RandomSums, Expectation}
    unknown = Expectation(math.nan, math.nan)
    for other in (
        random,
        (None, *random[1:]),
        (unknown, *random[1:]),
        (Expectation(-0.0, 0.0), *random[1:]),
        (RandomSums((Moments(),), ()), *random[1:]),
    ):
        found = changed(part, random=other)
        assert_same(unpack(pack(found)), found)


def test_many_users_have_sums_only() -> None:
    part = part_of(evaluated(3_000), per_user=False)
    assert None in part.totals.samples
    found = pack(part)
    assert len(found) < 100_000
    assert_same(unpack(found), part)


def test_how_rankings_were_made_comes_back() -> None:
    part = part_of(evaluated())
    for way in (Retrieval("top_k", 3, 2, 1, 0), Retrieval("recommend", 2**40)):
        retrieved = changed(part, retrieval=way)
        assert_same(unpack(pack(retrieved)), retrieved)


@pytest.mark.parametrize("non_finite", [math.inf, -math.inf, math.nan, -math.nan, 0.0, -0.0])
def test_sums_of_any_size_come_back(non_finite: float) -> None:
    part = part_of(evaluated())
    large = Moments(3, -(7**9_000), 11**9_000, non_finite)
    found = changed(part, moments=(large, *part.totals.moments[1:]))
    assert_same(unpack(pack(found)), found)


def test_counts_of_any_size_come_back() -> None:
    part = part_of(evaluated())
    key, counts = next(iter(part.totals.lists.items()))
    large = replace(counts, item_counts=counts.item_counts * 2**50)
    found = changed(part, lists={**part.totals.lists, key: large})
    assert_same(unpack(pack(found)), found)


def test_a_block_without_users_comes_back() -> None:
    part = part_of(evaluated())
    values = part.values
    assert values is not None
    empty = {field.name: getattr(values, field.name)[..., :0] for field in fields(values)}
    none = changed(
        part._replace(values=replace(values, **empty)),
        span=part.span._replace(first=0, last=0, n=0, checksum=0),
        samples=tuple(np.empty(0) for _ in part.totals.samples),
    )
    assert_same(unpack(pack(none)), none)


def test_what_comes_back_is_merged() -> None:
    ev = evaluated(labels="text")
    running = RunningTotals()
    running.add(unpack(pack(part_of(ev))))
    again = se.Evaluation(ev.request, parts=[running.part()])
    assert again.mean() == ev.mean()
    assert again.per_user.equals(ev.per_user.sort_index())


def test_damage_is_refused_or_changes_nothing() -> None:
    part = part_of(evaluated(5))
    packed = pack(part)
    refused = 0
    for place in range(0, len(packed), max(len(packed) // 1000, 1)):
        damaged = bytearray(packed)
        damaged[place] ^= 0x41
        try:
            found = unpack(bytes(damaged))
        except InvalidDataError as error:
            assert "the totals of an evaluation cannot be read" in str(error)  # noqa: PT017
            refused += 1
        else:  # a date or an attribute of a file in the archive
            assert_same(found, part)
        with raises(InvalidDataError):
            unpack(packed[:place])
    assert refused > 500


def rewritten(**arrays: Any) -> bytes:
    """Return a part some of whose arrays are others."""
    packed = pack(part_of(evaluated(5)))
    with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
        kept = dict(archive.items())
    kept.update(arrays)
    stream = io.BytesIO()
    np.savez(stream, **{name: array for name, array in kept.items() if array is not None})
    return stream.getvalue()


def header(**values: Any) -> Any:
    """Return a header some of whose entries are others, or missing."""
    packed = pack(part_of(evaluated(5)))
    with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
        content = json.loads(archive["header"].tobytes())
    content = {name: value for name, value in (content | values).items() if value is not ...}
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


@pytest.mark.parametrize(
    "arrays",
    [
        {"header": None},
        {"header": np.frombuffer(b"[]", np.uint8)},
        {"header": np.frombuffer(b"{", np.uint8)},
        {"header": np.frombuffer(b"[" * 100_000, np.uint8)},
        {"header": np.array([200], np.uint8)},
        {"header": header(format=1)},
        {"header": header(format=...)},
        {"header": header(key={})},
        {"header": header(span=3)},
        {"header": header(moments=[[1, "0x1", "0x1", None]])},
        {"header": header(moments=[[1, "x", "0x1", "00"]])},
        {"header": header(retrieval={"way": 1})},
        {"values.counted": None},
        {"values.users": np.array([{}], object)},  # a pickle
        {"samples.0": None},
        {"lists.0.item_counts": None},
    ],
)
def test_refuses_other_arrays(arrays: dict[str, Any]) -> None:
    with raises(InvalidDataError):
        unpack(rewritten(**arrays))


def test_says_which_layout_it_reads() -> None:
    with raises(InvalidDataError):
        unpack(rewritten(header=header(format=1)))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"{}"])
def test_refuses_bytes_that_are_no_archive(data: bytes) -> None:
    with raises(InvalidDataError):
        unpack(data)
