"""Partial results of blocks: when two are the same, and how they are merged as they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from evaluations import some, without_lists
from raising import raises

from sparse_eval.errors import InvalidDataError
from sparse_eval.results.candidates import CandidateCounts
from sparse_eval.results.seen import SeenCounts
from sparse_eval.results.totals import (
    ListSums,
    Part,
    Retrieval,
    RunningTotals,
    distinct_parts,
)


def part_of(first: int = 0, *, per_user: bool = True, **options: object) -> Part:
    (part,) = without_lists(some(first=first, **options), per_user=per_user)._parts
    return part


def test_parts_are_equal_if_all_sums_and_values_are() -> None:
    part = part_of()
    totals, values = part
    assert values is not None
    assert part.equals(part_of())
    assert part.equals(Part(totals))
    assert Part(totals).equals(part)
    assert not part.equals(Part(totals, replace(values, columns=values.columns[:, ::-1])))
    assert not part.equals(Part(totals, replace(values, counted=~values.counted)))
    listed = {key: replace(one, n_listed=one.n_listed + 1) for key, one in totals.lists.items()}
    micro = {row: ratios[::-1] for row, ratios in totals.ratios.items()}
    for other in (
        replace(totals, lists=listed),
        replace(totals, ratios=micro),
        replace(totals, n_without_list=99),
        replace(totals, n_counted=99),
        replace(totals, moments=totals.moments[::-1]),
        replace(totals, span=totals.span._replace(checksum=1)),
        replace(totals, key=totals.key._replace(no_relevant="zero")),
        replace(totals, retrieval=Retrieval("top_k", 1)),
        replace(totals, seen=SeenCounts(0, 1, 2, 3)),
        replace(totals, candidates=CandidateCounts("candidates", 1, 2, 3, 4, 5, 6)),
    ):
        assert not part.equals(Part(other, values))
        assert not Part(other).equals(Part(totals))
    one, two = (
        Part(replace(totals, list_sums={0: ListSums(np.array([10]), np.array([number]))}))
        for number in (5, 6)
    )
    assert one.equals(one)
    assert not one.equals(two)


def test_values_are_the_same_in_any_order() -> None:
    values = part_of().values
    assert values is not None
    arrays = {name: getattr(values, name)[..., ::-1] for name in ("users", "counted", "n_relevant")}
    more = {name: getattr(values, name)[..., ::-1] for name in ("fingerprints", "columns")}
    assert replace(values, **arrays, **more).equals(values)
    assert not replace(values, **arrays).equals(values)


def test_distinct_parts_are_in_the_order_of_their_users() -> None:
    parts = [part_of(first, per_user=False) for first in (20, 0, 10, 0)]
    assert [part.span.first for part in distinct_parts(parts)] == [0, 10, 20]
    nobody = Part(replace(parts[0].totals, span=parts[0].span._replace(n=0)))
    assert distinct_parts([nobody]) == []
    assert len(distinct_parts([nobody, *parts])) == 3


def test_values_are_kept_only_if_every_part_has_them() -> None:
    running = RunningTotals()
    with raises(InvalidDataError):
        running.part()
    running.add(part_of(10))
    assert running.part().values is not None
    running.add(part_of())
    values = running.part().values
    assert values is not None
    np.testing.assert_array_equal(values.users, np.arange(20))
    running.add(part_of(20, per_user=False))
    assert running.part().values is None
    assert running.part().span.n == 30


def test_lists_that_were_made_in_different_ways_are_not_merged() -> None:
    one, other = part_of(per_user=False).totals, part_of(10, per_user=False).totals
    ranked = replace(one, retrieval=Retrieval("top_k", 3, 2, 1, 5, 6, 7))
    with raises(InvalidDataError):
        ranked.merge(other)
    both = ranked.merge(replace(other, retrieval=Retrieval("top_k", 4, 1, 2, 5, 1, 2)))
    assert both.retrieval == Retrieval("top_k", 7, 3, 3, 5, 7, 9)


def test_counts_about_users_are_added_up() -> None:
    one, other = (
        replace(
            part_of(first, per_user=False).totals,
            seen=SeenCounts(n, 1, 2, 3),
            candidates=CandidateCounts("1+9", n, 6, 7, 8, 9, 2**64 - n),
        )
        for first, n in ((0, 1), (10, 2))
    )
    both = one.merge(other)
    assert both.seen == (3, 2, 4, 6)
    assert both.candidates == ("1+9", 3, 12, 14, 16, 18, 2**64 - 3)
    assert both.n_without_list == one.n_without_list + other.n_without_list
    with raises(InvalidDataError):
        one.merge(replace(other, candidates=None))
    without = one.merge(replace(other, seen=None))
    assert without.seen is None
