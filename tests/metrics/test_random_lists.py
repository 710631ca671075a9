"""Exact expectations of metrics of what is recommended: the mean over all lists there can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import novelty_oracle as plain
import numpy as np
import pytest
from cases import to_csr
from evaluations import problem
from hypothesis import given, settings
from hypothesis import strategies as st
from list_cases import GROUPS, N_ITEMS, VECTORS, Case

import sparse_eval as se

K = 3

#: Weights of the groups of items, some of which are in several.
WEIGHTS = np.random.default_rng(1).integers(0, 2, (N_ITEMS, 3)) + np.eye(N_ITEMS, 3)
WEIGHTS[:, 0] += WEIGHTS.sum(axis=1) == 0


def value(name: str, items: list[int], case: Case, user: int) -> float:
    relevant = {item for item, gain in case.relevant[user].items() if gain > 0}
    history, train = case.train[user], case.train
    weights = [dict(enumerate(row)) for row in WEIGHTS.tolist()]
    values: dict[str, Callable[[], float]] = {
        "serendipity(form=rank)": lambda: plain.rank_serendipity(items, relevant, train, N_ITEMS),
        "serendipity(form=cosine)": lambda: plain.serendipity(
            items, relevant, history, lambda i, j: plain.cosine_of_users(i, j, train)
        ),
        "serendipity(form=vectors)": lambda: plain.serendipity(
            items, relevant, history, lambda i, j: plain.cosine(VECTORS[i], VECTORS[j])
        ),
        "categorical_diversity": lambda: plain.categorical_diversity(items, weights, K),
    }
    return values[name]()


NAMES = [
    "serendipity(form=rank)", "serendipity(form=cosine)", "serendipity(form=vectors)",
    "categorical_diversity",
]  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw one or two users, who have seen most of the few items: all their lists are few."""
    items = st.integers(0, N_ITEMS - 1)
    n_users = draw(st.integers(1, 2))
    train = [draw(st.sets(items, min_size=N_ITEMS - 5)) for _ in range(n_users)]
    relevant = [{draw(items): 1.0} | {draw(items): 2.0} for _ in train]
    return Case([[0, 1, 2]] * n_users, relevant, [*train, draw(st.sets(items))][:n_users])


DATA = se.ItemData(groups=WEIGHTS, vectors=VECTORS)


def all_lists(case: Case, user: int, seen: str) -> list[list[int]]:
    """The first K of every order of what the user can be recommended."""
    items = set(range(N_ITEMS)) - (case.train[user] if seen == "exclude" else set())
    return [list(order) for order in permutations(sorted(items), min(K, len(items)))]


@settings(max_examples=15)
@given(cases(), st.sampled_from(["exclude", "allow"]))
def test_expectations_are_means_over_all_lists(case: Case, seen: Any) -> None:
    names = [f"{name}@{K}" for name in NAMES]
    summary = case.evaluate(se.Protocol(names, filter_seen=seen == "exclude"), items=DATA).summary()
    assert (summary["random_se"] == 0).all()
    for name in NAMES:
        of_users = []
        for user in range(len(case.lists)):
            lists = all_lists(case, user, seen)
            values = [value(name, items, case, user) for items in lists]
            of_users.append(math.fsum(values) / len(values))
        defined = [x for x in of_users if not math.isnan(x)]
        expected = math.fsum(defined) / len(defined) if defined else math.nan
        found = summary.loc[f"{name}@{K}", "random"]
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True), name


def test_novelty_that_leaves_nothing_out_is_exact() -> None:
    case = Case([[5]], [{5: 1.0}], [set(range(5))])
    everyone = to_csr([dict.fromkeys(range(5), 1), dict.fromkeys(range(N_ITEMS), 1)], int, N_ITEMS)
    summary = case.evaluate([f"novelty(unknown=skip)@{K}"], train=everyone).summary()
    assert summary["random"].tolist() == [1.0]
    assert summary["random_se"].tolist() == [0.0]
    drawn = case.evaluate(
        [f"novelty(unknown=skip)@{K}"], items=se.ItemData(groups=GROUPS)
    ).summary()
    assert drawn["random_se"].isna().all()  # nobody has what is listed: no list has a value


@pytest.mark.parametrize(("limit", "value"), [("_LOOKUPS_AT_ONCE", 7), ("_ITEMS_AT_ONCE", 3)])
def test_parts_of_a_history_give_the_same_bits(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, gains, more = problem("train")
    names = ["serendipity(form=cosine)@6"]
    whole = se.evaluate(lists, gains, names, train=more["train"])
    expected = whole.summary()
    monkeypatch.setattr(f"sparse_eval.inputs.training.{limit}", value)
    again = se.evaluate(lists, gains, names, train=more["train"])
    np.testing.assert_array_equal(again.values(names[0]), whole.values(names[0]))
    assert again.summary().equals(expected)
