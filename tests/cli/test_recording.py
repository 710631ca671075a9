"""Test what commands leave for other nights and other programs."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import reporting
from commands import Command
from judged_checkpoints import save_split_and_models
from scipy import sparse

import sparse_eval as se
from sparse_eval.cli.nightly import write_prometheus

METRICS = ("-m", "ndcg@10,recall@10,coverage@10")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a split, and checkpoints of which als8 is the better one."""
    return save_split_and_models(tmp_path_factory.mktemp("recorded"))


def words(folder: Path, *models: str) -> tuple[object, ...]:
    return ("score", *(folder / model for model in models), "--split", folder / "split", *METRICS)


def samples(path: Path) -> dict[str, dict[tuple[str, ...], float]]:
    """Return what Prometheus reads: values by labels, by the name of the gauge."""
    parser = pytest.importorskip("prometheus_client.parser", reason="not in this environment")
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in parser.text_string_to_metric_families(path.read_text()):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            values = found.setdefault(sample.name.removeprefix("sparse_eval_"), {})
            job, _, *labels = sample.labels.values()
            assert job == "s"
            assert values.setdefault(tuple(labels), sample.value) is sample.value
    return found


@pytest.mark.parametrize("with_out", [False, True])
def test_the_best_of_several_is_a_line(
    command: Command, folder: Path, tmp_path: Path, with_out: bool
) -> None:
    out = ("--out", tmp_path / "o") if with_out else ()
    history, gauges = tmp_path / "new" / "h.jsonl", tmp_path / "s.prom"
    options = (*out, "--history", history, "--prometheus", gauges)
    assert command(*words(folder, "models"), *options)[0] == 0
    status, printed, _ = command(*words(folder, "models"), *options, "--fail-under", "ndcg@10=1")
    assert status == 3  # and it is in the history, in place of the first one
    holdout = se.Holdout.load(folder / "split")
    ev = se.evaluate_model(folder / "models" / "als8.npz", holdout, METRICS[1], keep="lists")
    assert len(se.History(history)) == 1
    again = (*words(folder, "models/als8.npz"), "--history", history, "--night", "2999-11-01")
    assert command(*again)[0] == 0
    nights = se.History(history).nights
    assert [night.night for night in nights[1:]] == ["2999-11-01"]
    own = se.History(tmp_path / "own.jsonl")
    own.append(ev, "als8")
    assert nights[0].metrics == own.nights[0].metrics
    assert nights[0].relevance == own.nights[0].relevance
    assert nights[0].about["file"] == str(folder / "models" / "als8.npz")
    assert len(nights[0].about["sha256"]) == 64
    heading, *lines = printed.splitlines()
    (of_als8,) = (line for line in lines if "als8" in line)
    assert of_als8[heading.index("best")] == "*"  # text is aligned to the left
    assert (tmp_path / "o").exists() == with_out
    found = samples(gauges)
    assert found["metric"]["als8", "ndcg@10"] == ev["ndcg@10"]
    assert found["metric"]["none", "ndcg@10"] < ev["ndcg@10"]
    assert found["metric_ci_low"]["als8", "ndcg@10"] == ev.summary()["ci_low"]["ndcg@10"]
    assert found["users"] == {("als8",): ev.n_users, ("none",): ev.n_users}
    assert found["best"] == {("als8",): 1, ("none",): 0}
    assert found["failed"] == {(): 0}
    assert found["last_run_success"] == {(): 1}
    assert 0 < found["duration_seconds"][()] < 600
    assert abs(found["last_run_timestamp_seconds"][()] - time.time()) < 600


def test_one_model_and_one_file_of_lists(command: Command, folder: Path, tmp_path: Path) -> None:
    options = ("--history", tmp_path / "h.jsonl", "--prometheus", tmp_path / "s.prom")
    assert command(*words(folder, "models/als8.npz"), *options)[0] == 0
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_matrix([[1, 2, 0], [0, 1, 2]]))
    sparse.save_npz(tmp_path / "v.npz", sparse.csr_matrix([[0, 1, 0], [0, 1, 1]]))
    lists = ("evaluate", tmp_path / "p.npz", tmp_path / "v.npz", "-m", "mrr@2,fcp")
    status, _, said = command(*lists, *options)
    assert status == 0
    assert "warning: too few users" not in said  # the table has a note of it
    names = [night.name for night in se.History(tmp_path / "h.jsonl").nights]
    assert names == ["als8", "p"]
    assert samples(tmp_path / "s.prom")["metric"]["p", "mrr@2"] == 0.75


def test_what_fails_is_counted(command: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.npz").write_bytes(b"")
    options = ("--history", tmp_path / "h.jsonl", "--prometheus", tmp_path / "s.prom")
    line = (*words(folder, "models/als8.npz"), tmp_path / "broken.npz", *options)
    assert command(*line)[0] == 1
    found = samples(tmp_path / "s.prom")
    assert found["failed"] == {(): 1}
    assert found["users"].keys() == {("als8",)}
    assert len(se.History(tmp_path / "h.jsonl")) == 1
    shutil.copy(tmp_path / "broken.npz", tmp_path / "other.npz")
    files = (tmp_path / "broken.npz", tmp_path / "other.npz")
    assert command("score", *files, "--split", folder / "split", *METRICS, *options)[0] == 1
    found = samples(tmp_path / "s.prom")
    assert found["failed"] == {(): 2}
    assert found["last_run_success"] == {(): 0}
    assert "metric" not in found
    assert len(se.History(tmp_path / "h.jsonl")) == 1


def test_refuses_before_it_scores(command: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text("{}\n")
    (tmp_path / "d.prom").mkdir()
    for option, value, message in (
        ("--history", tmp_path / "h.jsonl", "h.jsonl, line 1: is damaged"),
        ("--history", tmp_path / "h.jsonl" / "x", "cannot be "),
        ("--history", tmp_path, "cannot be read: Is a directory"),
        ("--night", "2026-11-23", "give both"),
        ("--prometheus", tmp_path / "d.prom", "it is a folder"),
        ("--prometheus", tmp_path / "h.jsonl" / "x.prom", "in a folder that exists"),
        ("--prometheus", tmp_path / "x.txt", "expected a file name that ends in .prom"),
    ):
        status, printed, said = command(*words(folder, "models"), option, value)
        assert (status, printed) == (2, "")
        assert message in said
        assert "recommend" not in said
    gauges = ("--prometheus", tmp_path / "s.prom")
    assert command(*words(folder, "models")[:2], "--split", tmp_path / "none", *gauges)[0] == 2
    assert samples(tmp_path / "s.prom")["last_run_success"] == {(): 0}


def test_labels_are_escaped(tmp_path: Path) -> None:
    names = ['a"b', "c\\d", "two\nlines", "שלום"]
    models = {name: reporting.evaluate(1, 0.5) for name in names}
    write_prometheus(tmp_path / "s.prom", "", models, None, 0, 1.0)
    found = samples(tmp_path / "s.prom")
    assert [labels[0] for labels in found["users"]] == names
    assert set(found["best"].values()) == {0}


def test_json_lines(command: Command, folder: Path, tmp_path: Path) -> None:
    def lines(*given: object) -> list[dict[str, Any]]:
        status, printed, said = command(*given, "--format", "jsonl")
        assert status == 0, said
        return [json.loads(line) for line in printed.splitlines()]

    rows = lines(*words(folder, "models"), "--out", tmp_path / "o")
    assert [Path(row["file"]).stem for row in rows] == ["als8", "none"]
    (one,) = lines(*words(folder, "models/als8.npz"))
    assert [*one["metrics"]] == ["ndcg@10", "recall@10", "coverage@10"]
    for name, metric in rows[0]["metrics"].items():
        assert metric["mean"] == one["metrics"][name]["mean"]
    tuned = lines(
        "tune", folder / "split", "--out", tmp_path / "t", "-m", "ndcg@10", "--factors", "2,4",
        "--iterations", "1",
    )  # fmt: skip
    assert [row["trial"] for row in tuned[:2]] == [0, 1]
    assert tuned[2].keys() == {"best", "test"}
