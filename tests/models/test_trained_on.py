"""A model that was trained on pairs that are not in train: noticed, or trusted."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.nearest_neighbours import CosineRecommender

import sparse_eval as se
from sparse_eval.inputs.labelled import LabelledMatrix
from sparse_eval.models.identifiers import TrainedOn

CLICKS = se.datasets.synthetic(n_users=60, n_items=50, n_interactions=1200, seed=0)
HOLDOUT = se.split.random(CLICKS, seed=0)
OTHER = se.split.random(CLICKS, fraction=0.5, seed=3)
EARLY, LATE = (se.split.temporal(CLICKS, at=day).known() for day in ("2019-11-25", "2019-12-01"))


def warns(model: Any, *data: Any) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        se.evaluate_model(model, *data, "ndcg@10")
    return any("was trained on pairs that are not in train" in str(one.message) for one in caught)


def fitted_by_callback(train: Any) -> Any:
    callback = se.EvaluationCallback(train, HOLDOUT.validation, "ndcg@10")
    return callback.fit(AlternatingLeastSquares(4, iterations=2, random_state=0), progress=False)


TRAINERS = {
    "als": lambda train: se.train_als(train, factors=4, iterations=2),
    "bpr": lambda train: se.train_model(BayesianPersonalizedRanking(4, iterations=2), train),
    "neighbours": lambda train: se.train_model(CosineRecommender(), train),
    "callback": fitted_by_callback,
    "item_knn": se.baselines.item_knn,
    "ease": se.baselines.ease,
}


@pytest.mark.parametrize("kind", TRAINERS)
def test_another_training_part_is_noticed(kind: str, tmp_path: Path) -> None:
    model = TRAINERS[kind](HOLDOUT.train)
    saved = se.save_model(model, tmp_path / "model.npz")
    for given in (model, saved):
        assert not warns(given, HOLDOUT)
        assert not warns(given, HOLDOUT.train.csr, HOLDOUT.validation)
        assert warns(given, OTHER)
    if kind == "als":
        assert warns(AlternatingLeastSquares.load(str(saved)), OTHER)


def test_a_sweep_names_the_checkpoints(tmp_path: Path) -> None:
    for name, train in {"own": HOLDOUT, "other": OTHER, "whole": CLICKS}.items():
        se.save_model(se.train_als(train, factors=4), tmp_path / f"{name}.npz")
    with pytest.warns(
        UserWarning, match=r"other\.npz \(and 1 more\) was trained on pairs that are not in train"
    ):
        table = se.sweep(tmp_path, HOLDOUT, "ndcg@10")
    assert table["status"].tolist() == ["ok"] * 3


def test_earlier_events_are_trusted() -> None:
    early, late, whole = (se.train_als(one, factors=4) for one in (EARLY, LATE, CLICKS))
    assert not warns(early, LATE)
    assert warns(late, EARLY)
    assert warns(whole, EARLY)
    assert warns(whole, LATE)


def test_a_model_without_the_record_is_trusted(tmp_path: Path) -> None:
    model = AlternatingLeastSquares(4, iterations=2, random_state=0)
    model.fit(OTHER.train.csr, show_progress=False)
    assert not warns(model, HOLDOUT.train.csr, HOLDOUT.validation.csr)


def test_of_folded_users_what_was_trained_on_counts() -> None:
    split = se.split.users(CLICKS, seed=0)
    assert not warns(se.train_als(split, factors=4), split)
    assert warns(se.train_als(CLICKS, factors=4), split)


def test_neither_the_numbering_nor_the_values_count() -> None:
    whole = CLICKS.matrix()
    rows, columns = np.random.default_rng(0).permutation(60), np.arange(50)[::-1]
    assert whole.users is not None
    assert whole.items is not None
    csr = (whole.csr[rows][:, columns] * 2).sorted_indices()
    other = LabelledMatrix(csr, whole.users[rows], whole.items[columns])
    one = TrainedOn.of(whole)
    assert TrainedOn.of(other)[:2] == one[:2]
    assert TrainedOn.parse(str(one)) == one
    for text in (
        None,
        0.5,
        "",
        "Gowalla",
        f"{one}x",
        "7 ids:00ff",
        "7 ids:0123456789abcdef 2020-13-40",
    ):
        assert TrainedOn.parse(text) is None
    assert TrainedOn.of(LabelledMatrix(csr, whole.users, whole.items)).digest != one.digest
