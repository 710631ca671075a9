"""Saved and pickled evaluations: what comes back, and what is refused."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from evaluations import KINDS, in_memory, of_model, random_of, same_everything, saved, some
from pyarrow import csv
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.results import saving
from sparse_eval.results.saving import _signed, remove_saved

NAMES = ["ndcg@5", "mean_rank", "coverage@5", "recall(average=micro)@5"]
ODD = [
    "", "NA", "nan", 'quo"te', "new\nline", "carriage\rreturn", "a,b", "<script>alert(1)</script>",
    "שלום", "x" * 9999,
]  # fmt: skip
LABELS = {
    "row numbers": None,
    "numbers": list(range(100, 130)),
    "text": [*ODD, *(f"u{number}" for number in range(20))],
}


def make(labels=None, seed=0):
    rng = np.random.default_rng(seed)
    held_out = np.random.default_rng(1).random((30, 40)) < 0.1
    held_out[0] = False  # one is left out
    lists = se.Rankings.from_topk(rng.permuted(np.tile(np.arange(40), (30, 1)), axis=1))
    relevance = se.Relevance.from_csr(csr_matrix(held_out.astype(float)), users=labels)
    return se.evaluate(lists, relevance, NAMES)


def again(ev):
    return pickle.loads(pickle.dumps(ev))  # noqa: S301 - our own


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
@pytest.mark.parametrize(("kind", "users"), list(zip(KINDS, ["csv", "parquet"] * 4, strict=True)))
def test_every_kind_comes_back_with_the_same_bits(kind, users, tmp_path):
    ev = KINDS[kind]()
    for one in (ev, *ev.baselines.values()):
        one.summary()  # the random baseline takes the source, which is not pickled
    pickled = again(ev)
    same_everything(ev, pickled)
    found = saved(again(pickled), tmp_path / "a", users)
    same_everything(ev, found)
    same_everything(ev, saved(found, tmp_path / "b", users))
    assert found.to_dict() == ev.to_dict()
    assert found.merge().mean() == ev.mean()
    if found._has_values:
        assert (se.compare({"a": found, "b": ev}).table["difference"].dropna() == 0).all()
    kept = {f"per_user.{users}"} if found._has_values else set()
    assert content_of(tmp_path / "a").keys() == kept | {"summary.json", "totals.npz"}


def test_what_needs_lists_works_after_pickling():
    ev = in_memory()
    found = again(ev)
    pd.testing.assert_frame_equal(found.explain(3), ev.explain(3))
    pd.testing.assert_frame_equal(found.by("activity"), ev.by("activity"))
    assert found._record == ev._record  # with precision and recall


def test_a_pickled_evaluation_has_the_random_baseline_that_was_computed():
    """The source, which would be read a second time, is left behind."""
    ev = some(keep="totals", memory=1 << 24)
    assert again(ev).summary()["random"].isna().all()
    expected = random_of(ev, "ndcg@3")
    assert expected is not None
    assert random_of(again(ev), "ndcg@3") == expected
    assert random_of(again(ev), "coverage@2") is None


@pytest.mark.parametrize("users", ["csv", "parquet"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_and_what_was_remembered_come_back(users, labels, tmp_path):
    ev = make(labels)
    about = {"factors": 64, "note": "<b>"}
    folder = ev.save(tmp_path / "results" / "als", table=users, about=about)
    found = se.Evaluation.load(folder / "summary.json")
    same_everything(ev, found)
    remembered = json.loads(json.dumps(ev._record)) | {"about": about}
    assert found._record == again(found)._record == remembered
    assert se.Evaluation.load(found.save(tmp_path / "again")).about == about
    other = se.Evaluation.load(found.save(tmp_path / "other", about={"seed": 2}))
    assert other.about == {"seed": 2}


def test_baselines_have_names_that_fit_into_tables_and_terminals(tmp_path):
    ev, other = some(), some(seed=1)
    ev.baselines = dict.fromkeys(["als/old", "Als", "שלום", "x" * 999], other)
    ev.baselines |= {"1": other}
    same_everything(ev, saved(ev, tmp_path / "a"))
    known = list(ev.baselines)
    for name in ("", " ", "a\nb", "a\u202eb", "\ud800", 3, "mean", "candidates"):
        for give in (
            lambda name=name: ev.baselines.__setitem__(name, other),
            lambda name=name: ev.baselines.update({name: other}),
            lambda name=name: setattr(ev, "baselines", {"new": other, name: other}),
        ):
            with raises(InvalidDataError):
                give()
    assert list(again(ev).baselines) == list(ev.baselines) == known


def test_what_cannot_be_saved_leaves_what_was(tmp_path):
    ev = make()
    ev.save(tmp_path)
    before = content_of(tmp_path)
    for options in ({"table": "xlsx"}, {"about": {"loss": math.nan}}, {"about": 3}):
        with raises(InvalidDataError):
            ev.save(tmp_path, **options)
    assert content_of(tmp_path) == before


def test_refuses_what_is_not_what_was_saved(tmp_path):
    path = make().save(tmp_path) / "summary.json"
    whole = json.loads(path.read_text())
    row = {"ndcg@5": whole["metrics"]["ndcg@5"] | {"mean": 0.5}}
    for content in (
        [1],
        *(_signed(whole | {"schema": schema}) for schema in (None, 99, 2)),
        # Whatever is changed, deep inside too, and whatever is missing.
        {key: value for key, value in whole.items() if key != "digest"},
        {key: value for key, value in whole.items() if key != "about"},
        whole | {"metrics": whole["metrics"] | row},
        whole | {"digest": None},
    ):
        path.write_text(json.dumps(content))
        with raises(InvalidFileError):
            se.Evaluation.load(path)
    path.write_text(json.dumps(whole, indent=4))  # another layout is no change
    assert se.Evaluation.load(path).names == NAMES
    path.write_bytes(b"\xff\xfe")
    for place in (path, tmp_path / "none.json"):
        with raises(InvalidFileError):
            se.Evaluation.load(place)


def test_refuses_each_file_that_was_changed_exchanged_or_lost(tmp_path):
    folder = of_model().save(tmp_path / "a")
    other = make().save(tmp_path / "b")
    for name in ("per_user.csv", "totals.npz"):
        file = folder / name
        data = file.read_bytes()
        for changed in (data + b"\n", b"", (other / name).read_bytes()):
            file.write_bytes(changed)
            with raises(InvalidFileError):
                se.Evaluation.load(folder)
        file.unlink()
        with raises(InvalidFileError):
            se.Evaluation.load(folder)
        file.write_bytes(data)
    assert list(se.Evaluation.load(folder).baselines) == ["popularity"]


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_a_save_that_is_interrupted_leaves_the_one_before(tmp_path, monkeypatch):
    make().save(tmp_path)
    before = content_of(tmp_path)
    monkeypatch.setattr(csv, "write_csv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(seed=2).save(tmp_path)
    assert content_of(tmp_path) == before


def test_what_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    """Another process saves once the JSON has been read."""
    after = make(seed=2)
    make().save(tmp_path)
    read_files = saving.read_files

    def replaced(*given):
        monkeypatch.undo()
        after.save(tmp_path)
        return read_files(*given)

    monkeypatch.setattr(saving, "read_files", replaced)
    same_everything(se.Evaluation.load(tmp_path), after)


def test_files_are_removed_with_the_json_first(tmp_path, monkeypatch):
    make().save(tmp_path, table="parquet")
    (tmp_path / "per_user.txt").write_text("kept")
    make().save(tmp_path, table="csv")
    names = {"per_user.csv", "per_user.txt", "summary.json", "totals.npz"}
    assert content_of(tmp_path).keys() == names
    unlink = Path.unlink

    def interrupted_after(path, **given):
        unlink(path, **given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "unlink", interrupted_after)
    with pytest.raises(KeyboardInterrupt):
        remove_saved(tmp_path)
    assert content_of(tmp_path).keys() == names - {"summary.json"}
