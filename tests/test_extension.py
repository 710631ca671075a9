"""Metrics that are registered from outside."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.cli import main
from sparse_eval.errors import InvalidMetricError
from sparse_eval.metrics import REGISTRY, Choice, Lists, Number, Statistics, registry

LISTS = se.Rankings.from_topk([[0, 1, 2], [2, 3, 0]], shape=(2, 5))
GAINS = csr_matrix([[1, 0, 1, 0, 0], [0, 0, 0, 2, 0]])


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before = dict(REGISTRY)
    registry.load_extensions.cache_clear()
    yield
    REGISTRY.clear()
    REGISTRY.update(before)
    registry.load_extensions.cache_clear()


def test_a_formula_over_statistics() -> None:
    @se.register_metric(
        "discounted_hits",
        "hits, fewer of them if there are many",
        options=(Choice("how", ("root", "plain"), "root of them or not"),
                 Number("weight", "1", 0, 10, "of a hit")),
        linear=False,
    )  # fmt: skip
    def discounted_hits(s: Statistics, how: str, weight: float) -> np.ndarray:
        return weight * (np.sqrt(s.hits) if how == "root" else s.hits)

    name = "discounted_hits(how=plain,weight=2.5)@3"
    ev = se.evaluate(LISTS, GAINS, ["discounted_hits@3", name])
    assert ev.values("discounted_hits@3").tolist() == [np.sqrt(2), 1.0]
    assert ev.values(name).tolist() == [5.0, 2.5]
    assert ev.summary().loc[name, "random_se"] > 0  # not said to be linear
    assert discounted_hits.__name__ == "discounted_hits"


def test_a_formula_over_lists() -> None:
    @se.register_metric("largest_id", "the largest id of a list", over="lists")
    def largest_id(lists: Lists) -> np.ndarray:
        return np.maximum.reduceat(lists.items, lists.indptr[:-1]).astype(np.float64)

    @se.register_metric("listed", "items of all lists", over="lists", per_user=False)
    def listed(lists: Lists) -> float:
        return float(len(lists.items))

    ev = se.evaluate(LISTS, GAINS, ["largest_id@2", "listed@2"])
    assert ev.values("largest_id@2").tolist() == [1.0, 3.0]
    assert ev["listed@2"] == 4.0
    assert ev.per_user.columns.tolist() == ["largest_id@2"]


def test_linear_formulas_have_an_exact_expectation() -> None:
    @se.register_metric("half", "half of the recall", linear=True)
    def half(s: Statistics) -> np.ndarray:
        return s.hits / s.n_relevant / 2

    summary = se.evaluate(LISTS, GAINS, ["half@2", "recall@2"]).summary()
    assert summary["random"].tolist() == pytest.approx([0.2, 0.4])
    assert summary["random_se"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "facts", "says"),
    [
        ("ndcg", {}, "registered already"),
        ("Two Words", {}, "no name of a metric"),
        ("", {}, "no name of a metric"),
        ("mine", {"needs": ("users",)}, "there is no input 'users'"),
        ("mine", {"uses": ("ranks",)}, "there is no attribute 'ranks'"),
        ("mine", {"per_user": False}, "only a metric over lists"),
        ("mine", {"cutoff": "maybe"}, "cutoff 'maybe'; expected"),
        ("mine", {"over": "users"}, "over is 'users'"),
    ],
)
def test_what_cannot_be_registered(name: str, facts: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidMetricError) as error:
        se.register_metric(name, "nothing", **facts)(lambda s: s.hits)
    assert says in str(error.value)


def test_a_formula_of_the_wrong_shape_is_told() -> None:
    se.register_metric("wrong", "one number")(lambda s: 1.0)
    with pytest.raises(InvalidMetricError, match=r"metric wrong@3 returned .* \(\) for \d users"):
        se.evaluate(LISTS, GAINS, "wrong@3")


@pytest.mark.parametrize("use", ["hits", "candidates", "total_gain"])
def test_what_is_not_declared_is_told(use: str) -> None:
    read = {
        "hits": lambda s: s.rank_sum,
        "candidates": lambda s: s.candidates * 1.0,
        "total_gain": lambda s: s.all_gain,
    }
    se.register_metric("forgetful", "reads more than it says")(read[use])
    with pytest.raises(InvalidMetricError, match=rf"register it with uses=\['{use}'\]"):
        se.evaluate(LISTS, GAINS, "forgetful@3")


def test_entry_points_add_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "their_metrics.py").write_text(
        "import sparse_eval as se\n"
        "@se.register_metric('theirs', 'a metric of another package')\n"
        "def theirs(s):\n"
        "    return s.hits * 3\n"
    )
    (tmp_path / "their_broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        EntryPoint("broken", "their_broken", registry.ENTRY_POINTS),
        EntryPoint("missing", "their_missing", registry.ENTRY_POINTS),
        EntryPoint("good", "their_metrics", registry.ENTRY_POINTS),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.warns(UserWarning, match="left out, because it failed to load") as told:
        ev = se.evaluate(LISTS, GAINS, "theirs@3")
    assert ev.values("theirs@3").tolist() == [6.0, 3.0]
    said = [str(warning.message) for warning in told]
    assert len(said) == 2
    assert "entry point 'broken' (their_broken)" in said[0]
    assert "ZeroDivisionError" in said[0]
    assert "entry point 'missing'" in said[1]

    main_prints(["metrics", "theirs"])
    assert "a metric of another package" in capsys.readouterr().out
    main_prints(["metrics"])
    assert "theirs[@k]" in capsys.readouterr().out


def main_prints(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0


def test_known_metrics_look_for_no_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(group: str) -> None:
        raise AssertionError(group)

    monkeypatch.setattr(registry, "entry_points", refuse)
    assert se.evaluate(LISTS, GAINS, "mrr@3")["mrr@3"] == 0.75
