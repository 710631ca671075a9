"""Parts of evaluations as bytes: they come back with the same bits, or not at all."""

from __future__ import annotations

import io
import math
import struct
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sparse_eval.results.parts import Part, Retrieval, add_parts
from test_merge import every_metric

import sparse_eval as se
from sparse_eval.core.exact_sums import Moments
from sparse_eval.errors import InvalidDataError
from sparse_eval.results import MergedEvaluation, part_of
from sparse_eval.results import serialize as wire
from sparse_eval.results.serialize import pack, unpack

N_ITEMS = 12


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


def same_moments(one: Moments, other: Moments) -> bool:
    return one[:3] == other[:3] and bits(one.non_finite) == bits(other.non_finite)


def assert_same(one: Part, other: Part) -> None:
    for name in ("terms", "span", "n_counted", "n_without_list", "retrieval"):
        assert getattr(one, name) == getattr(other, name), name
        assert type(getattr(one, name)) is type(getattr(other, name)), name
    assert all(map(same_moments, one.moments, other.moments))
    assert len(one.moments) == len(other.moments)
    assert [x is None for x in one.few] == [x is None for x in other.few]
    for values, others in zip(one.few, other.few, strict=True):
        if values is not None and others is not None:
            assert values.dtype == others.dtype
            assert values.tobytes() == others.tobytes()
    assert one.ratios.keys() == other.ratios.keys()
    for row, ratios in one.ratios.items():
        assert all(
            same_moments(*pair)
            for mine, theirs in zip(ratios, other.ratios[row], strict=True)
            for pair in zip(mine, theirs, strict=True)
        )
    assert list(one.lists) == list(other.lists)
    for key, counts in one.lists.items():
        for field in fields(counts):
            mine, theirs = getattr(counts, field.name), getattr(other.lists[key], field.name)
            assert mine.dtype == theirs.dtype
            assert_array_equal(mine, theirs)
    assert (one.rows is None) == (other.rows is None)
    if one.rows is not None:
        for field in fields(one.rows):
            mine, theirs = getattr(one.rows, field.name), getattr(other.rows, field.name)
            assert mine.dtype == theirs.dtype, field.name
            assert mine.shape == theirs.shape, field.name
            if mine.dtype == object:
                assert mine.tolist() == theirs.tolist()
            else:
                assert mine.tobytes() == theirs.tobytes(), field.name


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("labels", ["none", "numbers", "text"])
def test_every_metric_comes_back(labels: str, per_user: bool) -> None:
    part = part_of(evaluated(labels=labels), per_user=per_user)
    assert part.ratios
    assert part.lists
    assert_same(unpack(pack(part)), part)


def test_many_users_have_sums_only() -> None:
    part = part_of(evaluated(3_000), per_user=False)
    assert None in part.few
    found = pack(part)
    assert len(found) < 100_000
    assert_same(unpack(found), part)


def test_how_rankings_came_about_comes_back() -> None:
    part = part_of(evaluated())
    for way in (Retrieval("top_k", 3, 2, 1, 0), Retrieval("recommend", 2**40)):
        retrieved = replace(part, retrieval=way)
        assert_same(unpack(pack(retrieved)), retrieved)


@pytest.mark.parametrize("endless", [math.inf, -math.inf, math.nan, -math.nan, 0.0, -0.0])
def test_sums_of_any_size_come_back(endless: float) -> None:
    part = part_of(evaluated())
    large = Moments(3, -(7**9_000), 11**9_000, endless)
    changed = replace(part, moments=(large, *part.moments[1:]))
    assert_same(unpack(pack(changed)), changed)


def test_counts_of_any_size_come_back() -> None:
    part = part_of(evaluated())
    key, counts = next(iter(part.lists.items()))
    large = replace(counts, item_counts=counts.item_counts * 2**50)
    changed = replace(part, lists={**part.lists, key: large})
    assert_same(unpack(pack(changed)), changed)


def test_nobody_comes_back() -> None:
    part = part_of(evaluated())
    assert part.rows is not None
    none = replace(
        part,
        span=part.span._replace(first=0, last=0, n=0, mark=0),
        few=tuple(np.empty(0) for _ in part.few),
        rows=replace(
            part.rows, **{f.name: getattr(part.rows, f.name)[..., :0] for f in fields(part.rows)}
        ),
    )
    assert_same(unpack(pack(none)), none)


def test_what_comes_back_adds_up() -> None:
    ev = evaluated(labels="text")
    again = MergedEvaluation(
        [add_parts([unpack(pack(part_of(ev)))])], ev.plans, ev.setting.convention
    )
    assert again.mean() == ev.mean()
    assert again.per_user.equals(ev.per_user.sort_index())


def test_damage_is_refused() -> None:
    packed = pack(part_of(evaluated(5)))
    for place in range(0, len(packed), max(len(packed) // 300, 1)):
        damaged = bytearray(packed)
        damaged[place] ^= 0x41
        with pytest.raises(InvalidDataError, match="no part|SHA-256"):
            unpack(bytes(damaged))
        with pytest.raises(InvalidDataError, match="no part|SHA-256"):
            unpack(packed[:place])


def rewritten(**changed: Any) -> bytes:
    """A part whose arrays are others, with the right digest."""
    import hashlib

    packed = pack(part_of(evaluated(5)))
    with np.load(io.BytesIO(packed[len(wire.MARK) + 32 :]), allow_pickle=False) as arrays:
        kept = dict(arrays.items())
    kept.update(changed)
    stream = io.BytesIO()
    np.savez(stream, **{name: array for name, array in kept.items() if array is not None})
    body = stream.getvalue()
    return wire.MARK + hashlib.sha256(body).digest() + body


@pytest.mark.parametrize(
    "changed",
    [
        {"header": None},
        {"header": np.frombuffer(b"[]", np.uint8)},
        {"header": np.frombuffer(b"{", np.uint8)},
        {"header": np.array([200], np.uint8)},
        {"rows.counted": None},
        {"rows.users": np.array([{}], object)},  # a pickle
    ],
)
def test_arrays_that_are_no_part_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidDataError, match="cannot be read .*; give what pack"):
        unpack(rewritten(**changed))


def test_bytes_that_are_no_archive_are_refused() -> None:
    import hashlib

    for body in (b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00"):
        with pytest.raises(InvalidDataError, match="cannot be read"):
            unpack(wire.MARK + hashlib.sha256(body).digest() + body)
