"""The caller's settings for floating-point events, which are the process's, change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparse_eval as se

CLICKS = se.datasets.synthetic(n_users=150, n_items=80, seed=0)
HOLDOUT = se.split.random(CLICKS, seed=0)
MODEL = se.train_als(HOLDOUT.train, factors=8, iterations=3)
#: With what factors are multiplied, so that their products underflow in single or double precision.
SCALES = (1.0, 1e-20, 1e-38, 1e-44, 1e-160, 1e15)
METRICS = (
    "ndcg@10,ndcg(gain=exp)@10,recall@10,map@10,mrr@10,err@10,rbp@10,fcp@10,coverage@10,gini@10,"
    "entropy@10,novelty@10,diversity@10,serendipity@10,personalization@10,psp@10,psndcg@10,"
    "aplt@10,pop_reo@10,pop_rsp@10,exposure_gini@10,recall(weights=snips,gamma=0.5)@10"
)


@pytest.fixture(autouse=True)
def _raise_everything() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_of_any_size(scale: float, dtype: type) -> None:
    with np.errstate(all="ignore"):
        users, items = (
            (side.astype(np.float64) * scale).astype(dtype)
            for side in (MODEL.user_factors, MODEL.item_factors)
        )
    parts = (HOLDOUT.train, HOLDOUT.validation)
    model = (users, items)
    se.top_k(model, k=5, seen=HOLDOUT.train)
    se.ranks(model, HOLDOUT.validation, 20, seen=HOLDOUT.train)
    se.evaluate_model(model, *parts, ["ndcg@10", "auc", "percentile_rank"], baselines=True)
    for similarity in ("cosine", "euclidean"):
        se.evaluate_model(se.factor_model(users, items, similarity=similarity), *parts, "ndcg@10")
    if scale < 1e10:
        se.fold_in(model, HOLDOUT.train, regularization=0.1)


def results(folder: Path) -> dict[str, Callable[[], object]]:
    ev, other = (
        se.evaluate_model(model, HOLDOUT, METRICS, baselines=True)
        for model in (MODEL, se.baselines.item_knn(HOLDOUT))
    )
    both: dict[str, Any] = {"als": ev, "knn": other}
    folds = {"als8": {"factors": 8, "iterations": 2}, "als4": {"factors": 4, "iterations": 2}}

    def saved() -> object:
        ev.save(folder / "ev")
        return se.Evaluation.load(folder / "ev").summary()

    def crossed() -> object:
        cv = se.cross_validate(
            CLICKS, folds, "ndcg@10", splits=se.split.k_fold(CLICKS, k=2), seeds=2
        )
        return cv.summary(), cv.compare()

    return {
        "summary": ev.summary,
        "repr": lambda: repr(ev),
        "by activity": lambda: ev.by("activity"),
        "by popularity": lambda: ev.by("popularity"),
        "explain": lambda: ev.explain("U7"),
        "precision and recall": lambda: ev.precision_recall().to_frame(),
        "saved": saved,
        "t": lambda: se.compare(both),
        "wilcoxon": lambda: se.compare(both, test="wilcoxon"),
        "permutation": lambda: se.compare(both, test="permutation"),
        "equal": lambda: se.compare({"a": ev, "b": ev}),
        "tune": lambda: se.tune(HOLDOUT, "ndcg@10", space={"factors": [4, 8], "iterations": 2}),
        "cross-validation": crossed,
        "ease": lambda: se.evaluate_model(se.baselines.ease(HOLDOUT), HOLDOUT, "ndcg@10"),
        "random": lambda: se.evaluate_model(se.baselines.random(HOLDOUT), HOLDOUT, "ndcg@10"),
    }


def test_results(tmp_path: Path) -> None:
    for name, make in results(tmp_path).items():
        assert make() is not None, name


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1.0, 1e300])
def test_gains_and_scores_of_any_size(scale: float) -> None:
    with np.errstate(all="ignore"):
        gains = HOLDOUT.validation.astype(np.float64) * max(scale, 1e-300)
        scores = np.random.default_rng(0).random(gains.shape) * scale
    for ties in ("item", "average"):
        se.evaluate(se.Rankings.from_scores(scores, ties=ties), gains, "ndcg@5")
