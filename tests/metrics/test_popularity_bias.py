"""Popularity bias and fairness of exposure: against their definitions, in every way."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import popularity_oracle as plain
import pytest
from cases import to_csr
from evaluations import problem, same_everything, same_in_every_way, saved
from hypothesis import given, settings
from list_cases import GROUPS, N_ITEMS, Case, list_cases
from merge_cases import same_numbers
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.metrics import parse

TAILS = ["", "tail=0.1", "tail=0.5", "tail=1", "tail=2"]
CUTOFFS = [1, 3, 20]


def spell(name: str, options: str, k: int) -> str:
    return f"{name}({options})@{k}" if options else f"{name}@{k}"


def tail_of(option: str, train: list[set[int]], n_items: int = N_ITEMS) -> set[int]:
    if not option:
        return plain.tail_of_interactions(train, n_items)
    return plain.tail_of_recbole(train, n_items, float(option.removeprefix("tail=")))


@settings(max_examples=30)
@given(list_cases())
def test_shares_of_the_long_tail_equal_their_definition(case: Case) -> None:
    rows = [(name, tail, k) for name in ("aplt", "aclt") for tail in TAILS for k in CUTOFFS]
    ev = case.evaluate([spell(*row) for row in rows])
    for name, tail, k in rows:
        expected = getattr(plain, name)(case.lists, case.relevant, tail_of(tail, case.train), k)
        found = ev.values(spell(name, tail, k))
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=spell(name, tail, k))


@settings(max_examples=30)
@given(list_cases())
def test_numbers_of_groups_equal_their_definition(case: Case) -> None:
    rows = [(name, tail, k) for name in ("pop_reo", "pop_rsp") for tail in TAILS for k in CUTOFFS]
    rows += [(name, "", k) for name in ("reo", "rsp") for k in CUTOFFS]
    ev = case.evaluate([spell(*row) for row in rows])
    for name, option, k in rows:
        groups: list[Any] = GROUPS
        if name.startswith("pop"):
            tail = tail_of(option, case.train)
            groups = [item in tail for item in range(N_ITEMS)]
        expected = getattr(plain, name.removeprefix("pop_"))(*case, groups, k)
        found = ev[spell(name, option, k)]
        assert found == pytest.approx(expected, rel=1e-12, nan_ok=True), (name, option, k)
        if name.startswith("pop") and not math.isnan(found):
            assert 0 <= found <= 1 + 1e-12


@settings(max_examples=30)
@given(list_cases())
def test_exposure_equals_its_definition(case: Case) -> None:
    options = {"": 0.85, "p=0.3": 0.3, "weights=log": None}
    ev = case.evaluate([spell("exposure_gini", o, k) for o in options for k in CUTOFFS])
    for option, p in options.items():
        for k in CUTOFFS:
            expected = plain.exposure_gini(*case, N_ITEMS, k, p)
            found = ev[spell("exposure_gini", option, k)]
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def test_equal_exposure_of_every_position_is_gini() -> None:
    lists, gains, _ = problem()
    ev = se.evaluate(lists, gains, ["gini@1", "exposure_gini@1", "exposure_gini(weights=log)@1"])
    assert ev["exposure_gini@1"] == pytest.approx(ev["gini@1"], rel=1e-12)
    assert ev["exposure_gini(weights=log)@1"] == ev["exposure_gini@1"]


@settings(max_examples=30)
@given(list_cases())
def test_elliot_and_warprec_differ_where_the_head_has_just_80_per_cent(case: Case) -> None:
    ours = plain.tail_of_interactions(case.train, N_ITEMS)
    theirs = plain.tail_of_warprec(case.train, N_ITEMS)
    counts = [sum(item in seen for seen in case.train) for item in range(N_ITEMS)]
    head = sum(counts[item] for item in range(N_ITEMS) if item not in ours)
    if not sum(counts):
        assert not theirs
    elif 10 * head == 8 * sum(counts):
        (between,) = ours - theirs
        assert counts[between] == max(counts[item] for item in ours)
    else:
        assert ours == theirs


def test_the_long_tail_by_hand() -> None:
    # Users of items 0 to 5: 5, 3, 1, 1, 0, 0; items 0 and 1 have 8 of 10 interactions.
    train = to_csr([{0: 1, 1: 1, 2: 1}, {0: 1, 1: 1, 3: 1}, {0: 1, 1: 1}, {0: 1}, {0: 1}], int, 6)
    lists = se.Rankings.from_topk([[0, 1, 2, 4]], shape=(5, 6))
    truth = csr_matrix(([1.0], ([0], [5])), (5, 6))
    names = ["aplt@4", "aplt(tail=0.25)@4", "aplt(tail=0.5)@4", "aplt(tail=3)@4", "aclt@4"]
    ev = se.evaluate(lists, truth, names, train=train)
    assert list(ev.mean().values()) == [0.5, 0.25, 0.25, 0.5, 2.0]
    assert [str(metric) for metric in parse("TailPercentage(tail=0.1)@10, PopREO@5")] == [
        "aplt(tail=0.1)@10", "pop_reo@5",
    ]  # fmt: skip


EVERY = [
    "aplt@3", "aclt@3", "aplt(tail=0.3)", "pop_reo@3", "pop_rsp@3", "pop_reo(tail=0.7)@6", "reo@3",
    "rsp@3", "exposure_gini@3", "exposure_gini(weights=log)@5", "exposure_gini",
]  # fmt: skip


INPUTS = ("train", "groups")


@pytest.mark.parametrize("no_relevant", ["exclude", "zero"])
def test_every_way_has_the_same_bits(no_relevant: Any) -> None:
    whole = same_in_every_way(se.Protocol(EVERY, no_relevant=no_relevant), INPUTS)
    summary = whole.summary()
    assert (summary.loc[summary.index[3:], "interval"] == "jackknife").all()
    assert (summary.loc[["aplt@3", "aclt@3", "aplt(tail=0.3)"], "random_se"] == 0).all()
    assert summary["random"].notna().all()


def test_numbers_are_the_same_after_saving(tmp_path: Path) -> None:
    lists, gains, more = problem(*INPUTS)
    for keep in ("totals", "values"):
        ev = se.evaluate(lists, gains, EVERY, keep=keep, **more)  # type: ignore[arg-type]
        same_everything(saved(ev, tmp_path / keep), ev)
    other = se.evaluate(se.Rankings.from_popularity(more["train"], k=6), gains, EVERY, **more)
    table = ev.compare(other, EVERY[3:]).table
    assert table["difference"].notna().all()


def test_loaded_blocks_are_merged(tmp_path: Path) -> None:
    lists, gains, more = problem(*INPUTS)
    rows = lists.to_positions()
    parts = []
    for first, last in ((0, 120), (120, 300)):
        users = list(range(first, last))
        part = se.evaluate(
            rows[first:last],
            se.Relevance.from_csr(gains[first:last], users=users),
            ["exposure_gini@3", "reo@3"],
            items=more["items"],
        )
        parts.append(saved(part, tmp_path / str(first)))
    whole = se.evaluate(lists, gains, ["exposure_gini@3", "reo@3"], items=more["items"])
    merged = parts[1].merge(parts[0])
    same_numbers(merged, whole)
    assert merged.mean() == whole.mean()


def test_expected_shares_are_means_over_random_lists() -> None:
    _, gains, more = problem(*INPUTS)
    rng = np.random.default_rng(4)
    names = ["aplt@4", "aclt@4", "aclt(tail=0.3)@4"]
    draws = []
    for _ in range(20):
        lists = se.Rankings.from_scores(rng.random(gains.shape), k=4, seen=more["train"])
        draws.append(list(se.evaluate(lists, gains, names, train=more["train"]).mean().values()))
    errors = np.std(draws, axis=0, ddof=1) / math.sqrt(len(draws))
    summary = se.evaluate(lists, gains, names, train=more["train"]).summary()
    assert (np.abs(summary["random"] - np.mean(draws, axis=0)) <= 4.5 * errors).all()
    assert (summary["random_se"] == 0).all()


@pytest.mark.filterwarnings("ignore:1 of 4 relevant items")
def test_candidates_are_what_groups_could_have() -> None:
    lists = se.Rankings.from_topk([[0, 1], [1, 2]], shape=(2, 4))
    truth = csr_matrix([[1, 0, 0, 1], [0, 0, 1, 1]])
    groups = ["a", "b", "a", "b"]
    among = csr_matrix([[1, 1, 0, 1], [0, 1, 1, 0]])
    ev = se.evaluate(
        lists, truth, ["reo@2", "rsp@2"], candidates=among, items=se.ItemData(groups=groups)
    )
    # Relevant candidates: a 0 and 2, both hit; b 3 of user 0, not hit. Candidates: a 2, b 3.
    assert ev["reo@2"] == pytest.approx(1.0)
    assert ev["rsp@2"] == pytest.approx(abs(1 - 2 / 3) / (1 + 2 / 3))


@pytest.mark.parametrize(
    ("metric", "more"),
    [
        ("aplt@3", []),
        ("pop_reo@3", []),
        ("reo@3", ["train"]),
        ("aplt(tail=0)@3", ["train"]),
        ("exposure_gini(p=1)@3", []),
    ],
)
def test_refuses_what_is_missing(metric: str, more: list[str]) -> None:
    lists, gains, known = problem(*INPUTS)
    with raises(InvalidMetricError, metric=metric):
        se.evaluate(lists, gains, metric, **{name: known[name] for name in more})


def test_refuses_items_in_several_groups() -> None:
    lists = se.Rankings.from_topk([[0, 1]])
    groups = np.array([[1.0, 1.0], [0.0, 1.0]])
    for metric in ("reo@1", "rsp@1"):
        with raises(InvalidDataError):
            se.evaluate(lists, csr_matrix([[1, 0]]), metric, items=se.ItemData(groups=groups))
    one = np.array([[1.0, 0.0], [0.0, 3.0]])
    assert (
        se.evaluate(lists, csr_matrix([[1, 1]]), "reo@1", items=se.ItemData(groups=one))["reo@1"]
        == 1
    )
