"""`Request`: what is to be computed, refused before anything is, and sent to other processes."""

import pickle
from pathlib import Path

import pytest
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.metrics import REGISTRY
from sparse_eval.metrics.request import Request


@pytest.mark.parametrize(
    ("metrics", "given"),
    [
        ("ndgc@5", ()),
        *((metric, ()) for metric in (
            "popularity@2", "novelty@5", "serendipity@2", "diversity@2", "epc@3", "efd@3",
            "novelty(form=unseen)@3", "diversity(similarity=jaccard)@3", "aplt@3", "pop_reo@3",
            "psp@3", "recall(gamma=2)@3", "recall(weights=ips,gamma=2)@3",
            "psp(propensity=given)@3", "recall(weights=ips)@3", "recall(weights=other)@3",
            "exposure_gini(p=1)@3",
        )),
        *((metric, ("train",)) for metric in (
            "diversity(similarity=vectors)@5", "serendipity(form=vectors)@3", "calibration@5",
            "diversity(similarity=groups)@3", "categorical_diversity@3", "categorical_diversity",
            "reo@3", "alpha_ndcg@3", "err_ia@3", "map_ia", "alpha_ndcg", "err_ia",
            "alpha_ndcg(alpha=1)@3", "aplt(tail=0)@3", "psp(a=0)@3",
        )),
        *((metric, ("propensity",)) for metric in (
            "ndcg(gain=exp,weights=ips)@3", "auc(among=list,weights=ips)@3",
            "psp(propensity=given,a=0.6)@3", "psp(propensity=given,b=0.4)@3", "recall@3",
        )),
    ],
)  # fmt: skip
def test_refuses_metrics(metrics, given):
    with raises(InvalidMetricError):
        Request.parse(se.Protocol(metrics), given)


@pytest.mark.parametrize("no_relevant", ["drop", ["zero"]])
def test_refuses_other_rules_of_users(no_relevant):
    with raises(InvalidDataError):
        se.Protocol("ndcg@5", no_relevant=no_relevant)


def test_missing_inputs_are_refused_before_anything_is_read():
    nowhere = Path("nowhere")
    for metrics in ("ndcg@5,novelty@5", "calibration@5", "ndgc@5"):
        with pytest.raises(InvalidMetricError):
            se.evaluate(nowhere, nowhere, metrics)
        with pytest.raises(InvalidMetricError):
            se.evaluate(nowhere, nowhere, metrics, memory=1, client="nobody:1")
    for metrics in ("calibration@5", "coverage", "ndcg@5,diversity(similarity=vectors)@5"):
        with pytest.raises(InvalidMetricError):
            se.evaluate_model(nowhere, nowhere, nowhere, metrics)
        with pytest.raises(InvalidMetricError):
            se.sweep("nowhere.npz", nowhere, nowhere, metrics)


def test_pickles_to_a_process_that_has_registered_its_metrics():
    se.register_metric("doubled_hits", "twice the hits")(lambda s: 2 * s.hits)
    request = Request.parse(se.Protocol("doubled_hits@3,ndcg@3"))
    _ = request.plans
    pickled = pickle.dumps(request)
    assert len(pickled) < 500
    found = pickle.loads(pickled)  # noqa: S301
    assert found == request
    assert found.names == ("doubled_hits@3", "ndcg@3")
    del REGISTRY["doubled_hits"]
    with raises(InvalidMetricError):
        _ = pickle.loads(pickled).plans  # noqa: S301
