"""Partial results of blocks: when two are the same, and how they are merged as they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from evaluations import some, without_lists
from raising import raises

from sparse_eval.errors import InvalidDataError
from sparse_eval.results.parts import CandidateCounts, Part, Retrieval, SeenCounts, merge_parts


def part_of(first: int = 0, *, per_user: bool = True, **options: object) -> Part:
    (part,) = without_lists(some(first=first, **options), per_user=per_user)._parts
    return part


def test_values_are_kept_only_if_every_part_has_them() -> None:
    parts = [part_of(10), part_of(), part_of(20, per_user=False)]
    values = merge_parts(parts[:2]).values
    assert values is not None
    np.testing.assert_array_equal(values.user_ids, np.arange(20))
    merged = merge_parts(parts)
    assert merged.values is None
    assert merged.span.n == 30


def test_lists_that_were_made_in_different_ways_are_not_merged() -> None:
    one, other = part_of(per_user=False), part_of(10, per_user=False)
    key = one.key | {"retrieval": "top_k"}
    ranked = replace(one, key=key, retrieval=Retrieval("top_k", 3, 2, 1, 5, 6, 7))
    with raises(InvalidDataError):
        ranked.merge(other)
    both = ranked.merge(replace(other, key=key, retrieval=Retrieval("top_k", 4, 1, 2, 5, 1, 2)))
    assert both.retrieval == Retrieval("top_k", 7, 3, 3, 5, 7, 9)


def test_counts_about_users_are_added_up() -> None:
    one, other = (
        replace(
            part_of(first, per_user=False),
            seen=SeenCounts(n, 1, 2, 3),
            candidates=CandidateCounts("1+9", n, 6, 7, 8, 9, 2**64 - n),
        )
        for first, n in ((0, 1), (10, 2))
    )
    both = one.merge(other)
    assert both.seen == (3, 2, 4, 6)
    assert both.candidates == ("1+9", 3, 12, 14, 16, 18, 2**65 - 3)
    with raises(InvalidDataError):
        one.merge(replace(other, key=other.key | {"candidates": "1+9"}))
    assert one.merge(replace(other, seen=None)).seen is None
