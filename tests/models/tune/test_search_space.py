"""Grids and draws, and the spaces, metrics and data that a search refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tune_cases import (
    METRICS,
    N_ITEMS,
    N_USERS,
    PARAMETERS,
    search,
)

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError, OutputError
from sparse_eval.models.search_space import parse_values
from sparse_eval.models.tune import Search


def test_draws_are_seeded_different_and_within_their_ranges() -> None:
    space: dict[str, Any] = {
        "factors": "16:256", "alpha": "0.5:200", "regularization": [0, 0.1, 1], "iterations": "5:6",
    }  # fmt: skip
    drawn = Search("ndcg@10", **space, draws=3000, seed=7).trials
    assert Search("ndcg@10", **space, draws=3000, seed=7).trials == drawn
    assert Search("ndcg@10", **space, draws=20, seed=7).trials == drawn[:20]
    assert Search("ndcg@10", **space, draws=20, seed=8).trials != drawn[:20]
    table = pd.DataFrame(drawn)
    assert list(table.columns) == PARAMETERS
    assert not table.duplicated().any()
    assert {type(trial["factors"]) for trial in drawn} == {int}
    for name, low, high in (("factors", 16, 256), ("alpha", 0.5, 200)):
        assert table[name].between(low, high).all()
        # log-uniform: each quarter of the range of logarithms has a quarter of the draws
        shares = np.log(table[name] / low) / np.log(high / low)
        counts = np.histogram(shares, bins=[0, 0.25, 0.5, 0.75, 1])[0]
        assert (abs(counts / 3000 - 0.25) < 0.04).all()
    for name in ("regularization", "iterations"):
        assert (table[name].value_counts(normalize=True) > 0.3).all()
    assert sorted(table["regularization"].unique()) == [0.0, 0.1, 1.0]
    assert sorted(table["iterations"].unique()) == [5, 6]


def test_the_ends_of_a_range_are_reached() -> None:
    space = parse_values("factors", "3:5")
    assert [space.quantile(share) for share in (0.0, 1 - 2**-53)] == [3, 5]
    space = parse_values("alpha", "1e-300:1e300")
    assert space.quantile(0.0) == pytest.approx(1e-300, rel=1e-12)
    assert space.quantile(0.5) == pytest.approx(1, rel=1e-12)
    assert 1e299 < space.quantile(1 - 2**-53) <= 1e300
    tiny = Search("ndcg@10", alpha="1:1.0000000000000002", draws=5).trials
    assert {trial["alpha"] for trial in tiny} <= {1.0, 1.0000000000000002}


def test_all_of_a_finite_space_can_be_drawn() -> None:
    space: dict[str, Any] = {"factors": "1:6", "alpha": [1, 10], "iterations": [3, 4]}
    drawn = Search("ndcg@10", **space, draws=24).trials
    grid = Search("ndcg@10", **(space | {"factors": range(1, 7)})).trials
    key = tuple[float, ...]

    def ordered(trials: list[dict[str, float]]) -> list[key]:
        return sorted(tuple(trial.values()) for trial in trials)

    assert ordered(drawn) == ordered(grid)
    assert drawn != grid
    with pytest.raises(
        InvalidDataError, match=r"draws: expected a whole number from 1 to 24, the number"
    ):
        Search("ndcg@10", **space, draws=25)


def test_takes_values_in_every_form() -> None:
    expected = [4, 8]
    for given in ([4, 8], (4, 8), "4,8", " 4, 8 ", np.array([4, 8]), ["4", 8], iter([4, 8])):
        trials = Search("ndcg@10", factors=given).trials
        assert [trial["factors"] for trial in trials] == expected
        assert all(type(trial["factors"]) is int for trial in trials)
    assert Search("ndcg@10").trials == [
        {"factors": 64, "alpha": 40.0, "regularization": 0.1, "iterations": 15}
    ]
    trials = Search("ndcg@10", alpha="1e-3,2", regularization=0).trials
    assert [trial["alpha"] for trial in trials] == [0.001, 2.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factors": []}, "factors: expected at least one value, found none"),
        ({"factors": ""}, "factors: '' is not a whole number; expected one, several as in"),
        ({"factors": "8,,16"}, "factors: '' is not a whole number"),
        ({"factors": "8,x"}, "factors: 'x' is not a whole number"),
        ({"factors": "8.5"}, "factors: '8.5' is not a whole number"),
        ({"factors": 8.5}, "factors: expected a whole number from 1 to 2147483647, found 8.5"),
        ({"factors": 0}, "factors: expected a whole number from 1"),
        ({"factors": [8, -1]}, "factors: expected a whole number from 1"),
        ({"factors": 10**30}, "factors: expected a whole number from 1"),
        ({"factors": True}, "factors: expected a whole number"),
        ({"factors": None}, "factors: expected a whole number"),
        ({"factors": "8,16,8"}, "factors: 8 is there twice"),
        ({"factors": "16:8", "draws": 2}, "factors: expected a range LOW:HIGH with LOW below HIGH"),
        ({"factors": "8:8", "draws": 2}, "factors: expected a range LOW:HIGH with LOW below HIGH"),
        ({"factors": "1:2:3", "draws": 2}, "found '1:2:3'"),
        ({"factors": "8:", "draws": 2}, "factors: '' is not a whole number"),
        ({"factors": "0:8", "draws": 2}, "factors: expected a whole number from 1"),
        ({"factors": "8:16"}, "factors: 8:16 is a range; say with draws how many"),
        ({"factors": "8:16,32", "draws": 1}, "factors: '16,32' is not a whole number"),
        ({"alpha": 0}, "alpha: expected a finite number above 0, found 0"),
        ({"alpha": "nan"}, "alpha: expected a finite number above 0, found nan"),
        ({"alpha": "1,inf"}, "alpha: expected a finite number above 0, found inf"),
        ({"alpha": "high"}, "alpha: 'high' is not a number"),
        ({"alpha": "1,1.0"}, "alpha: 1.0 is there twice"),
        ({"alpha": "0:1", "draws": 1}, "alpha: expected a finite number above 0"),
        ({"regularization": -0.1}, "regularization: expected a finite number of at least 0"),
        ({"regularization": "0:1", "draws": 1}, "regularization: a range is drawn from log-unif"),
        ({"iterations": "0"}, "iterations: expected a whole number from 1"),
        ({"draws": 0}, "draws: expected a whole number of at least 1, found 0"),
        ({"draws": 1.5}, "draws: expected a whole number"),
        ({"draws": 2}, "draws: expected a whole number from 1 to 1, the number of combinations"),
        ({"patience": 0}, "patience: expected a whole number of at least 1, found 0"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, found -1"),
    ],
)
def test_refuses_a_space(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidDataError, match=re.escape(message)):
        Search("ndcg@10", **options)


@pytest.mark.parametrize(
    ("metrics", "monitor", "message"),
    [
        ("ndgc@10", None, "no metric 'ndgc'; did you mean 'ndcg'"),
        ("coverage", None, "coverage has no cut-off"),
        ([], None, "no metric is asked for"),
        ("ndcg@10,calibration@5", None, "needs item_groups"),
        ("ndcg@10,map@5", "ndcg@5", "monitor is 'ndcg@5', which is not among the metrics"),
        ("ndcg@{5,10}", "ndcg@{5,10}", "monitor is 'ndcg@{5,10}'"),
    ],
)
def test_refuses_metrics(metrics: Any, monitor: str | None, message: str) -> None:
    with pytest.raises(InvalidMetricError, match=re.escape(message)):
        Search(metrics, monitor=monitor)


def test_refuses_data(parts: Any, tmp_path: Path, trained: list[Any]) -> None:
    whole, part = parts
    larger = whole.validation.copy()
    larger.resize((N_USERS, N_ITEMS + 1))
    nothing = whole.validation * 0
    out = tmp_path / "out"
    for train, held_out, test, message in (
        (part.train, larger, None, r"validation has 31 items \(shape \(60, 31\)\)"),
        (part.train, nothing, None, "validation has no relevant item"),
        (part.train, part.validation, larger, r"test has 31 items \(shape \(60, 31\)\), train 30"),
        (part.train, part.validation, nothing, "test has no relevant item"),
        (part.train, part.validation, -whole.validation, "gain in row 0"),
        (part.train * np.nan, part.validation, None, "the train matrix holds nan"),
    ):
        with pytest.raises(InvalidDataError, match=message):
            se.tune(train, held_out, METRICS, test=test, out=out)
    assert trained == []
    assert not out.exists()
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OutputError, match="file: cannot be used as an output folder"):
        search(parts, out=tmp_path / "file")
