"""The evaluations that a sweep saves."""

import hashlib
import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from failing import full
from killed import run_killed
from raising import raises
from sweep_cases import METRICS, same_table, save
from systems import need_posix

import sparse_eval as se
import sparse_eval.jobs.sweep as sweeping
from sparse_eval.errors import InvalidFileError, OutputError
from sparse_eval.jobs.ledger import _check
from sparse_eval.jobs.sweep import saved_evaluations

pytestmark = pytest.mark.long


def load_all(folder):
    return {path.parent.name: se.Evaluation.load(path) for path in folder.glob("*/summary.json")}


def contents(folder):
    """Return a hash of each file of the evaluations in a folder, by its path there."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("sweep.jsonl", "table.csv")
    }


@pytest.fixture
def evs(folder, data, tmp_path, scored):
    """Return a folder with the evaluations of the three checkpoints."""
    se.sweep(folder, *data, out=tmp_path / "evs", save=True)
    scored.clear()
    return tmp_path / "evs"


def test_evaluations_follow_the_content_of_a_file(folder, data, evs, scored):
    means = {name: ev.mean() for name, ev in load_all(evs).items()}
    shutil.copy(folder / "als-4.npz", folder / "copy.npz")
    (folder / "als-10.npz").rename(folder / "moved.npz")
    save(folder / "als-2.npz", 7)
    se.sweep(folder, *data, out=evs, save=True)
    assert scored == [7]
    found = load_all(evs)
    assert set(found) == {"als-2", "als-4", "als-10", "copy", "moved"}
    assert found["copy"].mean() == means["als-4"]
    assert found["moved"].mean() == means["als-10"]
    assert found["moved"].about["checkpoint"]["file"] == str(folder / "moved.npz")
    assert found["moved"].about["checkpoint"]["factors"] == 10
    assert found["als-2"].about["checkpoint"]["factors"] == 7
    # the file of that name has another content, and its evaluation was the only one like it
    (folder / "moved.npz").rename(folder / "z.npz")
    for name in ("als-10", "moved"):
        shutil.rmtree(evs / name)
    se.sweep(folder, *data, out=evs, save=True)
    scored.clear()
    (folder / "als-4.npz").rename(folder / "zz.npz")
    (folder / "copy.npz").unlink()
    shutil.rmtree(evs / "copy")
    save(folder / "als-4.npz", 5)
    table = se.sweep(folder, *data, out=evs, save=True)
    assert scored == [5, 4]
    assert load_all(evs)["zz"].mean() == means["als-4"]
    assert table["status"].tolist() == ["ok"] * len(table)


def test_a_lost_evaluation_is_made_from_an_equal_one(folder, data, evs, scored):
    shutil.copy(folder / "als-4.npz", folder / "copy.npz")
    se.sweep(folder, *data, out=evs, save=True)
    shutil.rmtree(evs / "als-4")
    scored.clear()
    se.sweep(folder, *data, out=evs, save=True)
    found = load_all(evs)
    assert scored == []
    assert found["als-4"].mean() == found["copy"].mean()


@pytest.mark.filterwarnings("ignore:.*was trained on pairs that are not in train")  # the frames
def test_evaluations_name_the_folder_of_a_loaded_split(tmp_path):
    clicks = se.datasets.synthetic(n_users=30, n_items=20, seed=0)
    holdout = se.split.random(clicks, seed=0)
    split = tmp_path / "split"
    holdout.save(split)
    se.save_model(se.train_als(holdout.train, factors=2, iterations=1), tmp_path / "a.npz")
    # A column that is called folder is no folder.
    frame = clicks.to_frame()[["user", "item"]].assign(folder="x")
    loaded = se.Holdout.load(split)
    for parts, data in (
        ((loaded,), str(split)),
        ((split,), str(split)),
        ((loaded.known(),), None),
        ((frame[::2], frame[1::2]), None),
    ):
        se.sweep(tmp_path / "a.npz", *parts, "ndcg@3", out=tmp_path / "evs", save=True)
        assert load_all(tmp_path / "evs")["a"].about.get("data") == data
        shutil.rmtree(tmp_path / "evs")


def test_a_checkpoint_that_fails_has_no_evaluation(folder, data, evs):
    (folder / "als-4.npz").write_bytes(b"broken")
    (evs / "als-2" / "mine.txt").write_text("kept")
    (folder / "als-2.npz").write_bytes(b"broken")
    se.sweep(folder, *data, out=evs, save=True)
    assert set(load_all(evs)) == {"als-10"}
    assert [path.name for path in (evs / "als-2").iterdir()] == ["mine.txt"]
    assert not (evs / "als-4").exists()


def test_equal_names_get_those_of_their_folders(folder, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other, evs = tmp_path / "monday", Path("evs")
    other.mkdir()
    save(other / "als-4.npz", 4, seed=1)
    (evs / "als-2").mkdir(parents=True)
    (evs / "als-2" / "mine.txt").write_text("kept")
    files = [other / "als-4.npz", folder / "als-4.npz", folder / "als-2.npz"]
    se.sweep(files[:1], *data, out=evs, save=True)
    se.sweep(files[::-1], *data, out=evs, save=True)
    assert set(load_all(evs)) == {"als-4", "checkpoints-als-4", "als-2"}
    assert saved_evaluations(evs)[str(other / "als-4.npz")] == evs / "als-4"
    before = contents(evs)
    (folder / "als-10.npz").unlink()
    se.sweep(["checkpoints", "monday"], *data, out=evs, save=True)
    assert contents(evs) == before


def test_a_row_keeps_no_evaluation_of_other_content(folder, data, evs, scored):
    save(folder / "als-4.npz", 5)
    se.sweep(folder, *data, out=evs)
    assert {path.name for path in saved_evaluations(evs).values()} == {"als-2", "als-10"}
    assert not (evs / "als-4").exists()
    scored.clear()
    (evs / "als-2" / "metrics.parquet").unlink()
    se.sweep(folder, *data, out=evs, save=True)
    assert scored == [2, 5]
    assert load_all(evs)["als-4"].about["checkpoint"]["factors"] == 5


def test_an_executor_saves_the_same(folder, data, evs, tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        se.sweep(folder, *data, out=tmp_path / "there", save=True, client=pool)
    assert contents(tmp_path / "there") == contents(evs)


KILLED = """
import sparse_eval as se

folder, evs, split = map(Path, sys.argv[1:])
data = (se.Holdout.load(split), ["ndcg@10", "recall@{5,20}", "novelty@5"])
se.sweep(folder, *data, out=evs, save=True)
"""


@pytest.mark.parametrize("call", [3, 6])
@pytest.mark.long
@pytest.mark.slow
def test_a_killed_sweep_leaves_nothing_half_saved(folder, holdout, tmp_path, call, scored):
    (folder / "als-10.npz").unlink()
    holdout.save(tmp_path / "split")
    data = se.Holdout.load(tmp_path / "split"), METRICS
    evs, whole = tmp_path / "evs", tmp_path / "whole"
    evs.mkdir()
    run_killed(KILLED, call, folder, evs, tmp_path / "split")
    assert len(load_all(evs)) == (call > 3)  # each can be read
    table = se.sweep(folder, *data, out=evs, save=True)
    assert len(scored) == 2 - (call > 4)
    assert same_table(table, se.sweep(folder, *data, out=whole, save=True))
    for name in ("als-2", "als-4"):
        kept = {file: one for file, one in contents(evs / name).items() if file[0] != "."}
        assert contents(whole / name) == kept


def test_an_evaluation_without_its_row_is_replaced(folder, data, evs):
    """A sweep was killed after an evaluation was saved, and before its row was added."""
    before, ledger = contents(evs), evs / "sweep.jsonl"
    ledger.write_text("".join(ledger.read_text().splitlines(keepends=True)[:-1]))
    se.sweep(folder, *data, out=evs, save=True)
    assert contents(evs) == before
    assert len(saved_evaluations(evs)) == len(load_all(evs)) == 3


def test_a_full_disk_stops_the_sweep_and_keeps_the_evaluations(
    folder, data, evs, tmp_path, monkeypatch
):
    write = Path.write_bytes

    def fill(path, content):
        return (full if "als-4" in str(path) else write)(path, content)

    before = contents(evs)
    save(folder / "als-4.npz", 5)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fill)
        with raises(OutputError):
            se.sweep(folder, *data, out=evs, save=True)
        with raises(OutputError):
            se.sweep(folder, *data, out=tmp_path / "new", save=True)
    assert contents(evs) == before  # that of the earlier file of this name is not lost
    assert set(load_all(tmp_path / "new")) == {"als-2"}
    for out in (evs, tmp_path / "new"):
        assert same_table(se.sweep(folder, *data, out=out, save=True), se.sweep(folder, *data))
        assert load_all(out)["als-4"].about["checkpoint"]["factors"] == 5


def test_two_sweeps_do_not_save_in_one_folder(folder, data, tmp_path, monkeypatch):
    need_posix()
    score, refused = sweeping.score_task, []

    def score_beside_another(*given):
        with raises(OutputError):
            se.sweep(folder, *data, out=tmp_path / "saved", save=True)
        refused.append(given)
        return score(*given)

    monkeypatch.setattr(sweeping, "score_task", score_beside_another)
    se.sweep(folder, *data, out=tmp_path / "saved", save=True)
    assert refused


def test_evaluations_of_deleted_checkpoints_are_not_judged(folder, data, evs, command):
    (folder / "als-4.npz").unlink()
    save(folder / "als-5.npz", 5)
    table = se.sweep(folder, *data, out=evs, save=True)
    assert [Path(name).stem for name in table["file"]] == ["als-2", "als-5", "als-10"]
    assert {path.name for path in saved_evaluations(evs).values()} == {"als-2", "als-5", "als-10"}
    assert [*saved_evaluations(evs, "gone").values()] == [evs / "als-4"]
    _, compared, _ = command("compare", evs, "-m", "ndcg@10", "--format", "json")
    assert "als-5" in compared
    assert "als-4" not in compared
    assert se.Evaluation.load(evs / "als-4").mean()  # the files stay


def test_a_checkpoint_that_comes_back_is_not_scored_again(folder, data, evs, scored):
    away = folder.with_name("away.npz")
    (folder / "als-4.npz").rename(away)
    se.sweep(folder, *data, out=evs, save=True)
    away.rename(folder / "als-4.npz")
    table = se.sweep(folder, *data, out=evs, save=True)
    assert table["status"].tolist() == ["ok"] * 3
    assert len(saved_evaluations(evs)) == 3
    assert not scored


@pytest.mark.parametrize("name", ["../victim", "..", ".", "/victim", "a/b", ""])
def test_a_ledger_names_only_folders_next_to_it(folder, data, evs, name):
    (evs.parent / "victim").mkdir()
    (evs.parent / "victim" / "summary.json").write_text("precious")
    lines = []
    for line in (evs / "sweep.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "saved" in row:
            row["saved"]["folder"] = name
        row["check"] = _check(row)
        lines.append(json.dumps(row) + "\n")
    (evs / "sweep.jsonl").write_text("".join(lines))
    before = contents(evs.parent)
    (folder / "als-4.npz").write_bytes(b"broken")
    with raises(InvalidFileError):
        se.sweep(folder, *data, out=evs, save=True)
    with raises(InvalidFileError):
        saved_evaluations(evs)
    (folder / "als-4.npz").unlink()
    del before["checkpoints/als-4.npz"]
    assert contents(evs.parent) == before
