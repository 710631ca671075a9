"""Evaluations of blocks of users: merged in any way, they are the evaluation of all users."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sparse_eval.results.parts import N_GROUPS

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.metrics import REGISTRY
from sparse_eval.results import MergedEvaluation, part_of, reduce_block

N_ITEMS = 12


#: What they divide by, the largest gain of all users, is not that of a block.
LARGEST = ["rbp(gain=linear)@3", "err@3"]


def every_metric(**inputs: Any) -> list[str]:
    """Every metric of the registry that the inputs allow, with a cut-off where it may have one."""
    names = [
        "err(max=4)@3",
        "rbp(gain=linear)@3",
        "recall(average=micro)@3",
        "ndcg(gain=exp)@5",
        "coverage@2",
    ]
    return names + [
        one.name + ("" if one.cutoff == "none" else "@3")
        for one in REGISTRY.values()
        if set(one.needs) <= set(inputs) and (inputs or one.name != "diversity")
    ]


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Draw lists, gains and a history of some users."""
    n_users = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order = rng.permuted(np.tile(np.arange(N_ITEMS), (n_users, 1)), axis=1)[:, :6]
    lengths = rng.integers(0, 7, n_users)
    order[np.arange(6) >= lengths[:, None]] = -1
    gains = rng.integers(0, 2 if draw(st.booleans()) else 4, (n_users, N_ITEMS))
    gains[rng.random(n_users) < 0.2] = 0
    gains[0, 0] = 1
    return {
        "ids": order,
        "gains": csr_matrix(gains.astype(np.float64)),
        "train": csr_matrix(rng.random((n_users, N_ITEMS)) < 0.3).astype(np.float64),
        "vectors": rng.normal(size=(N_ITEMS, 3)),
        "groups": rng.integers(0, 3, N_ITEMS),
    }


def whole(problem: dict[str, Any], metrics: list[str], **options: Any) -> se.Evaluation:
    lists = se.Rankings.from_topk(problem["ids"], shape=problem["gains"].shape)
    return se.evaluate(lists, problem["gains"], metrics, **options)


def block(problem: dict[str, Any], a: int, b: int, metrics: list[str]) -> se.Evaluation:
    lists = se.Rankings.from_topk(problem["ids"][a:b], shape=(b - a, N_ITEMS))
    held = se.Relevance.from_csr(problem["gains"][a:b], users=range(a, b))
    return se.evaluate(lists, held, metrics)


def same_bits(a: se.Evaluation, b: se.Evaluation) -> None:
    """Check that everything that both have is the same to the last bit."""
    pd.testing.assert_frame_equal(a.per_user, b.per_user, check_exact=True, check_index_type=False)
    assert a.names == b.names
    one, other = a.summary(), b.summary()
    columns = ["mean", "std", "n_users", "n_skipped"]
    pd.testing.assert_frame_equal(one[columns], other[columns], check_exact=True)
    per_user = [name for name in a.names if a.is_per_user(name)]
    ends = ["ci_low", "ci_high", "interval"]
    pd.testing.assert_frame_equal(
        one.loc[per_user, ends], other.loc[per_user, ends], check_exact=True
    )
    assert (a.n_users, a.n_skipped, a.n_without_list) == (b.n_users, b.n_skipped, b.n_without_list)
    assert np.array_equal(a.fingerprints, b.fingerprints)
    assert np.array_equal(a.counted, b.counted)
    assert a.n_users_of == b.n_users_of


@st.composite
def cuts(draw: st.DrawFn, n_users: int) -> list[tuple[int, int]]:
    inner = draw(st.sets(st.integers(1, max(n_users - 1, 1)), max_size=5))
    ends = sorted({0, n_users} | {at for at in inner if at < n_users})
    return list(pairwise(ends))


def merged_in_a_tree(draw: Any, blocks: list[se.Evaluation]) -> se.Evaluation:
    """Merge any two, until one is left."""
    while len(blocks) > 1:
        a = blocks.pop(draw(st.integers(0, len(blocks) - 1)))
        b = blocks.pop(draw(st.integers(0, len(blocks) - 1)))
        blocks.append(a.merge(b))
    return blocks[0]


@settings(max_examples=60)
@given(st.data())
def test_any_cut_in_any_order_with_repetitions_gives_the_same_bits(data: st.DataObject) -> None:
    problem = data.draw(problems())
    n_users = len(problem["ids"])
    metrics = [name for name in every_metric() if name not in LARGEST]
    expected = whole(problem, metrics)
    ends = data.draw(cuts(n_users))
    assume(all((problem["gains"][a:b] > 0).nnz for a, b in ends))
    blocks = [block(problem, a, b, metrics) for a, b in ends]
    repeated = data.draw(st.lists(st.sampled_from(blocks), max_size=3))
    found = merged_in_a_tree(data.draw, [*blocks, *repeated])
    same_bits(found.merge() if len(blocks) == 1 else found, expected)


@settings(max_examples=30)
@given(st.data())
def test_blocks_of_an_iterable_give_the_same_bits(data: st.DataObject) -> None:
    problem = data.draw(problems())
    n_users = len(problem["ids"])
    inputs = {
        "train": problem["train"],
        "item_groups": problem["groups"],
        "item_vectors": problem["vectors"],
    }
    metrics = every_metric(**inputs)
    expected = whole(problem, metrics, **inputs)
    ends = data.draw(cuts(n_users))
    lists = [se.Rankings.from_topk(problem["ids"][a:b], shape=(b - a, N_ITEMS)) for a, b in ends]
    positions = [one.to_positions() for one in lists]
    gains = problem["gains"]
    found = se.evaluate(iter(lists), gains, metrics, **inputs)
    same_bits(found, expected)
    same_bits(se.evaluate(positions, gains, metrics, **inputs), expected)
    without = se.evaluate(positions, gains, metrics, per_user=False, **inputs)
    pd.testing.assert_frame_equal(without.summary(), found.summary(), check_exact=True)


MIXED = ["ndcg@3", "recall@2", "recall(average=micro)@3", "coverage@2"]


def some(
    n_users: int = 10, seed: int = 0, *, first: int = 0, labels: Any = "numbers", **options: Any
) -> se.Evaluation:
    """Evaluate some users of their own, labelled with their numbers from the first on."""
    rng = np.random.default_rng([seed, first])
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (n_users, 1)), axis=1)[:, :4]
    gains = csr_matrix((rng.random((n_users, N_ITEMS)) < 0.4) * 1.0)
    numbers = range(first, first + n_users)
    users = {"numbers": list(numbers), "text": [f"ü{n:03}" for n in numbers], None: None}.get(
        labels if labels is None or isinstance(labels, str) else "", labels
    )
    lists = se.Rankings.from_topk(ids, shape=gains.shape)
    metrics = options.pop("metrics", MIXED)
    return se.evaluate(lists, se.Relevance.from_csr(gains, users=users), metrics, **options)


def test_what_differs_is_told() -> None:
    one = some()
    train = csr_matrix(np.eye(10, N_ITEMS))
    novel = {"metrics": ["novelty@3"]}
    graded = se.Relevance.from_csr(csr_matrix([[3]]), users=[99])
    wide = replace(some(first=10).setting.relevance, shape=(10, 20), users=pd.Index(range(10, 20)))
    for ours, other, match in (
        (
            one,
            some(first=10, metrics=["ndcg@4"]),
            "different metrics .*: ndcg@3, .* and ndcg@4",
        ),
        (one, some(first=10, metrics=MIXED[::-1]), "different metrics cannot be merged"),
        (one, some(first=10, no_relevant="zero"), "different no_relevant .*: exclude and zero"),
        (
            some(metrics=["ndcg@3"]),
            some(first=10, metrics=["ndcg@3"], convention="ranx"),
            "different conventions cannot be merged: standard and ranx",
        ),
        (
            one,
            se.evaluate(some(first=10).rankings, wide, MIXED),
            "different numbers of items cannot be merged: 12 and 20",
        ),
        (
            some(**novel, train=train),
            some(first=10, **novel, train=train[:, ::-1]),
            "different train, item_groups or item_vectors cannot be merged",
        ),
        (
            some(metrics=["err@3"]),
            se.evaluate(csr_matrix([[1]]), graded, "err@3"),
            "different largest gains cannot be merged: 1.0 and 3.0",
        ),
        (one, some(first=10, labels="text"), "'ü010', ….* give all of them labels of one type"),
    ):
        for a, b in ((ours, other), (other, ours)):
            with pytest.raises(InvalidDataError, match=match if a is ours else "merged|labels of"):
                a.merge(b)
    part = part_of(one)
    older = replace(part, terms=part.terms._replace(version="0.0.1"))
    with pytest.raises(InvalidDataError, match="different versions of sparse_eval cannot be"):
        MergedEvaluation([part_of(some(first=10)), older], one.plans, one.setting.convention)


@pytest.mark.parametrize("other", [None, 3, "saved", {"ndcg@3": 1.0}])
def test_what_is_no_evaluation_is_refused(other: Any) -> None:
    given = some().snapshot() if other == "saved" else other
    with pytest.raises(InvalidDataError, match="cannot be merged; expected what evaluate returns"):
        some().merge(given)


@pytest.mark.parametrize("labels", ["numbers", "text"])
@pytest.mark.parametrize("per_user", [True, False])
def test_labels_in_any_order(labels: str, per_user: bool) -> None:
    blocks = [some(first=first, labels=labels, per_user=per_user) for first in (0, 10, 20)]
    forward, backward = blocks[0].merge(*blocks[1:]), blocks[2].merge(blocks[0], blocks[1])
    pd.testing.assert_frame_equal(forward.summary(), backward.summary(), check_exact=True)
    assert forward.n_users + forward.n_skipped == 30
    if per_user:
        same_bits(forward, backward)
        assert forward.per_user.index.is_monotonic_increasing


def test_labels_of_any_integers() -> None:
    ends = [-(2**63), 2**63 - 1, 0, -5]
    for kind in ("list", np.int64, object, "Int64"):
        users = ends if kind == "list" else pd.Index(ends, dtype=kind)
        found = some(4, labels=users).merge(some(3, labels=np.array([1, 2, 3], np.uint8)))
        assert found.per_user.index.tolist() == sorted([*ends, 1, 2, 3])
    for users in ([2**63, 1, 2, 3], [1.5, 2, 3, 4], [("a", 1), "b", 3, 4], [True, 1.5, "a", 3]):
        with pytest.raises(InvalidDataError, match="need labels that are all text, or all whole"):
            some(4, labels=users).merge(some(first=10))


def test_a_user_in_two_blocks() -> None:
    with pytest.raises(InvalidDataError, match=r"user 5 is in two blocks .* \(5 users are\)"):
        some().merge(some(first=5))
    with pytest.raises(InvalidDataError, match="from 0 to 9 and of 10 from 5 to 14, may hold"):
        some(per_user=False).merge(some(first=5, per_user=False))
    with pytest.raises(InvalidDataError, match="may hold the same users"):
        some().merge(some(first=5, per_user=False))
    with pytest.raises(InvalidDataError, match="user 'ü005' is in two blocks"):
        some(labels="text").merge(some(first=5, labels="text"))
    merged = some().merge(some(first=10))
    with pytest.raises(InvalidDataError, match="user 5 is in two blocks"):
        merged.merge(some(n_users=1, first=5))


def test_users_of_blocks_that_are_between_each_other() -> None:
    one, other = some(labels=[*range(0, 20, 2)]), some(first=1, labels=[*range(1, 20, 2)])
    assert one.merge(other).per_user.index.tolist() == list(range(20))
    with pytest.raises(InvalidDataError, match="keep the rows with per_user=True"):
        reduce_block(one, per_user=False).merge(other)


def test_blocks_without_labels() -> None:
    with pytest.raises(InvalidDataError, match="twice, with different results; .* label them"):
        some(labels=None).merge(some(seed=1, labels=None))
    with pytest.raises(InvalidDataError, match="label users that are not numbered together"):
        some(labels=None).merge(some(12, labels=None))
    alike = [
        se.evaluate(se.Rankings.from_topk([[item, 3]]), csr_matrix(np.eye(4)[[item]]), "mrr@2")
        for item in (0, 1)
    ]
    assert alike[0].mean() == alike[1].mean()
    with pytest.raises(InvalidDataError, match="evaluated twice, with different results"):
        alike[0].merge(alike[1])  # whose relevant items are others
    assert alike[0].merge(alike[0]).n_users == 1


def test_different_results_of_the_same_users() -> None:
    for per_user in (True, False):
        with pytest.raises(InvalidDataError, match="from 0 to 9 were evaluated twice, with diff"):
            some(per_user=per_user).merge(some(seed=1, per_user=per_user))
    part = part_of(some())
    assert part.rows is not None
    swapped = replace(part, rows=replace(part.rows, columns=part.rows.columns[:, ::-1]))
    assert part.equals(replace(part, rows=None))
    assert not part.equals(swapped)
    listed = {key: replace(one, n_listed=one.n_listed + 1) for key, one in part.lists.items()}
    assert not part.equals(replace(part, lists=listed))
    assert not part.equals(replace(part, n_without_list=9))


@pytest.mark.parametrize("turn", [1, -1])
def test_a_repetition_with_rows_keeps_them(turn: int) -> None:
    twice = [some(), some(per_user=False)][::turn]
    found = twice[0].merge(twice[1])
    same_bits(found, some())


@pytest.fixture(scope="module")
def halves() -> tuple[se.Evaluation, se.Evaluation]:
    """The same users, as a whole and merged."""
    rng = np.random.default_rng(1)
    problem = {
        "ids": rng.permuted(np.tile(np.arange(N_ITEMS), (400, 1)), axis=1)[:, :6],
        "gains": csr_matrix((rng.random((400, N_ITEMS)) < 0.3) * 1.0),
    }
    first, second = (block(problem, a, b, MIXED) for a, b in ((0, 150), (150, 400)))
    return whole(problem, MIXED), second.merge(first)


def test_what_a_merged_evaluation_has_not(halves: Any) -> None:
    merged = halves[1]
    for call in (
        lambda: merged.explain(0),
        lambda: merged.by(["a"] * 400),
        lambda: merged.by("activity"),
        lambda: merged.by("popularity"),
        lambda: merged.precision_recall(),
        lambda: merged.precision_recall(3),
        lambda: merged.rankings,
        lambda: merged.relevance,
        lambda: merged.setting,
    ):
        with pytest.raises(InvalidDataError, match="lists were not kept, .* evaluate in memory"):
            call()
    with pytest.raises(InvalidMetricError, match="has a value for each user; see ev.values"):
        merged.replicates("ndcg@3")
    with pytest.raises(InvalidMetricError, match="is one number for all users together"):
        merged.values("coverage@2")
    assert merged["recall(average=macro)@2"] == merged["recall@2"]
    with pytest.raises(InvalidMetricError, match="'map' was not evaluated; there are"):
        merged.values("map")
    with pytest.raises(InvalidDataError, match="level is 2; expected"):
        merged.summary(2)


def test_what_is_saved_has_no_lists(halves: Any, tmp_path: Path) -> None:
    merged = halves[1]
    read = se.load_evaluation(merged.save(tmp_path / "merged", about={"seed": 1}))
    assert read.mean() == merged.mean()
    assert read.about == {"seed": 1}
    assert read.content["precision_recall"] is None
    pd.testing.assert_frame_equal(
        read.per_user, merged.per_user, check_exact=True, check_index_type=False
    )
    summary = merged.summary()
    pd.testing.assert_frame_equal(
        read.summary()[list(summary)], summary, check_exact=True, check_dtype=False
    )
    page = se.write_report({"merged": merged, "read": read}, tmp_path / "report.html")
    assert "coverage@2" in page.read_text(encoding="utf-8")


def test_what_needs_the_rows(halves: Any, tmp_path: Path) -> None:
    without = reduce_block(halves[0], per_user=False)
    assert without.mean() == halves[0].mean()
    for call in (
        lambda: without.values("ndcg@3"),
        lambda: without.per_user,
        lambda: without.users,
        lambda: without.n_relevant,
        lambda: without.counted,
        lambda: without.fingerprints,
        lambda: without.columns,
        lambda: without.to_csv(tmp_path / "a.csv"),
        lambda: without.compare(halves[0]),
    ):
        with pytest.raises(InvalidDataError, match="not kept; evaluate with per_user=True"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_comparisons_are_those_of_the_whole(halves: Any) -> None:
    ev, merged = halves
    lists = se.Rankings.from_topk(np.tile(np.arange(5), (400, 1)), shape=(400, N_ITEMS))
    other = se.evaluate(lists, ev.relevance, MIXED)
    cut = [lists.to_positions()[:99], lists.to_positions()[99:]]
    blocks = se.evaluate(cut, ev.relevance, MIXED)
    for test in ("t", "wilcoxon", "permutation"):
        expected = ev.compare(other, ["ndcg@3", "recall@2"], test=test).table
        for pair in ((merged, blocks), (merged, other), (ev, blocks)):
            found = pair[0].compare(pair[1], ["ndcg@3", "recall@2"], test=test).table
            pd.testing.assert_frame_equal(found, expected, check_exact=True)
    table = merged.compare(blocks).table.set_index("metric")
    assert table.loc["coverage@2", "difference"] == ev["coverage@2"] - other["coverage@2"]
    ends = table.loc["recall(average=micro)@3", ["ci_low", "ci_high", "p"]]
    assert np.isfinite(ends.astype(float)).all()


def test_the_jackknife_gives_the_standard_error(halves: Any) -> None:
    """A micro average where each user has as much below is a mean, whose error is known."""
    n_users = 2000
    rng = np.random.default_rng(0)
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (n_users, 1)), axis=1)[:, :4]
    gains = csr_matrix((np.arange(N_ITEMS) < 3) * np.ones((n_users, 1)))
    ev = se.evaluate(se.Rankings.from_topk(ids), gains, ["recall@4", "recall(average=micro)@4"])
    merged = reduce_block(ev)
    assert merged["recall@4"] == pytest.approx(merged["recall(average=micro)@4"], rel=1e-12)
    replicates = merged.replicates("recall(average=micro)@4")
    assert replicates.shape == (N_GROUPS,)
    error = ev.summary().loc["recall@4", "std"] / np.sqrt(n_users)
    # Of 20 groups the error is known to about a sixth.
    assert replicates.std(ddof=1) == pytest.approx(error, rel=0.5)
    row = merged.summary().loc["recall(average=micro)@4"]
    assert row["interval"] == "jackknife"
    assert row["ci_low"] < row["mean"] < row["ci_high"]
    few = reduce_block(some(8))
    assert few.replicates("coverage@2").shape == (0,)
    assert few.summary().loc["coverage@2", "interval"] == "none"


def test_what_is_written(halves: Any, tmp_path: Path) -> None:
    ev, merged = halves
    found = merged.to_dict()
    assert json.loads(merged.to_json(tmp_path / "a.json")) == found
    assert (tmp_path / "a.json").exists()
    assert found.keys() == ev.to_dict().keys()
    assert {name: row["mean"] for name, row in found["metrics"].items()} == ev.mean()
    merged.to_csv(tmp_path / "merged.csv")
    ev.to_csv(tmp_path / "whole.csv")
    assert (tmp_path / "merged.csv").read_text() == (tmp_path / "whole.csv").read_text()
    assert repr(merged).startswith("<MergedEvaluation: ")
    assert "400" in merged._repr_html_() or str(merged.n_users) in merged._repr_html_()
    without = reduce_block(ev, per_user=False)
    assert without.to_dict() == found
    assert repr(without) == repr(merged)
    assert without._repr_html_() == merged._repr_html_()


def test_blocks_stay_as_they_are(halves: Any) -> None:
    one, other = some(), some(first=10)
    before = [ev.columns.copy() for ev in (one, other)]
    merged = one.merge(other)
    merged.values("ndcg@3")
    for columns, ev in zip(before, (one, other), strict=True):
        np.testing.assert_array_equal(columns, ev.columns)
    values = merged.values("ndcg@3")
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 7
