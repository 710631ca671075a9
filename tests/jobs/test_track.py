"""Trackers: names that they accept, what they get, and what is refused."""

import re
import socket
import sys
from itertools import product
from types import SimpleNamespace

import pytest
from callback_cases import evaluating, make
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, MissingExtraError, SparseEvalError
from sparse_eval.jobs.track import Tracker
from sparse_eval.metrics import REGISTRY
from sparse_eval.metrics.registry import Choice

METRICS = ["ndcg@10", "ndcg(gain=exp)@10"]


@pytest.fixture(scope="module")
def holdout():
    return se.split.random(se.datasets.synthetic(n_users=120, n_items=40, seed=0), seed=0)


def every_name():
    """Yield the names of all metrics with each choice of each option."""
    for definition in REGISTRY.values():
        options = [""]
        for option in definition.options:
            values = option.values if isinstance(option, Choice) else ("2", "0.5", "1e-05")
            options += [f"({option.name}={value})" for value in values]
        for parts in product(options, ["", "@1", "@10"], ["", " (1+99)", " (11+9)", " (judged)"]):
            yield definition.name + "".join(parts)


def test_names_are_distinct_and_of_signs_that_trackers_accept():
    sent = []
    tracker = Tracker(lambda values, _: sent.append(values))
    names = [*every_name(), "loss"]
    assert len(names) > 1000
    tracker(dict.fromkeys(names, 0.5), 1)
    (values,) = sent
    assert len(values) == len({*names})
    assert all(re.fullmatch(r"\w+", name, re.ASCII) for name in values)
    assert {"ndcg_at_10", "ndcg_gain_exp_at_10", "loss"} <= {*values}


def test_refuses_two_metrics_of_one_name_prefixes_and_steps():
    tracker = Tracker(lambda values, step: None)
    for step in (1, 2):
        tracker({"ndcg@10": 1.0}, step)
    with raises(InvalidDataError):
        tracker({"ndcg_at_10": 1.0}, 3)
    for prefix in ("a", "../", None):
        with raises(InvalidDataError):
            Tracker(print, prefix=prefix)
    with raises(InvalidDataError, argument="step"):
        tracker({"loss": 1.0}, -1)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:codecs.open:DeprecationWarning")  # of mlflow, on Python 3.14
def test_mlflow(holdout, tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "tracked").as_uri())
    import mlflow

    log = se.track.mlflow(prefix="validation/")
    callback = evaluating(holdout, METRICS, every=4, log=log)
    with mlflow.start_run() as run:
        model = callback.fit(make("bpr"))
    ev = se.evaluate_model(model, holdout, "ndcg@10")
    se.track.mlflow(run.info.run_id, prefix="test/")(ev)
    client = mlflow.MlflowClient()
    tracked = {
        name: {
            point.step: point.value for point in client.get_metric_history(run.info.run_id, name)
        }
        for name in client.get_run(run.info.run_id).data.metrics
    }
    assert tracked == {
        "test/ndcg_at_10": {0: ev["ndcg@10"]},
        "validation/ndcg_at_10": callback.history["ndcg@10"].to_dict(),
        "validation/ndcg_gain_exp_at_10": callback.history["ndcg(gain=exp)@10"].to_dict(),
    }
    assert [path.name for path in tmp_path.iterdir()] == ["tracked"]


class Run:
    """A run of W&B, which draws metrics over another by ``define_metric``."""

    def __init__(self):
        self.rows, self.over, self.summary = [], {}, {}
        self.log = self.rows.append

    def define_metric(self, name, step_metric):
        self.over[name] = step_metric


def test_wandb(holdout, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with raises(MissingExtraError):
        se.track.wandb()
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=None))
    log = se.track.wandb(prefix="validation/")
    with raises(SparseEvalError):
        log({"ndcg@10": 0.5}, 1)
    run = sys.modules["wandb"].run = Run()
    callback = evaluating(holdout, METRICS, every=5, log=log)
    for _ in range(2):  # whose steps go back
        model = callback.fit(make("bpr"))
    assert run.rows == 2 * [
        {
            "validation/iteration": step,
            "validation/ndcg_at_10": row["ndcg@10"],
            "validation/ndcg_gain_exp_at_10": row["ndcg(gain=exp)@10"],
        }
        for step, row in callback.history.iterrows()
    ]
    assert {*run.over.values()} == {"validation/iteration"}
    ev = se.evaluate_model(model, holdout, "ndcg@10")
    se.track.wandb(run)(ev)
    assert run.summary == {"ndcg_at_10": ev["ndcg@10"]}
