"""`Request`: what is to be computed, refused before anything is, and sent to other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.metrics import REGISTRY, Choice, Number, Statistics
from sparse_eval.metrics.conventions import CONVENTIONS
from sparse_eval.metrics.plan import Plan
from sparse_eval.metrics.request import Request

METRICS = ["ndcg(gain=exp)@{5,10}", "recall(average=micro)@5", "coverage@3", "ndcg@5"]


def test_keeps_each_metric_once_in_the_order_requested() -> None:
    request = Request.parse(se.Protocol(["recall@5", "ndcg@{5,10}", "Recall @5"]), ["train"])
    assert request.names == ("recall@5", "ndcg@5", "ndcg@10")
    assert tuple(map(str, request.metrics)) == request.names
    assert request.inputs == {"train"}
    assert request.no_relevant == "exclude"


def test_takes_what_it_leaves_open_from_the_convention() -> None:
    request = Request.parse(se.Protocol("ndcg@5", convention="trec_eval"))
    assert request.convention is CONVENTIONS["trec_eval"]
    assert request.no_relevant == CONVENTIONS["trec_eval"].no_relevant
    protocol = se.Protocol("ndcg@5", convention="trec_eval", no_relevant="zero")
    assert Request.parse(protocol).no_relevant == "zero"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"metrics": "ndgc@5"}, InvalidMetricError),
        ({"metrics": "ndcg@5", "convention": "trec"}, InvalidMetricError),
        ({"metrics": "mrr@3", "convention": "trec_eval"}, InvalidMetricError),
        ({"metrics": "ndcg@5", "no_relevant": "drop"}, InvalidDataError),
        ({"metrics": "ndcg@5", "no_relevant": ["zero"]}, InvalidDataError),
        ({"metrics": "novelty@5"}, InvalidMetricError),
        ({"metrics": "calibration@5"}, InvalidMetricError),
        ({"metrics": "diversity(similarity=vectors)@5"}, InvalidMetricError),
    ],
)  # fmt: skip
def test_refuses(arguments: dict[str, Any], error: type[Exception]) -> None:
    with raises(error):
        Request.parse(se.Protocol(**arguments))


def test_missing_inputs_are_refused_before_anything_is_read() -> None:
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


def test_is_immutable() -> None:
    request = Request.parse(se.Protocol(METRICS))
    for name, value in (("metrics", ()), ("no_relevant", "zero"), ("anything", 1)):
        with pytest.raises(FrozenInstanceError):
            setattr(request, name, value)
    assert isinstance(request.inputs, frozenset)
    assert isinstance(request.plans, tuple)
    with pytest.raises(AttributeError):
        request.plans[0].metric = request.metrics[1]  # type: ignore[misc]


def test_its_plans_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    new = Plan.__new__

    def counted(*arguments: Any) -> Plan:
        made.append(arguments[1])
        return new(*arguments)

    monkeypatch.setattr(Plan, "__new__", counted)
    request = Request.parse(se.Protocol(METRICS))
    assert request.plans is request.plans
    assert made == list(request.metrics)
    lists, gains = se.Rankings.from_topk([[0, 1, 2]]), csr_matrix([[1, 0, 1]])
    made.clear()
    ev = se.evaluate(lists, gains, METRICS)
    ev.mean()
    assert made.count(ev.metrics[0]) == 1


def test_knows_what_its_metrics_depend_on() -> None:
    plain = Request.parse(se.Protocol("ndcg@5"))
    assert not any((plain.needs_catalogue, plain.needs_largest_gain, plain.needs_side_data))
    assert Request.parse(se.Protocol("coverage@5")).needs_catalogue
    assert Request.parse(se.Protocol("auc")).needs_catalogue
    assert Request.parse(se.Protocol("err@5")).needs_largest_gain
    assert not Request.parse(se.Protocol("err(max=4)@5")).needs_largest_gain
    assert Request.parse(se.Protocol("novelty@5"), ["train"]).needs_side_data


def round_trip(request: Request) -> Request:
    return pickle.loads(pickle.dumps(request))  # type: ignore[no-any-return] # noqa: S301


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("no_relevant", [None, "zero"])
def test_pickles(convention: str, no_relevant: Any) -> None:
    inputs = ["train", "item_groups", "item_vectors"]
    metrics = []
    for entry in REGISTRY.values():
        for name in (f"{entry.name}@5", entry.name):
            try:
                Request.parse(se.Protocol(name, convention=convention), inputs)
            except InvalidMetricError:
                continue
            metrics.append(name)
    protocol = se.Protocol(metrics, convention=convention, no_relevant=no_relevant)
    request = Request.parse(protocol, inputs)
    _ = request.plans
    again = round_trip(request)
    assert again == request
    assert again.names == request.names
    assert again.convention is request.convention
    assert again.plans == request.plans
    assert len(pickle.dumps(request)) < 100 + 60 * len(metrics)


def register() -> None:
    @se.register_metric(
        "weighted_hits",
        "hits, weighted",
        options=(Choice("how", ("plain", "root"), "root or not"), Number("w", "1", 0, 9, "each")),
        needs=["train"],
    )
    def weighted_hits(s: Statistics, how: str, w: float) -> np.ndarray:
        return w * (np.sqrt(s.hits) if how == "root" else s.hits)


def test_pickles_metrics_that_are_registered_on_both_sides() -> None:
    register()
    request = Request.parse(se.Protocol("weighted_hits(how=root,w=2.5)@3,ndcg@3"), ["train"])
    again = round_trip(request)
    assert again == request
    assert again.plans[0].definition is REGISTRY["weighted_hits"]
    assert again.plans[0].arguments == {"how": "root", "w": 2.5}


def test_refuses_to_unpickle_a_metric_that_is_not_registered() -> None:
    register()
    pickled = pickle.dumps(Request.parse(se.Protocol("weighted_hits@3"), ["train"]))
    del REGISTRY["weighted_hits"]
    with raises(InvalidMetricError, metric="weighted_hits"):
        pickle.loads(pickled)  # noqa: S301


_CHILD = """
import pickle, sys
import sparse_eval as se
if sys.argv[1] == "registered":
    se.register_metric("doubled_hits", "twice the hits")(lambda s: 2 * s.hits)
try:
    request = pickle.load(sys.stdin.buffer)
except se.SparseEvalError as error:
    print(type(error).__name__, error)
else:
    formula = request.plans[0].definition.formula
    print(request.names, formula(type("S", (), {"hits": 4})))
"""


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("registered", "('doubled_hits@3', 'ndcg@3') 8\n"),
        ("not", "InvalidMetricError there is no metric 'doubled_hits'"),
    ],
)
def test_pickles_to_another_process(other: str, expected: str) -> None:
    se.register_metric("doubled_hits", "twice the hits")(lambda s: 2 * s.hits)
    request = Request.parse(se.Protocol("doubled_hits@3,ndcg@3"))
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, other],
        input=pickle.dumps(request),
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().startswith(expected)
