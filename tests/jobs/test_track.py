"""Trackers: names that they accept, what they get, and what is refused."""

import itertools
import re
import socket
import sys
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
    """Return the names of all metrics with each choice of each option, and two at a time."""
    names = []
    for definition in REGISTRY.values():
        choices = [
            f"{option.name}={value}"
            for option in definition.options
            for value in (option.values if isinstance(option, Choice) else ("2", "0.5", "1e-05"))
        ]
        pairs = [",".join(pair) for pair in itertools.combinations(choices, 2)]
        options = ["", *(f"({given})" for given in (*choices, *pairs))]
        cuts, among = ["", "@1", "@10"], ["", " (1+99)", " (11+9)", " (judged)"]
        names += [
            definition.name + given + cut + of
            for given, cut, of in itertools.product(options, cuts, among)
        ]
    return names


def test_names_are_distinct_and_of_signs_that_trackers_accept():
    sent = []
    tracker = Tracker(lambda values, _: sent.append(values))
    names = every_name()
    assert len(names) > 1000
    tracker(dict.fromkeys([*names, "loss"], 0.5), 1)
    (values,) = sent
    assert len(values) == len({*names}) + 1  # a collision would have been refused
    assert all(re.fullmatch(r"[a-zA-Z_]\w*|\d\w*", name, re.ASCII) for name in values)
    assert {"ndcg_at_10", "ndcg_gain_exp_at_10", "loss"} <= {*values}


def test_two_metrics_of_one_name_are_refused():
    tracker = Tracker(lambda values, step: None)
    for step in (1, 2):
        tracker({"ndcg@10": 1.0}, step)
    with raises(InvalidDataError):
        tracker({"ndcg_at_10": 1.0}, 3)


def test_refuses_prefixes_and_steps_that_trackers_refuse():
    for prefix in ("a", "a b/", "../", None):
        with raises(InvalidDataError):
            Tracker(print, prefix=prefix)
    with raises(InvalidDataError, argument="step"):
        Tracker(print)({"loss": 1.0}, -1)


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
        name: [
            (point.step, point.value) for point in client.get_metric_history(run.info.run_id, name)
        ]
        for name in client.get_run(run.info.run_id).data.metrics
    }
    columns = {"ndcg_at_10": "ndcg@10", "ndcg_gain_exp_at_10": "ndcg(gain=exp)@10"}
    assert tracked == {"test/ndcg_at_10": [(0, ev["ndcg@10"])]} | {
        f"validation/{name}": list(callback.history[column].items())
        for name, column in columns.items()
    }
    assert [path.name for path in tmp_path.iterdir()] == ["tracked"]
    with pytest.raises(mlflow.exceptions.MlflowException, match='Invalid value "ndcg@10"'):
        client.log_metric(run.info.run_id, "ndcg@10", 0.5)  # hence the changed names


class Run:
    """A run of W&B, which draws metrics over another by ``define_metric``."""

    def __init__(self):
        self.rows = []
        self.over = {}
        self.summary = {}

    def define_metric(self, name, step_metric):
        self.over[name] = step_metric

    def log(self, values):
        assert all(re.fullmatch(r"([a-z_]\w*/)*[a-z_]\w*", name) for name in values)
        self.rows.append(values)


def test_wandb(holdout, monkeypatch):
    run = Run()
    monkeypatch.setitem(sys.modules, "wandb", None)
    with raises(MissingExtraError):
        se.track.wandb()
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=None))
    log = se.track.wandb(prefix="validation/")
    with raises(SparseEvalError):
        log({"ndcg@10": 0.5}, 1)
    monkeypatch.setattr(sys.modules["wandb"], "run", run)
    callback = evaluating(holdout, METRICS, every=5, log=log)
    for _ in range(2):  # whose steps go back
        model = callback.fit(make("bpr"))
    history = callback.history
    assert run.rows == 2 * [
        {
            "validation/iteration": step,
            "validation/ndcg_at_10": row["ndcg@10"],
            "validation/ndcg_gain_exp_at_10": row["ndcg(gain=exp)@10"],
        }
        for step, row in history.iterrows()
    ]
    assert {*run.over.values()} == {"validation/iteration"}
    ev = se.evaluate_model(model, holdout, "ndcg@10")
    se.track.wandb(run)(ev)
    assert run.summary == {"ndcg_at_10": ev["ndcg@10"]}
