"""Test the command score: its tables, exit status, gauges, and what it writes for other nights."""

import gc
import json
import time

import numpy as np
import pytest
import reporting
from scipy import sparse

import sparse_eval as se
from sparse_eval.cli.prometheus import write_prometheus
from sparse_eval.core.atomic_files import locked_folder, temporary_beside
from sparse_eval.core.formatting import number

METRICS = ("-m", "ndcg@10,recall@10,coverage@10")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a split, and checkpoints of which als8 is the better one."""
    folder = tmp_path_factory.mktemp("score")
    holdout = se.split.random(se.datasets.synthetic(n_users=200, n_items=80, seed=0), seed=0)
    holdout.save(folder / "split")
    (folder / "models").mkdir()
    se.save_model(se.train_als(holdout.train, factors=8), folder / "models" / "als8.npz")
    worthless = {"user_factors": np.ones((200, 2)), "item_factors": np.zeros((80, 2))}
    np.savez(folder / "models" / "none.npz", **worthless, factors=2)
    return folder


@pytest.fixture(scope="module")
def ev(folder):
    """Return the evaluation of the better checkpoint."""
    holdout = se.Holdout.load(folder / "split")
    return se.evaluate_model(folder / "models" / "als8.npz", holdout, METRICS[1], keep="lists")


def words(folder, *models):
    return ("score", *(folder / model for model in models), "--split", folder / "split", *METRICS)


def samples(path):
    """Return what Prometheus reads: values by labels, by the name of the gauge."""
    parser = pytest.importorskip("prometheus_client.parser", reason="not in this environment")
    found = {}
    for family in parser.text_string_to_metric_families(path.read_text()):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            values = found.setdefault(sample.name.removeprefix("sparse_eval_"), {})
            job, _, *labels = sample.labels.values()
            assert job == "s"
            assert values.setdefault(tuple(labels), sample.value) is sample.value
    return found


def test_scores_a_folder_and_the_files_in_it(command, folder, ev, tmp_path):
    out = ("--out", tmp_path / "o")
    status, printed, said = command(*words(folder, "models"), *out)
    assert status == 0, said
    assert "score: 2 checkpoints, " in said
    heading, _, *lines = printed.splitlines()
    columns = ["file", "best", "ndcg@10", "95", "%", "interval", "recall@10", "coverage@10"]
    assert heading.split() == [*columns, "factors", "seconds"]
    models = [str(folder / "models" / f"{name}.npz") for name in ("als8", "none")]
    for line, name in zip(lines, [*models, "random", "popularity"], strict=False):
        assert line.startswith(f"{name} ")
    assert lines[0][heading.index("best")] == "*"  # text is aligned to the left
    assert number(ev["ndcg@10"]) in lines[0]
    names = {"als8", "none", "sweep.jsonl", "table.csv"}
    assert {path.name for path in (tmp_path / "o").iterdir()} - {".lock"} == names
    kept = json.loads(command(*words(folder, *models), *out, "--format", "json")[1])
    pattern = command(*words(folder, "models/[an]*.npz"), "--format", "jsonl")[1]
    found = [json.loads(line) for line in pattern.splitlines()]
    (one,) = json.loads(command(*words(folder, "models/als8.npz"), "--format", "json")[1])
    for rows in (kept, found):
        facts = [(row["file"], row["factors"], row["best"]) for row in rows]
        assert facts == [(models[0], 8, True), (models[1], 2, False)]
    for row in (kept[0], found[0], one):
        assert {name: row["metrics"][name]["mean"] for name in ev} == ev.mean()


def test_a_checkpoint_that_cannot_be_scored(command, folder, tmp_path):
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "folder.npz").mkdir()
    line = words(folder, "models", tmp_path / "empty.npz", tmp_path / "folder.npz")
    status, printed, said = command(*line, "--progress")
    assert status == 1
    assert "score: 100%" in said
    first, second, last = said.splitlines()[-3:]
    assert first.startswith(f"warning: {tmp_path / 'empty.npz'}: BadZipFile: ")
    assert second == f"warning: {tmp_path / 'folder.npz'}: is not a file"
    assert "2 of 4 checkpoints could not be scored" in last
    assert "error" not in printed
    row = json.loads(command(*line, "--format", "json")[1])[-1]
    assert (row["status"], row["factors"]) == ("failed", None)
    assert row["metrics"]["ndcg@10"] == {"mean": None}


@pytest.mark.parametrize(
    "names", [("gone.npz",), ("gone.npz", "lost.npz"), ("als8.npz", "gone.npz")]
)
def test_a_named_checkpoint_that_is_missing_is_bad_input(command, folder, tmp_path, names):
    models = (f"models/{name}" for name in names)
    status, _, said = command(*words(folder, *models), "--out", tmp_path / "out")
    assert status == 2
    assert "gone.npz" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::UserWarning:distributed", "ignore::DeprecationWarning"
)
def test_scores_on_the_workers_of_a_scheduler(command, folder):
    def numbers(*line):
        status, printed, said = command(*line, "--format", "json")
        assert status == 0, said
        columns = ("mean", "std", "ci_low", "ci_high", "interval", "n_users", "n_skipped")
        return [
            [row["file"], row["status"], row["best"]]
            + [metric.get(column) for metric in row["metrics"].values() for column in columns]
            for row in json.loads(printed)
        ]

    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    options = {"dashboard_address": None, "silence_logs": 50, "processes": False, "protocol": "tcp"}
    gc.collect()  # distributed waits forever if it deletes a client while it starts a cluster
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster:
        for model in ("models/als8.npz", "models"):
            line = words(folder, model)
            assert numbers(*line, "--scheduler", cluster.scheduler_address) == numbers(*line)


def test_options_replace_contradicting_ones_of_the_environment(command, folder, monkeypatch):
    split = folder / "split"
    files = ("--train", split / "train.npz", "--validation", split / "validation.npz")
    printed = []
    for name, typed in (("SPLIT", files), ("TRAIN", ("--split", split))):
        line = ("score", folder / "models" / "als8.npz", *typed, "-m", "ndcg@5", "--format", "csv")
        with monkeypatch.context() as patch:
            patch.setenv(f"SPARSE_EVAL_{name}", str(folder / "nowhere"))
            status, table, said = command(*line)
        assert status == 0, said
        printed.append(table)
    assert printed[0] == printed[1]


@pytest.mark.long
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(("n_scored", "n_failed"), [(0, 2), (2, 1), (1, 2)])
def test_broken_checkpoints_do_not_hide_the_others(
    command, folder, tmp_path, n_scored, n_failed, kept
):
    models = tmp_path / "models"
    models.mkdir()
    contents = {path.name: path.read_bytes() for path in (folder / "models").iterdir()}
    names = [*sorted(contents)[:n_scored], *("a.npz", "z.npz")[:n_failed]]
    for name in names:
        (models / name).write_bytes(contents.get(name, b""))
    line = words(folder, models)
    if kept:  # later commands resume from the table of the first one
        line += ("--out", tmp_path / "out")
        (models / "good.npz").write_bytes(contents["als8.npz"] + b"\0" * 9)
        command(*line)
        (models / "good.npz").unlink()  # its row stays and is not judged
    for most in (0, 1, 2):
        status, printed, said = command(*line, "--max-failed", most)
        assert status == int(n_failed > most or not n_scored), (most, said)
        assert "could not be scored" in said
        assert all(name in printed for name in names)


@pytest.mark.long
@pytest.mark.parametrize("with_out", [False, True])
def test_the_best_of_several_is_in_gauges(command, folder, ev, tmp_path, with_out):
    out = ("--out", tmp_path / "o") if with_out else ()
    gauges = tmp_path / "s.prom"
    start = time.time()
    assert command(*words(folder, "models"), *out, "--prometheus", gauges)[0] == 0
    assert (tmp_path / "o").exists() == with_out
    found = samples(gauges)
    assert found["metric"]["als8", "ndcg@10"] == ev["ndcg@10"]
    assert found["metric"]["none", "ndcg@10"] < ev["ndcg@10"]
    assert found["metric_ci_low"]["als8", "ndcg@10"] == ev.summary()["ci_low"]["ndcg@10"]
    assert found["users"] == {("als8",): ev.n_users, ("none",): ev.n_users}
    assert found["best"] == {("als8",): 1, ("none",): 0}
    assert found["failed"] == {(): 0}
    assert found["last_run_success"] == {(): 1}
    assert found["duration_seconds"][()] > 0
    assert start <= found["last_run_timestamp_seconds"][()] <= time.time()


def test_lists_are_in_gauges_and_failures_are_counted(command, folder, tmp_path):
    options = ("--prometheus", tmp_path / "s.prom")
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_matrix([[1, 2, 0], [0, 1, 2]]))
    sparse.save_npz(tmp_path / "v.npz", sparse.csr_matrix([[0, 1, 0], [0, 1, 1]]))
    lists = ("evaluate", tmp_path / "p.npz", tmp_path / "v.npz", "-m", "mrr@2,fcp")
    status, _, said = command(*lists, *options)
    assert status == 0
    assert "warning: too few users" not in said  # the table has a note of it
    assert samples(tmp_path / "s.prom")["metric"]["p", "mrr@2"] == 0.75
    broken = [tmp_path / name for name in ("broken.npz", "other.npz")]
    for path in broken:
        path.write_bytes(b"")
    for models, success in ((["models/als8.npz", broken[0]], 1), (broken, 0)):
        assert command(*words(folder, *models), *options)[0] == 1
        found = samples(tmp_path / "s.prom")
        assert found["failed"] == {(): 2 - success}
        assert found["last_run_success"] == {(): success}
        assert ("metric" in found) == bool(success)
        assert [*found.get("users", {})] == [("als8",)] * success
    refused = (*words(folder, "models"), "--split", "nowhere", *options)
    assert command(*refused)[0] == 2
    assert samples(tmp_path / "s.prom")["last_run_success"] == {(): 0}


def test_labels_are_escaped(tmp_path):
    names = ['a"b', "c\\d", "two\nlines", "שלום"]
    models = {name: reporting.evaluate(1, 0.5) for name in names}
    write_prometheus(tmp_path / "s.prom", "", models, None, 0, 1.0)
    assert temporary_beside(tmp_path / "s.prom", "x").suffix != ".prom"  # which would be read
    found = samples(tmp_path / "s.prom")
    assert [labels[0] for labels in found["users"]] == names
    assert set(found["best"].values()) == {0}
    assert "gate" not in found
    write_prometheus(tmp_path / "s.prom", "", models, names[0], 0, 1.0, "undecided")
    found = samples(tmp_path / "s.prom")
    assert found["gate"] == {("passed",): 0, ("undecided",): 1, ("failed",): 0}


def test_refuses_the_folder_of_other_scores(command, folder, tmp_path):
    line = (*words(folder, "models"), "--out", tmp_path / "o")
    assert command(*line)[0] == 0
    with locked_folder(tmp_path / "o"):
        assert command(*line)[0] == 75
    status, _, said = command(*line, "-m", "mrr@5")
    assert status == 2
    assert "sweep.jsonl: this folder was written with different inputs: metrics" in said
