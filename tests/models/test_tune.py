"""Searches for hyperparameters: which trials, what they are worth, one test, and going on."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sparse_eval as se
import sparse_eval.models.callback as watching
import sparse_eval.models.tune as tuning
from sparse_eval.errors import InvalidDataError, InvalidFileError, InvalidMetricError, OutputError
from sparse_eval.models.checkpoints import read_checkpoint
from sparse_eval.models.tune import Search

N_USERS, N_ITEMS = 60, 30
METRICS = ["ndcg@10", "recall@5"]
PARAMETERS = ["factors", "alpha", "regularization", "iterations"]
GRID: dict[str, Any] = {
    "factors": [2, 6],
    "alpha": [1.0, 40.0],
    "regularization": 0.01,
    "iterations": 3,
}
FILES = ["model.npz", "per_user.csv", "search.json", "summary.json", "trials.csv"]


def three_parts(seed: int = 0) -> tuple[Any, Any]:
    """The split that holds the test part out, and the one of what is left."""
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=700, seed=3)
    whole = se.split.random(clicks, fraction=0.2, seed=seed)
    return whole, se.split.random(whole.train, fraction=0.3, seed=seed)


@pytest.fixture(scope="module")
def parts() -> tuple[Any, Any]:
    return three_parts()


def search(
    parts: Any, metrics: Any = METRICS, tested: bool = True, **options: Any
) -> tuning.Tuning:
    whole, part = parts
    test = {"test": whole.validation} if tested else {}
    return se.tune(part.train, part.validation, metrics, **(GRID | test | options))


@pytest.fixture(scope="module")
def whole_search(parts: tuple[Any, Any]) -> tuning.Tuning:
    """What a search finds that nothing interrupts."""
    return search(parts)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect what is trained: the number of stored training pairs, and the parameters."""
    calls: list[Any] = []

    def counted(train: Any, **options: Any) -> Any:
        calls.append((train.nnz, *(options[name] for name in PARAMETERS)))
        return se.train_als(train, **options)

    monkeypatch.setattr(tuning, "train_als", counted)
    return calls


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "trials.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def same(one: tuning.Tuning, other: tuning.Tuning) -> bool:
    """Say whether two results are equal, apart from the time that was taken."""
    pd.testing.assert_frame_equal(
        one.trials.drop(columns="seconds"), other.trials.drop(columns="seconds"), check_exact=True
    )
    assert one[1:] == other[1:]
    return True


def bits(model: Any) -> tuple[bytes, bytes]:
    return model.user_factors.tobytes(), model.item_factors.tobytes()


# What a trial is worth


def curve(part: Any, parameters: dict[str, Any], metrics: Any = METRICS) -> list[dict[str, float]]:
    """The metrics after each number of iterations, each from a training of its own."""
    return [
        se.evaluate_model(
            se.train_als(part.train, **(parameters | {"iterations": n})),
            part.train,
            part.validation,
            metrics,
        ).mean()
        for n in range(1, parameters["iterations"] + 1)
    ]


def test_a_grid_is_that_of_separate_trainings(parts: Any, whole_search: tuning.Tuning) -> None:
    found = whole_search
    table = found.trials
    assert list(table.columns) == [
        "trial", "best", "status", "error", *PARAMETERS, "best_iteration", *METRICS, "seconds",
    ]  # fmt: skip
    grid = [dict(zip(PARAMETERS, values, strict=True))
            for values in product([2, 6], [1.0, 40.0], [0.01], [3])]  # fmt: skip
    assert table[PARAMETERS].to_dict("records") == grid
    assert table["trial"].tolist() == [1, 2, 3, 4]
    assert table["status"].tolist() == ["ok"] * 4
    assert table["error"].tolist() == [""] * 4
    assert (table["seconds"] > 0).all()
    best_values = []
    for place, parameters in enumerate(grid):
        values = curve(parts[1], parameters)
        of = [value["ndcg@10"] for value in values]
        row = table.iloc[place]
        assert row["best_iteration"] == of.index(max(of)) + 1
        assert row[METRICS].to_dict() == values[of.index(max(of))]
        best_values.append(max(of))
    best = best_values.index(max(best_values))
    assert table["best"].tolist() == [place == best for place in range(4)]
    assert found.best == {
        **grid[best], "iterations": table["best_iteration"][best], "seed": 0,
    }  # fmt: skip


def test_a_trial_stops_as_the_callback_does(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"factors": 6, "alpha": 40.0, "regularization": 0.01, "iterations": 12}
    part = parts[1]
    callback = se.EvaluationCallback(part.train, part.validation, METRICS, patience=2)
    se.train_als(part.train, **options, callback=callback)
    done, best = len(callback.history), callback.best_iteration
    assert done == best + 2 < 12
    evaluated: list[Any] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        evaluated.append(args)
        return se.evaluate_model(*args, **kwargs)

    monkeypatch.setattr(watching, "evaluate_model", counted)
    row = search(parts, tested=False, patience=2, **options).trials.iloc[0]
    assert len(evaluated) == done
    assert row["best_iteration"] == best
    assert row[METRICS].to_dict() == callback.history.loc[best, METRICS].to_dict()


def test_what_is_monitored(parts: Any) -> None:
    metrics = ["ndcg@10", "gini@10"]
    by_first = search(parts, metrics, tested=False).trials
    by_gini = search(parts, metrics, tested=False, monitor="GINI@10").trials
    assert by_first["best"].idxmax() == by_first["ndcg@10"].idxmax()
    assert by_gini["best"].idxmax() == by_gini["gini@10"].idxmin()
    gini = curve(parts[1], GRID | {"factors": 2, "alpha": 1.0}, metrics)
    assert by_gini["gini@10"][0] == min(value["gini@10"] for value in gini)
    assert gini[0] != gini[1]


def test_of_equal_trials_the_first_is_best(parts: Any) -> None:
    table = search(parts, "ndcg@10,user_coverage@5", tested=False, monitor="user_coverage@5").trials
    assert table["user_coverage@5"].tolist() == [1.0] * 4
    assert table["best"].tolist() == [True, False, False, False]
    assert table["best_iteration"].tolist() == [1] * 4


def test_the_same_seed_gives_the_same_values(parts: Any) -> None:
    options: dict[str, Any] = {"factors": "2:8", "alpha": "1:40", "draws": 2, "iterations": 2}
    found = search(parts, seed=3, **options)
    assert same(search(parts, seed=3, **options), found)
    other = search(parts, seed=4, **options)
    assert (other.trials["ndcg@10"] != found.trials["ndcg@10"]).any()
    part = parts[1]
    model = se.train_als(part.train, **found.best)
    ev = se.evaluate_model(model, part.train, part.validation, METRICS)
    assert found.trials.loc[found.trials["best"], METRICS].to_dict("records") == [ev.mean()]


def test_inputs_of_every_kind_are_left_alone() -> None:
    whole, part = three_parts()
    expected = search((whole, part), factors=2)
    for matrix in (part.train, part.validation, whole.validation):
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
    truth = se.Relevance.from_csr
    for train, held, test in (
        (part.train, part.validation, whole.validation),
        (sparse.csr_array(part.train), part.validation.tocoo(), truth(whole.validation)),
        (part.train.tocsc(), truth(part.validation), whole.validation.astype(np.float32)),
    ):
        assert same(se.tune(train, held, METRICS, test=test, **(GRID | {"factors": 2})), expected)


def test_a_failing_trial_has_a_row(parts: Any, tmp_path: Path, trained: list[Any]) -> None:
    options = GRID | {"factors": [10**9, 2], "alpha": [1e30, 1.0]}
    found = search(parts, out=tmp_path, **options)
    table = found.trials
    assert table["status"].tolist() == ["failed", "failed", "failed", "ok"]
    assert "memory" in table["error"][1] or "allocate" in table["error"][1]
    assert "is not finite; train again with a lower alpha" in table["error"][2]
    assert table["best"].tolist() == [False, False, False, True]
    assert table.loc[:2, [*METRICS, "best_iteration"]].isna().all(axis=None)
    assert found.test is not None
    trained.clear()
    assert same(search(parts, out=tmp_path, **options), found)
    assert trained == []  # a failure is a result


def test_when_every_trial_fails(parts: Any, tmp_path: Path) -> None:
    found = search(parts, alpha=1e30, out=tmp_path)
    assert found.trials["status"].tolist() == ["failed"] * 2
    assert not found.trials["best"].any()
    assert found[1:] == (None, None)
    assert sorted(content(tmp_path)) == ["search.json", "trials.csv"]
    never = search(parts, "fcp@1", factors=2, alpha=1.0, tested=False)  # one item has no pairs
    assert "fcp@1 is defined for no user" in never.trials["error"][0]
    assert search(parts, "fcp@1", factors=2, alpha=1.0, patience=1).best is None


# Which trials


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
    space = tuning._values("factors", "3:5")
    assert [space.at(share) for share in (0.0, 1 - 2**-53)] == [3, 5]
    space = tuning._values("alpha", "1e-300:1e300")
    assert space.at(0.0) == pytest.approx(1e-300, rel=1e-12)
    assert space.at(0.5) == pytest.approx(1, rel=1e-12)
    assert 1e299 < space.at(1 - 2**-53) <= 1e300
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
    with pytest.raises(InvalidDataError, match=r"draws: expected a whole number from 1 to 24, as"):
        Search("ndcg@10", **space, draws=25)


def test_values_may_be_written_in_every_way() -> None:
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
    ("options", "says"),
    [
        ({"factors": []}, "factors: expected at least one value, found none"),
        ({"factors": ""}, "factors: '' is no whole number; expected one, several as in"),
        ({"factors": "8,,16"}, "factors: '' is no whole number"),
        ({"factors": "8,x"}, "factors: 'x' is no whole number"),
        ({"factors": "8.5"}, "factors: '8.5' is no whole number"),
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
        ({"factors": "8:", "draws": 2}, "factors: '' is no whole number"),
        ({"factors": "0:8", "draws": 2}, "factors: expected a whole number from 1"),
        ({"factors": "8:16"}, "factors: 8:16 is a range; say with draws how many"),
        ({"factors": "8:16,32", "draws": 1}, "factors: '16,32' is no whole number"),
        ({"alpha": 0}, "alpha: expected a finite number above 0, found 0"),
        ({"alpha": "nan"}, "alpha: expected a finite number above 0, found nan"),
        ({"alpha": "1,inf"}, "alpha: expected a finite number above 0, found inf"),
        ({"alpha": "high"}, "alpha: 'high' is no number"),
        ({"alpha": "1,1.0"}, "alpha: 1.0 is there twice"),
        ({"alpha": "0:1", "draws": 1}, "alpha: expected a finite number above 0"),
        ({"regularization": -0.1}, "regularization: expected a finite number of at least 0"),
        ({"regularization": "0:1", "draws": 1}, "regularization: a range is drawn from log-unif"),
        ({"iterations": "0"}, "iterations: expected a whole number from 1"),
        ({"draws": 0}, "draws: expected a whole number of at least 1, found 0"),
        ({"draws": 1.5}, "draws: expected a whole number"),
        ({"draws": 2}, "draws: expected a whole number from 1 to 1, as many combinations"),
        ({"patience": 0}, "patience: expected a whole number of at least 1, found 0"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, found -1"),
    ],
)
def test_a_space_that_is_none(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidDataError, match=re.escape(says)):
        Search("ndcg@10", **options)


@pytest.mark.parametrize(
    ("metrics", "monitor", "says"),
    [
        ("ndgc@10", None, "no metric 'ndgc'; did you mean 'ndcg'"),
        ("ndcg", None, "ndcg has no cut-off"),
        ([], None, "no metric is asked for"),
        ("ndcg@10,calibration@5", None, "needs item_groups"),
        ("ndcg@10,map@5", "ndcg@5", "monitor is 'ndcg@5', which is not among the metrics"),
        ("ndcg@{5,10}", "ndcg@{5,10}", "monitor is 'ndcg@{5,10}'"),
    ],
)
def test_metrics_that_are_none(metrics: Any, monitor: str | None, says: str) -> None:
    with pytest.raises(InvalidMetricError, match=re.escape(says)):
        Search(metrics, monitor=monitor)


def test_data_that_are_none(parts: Any, tmp_path: Path, trained: list[Any]) -> None:
    whole, part = parts
    larger = whole.validation.copy()
    larger.resize((N_USERS, N_ITEMS + 1))
    nothing = whole.validation * 0
    out = tmp_path / "out"
    for train, held, test, says in (
        (part.train, larger, None, r"validation has shape \(60, 31\)"),
        (part.train, nothing, None, "validation has no relevant item"),
        (part.train, part.validation, larger, r"test has shape \(60, 31\), train \(60, 30\)"),
        (part.train, part.validation, nothing, "test has no relevant item"),
        (part.train, part.validation, -whole.validation, "gain in row 0"),
        (part.train * np.nan, part.validation, None, "the train matrix holds nan"),
    ):
        with pytest.raises(InvalidDataError, match=says):
            se.tune(train, held, METRICS, test=test, out=out)
    assert trained == []
    assert not out.exists()
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OutputError, match="file: cannot be used as an output folder"):
        search(parts, out=tmp_path / "file")


# The test


def test_the_test_is_of_a_training_on_the_rest(parts: Any, tmp_path: Path) -> None:
    whole, _ = parts
    labels = [f"u{row}" for row in range(N_USERS)]
    truth = se.Relevance.from_csr(whole.validation, users=labels)
    found = search(parts, test=truth, out=tmp_path)
    assert sorted(content(tmp_path)) == FILES
    model = se.train_als(whole.train, **found.best)
    assert bits(read_checkpoint(tmp_path / "model.npz")) == bits(model)
    ev = se.evaluate_model(model, whole.train, truth, METRICS)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary == found.test
    assert {name: summary[name] for name in ev.to_dict()} == json.loads(ev.to_json())
    assert summary["parameters"] == found.best
    assert summary["trial"] == found.trials["trial"][found.trials["best"].idxmax()]
    ev.to_csv(tmp_path / "expected.csv")
    assert (tmp_path / "per_user.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert same(search(parts, test=truth), found)  # and without a folder


def test_what_was_shown_and_not_clicked_stays_of_no_weight(parts: Any) -> None:
    whole, part = parts
    zeros = part.validation.copy()
    zeros.data[::3] = 0  # shown, not clicked
    held = se.Relevance.from_csr(zeros)
    together = tuning._together(part.train, held)
    assert together.nnz == whole.train.nnz
    expected = whole.train.copy()
    for row, column in zip(*(part.validation != zeros).nonzero(), strict=True):
        expected[row, column] = 0
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(together, name), getattr(expected, name))
    small = se.Relevance.from_csr(zeros[:20, :10])
    assert tuning._together(part.train, small).shape == whole.train.shape


def test_trials_see_nothing_of_the_test_part(
    parts: Any, whole_search: tuning.Tuning, monkeypatch: pytest.MonkeyPatch, trained: list[Any]
) -> None:
    whole, part = parts
    scored: list[tuple[str, int, int]] = []

    def watched(place: str) -> Callable[..., Any]:
        def evaluate(model: Any, train: Any, held: Any, *args: Any, **options: Any) -> Any:
            assert isinstance(held, se.Relevance)
            scored.append((place, train.nnz, len(held.items)))
            return se.evaluate_model(model, train, held, *args, **options)

        return evaluate

    for module, place in ((watching, "trial"), (tuning, "test")):
        monkeypatch.setattr(module, "evaluate_model", watched(place))
    found = search(parts)
    assert same(found, whole_search)
    of_trials = ("trial", part.train.nnz, part.validation.nnz)
    assert scored == [of_trials] * 12 + [("test", whole.train.nnz, whole.validation.nnz)]
    assert [call[0] for call in trained] == [part.train.nnz] * 4 + [whole.train.nnz]
    assert part.train.nnz + part.validation.nnz == whole.train.nnz
    assert (part.train.multiply(whole.validation)).nnz == 0
    assert (part.validation.multiply(whole.validation)).nnz == 0

    turned = whole.validation[::-1]
    with pytest.warns(UserWarning, match="held-out items were seen by their users"):
        other = search(parts, test=turned)
    assert other.best == found.best
    assert other.test != found.test
    pd.testing.assert_frame_equal(
        other.trials.drop(columns="seconds"), found.trials.drop(columns="seconds")
    )


def test_a_test_may_follow_later_but_not_twice(
    parts: Any, tmp_path: Path, trained: list[Any]
) -> None:
    first = search(parts, tested=False, out=tmp_path)
    assert first.test is None
    assert sorted(content(tmp_path)) == ["search.json", "trials.csv"]
    assert len(trained) == 4
    found = search(parts, out=tmp_path)
    assert len(trained) == 5
    before = content(tmp_path)
    assert same(search(parts, out=tmp_path), found)
    assert len(trained) == 5
    assert search(parts, tested=False, out=tmp_path)[1:] == (found.best, None)
    turned = parts[0].validation[::-1]
    with pytest.raises(InvalidFileError, match=r"summary.json: is of another test: test \w{16} \("):
        search(parts, test=turned, out=tmp_path)
    assert content(tmp_path) == before


def test_a_training_for_the_test_that_diverges(
    parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverging(train: Any, **options: Any) -> Any:
        if "callback" not in options:
            options["alpha"] = 1e30
        return se.train_als(train, **options)

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "train_als", diverging)
        with pytest.raises(se.SparseEvalError, match="the training diverged"):
            search(parts, alpha=1.0, out=tmp_path)
    assert sorted(content(tmp_path)) == ["search.json", "trials.csv"]
    assert len(rows_of(tmp_path)) == 2


# Going on


def test_finished_trials_are_not_run_again(
    parts: Any,
    whole_search: tuning.Tuning,
    tmp_path: Path,
    trained: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = search(parts, out=tmp_path / "whole")
    assert same(expected, whole_search)
    calls = list(trained)
    trained.clear()

    def interrupting(train: Any, **options: Any) -> Any:
        if len(trained) == 2:
            raise KeyboardInterrupt
        return counted(train, **options)

    counted = tuning.train_als
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "train_als", interrupting)
        with pytest.raises(KeyboardInterrupt):
            search(parts, out=tmp_path / "parts")
    assert trained == calls[:2]
    rows = rows_of(tmp_path / "parts")
    assert [row["trial"] for row in rows] == ["1", "2"]
    assert [row["best"] for row in rows].count("True") == 1
    assert same(search(parts, out=tmp_path / "parts"), expected)
    assert trained == calls
    one, other = (content(tmp_path / name) for name in ("whole", "parts"))
    assert {*one} == {*other} == {*FILES}
    for name in {*FILES} - {"trials.csv"}:
        assert one[name] == other[name]
    timeless = [
        [row | {"seconds": ""} for row in rows_of(tmp_path / name)] for name in ("whole", "parts")
    ]
    assert timeless[0] == timeless[1]
    assert one == content(tmp_path / "whole")
    assert same(search(parts, out=tmp_path / "whole"), expected)
    assert one == content(tmp_path / "whole")  # nothing is written again
    assert trained == calls


@pytest.mark.parametrize("call", range(1, 8))
def test_an_interrupt_at_every_file(
    parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """search.json, a table for each of two trials, the model, two files of the test."""
    options: dict[str, Any] = {"factors": [2], "iterations": 2, "out": tmp_path}
    replaced: list[str] = []
    replace = Path.replace

    def pressed(self: Path, target: Path) -> Path:
        replaced.append(target.name)
        if len(replaced) == call:
            raise KeyboardInterrupt
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", pressed)
        if call == 7:
            search(parts, **options)
        else:
            with pytest.raises(KeyboardInterrupt):
                search(parts, **options)
    names = ["search.json", "trials.csv", "trials.csv", "model.npz", "per_user.csv", "summary.json"]
    assert replaced == names[:call]
    assert {*content(tmp_path)} == {*names[: call - 1]}  # and no half file
    assert same(search(parts, **options), search(parts, **(options | {"out": None})))
    assert sorted(content(tmp_path)) == FILES


KILLED = """
import os, signal, sys
from pathlib import Path
import sparse_eval as se

split, out, call = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
whole, part = se.split.Holdout.load(split / "whole"), se.split.Holdout.load(split / "part")
replace, calls = Path.replace, []

def killing(self, target):
    calls.append(target)
    if len(calls) == call:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)

Path.replace = killing
se.tune(
    part.train, part.validation, ["ndcg@10", "recall@5"], factors=[2, 6], alpha=[1.0, 40.0],
    regularization=0.01, iterations=3, test=whole.validation, out=out,
)
"""


@pytest.mark.parametrize(
    "calls", [(4,), pytest.param((1, 2, 3, 2, 2, 3, 3), marks=pytest.mark.slow)]
)
def test_a_search_that_is_killed(
    parts: Any, whole_search: tuning.Tuning, tmp_path: Path, calls: tuple[int, ...]
) -> None:
    """Before the so many-th file that a run completes is moved to its place."""
    for holdout, name in zip(parts, ("whole", "part"), strict=True):
        holdout.save(tmp_path / name)
    out = tmp_path / "out"
    for call in calls:
        done = subprocess.run(
            [sys.executable, "-c", KILLED, tmp_path, out, str(call)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (out / "summary.json").exists()
    assert same(search(parts, out=out), whole_search)
    assert [name for name in sorted(content(out)) if not name.startswith(".")] == FILES


def test_a_disk_that_is_full(
    parts: Any, whole_search: tuning.Tuning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def full(self: Path, text: str, **options: Any) -> int:
        if text.count("\n") == 4 and text.startswith("trial,"):
            raise OSError(28, "No space left on device")
        return write(self, text, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(OutputError, match=r"trials.csv: cannot be written: No space left"):
            search(parts, out=tmp_path)
    assert len(rows_of(tmp_path)) == 2
    assert same(search(parts, out=tmp_path), whole_search)


def test_another_search_is_refused(parts: Any, tmp_path: Path, trained: list[Any]) -> None:
    search(parts, out=tmp_path, patience=3)
    before = content(tmp_path)
    trained.clear()
    whole, part = parts
    changed = part.train.copy()
    changed.data[5] += 1
    for data, options, says in (
        (parts, {"metrics": ["ndcg@10"]}, r'metrics ["ndcg@10", "recall@5"] (here ["ndcg@10"])'),
        (parts, {"monitor": "recall@5"}, "monitor ndcg@10 (here recall@5)"),
        (parts, {"patience": 4}, "patience 3 (here 4)"),
        (parts, {"patience": None}, "patience 3 (here null)"),
        (parts, {"seed": 1}, "seed 0 (here 1)"),
        (parts, {"factors": [2, 6, 8]}, "factors [2, 6] (here [2, 6, 8])"),
        (parts, {"factors": [6, 2]}, "factors [2, 6] (here [6, 2])"),
        (parts, {"alpha": "1:40", "draws": 4}, "alpha [1.0, 40.0] (here 1.0:40.0); draws null (h"),
        (parts, {"regularization": 0}, "regularization [0.01] (here [0.0])"),
        (parts, {"iterations": 5}, "iterations [3] (here [5])"),
        (three_parts(seed=1), {}, "train "),
        ((whole, se.split.Holdout(part.train, part.validation * 2)), {}, "search: validation "),
        ((whole, se.split.Holdout(changed, part.validation)), {}, "search: train "),
    ):
        with pytest.raises(InvalidFileError, match=re.escape(says)) as error:
            search(data, **({"out": tmp_path, "patience": 3} | options))
        assert f"{tmp_path}/search.json: is of another search: " in str(error.value)
    assert trained == []
    assert content(tmp_path) == before
    single = se.split.Holdout(part.train, part.validation)
    object.__setattr__(single, "train", part.train.astype(np.float32))
    search((whole, single), out=tmp_path, patience=3)  # the same numbers
    assert trained == []


def test_files_of_no_search_are_left_alone(parts: Any, tmp_path: Path) -> None:
    for name in ("trials.csv", "model.npz", "per_user.csv", "summary.json"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("of another program")
        with pytest.raises(InvalidFileError, match=f"{name}: is there, but no search.json"):
            search(parts, out=folder)
        assert content(folder) == {name: b"of another program"}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("stay")
    search(parts, factors=2, alpha=1.0, out=tmp_path / "other")
    assert sorted(content(tmp_path / "other")) == sorted([*FILES, "notes.txt"])


def test_files_that_were_changed_are_refused(
    parts: Any, tmp_path: Path, trained: list[Any]
) -> None:
    found = search(parts, iterations=1, out=tmp_path)
    sound = content(tmp_path)
    lines = sound["trials.csv"].decode().splitlines(keepends=True)
    trained.clear()

    def table(*kept: str) -> bytes:
        return "".join(kept).encode()

    second = lines[2].split(",")
    for name, text, says in (
        ("search.json", b"{", "is not what a search wrote, and is left as it is"),
        ("search.json", b"[]", "is not what a search wrote"),
        ("search.json", b'{"seed": 0}', "is not what a search wrote"),
        ("search.json", b"\xff", "is not what a search wrote"),
        ("summary.json", b"", "is not what a search wrote"),
        ("summary.json", b'{"trial": 1}', "is not what a search wrote"),
        ("trials.csv", b"", "is not the table that this search wrote"),
        ("trials.csv", b"\xff\xfe", "is not the table that this search wrote"),
        ("trials.csv", table("trial,best\n", "1,True\n"), "is not the table that this search"),
        ("trials.csv", table(*lines[:2], lines[1]), "trials.csv, line 3: is not what this search"),
        ("trials.csv", table(lines[0], lines[1], lines[2][:25]), "line 3: is not"),
        ("trials.csv", table(*lines, "5" + lines[1][1:]), "line 6: is not"),
        ("trials.csv", table(*lines[:2], "x" + lines[2][1:]), "line 3: is not"),
        ("trials.csv", table(*lines[:2], "3" + lines[2][1:]), "line 3: is not"),
        ("trials.csv", table(lines[0], lines[1].rstrip() + ",7\n"), "line 2: is not"),
        ("trials.csv", table(lines[0], ",".join([*second[:2], "done", *second[3:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:2], "failed", *second[3:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:8], "5", *second[9:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:9], "nan", *second[10:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:10], "high", *second[11:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:11], "\n"])), "line 2"),
    ):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(InvalidFileError, match=re.escape(says)):
            search(parts, iterations=1, out=tmp_path)
        assert content(tmp_path) == sound | {name: text}
        (tmp_path / name).write_bytes(sound[name])
    assert trained == []
    (tmp_path / "trials.csv").write_bytes(table(*lines[:2], *lines[3:]))
    assert same(
        search(parts, iterations=1, out=tmp_path), found
    )  # a line that is deleted is a trial to run
    assert len(trained) == 1
    summary = json.loads(sound["summary.json"])
    other = summary | {"trial": summary["trial"] % 4 + 1}
    (tmp_path / "summary.json").write_text(json.dumps(other))
    with pytest.raises(InvalidFileError, match="is of another test: trial"):
        search(parts, iterations=1, out=tmp_path)


# The command


Command = Callable[..., tuple[int, str, str]]
SMALL = (
    "--factors", "2,6", "--alpha", "1,40", "--regularization", "0.01", "--iterations", "3",
    "-m", "ndcg@10,recall@5",
)  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a click log as CSV, some pairs of it more than once."""
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=700, seed=3)
    frame = clicks.to_frame()
    later = frame[::3].assign(timestamp=frame["timestamp"].max() + 1)
    pd.concat([frame, later]).to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


def test_the_command_searches_and_tests(
    command: Command, log: Path, tmp_path: Path, trained: list[Any]
) -> None:
    out = tmp_path / "made" / "out"
    words = ("tune", log, *SMALL, "--fraction", "0.25", "--seed", "2", "--out", out)
    status, printed, said = command(*words)
    assert status == 0, said
    assert len(trained) == 5
    clicks = se.datasets.load_csv(log)
    whole = se.split.random(clicks, fraction=0.25, seed=2)
    part = se.split.random(whole.train, fraction=0.25, seed=2)
    found = search((whole, part), seed=2)
    lines = printed.splitlines()
    assert lines[0].split() == ["trial", "best", *PARAMETERS, "best_iteration", *METRICS, "seconds"]
    assert [line.split()[1] == "*" for line in lines[2:6]] == found.trials["best"].tolist()
    assert f"{found.trials['ndcg@10'][0]:.6f}" in lines[2]
    best = found.trials[found.trials["best"]].iloc[0]
    assert [line.split() for line in lines[6:12]] == [
        [],
        ["metric", "validation", "test"],
        ["----------"[:len("recall@5")], "------------", "--------"],
        *([name, f"{best[name]:.6f}", f"{found.test['metrics'][name]['mean']:.6f}"]
          for name in METRICS),
        [],
    ]  # fmt: skip
    assert lines[12].startswith(f"best: trial {best['trial']} (factors {best['factors']}, alpha ")
    assert lines[13] == (
        "test: trained once more, on train and validation; means over "
        f"{found.test['n_users']} users, {found.test['n_skipped']} left out (nothing relevant)"
    )
    assert sorted(content(out)) == FILES
    assert json.loads((out / "summary.json").read_text()) == found.test
    assert [*rows_of(out)[0]] == [*found.trials.columns]
    assert (out / "per_user.csv").read_text().splitlines()[1].startswith("U1,")

    # what it tested is what `split` holds out, so that the test can be had again
    before = content(out)
    trained.clear()
    assert command("split", log, "--fraction", 0.25, "--seed", 2, "--out", tmp_path / "s")[0] == 0
    status, again, _ = command(
        "score", out / "model.npz", "--split", tmp_path / "s", *SMALL[-2:], "--format", "json"
    )
    assert status == 0
    scores = json.loads(again)["metrics"]
    assert {name: scores[name]["mean"] for name in scores} == pytest.approx(
        {name: found.test["metrics"][name]["mean"] for name in METRICS}, rel=1e-12
    )
    # a folder of a split is that of the test
    status, again, said = command(
        "tune", tmp_path / "s", *SMALL, "--fraction", 0.25, "--seed", 2, "--out", out
    )
    assert (status, again) == (0, printed), said
    assert command(*words)[:2] == (0, printed)
    status, again, _ = command(*words, "--format", "json")
    result = json.loads(again)
    assert [*result] == ["trials", "best", "test"]
    assert result["best"] == found.best
    assert result["test"] == found.test
    assert pd.DataFrame(result["trials"])[METRICS].equals(found.trials[METRICS])
    assert result["trials"][0]["best_iteration"] == found.trials["best_iteration"][0]
    status, again, _ = command(*words, "--format", "csv")
    trials, test = again.split("\n\n")
    values = [float(row["recall@5"]) for row in csv.DictReader(trials.splitlines())]
    assert values == found.trials["recall@5"].tolist()
    assert [row["metric"] for row in csv.DictReader(test.splitlines())] == METRICS
    status, again, _ = command(*words, "--format", "markdown")
    assert again.splitlines()[0].split()[:4] == ["|", "trial", "|", "best"]
    assert trained == []
    assert content(out) == before

    status, printed, said = command(*words, "--fraction", 0.2)
    assert (status, printed) == (2, "")
    assert f"error: {out}/search.json: is of another search: train " in said.splitlines()[-1]
    assert content(out) == before


def test_the_command_holds_the_last_out_twice(command: Command, log: Path, tmp_path: Path) -> None:
    clicks = se.datasets.load_csv(log, timestamp="timestamp")
    whole = se.split.last_n(clicks, n=2)
    frame = clicks.to_frame()
    held = {(clicks.users[row], clicks.items[column])
            for row, column in zip(*whole.validation.nonzero(), strict=True)}  # fmt: skip
    earlier = [pair not in held for pair in zip(frame["user"], frame["item"], strict=True)]
    rest = se.datasets.Interactions.from_frame(
        frame[earlier], timestamp="timestamp", users=clicks.users, items=clicks.items
    )
    part = se.split.last_n(rest, n=2)
    assert ((part.train + part.validation) != whole.train).nnz == 0
    assert (np.diff(part.validation.indptr) == 2).sum() > 40
    words = ("--method", "last-n", "--n", 2, "--timestamp", "timestamp", "--out", tmp_path / "o")
    status, printed, said = command(
        "tune", log, *SMALL, "--alpha", 1, *words, "--format", "json", "--progress"
    )
    assert status == 0, said
    found = search((whole, part), alpha=1.0)
    assert json.loads(printed)["test"] == found.test
    assert json.loads(printed)["best"] == found.best
    assert "hold out the test part (last-n): " in said
    assert "hold out the validation part (last-n): " in said
    assert "tune: 100%" in said
    assert "best trial=" in said
    assert "tune: 2 trials, " in said


def test_the_command_takes_a_ready_made_split(command: Command, log: Path, tmp_path: Path) -> None:
    clicks = se.datasets.load_csv(log).to_frame()
    late = np.arange(len(clicks)) % 5 == 0
    pairs = clicks.drop_duplicates(["user", "item"])
    for name, chosen in (("train", ~late), ("test", late)):
        pairs[chosen[pairs.index]].to_csv(tmp_path / f"{name}.csv", index=False)
    one, other = se.datasets.load_parts(tmp_path / "train.csv", tmp_path / "test.csv")
    whole = se.split.Holdout(one.matrix(), other.matrix(), one.users, one.items)
    files = (tmp_path / "train.csv", tmp_path / "test.csv")
    for method, part in (
        ((), se.split.random(whole.train)),
        (("--method", "leave-k-out", "--n", 3), se.split.leave_k_out(whole.train, k=3)),
    ):
        out = tmp_path / f"out{len(method)}"
        status, printed, said = command(
            "tune", *files, *SMALL, "--factors", 2, *method, "--out", out, "--format", "json"
        )
        assert status == 0, said
        found = search((whole, part), factors=2)
        assert json.loads(printed)["test"] == found.test


def test_the_command_draws(command: Command, log: Path, tmp_path: Path) -> None:
    status, printed, said = command(
        "tune", log, *SMALL, "--factors", "2:9", "--alpha", "1:100", "--draws", 3, "--seed", 5,
        "--patience", 1, "--monitor", "recall@5", "--out", tmp_path / "o", "--format", "csv",
    )  # fmt: skip
    assert status == 0, said
    rows = list(csv.DictReader(printed.split("\n\n")[0].splitlines()))
    drawn = Search("ndcg@10", factors="2:9", alpha="1:100", regularization=0.01, iterations=3,
                   draws=3, seed=5).trials  # fmt: skip
    assert [{name: float(row[name]) for name in PARAMETERS} for row in rows] == drawn
    best = max(rows, key=lambda row: float(row["recall@5"]))
    assert best["best"] == "True"


def test_the_command_fails_if_every_trial_does(command: Command, log: Path, tmp_path: Path) -> None:
    words = ("tune", log, *SMALL, "--factors", 2)
    status, printed, said = command(*words, "--alpha", "1,1e30", "--out", tmp_path / "one")
    assert status == 0
    assert said.splitlines()[-1] == "1 of 2 trials failed"
    assert printed.splitlines()[0].split()[-1] == "error"
    assert "is not finite; train again" in printed.splitlines()[3]
    status, printed, said = command(*words, "--alpha", "1e29,1e30", "--out", tmp_path / "all")
    assert status == 1
    assert said.splitlines()[-1] == "2 of 2 trials failed"
    assert len(printed.splitlines()) == 4
    status, printed, _ = command(
        *words, "--alpha", "1e29,1e30", "--out", tmp_path / "all", "--format", "json"
    )
    assert status == 1
    result = json.loads(printed)
    assert (result["best"], result["test"]) == (None, None)
    assert result["trials"][0]["ndcg@10"] is None
    assert result["trials"][0]["best_iteration"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--factors", "0"), "factors: expected a whole number from 1"),
        (("--factors", "8,many"), "factors: 'many' is no whole number"),
        (("--factors", ""), "factors: '' is no whole number"),
        (("--alpha", "1:100"), "alpha: 1.0:100.0 is a range; say with draws"),
        (("--alpha", "100:1", "--draws", "3"), "alpha: expected a range LOW:HIGH"),
        (("--regularization", "-1"), "regularization: expected a finite number of at least 0"),
        (("--iterations", "1.5"), "iterations: '1.5' is no whole number"),
        (("--draws", "0"), "draws: expected a whole number of at least 1"),
        (("--draws", "9"), "draws: expected a whole number from 1 to 1"),
        (("--patience", "0"), "patience: expected a whole number of at least 1"),
        (("--monitor", "mrr@3"), "monitor is 'mrr@3', which is not among the metrics"),
        (("-m", "ndgc@10"), "did you mean 'ndcg'"),
        (("-m", "ndcg"), "ndcg has no cut-off"),
        (("--seed", "-1"), "seed: expected a whole number of at least 0"),
    ],
)
def test_the_command_refuses_before_it_reads(
    command: Command, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    status, printed, said = command(
        "tune", tmp_path / "missing.csv", "--out", tmp_path / "o", *words
    )
    assert (status, printed) == (2, "")
    assert says in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "o").exists()


def test_the_command_refuses_data_that_do_not_do(
    command: Command, log: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("user,item\n1,2\n1,3\n2,2\n2,4\n")
    for words, says in (
        ((tmp_path / "missing.csv",), "missing.csv: there is no such file"),
        ((log, "--method", "last-n"), "timestamps"),
        ((log, "--n", 2), "--n has no meaning for --method random"),
        ((few, "--fraction", 0.5), "nothing is held out"),  # the test part took what could be
    ):
        status, printed, said = command("tune", *words, *SMALL, "--out", tmp_path / "o")
        assert (status, printed) == (2, "")
        assert says in said.splitlines()[-1]
    assert command("tune", log)[0] == 2
    assert not (tmp_path / "o" / "search.json").exists()


def test_ctrl_c_ends_the_command_and_a_rerun_goes_on(
    command: Command, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o"
    words = ("tune", log, *SMALL, "--factors", ",".join(map(str, range(1, 13))), "--alpha", "1")
    script = Path(sys.executable).with_name("sparse-eval")
    process = subprocess.Popen(
        [script, *map(str, words), "--out", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + 60
        while not ((out / "trials.csv").exists() and len(rows_of(out)) > 1):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130, said
    assert printed == ""
    assert "Traceback" not in said
    assert sorted(content(out)) == ["search.json", "trials.csv"]
    done = rows_of(out)
    assert 1 < len(done) < 12
    status, _, said = command(*words, "--out", out)
    assert status == 0, said
    rows = rows_of(out)
    assert len(rows) == 12
    for before, after in zip(done, rows, strict=False):
        assert before | {"best": ""} == after | {"best": ""}
