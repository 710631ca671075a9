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
        ("popularity@2", ()),
        ("diversity(similarity=vectors)@5", ("train",)),
        ("calibration@5", ("train",)),
        ("psp(propensity=given)@3", ()),
        ("recall(weights=ips)@3", ("train",)),
        ("recall(gamma=2)@3", ()),
        ("recall@3", ("propensity",)),
        ("ndcg(gain=exp,weights=ips)@3", ("propensity",)),
        ("auc(among=list,weights=ips)@3", ("propensity",)),
        ("psp(propensity=given,b=0.4)@3", ("propensity",)),
    ],
)
def test_refuses_metrics(metrics, given):
    with raises(InvalidMetricError):
        Request.parse(se.Protocol(metrics), given)


@pytest.mark.parametrize("rule", [{"no_relevant": ["zero"]}, {"without_list": "drop"}])
def test_refuses_other_rules_of_users(rule):
    with raises(InvalidDataError):
        se.Protocol("ndcg@5", **rule)


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
