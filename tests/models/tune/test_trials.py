"""Trials: their values, the best of them, and those that fail."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tune_cases import (
    GRID,
    METRICS,
    PARAMETERS,
    content,
    curve,
    same_search,
    search,
    three_parts,
)

import sparse_eval as se
import sparse_eval.models.callback as callbacks
import sparse_eval.models.tune as tuning


def test_a_grid_has_the_values_of_separate_trainings(
    parts: Any, whole_search: tuning.Tuning
) -> None:
    outcome = whole_search
    table = outcome.trials
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
    for i, parameters in enumerate(grid):
        values = curve(parts[1], parameters)
        of = [value["ndcg@10"] for value in values]
        row = table.iloc[i]
        assert row["best_iteration"] == of.index(max(of)) + 1
        assert row[METRICS].to_dict() == values[of.index(max(of))]
        best_values.append(max(of))
    best = best_values.index(max(best_values))
    assert table["best"].tolist() == [i == best for i in range(4)]
    assert outcome.best == {
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

    monkeypatch.setattr(callbacks, "evaluate_model", counted)
    row = search(parts, tested=False, patience=2, **options).trials.iloc[0]
    assert len(evaluated) == done
    assert row["best_iteration"] == best
    assert row[METRICS].to_dict() == callback.history.loc[best, METRICS].to_dict()


def test_the_best_is_that_of_the_monitored_metric(parts: Any) -> None:
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
    outcome = search(parts, seed=3, **options)
    assert same_search(search(parts, seed=3, **options), outcome)
    other = search(parts, seed=4, **options)
    assert (other.trials["ndcg@10"] != outcome.trials["ndcg@10"]).any()
    part = parts[1]
    model = se.train_als(part.train, **outcome.best)
    ev = se.evaluate_model(model, part.train, part.validation, METRICS)
    assert outcome.trials.loc[outcome.trials["best"], METRICS].to_dict("records") == [ev.mean()]


def test_leaves_inputs_of_every_kind_unchanged() -> None:
    whole, part = three_parts()
    expected = search((whole, part), factors=2)
    for matrix in (part.train, part.validation, whole.validation):
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
    truth = se.Relevance.from_csr
    for train, held_out, test in (
        (part.train, part.validation, whole.validation),
        (sparse.csr_array(part.train), part.validation.tocoo(), truth(whole.validation)),
        (part.train.tocsc(), truth(part.validation), whole.validation.astype(np.float32)),
    ):
        assert same_search(
            se.tune(train, held_out, METRICS, test=test, **(GRID | {"factors": 2})), expected
        )


def test_a_failing_trial_has_a_row(parts: Any, tmp_path: Path, trained: list[Any]) -> None:
    options = GRID | {"factors": [10**9, 2], "alpha": [1e30, 1.0]}
    outcome = search(parts, out=tmp_path, **options)
    table = outcome.trials
    assert table["status"].tolist() == ["failed", "failed", "failed", "ok"]
    assert "memory" in table["error"][1] or "allocate" in table["error"][1]
    assert "is not finite; train again with a lower alpha" in table["error"][2]
    assert table["best"].tolist() == [False, False, False, True]
    assert table.loc[:2, [*METRICS, "best_iteration"]].isna().all(axis=None)
    assert outcome.test is not None
    trained.clear()
    assert same_search(search(parts, out=tmp_path, **options), outcome)
    assert trained == []  # a failure is a result


def test_when_every_trial_fails(parts: Any, tmp_path: Path) -> None:
    outcome = search(parts, alpha=1e30, out=tmp_path)
    assert outcome.trials["status"].tolist() == ["failed"] * 2
    assert not outcome.trials["best"].any()
    assert outcome[1:] == (None, None)
    assert sorted(content(tmp_path)) == ["search.json", "trials.csv"]
    never = search(parts, "fcp@1", factors=2, alpha=1.0, tested=False)  # one item has no pairs
    assert "fcp@1 is defined for no user" in never.trials["error"][0]
    assert search(parts, "fcp@1", factors=2, alpha=1.0, patience=1).best is None
