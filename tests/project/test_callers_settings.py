"""The caller's settings for floating-point events, which are the process's, change nothing."""

from contextlib import nullcontext

import numpy as np
import pytest
from exact import exact_model
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

CLICKS = se.datasets.synthetic(n_users=150, n_items=80, seed=0)
HOLDOUT = se.split.random(CLICKS, seed=0)
MODEL = exact_model(HOLDOUT.train)
#: With what factors are multiplied, so that their products underflow in single or double precision.
SCALES = (1.0, 1e-20, 1e-38, 1e-44, 1e-160, 1e15)
METRICS = (
    "ndcg@10,ndcg(gain=exp)@10,recall@10,map@10,mrr@10,err@10,rbp@10,fcp@10,coverage@10,gini@10,"
    "entropy@10,novelty@10,diversity@10,serendipity@10,personalization@10,psp@10,psndcg@10,"
    "aplt@10,pop_reo@10,pop_rsp@10,exposure_gini@10,recall(weights=snips,gamma=0.5)@10"
)


@pytest.fixture(autouse=True)
def _raise_everything():
    with np.errstate(all="raise"):
        yield


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_of_any_size(scale, dtype):
    with np.errstate(all="ignore"):
        users, items = (
            (side.astype(np.float64) * scale).astype(dtype)
            for side in (MODEL.user_factors, MODEL.item_factors)
        )
    parts = (HOLDOUT.train, HOLDOUT.validation)
    model = (users, items)
    if dtype is np.float64 and scale == 1e-160:
        with raises(InvalidDataError):  # the products lose their digits
            se.top_k(model, k=5, train=HOLDOUT.train)
    else:
        se.top_k(model, k=5, train=HOLDOUT.train)
        se.ranks(model, HOLDOUT.validation, 20, train=HOLDOUT.train)
        se.evaluate_model(model, *parts, ["ndcg@10", "auc", "percentile_rank"], baselines=True)
    for similarity in ("cosine", "euclidean"):
        other = se.factor_model(users, items, similarity=similarity)
        is_lost = similarity == "euclidean" and dtype is np.float64 and scale == 1e-160
        with raises(InvalidDataError) if is_lost else nullcontext():
            se.evaluate_model(other, *parts, "ndcg@10")
    if scale < 1e10:
        se.fold_in(model, HOLDOUT.train, regularization=0.1)


@pytest.mark.long
def test_results(tmp_path):
    ev, other = (
        se.evaluate_model(model, HOLDOUT, METRICS, baselines=True)
        for model in (MODEL, se.baselines.ease(HOLDOUT))
    )
    ev.save(tmp_path)
    assert not se.Evaluation.load(tmp_path).summary().empty
    assert repr(ev)
    for segments in ("activity", "popularity"):
        assert not ev.by(segments).empty
    for test in ("t", "wilcoxon", "permutation"):
        assert se.compare({"als": ev, "ease": other}, test=test)
    folds = {"als8": {"factors": 8, "iterations": 2}, "als4": {"factors": 4, "iterations": 2}}
    splits = se.split.k_fold(CLICKS, k=2)
    cv = se.cross_validate(CLICKS, folds, "ndcg@10", splits=splits, seeds=2)
    assert len(cv.compare()) == 1
