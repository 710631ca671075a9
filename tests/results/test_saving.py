"""Saved and pickled evaluations: what comes back, and what is refused."""

import json
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from evaluations import KINDS, in_memory, of_model, same_everything, saved, some
from pyarrow import csv
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.results import saving
from sparse_eval.results.saving import _signed, remove_saved

NAMES = ["ndcg@5", "mean_rank", "coverage@5", "recall(average=micro)@5"]
ODD = [
    "",
    "NA",
    "nan",
    'quo"te',
    "new\nline",
    "carriage\rreturn",
    "a,b",
    "<script>alert(1)</script>",
    "שלום",
    "x" * 9999,
]


def make(labels, seed=0):
    rng = np.random.default_rng(seed)
    held_out = np.random.default_rng(1).random((len(labels or range(30)), 40)) < 0.1
    held_out[0] = False  # one is left out
    lists = se.Rankings.from_topk(rng.permuted(np.tile(np.arange(40), (len(held_out), 1)), axis=1))
    relevance = se.Relevance.from_csr(csr_matrix(held_out.astype(float)), users=labels)
    return se.evaluate(lists, relevance, NAMES)


LABELS = {
    "row numbers": None,
    "numbers": list(range(100, 130)),
    "text": [*ODD, *(f"u{number}" for number in range(20))],
}


def again(ev):
    return pickle.loads(pickle.dumps(ev))  # noqa: S301 - our own


@pytest.mark.parametrize(("kind", "users"), list(zip(KINDS, ["csv", "parquet"] * 4, strict=True)))
def test_every_kind_comes_back_with_the_same_bits(kind, users, tmp_path):
    ev = KINDS[kind]()
    pickled = again(ev)  # before anything was computed of it
    same_everything(ev, pickled)
    found = saved(again(pickled), tmp_path / "a", users)
    same_everything(ev, found)
    same_everything(ev, saved(found, tmp_path / "b", users))
    assert found.to_dict() == ev.to_dict()
    assert found.merge().mean() == ev.mean()
    if found.has_values:
        assert (found.compare(ev).table["difference"].dropna() == 0).all()
    names = sorted(file.name for file in (tmp_path / "a").iterdir())
    kept = [f"per_user.{users}"] if found.has_values else []
    assert names == [*kept, "summary.json", "totals.npz"]


def test_what_needs_lists_works_after_pickling():
    ev = in_memory()
    found = again(ev)
    pd.testing.assert_frame_equal(found.explain(3), ev.explain(3))
    pd.testing.assert_frame_equal(found.by("activity"), ev.by("activity"))
    assert found.record == ev.record  # with precision and recall


def test_random_baseline_is_that_of_the_source():
    """A source that can be read twice is left behind, and so is read before it is pickled."""
    ev = some(keep="totals", memory=1 << 24)
    assert again(ev).random("ndcg@3") == ev.random("ndcg@3")
    with raises(InvalidDataError):
        again(ev).random("coverage@2")


@pytest.mark.parametrize("labels", [[1, "a", ("b", 2), b"c", 2.5], [0.5, 1.5, 2.5, 3.5, 4.5]])
def test_users_with_labels_of_any_type_are_pickled(labels):
    ev = some(5, labels=labels)
    same_everything(ev, again(ev))
    assert again(ev).users.tolist() == labels


@pytest.mark.parametrize("users", ["csv", "parquet"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_and_what_was_remembered_come_back(users, labels, tmp_path):
    ev = make(labels)
    about = {"factors": 64, "note": "<b>"}
    folder = ev.save(tmp_path / "results" / "als", table=users, about=about)
    found = se.Evaluation.load(folder / "summary.json")
    same_everything(ev, found)
    assert found.about == again(found).about == about
    remembered = json.loads(json.dumps(ev.record)) | {"about": about}
    assert found.record == again(found).record == remembered
    assert se.Evaluation.load(found.save(tmp_path / "again")).about == about
    other = se.Evaluation.load(found.save(tmp_path / "other", about={"seed": 2}))
    assert other.about == {"seed": 2}


def test_what_cannot_be_saved_leaves_what_was(tmp_path):
    ev = make(None)
    folder = ev.save(tmp_path / "als")
    files = {path: path.read_bytes() for path in folder.iterdir()}
    for options in (
        {"table": "xlsx"},
        {"about": {"model": object()}},
        {"about": {"loss": math.nan}},
        {"about": 3},
    ):
        with raises(InvalidDataError):
            ev.save(folder, **options)
    for labels in ([*range(29), "x"], [*range(29), 2**63]):
        with raises(InvalidDataError):
            make(labels).save(folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == files


def test_refuses_what_is_not_what_was_saved(tmp_path):
    path = make(None).save(tmp_path) / "summary.json"
    whole = json.loads(path.read_text())
    row = {"ndcg@5": whole["metrics"]["ndcg@5"] | {"mean": 0.5}}
    for content in (
        "{",
        [1],
        *(_signed(whole | {"schema": schema}) for schema in ("3", None, 99, 2)),
        {key: value for key, value in whole.items() if key != "digest"},
        # Whatever is changed, deep inside too, and whatever is missing.
        {key: value for key, value in whole.items() if key != "about"},
        whole | {"metrics": whole["metrics"] | row},
        whole | {"digest": None},
        re.sub(r'"mean": [\d.]+', '"mean": 1e999', json.dumps(whole)),
    ):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with raises(InvalidFileError):
            se.Evaluation.load(path)
    path.write_text(json.dumps(whole, indent=4))  # another layout is no change
    assert se.Evaluation.load(path).names == NAMES
    path.write_bytes(b"\xff\xfe")
    for place in (path, tmp_path / "none.json", tmp_path / "no folder"):
        with raises(InvalidFileError):
            se.Evaluation.load(place)


def test_refuses_each_file_that_was_changed_exchanged_or_lost(tmp_path):
    folder = of_model().save(tmp_path / "a")
    other = make(None).save(tmp_path / "b")
    files = ["per_user.csv", "totals.npz"]
    assert sorted(file.name for file in folder.iterdir()) == sorted([*files, "summary.json"])
    for name in files:
        file = folder / name
        data = file.read_bytes()
        exchanged = (other / name).read_bytes()
        for changed in (data + b"\n", data[:-1], b"", exchanged):
            file.write_bytes(changed)
            with raises(InvalidFileError):
                se.Evaluation.load(folder)
        file.unlink()
        with raises(InvalidFileError):
            se.Evaluation.load(folder)
        file.write_bytes(data)
    assert list(se.Evaluation.load(folder).baselines) == ["popularity"]


def test_a_save_that_is_interrupted_leaves_the_one_before(tmp_path, monkeypatch):
    before, after = make(None), make(None, seed=2)
    before.save(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(csv, "write_csv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        after.save(tmp_path)
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert se.Evaluation.load(tmp_path).mean() == before.mean()


def test_what_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    """Another process saves once the JSON has been read."""
    before, after = make(None), make(None, seed=2)
    before.save(tmp_path)
    read_files = saving.read_files

    def replaced(*given):
        monkeypatch.undo()
        after.save(tmp_path)
        return read_files(*given)

    monkeypatch.setattr(saving, "read_files", replaced)
    same_everything(se.Evaluation.load(tmp_path), after)


def test_files_are_removed_with_the_json_first(tmp_path, monkeypatch):
    folder = make(None).save(tmp_path / "als", table="parquet")
    (folder / "per_user.txt").write_text("kept")
    make(None).save(folder, table="csv")
    names = ["per_user.csv", "per_user.txt", "summary.json", "totals.npz"]
    assert sorted(path.name for path in folder.iterdir()) == names
    unlink = Path.unlink

    def interrupted(path, *given):
        unlink(path, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remove_saved(folder)
    names.remove("summary.json")
    assert sorted(file.name for file in folder.iterdir()) == names


def test_files_that_a_save_removes_and_the_next_one_writes_stay_private(tmp_path):
    lists, held = se.Rankings.from_topk([[0, 1], [1, 0]]), csr_matrix([[1.0, 0], [1, 0]])
    kept, not_kept = (se.evaluate(lists, held, "mrr@2", keep=keep) for keep in ("values", "totals"))
    kept.save(tmp_path)
    (tmp_path / "per_user.csv").chmod(0o600)
    not_kept.save(tmp_path)
    assert not (tmp_path / "per_user.csv").exists()
    kept.save(tmp_path)
    assert (tmp_path / "per_user.csv").stat().st_mode & 0o777 == 0o600
