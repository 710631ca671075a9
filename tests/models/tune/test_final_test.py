"""The one test of the best trial."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tune_cases import (
    FILES,
    METRICS,
    N_USERS,
    bits,
    content,
    rows_of,
    same_search,
    search,
)

import sparse_eval as se
import sparse_eval.models.callback as callbacks
import sparse_eval.models.tune as tuning
from sparse_eval.errors import InvalidFileError
from sparse_eval.models.checkpoints import read_checkpoint
from sparse_eval.models.matching import add_sides, match_sides


def test_the_test_trains_on_both_other_parts(parts: Any, tmp_path: Path) -> None:
    whole, _ = parts
    labels = [f"u{row}" for row in range(N_USERS)]
    truth = se.Relevance.from_csr(whole.validation, users=labels)
    outcome = search(parts, test=truth, out=tmp_path)
    assert sorted(content(tmp_path)) == FILES
    model = se.train_als(whole.train, **outcome.best)
    assert bits(read_checkpoint(tmp_path / "model.npz")) == bits(model)
    ev = se.evaluate_model(model, whole.train, truth, METRICS)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary == outcome.test
    assert {name: summary[name] for name in ev.to_dict()} == json.loads(ev.to_json())
    assert summary["parameters"] == outcome.best
    assert summary["trial"] == outcome.trials["trial"][outcome.trials["best"].idxmax()]
    ev.to_csv(tmp_path / "expected.csv")
    assert (tmp_path / "per_user.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert same_search(search(parts, test=truth), outcome)  # and without a folder


def test_keeps_explicit_zeros_of_both_parts(parts: Any) -> None:
    whole, part = parts
    zeros = part.validation.copy()
    zeros.data[::3] = 0  # shown, not clicked
    held_out = se.Relevance.from_csr(zeros)
    together = add_sides(match_sides(None, part.train, held_out))
    assert together.nnz == whole.train.nnz
    expected = whole.train.copy()
    for row, column in zip(*(part.validation != zeros).nonzero(), strict=True):
        expected[row, column] = 0
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(together, name), getattr(expected, name))
    small = se.Relevance.from_csr(zeros[:20, :10])
    assert add_sides(match_sides(None, part.train, small)).shape == whole.train.shape


def test_trials_do_not_use_the_test_part(
    parts: Any, whole_search: tuning.Tuning, monkeypatch: pytest.MonkeyPatch, trained: list[Any]
) -> None:
    whole, part = parts
    scored: list[tuple[str, int, int]] = []

    def watched(stage: str) -> Callable[..., Any]:
        def evaluate(model: Any, train: Any, held_out: Any, *args: Any, **options: Any) -> Any:
            assert isinstance(held_out, se.Relevance)
            scored.append((stage, train.nnz, len(held_out.items)))
            return se.evaluate_model(model, train, held_out, *args, **options)

        return evaluate

    for module, stage in ((callbacks, "trial"), (tuning, "test")):
        monkeypatch.setattr(module, "evaluate_model", watched(stage))
    outcome = search(parts)
    assert same_search(outcome, whole_search)
    of_trials = ("trial", part.train.nnz, part.validation.nnz)
    assert scored == [of_trials] * 12 + [("test", whole.train.nnz, whole.validation.nnz)]
    assert [call[0] for call in trained] == [part.train.nnz] * 4 + [whole.train.nnz]
    assert part.train.nnz + part.validation.nnz == whole.train.nnz
    assert (part.train.multiply(whole.validation)).nnz == 0
    assert (part.validation.multiply(whole.validation)).nnz == 0

    turned = whole.validation[::-1]
    with pytest.warns(UserWarning, match="held-out items were seen by their users"):
        other = search(parts, test=turned)
    assert other.best == outcome.best
    assert other.test != outcome.test
    pd.testing.assert_frame_equal(
        other.trials.drop(columns="seconds"), outcome.trials.drop(columns="seconds")
    )


def test_a_test_may_follow_later_but_not_twice(
    parts: Any, tmp_path: Path, trained: list[Any]
) -> None:
    first = search(parts, tested=False, out=tmp_path)
    assert first.test is None
    assert sorted(content(tmp_path)) == ["search.json", "trials.csv"]
    assert len(trained) == 4
    outcome = search(parts, out=tmp_path)
    assert len(trained) == 5
    before = content(tmp_path)
    assert same_search(search(parts, out=tmp_path), outcome)
    assert len(trained) == 5
    assert search(parts, tested=False, out=tmp_path)[1:] == (outcome.best, None)
    turned = parts[0].validation[::-1]
    with pytest.raises(InvalidFileError, match=r"summary.json: is of another test: test \w{16} \("):
        search(parts, test=turned, out=tmp_path)
    assert content(tmp_path) == before


def test_raises_if_the_training_for_the_test_diverges(
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
