"""The metric by which models are compared: the first one, wherever none is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import Command
from raising import raises
from tune_cases import GRID, same_search, three_parts

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError
from sparse_eval.models.callback import parse_monitored, signed_score

#: In which lower values of the first are better.
METRICS = ["gini@10", "recall@5", "ndcg@10"]


@pytest.fixture(scope="module")
def parts() -> Any:
    return three_parts()


@pytest.mark.parametrize(
    ("metrics", "first"),
    [
        (METRICS, "gini@10"),
        ("recall@{20,5},ndcg@10", "recall@20"),
        ((metric for metric in METRICS[::-1]), "ndcg@10"),
        ("recall @5, recall@5, map@5", "recall@5"),
    ],
)
def test_is_the_first_by_default(metrics: Any, first: str) -> None:
    request, monitor = parse_monitored(metrics, None)
    assert str(monitor) == first
    assert monitor is request.metrics[0]


def test_is_the_one_that_is_named_in_any_spelling() -> None:
    _, monitor = parse_monitored(METRICS, "NDCG @10")
    assert str(monitor) == "ndcg@10"
    assert parse_monitored(METRICS, monitor)[1] == monitor
    for other in ("ndcg@5", "ndcg@{5,10}", "ndcg"):
        with raises(InvalidMetricError):
            parse_monitored(METRICS, other)


def test_compares_lower_values_as_better_where_they_are() -> None:
    gini, recall = parse_monitored(METRICS, None)[0].metrics[:2]
    assert (signed_score(gini, 0.25), signed_score(recall, 0.25)) == (-0.25, 0.25)


def checkpoints(folder: Path, part: Any) -> list[Path]:
    """Save models of which no two have the same best metrics."""
    paths = []
    for factors in (1, 4, 12):
        paths.append(folder / f"als-{factors}.npz")
        se.train_als(part.train, factors=factors, iterations=3).save(paths[-1])
    return paths


def test_decides_the_best_iteration_checkpoint_and_trial(parts: Any, tmp_path: Path) -> None:
    _, part = parts
    data = (part.train, part.validation)
    for metrics in (METRICS, METRICS[1:]):
        first = metrics[0]
        choose = "idxmin" if first.startswith("gini") else "idxmax"
        options: dict[str, Any] = {"monitor": first}

        callback = se.EvaluationCallback(*data, metrics)
        se.train_als(part.train, factors=4, iterations=6, callback=callback)
        assert callback.best_iteration == getattr(callback.history[first], choose)()

        table = se.sweep(checkpoints(tmp_path, part), *data, metrics)
        assert table.index[table["best"]].tolist() == [getattr(table[first], choose)()]
        named = se.sweep(tmp_path, *data, metrics, **options)
        pd.testing.assert_frame_equal(
            table.drop(columns="seconds"), named.drop(columns="seconds"), check_exact=True
        )

        found = se.tune(*data, metrics, space=GRID)
        assert found.trials.index[found.trials["best"]].tolist() == [
            getattr(found.trials[first], choose)()
        ]
        assert same_search(found, se.tune(*data, metrics, space=GRID, **options))


def test_the_command_line_takes_the_first(parts: Any, command: Command, tmp_path: Path) -> None:
    _, part = parts
    part.save(tmp_path / "split")
    folder = tmp_path / "models"
    folder.mkdir()
    checkpoints(folder, part)
    given = ("-m", ",".join(METRICS), "--format", "json")
    status, printed, said = command("score", folder, "--split", tmp_path / "split", *given)
    assert status == 0, said
    rows = json.loads(printed)
    assert [row["best"] for row in rows] == [
        row["gini@10"] == min(other["gini@10"] for other in rows) for row in rows
    ]

    log, out = tmp_path / "log.csv", tmp_path / "out"
    pairs = zip(*part.train.nonzero(), strict=True)
    log.write_text("user,item\n" + "".join(f"U{user},I{item}\n" for user, item in pairs))
    words = ("--factors", "1,4,12", "--iterations", 3, "--out", out)
    status, printed, said = command("tune", log, *words, *given)
    assert status == 0, said
    trials = json.loads(printed)["trials"]
    assert [trial["best"] for trial in trials] == [
        trial["gini@10"] == min(other["gini@10"] for other in trials) for trial in trials
    ]
