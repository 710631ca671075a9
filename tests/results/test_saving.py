"""Saved evaluations: what comes back, and what is refused."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest
from evaluations import KINDS, of_model, same_everything, saved, some
from killed import run_killed
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.core.files import temporary_beside
from sparse_eval.core.formatting import number
from sparse_eval.errors import InvalidDataError, InvalidFileError, InvalidMetricError
from sparse_eval.results import saving
from sparse_eval.results.saving import _signed, copy_saved, remove_saved

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


def make(labels: list[Any] | None, seed: int = 0) -> se.Evaluation:
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


@pytest.mark.parametrize("users", ["csv", "parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_with_the_same_bits(kind: str, users: Any, tmp_path: Path) -> None:
    ev = KINDS[kind]()
    found = saved(ev, tmp_path / "a", users)
    same_everything(ev, found)
    same_everything(ev, saved(found, tmp_path / "b", users))
    assert found.to_dict() == ev.to_dict()
    assert found.to_json() == ev.to_json()
    assert repr(found) == repr(ev)
    names = sorted(file.name for file in (tmp_path / "a").iterdir())
    kept = [f"per_user.{users}"] if found.record.table is not None else []
    baselines = [f"totals-{name}.npz" for name in ev.baselines]
    assert names == [*kept, "summary.json", *baselines, "totals.npz"]
    assert [file.name for file in sorted((tmp_path / "b").iterdir())] == names


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_back_is_merged_compared_and_reported(kind: str, tmp_path: Path) -> None:
    ev = KINDS[kind]()
    found = saved(ev, tmp_path / "a")
    assert found.merge().mean() == ev.mean()
    assert found.merge(saved(ev, tmp_path / "b", "parquet")).n_users == ev.n_users
    shown = ev.names[:3]
    page = se.write_report({"one": found}, tmp_path / "r.html", shown).read_text(encoding="utf-8")
    assert number(ev[ev.names[0]]) in page
    if found.record.table is None:
        with raises(InvalidDataError):
            found.compare(ev)
        return
    for compared in (found.compare(ev), ev.compare(found), found.compare(found)):
        assert (compared.table["difference"].dropna() == 0).all()
    one = se.write_report({"one": ev, "two": ev}, tmp_path / "r.html", shown).read_bytes()
    other = se.write_report({"one": found, "two": ev}, tmp_path / "s.html", shown).read_bytes()
    assert one == other


@pytest.mark.parametrize("labels", ["numbers", "text"])
@pytest.mark.parametrize("keep", ["values", "totals"])
def test_blocks_are_merged_after_they_were_saved(labels: str, keep: str, tmp_path: Path) -> None:
    blocks = [some(first=first, labels=labels, keep=keep) for first in (0, 10, 20)]
    expected = blocks[0].merge(*blocks[1:])
    loaded = [saved(block, tmp_path / str(number)) for number, block in enumerate(blocks)]
    columns = [name for name in expected.summary() if name not in ("random", "random_se", "lift")]
    for found in (loaded[2].merge(loaded[0], loaded[1]), loaded[1].merge(blocks[2], loaded[0])):
        pd.testing.assert_frame_equal(
            found.summary()[columns], expected.summary()[columns], check_exact=True
        )
        same_everything(saved(found, tmp_path / "again"), found)
        if keep == "values":
            pd.testing.assert_frame_equal(found.per_user, expected.per_user, check_exact=True)
    with raises(InvalidDataError):
        loaded[0].merge(some(seed=1, labels=labels, keep=keep))


@pytest.mark.parametrize("users", ["csv", "parquet"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_and_what_was_remembered_come_back(users: Any, labels: Any, tmp_path: Path) -> None:
    ev = make(labels)
    about = {"factors": 64, "note": "<b>"}
    folder = ev.save(tmp_path / "results" / "als", table=users, about=about)
    assert folder == tmp_path / "results" / "als"
    assert sorted(file.name for file in folder.iterdir()) == [
        f"per_user.{users}",
        "summary.json",
        "totals.npz",
    ]
    found = se.Evaluation.load(folder)
    assert se.Evaluation.load(folder / "summary.json").record.content == found.record.content
    same_everything(ev, found)
    assert found.about == about
    assert se.Evaluation.load(found.save(tmp_path / "again")).about == about
    other = se.Evaluation.load(found.save(tmp_path / "other", about={"seed": 2}))
    assert other.about == {"seed": 2}
    assert ev.about == {}
    assert (found.users is None) == (labels is None)
    better = make(labels, seed=2)
    expected = se.compare({"a": ev, "b": better}).table
    pd.testing.assert_frame_equal(se.compare({"a": found, "b": better}).table, expected)
    assert found.compare(ev).table["difference"].tolist() == [0.0] * len(NAMES)
    with raises(InvalidMetricError, metric="ndcg@10"):
        found["ndcg@10"]
    with raises(InvalidMetricError, metric="coverage@5"):
        found.values("coverage@5")


def test_refuses_what_cannot_be_saved(tmp_path: Path) -> None:
    ev = make(None)
    for options in (
        {"table": "xlsx"},
        {"about": {"model": object()}},
        {"about": {"loss": math.nan}},
        {"about": 3},
    ):
        with raises(InvalidDataError):
            ev.save(tmp_path, **options)  # type: ignore[arg-type]
    mixed = make([*range(29), "x"])
    with raises(InvalidDataError):
        mixed.save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_saved_leaves_what_was(tmp_path: Path) -> None:
    folder = make(None).save(tmp_path / "als")
    large = se.Relevance.from_csr(
        csr_matrix(np.eye(2)), users=np.array([2**63, 2**63 + 1], np.uint64)
    )
    lists = se.Rankings.from_topk([[0], [1]])
    with raises(InvalidDataError):
        se.evaluate(lists, large, "mrr@1").save(folder)
    assert se.Evaluation.load(folder).names == NAMES
    # Without its users' lists, a number about all lists is undefined for some replicates.
    few = se.Rankings.from_topk([[0, 1]], shape=(400, 2))
    undefined = se.evaluate(few, csr_matrix(np.ones((400, 1))), ["gini@2", "mrr@2"])
    assert np.isnan(undefined.replicates("gini@2")).any()
    same_everything(undefined, saved(undefined, tmp_path / "few"))


def test_refuses_what_is_not_what_was_saved(tmp_path: Path) -> None:
    path = make(None).save(tmp_path) / "summary.json"
    table = tmp_path / "per_user.csv"
    whole, users = json.loads(path.read_text()), table.read_bytes()

    def refused(message: str, content: Any = whole) -> None:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with raises(InvalidFileError):
            se.Evaluation.load(path)

    with raises(InvalidFileError):
        se.Evaluation.load(tmp_path / "none.json")
    refused("is not JSON", "{")
    refused("is not a saved evaluation", [1])
    for schema in ("1", True, None):
        refused("is not a saved evaluation", whole | {"schema": schema})
    refused("written by a newer sparse_eval .schema 99, 2 can be read", whole | {"schema": 99})
    refused("save with Evaluation.save", {k: v for k, v in whole.items() if k != "digest"})
    # Whatever is changed, deep inside too, and whatever is missing.
    for key in whole:
        if key not in ("schema", "digest"):
            refused("was changed after it was saved", {k: v for k, v in whole.items() if k != key})
    row = {"ndcg@5": whole["metrics"]["ndcg@5"] | {"mean": 0.5}}
    refused("was changed after it was saved", whole | {"metrics": whole["metrics"] | row})
    refused("was changed after it was saved", whole | {"digest": None})
    text = json.dumps(whole)
    refused("was changed after it was saved", re.sub(r'"mean": [\d.]+', '"mean": 1e999', text))
    for name in ("../per_user.csv", "/etc/passwd", "", "a\\b", "a\0b", "\ud800"):
        files = _signed(whole | {"users": whole["users"] | {"file": name}})
        refused("names no file beside it", files)
    refused("written by an older sparse_eval .schema 1., .*save the", whole | {"schema": 1})
    refused("other columns or rows", _signed(whole | {"per_user": ["ndcg@5"]}))
    path.write_text(json.dumps(whole, indent=4))  # another layout is no change
    assert se.Evaluation.load(path).names == NAMES
    table.write_bytes(users + b"1\n")
    refused("is not the file that summary.json was saved with")
    table.unlink()
    refused("keep both together")
    path.write_bytes(b"\xff\xfe")
    with raises(InvalidFileError):
        se.Evaluation.load(path)
    with raises(InvalidFileError):
        se.Evaluation.load(tmp_path / "no folder")


@pytest.mark.parametrize("users", ["csv", "parquet"])
def test_refuses_each_file_that_was_changed_exchanged_or_lost(users: Any, tmp_path: Path) -> None:
    folder = of_model().save(tmp_path / "a", table=users)
    other = make(None).save(tmp_path / "b", table=users)
    files = [f"per_user.{users}", "totals.npz", "totals-popularity.npz"]
    assert sorted(file.name for file in folder.iterdir()) == sorted([*files, "summary.json"])
    for name in files:
        file = folder / name
        data = file.read_bytes()
        exchanged = (other / name.replace("-popularity", "")).read_bytes()
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        for changed in (data + b"\n", data[:-1], b"", exchanged, flipped):
            file.write_bytes(changed)
            with raises(InvalidFileError):
                se.Evaluation.load(folder)
        file.unlink()
        with raises(InvalidFileError):
            se.Evaluation.load(folder)
        file.write_bytes(data)
    assert list(se.Evaluation.load(folder).baselines) == ["popularity"]


@pytest.mark.parametrize("users", ["csv", "parquet"])
def test_refuses_files_that_hold_something_else_though_signed(users: Any, tmp_path: Path) -> None:
    path = make(None).save(tmp_path, table=users) / "summary.json"
    whole = json.loads(path.read_text())

    def sign(kind: str, data: bytes) -> None:
        facts = whole[kind] if kind == "users" else whole[kind][""]
        (tmp_path / facts["file"]).write_bytes(data)
        facts = facts | {"sha256": hashlib.sha256(data).hexdigest()}
        content = whole | {kind: facts if kind == "users" else {"": facts}}
        path.write_text(json.dumps(_signed(content)))

    table = (tmp_path / whole["users"]["file"]).read_bytes()
    for data in (b"", b"nonsense", b"user\n\xff\n", b"user,evaluated\n1,x\n"):
        sign("users", data)
        with raises(InvalidFileError):
            se.Evaluation.load(path)
    if users == "csv":
        sign("users", b"".join(table.splitlines(keepends=True)[:-1]))
        with raises(InvalidFileError):
            se.Evaluation.load(path)
    sign("users", table)
    for data in (b"", b"nonsense", b"PK\x03\x04"):
        sign("totals", data)
        with raises(InvalidFileError):
            se.Evaluation.load(path)


def test_refuses_what_an_older_version_saved(tmp_path: Path) -> None:
    """As it was written before the exact sums were."""
    content = {"schema": 1, "sparse_eval": "0.1.0", "metrics": {"ndcg@5": {"mean": 0.5}}}
    (tmp_path / "summary.json").write_text(json.dumps(_signed(content)))
    (tmp_path / "per_user.csv").write_text("user,evaluated\n0,1\n")
    with raises(InvalidFileError):
        se.Evaluation.load(tmp_path)


def test_reads_what_was_saved_before_some_options_were(tmp_path: Path) -> None:
    ev = make(None)
    path = ev.save(tmp_path) / "summary.json"
    content = json.loads(path.read_text())
    for name in ("lower", "corrected", "seen"):
        del content[name]
    path.write_text(json.dumps(_signed(content)))
    same_everything(se.Evaluation.load(tmp_path), ev)


@pytest.mark.parametrize("users", ["csv", "parquet"])
def test_a_save_that_is_interrupted_leaves_the_one_before(
    users: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = make(None), make(None, seed=2)
    before.save(tmp_path, table=users)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for name in ("to_csv", "to_parquet"):
        monkeypatch.setattr(pd.DataFrame, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        after.save(tmp_path, table=users)
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert se.Evaluation.load(tmp_path).mean() == before.mean()


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("users", ["csv", "parquet"])
def test_what_is_replaced_while_it_is_read_is_read_again(
    users: Any, call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process saves once the hash of a file has been compared."""
    before, after = make(None), make(None, seed=2)
    before.save(tmp_path, table=users)
    file_digest, calls = hashlib.file_digest, []

    def replaced(*given: Any) -> Any:
        digest = file_digest(*given)
        calls.append(digest)
        if len(calls) == call:
            after.save(tmp_path, table=users)
        return digest

    monkeypatch.setattr(hashlib, "file_digest", replaced)
    found = se.Evaluation.load(tmp_path)
    same_everything(found, before if call == 2 else after)


def test_a_reader_waits_for_a_save_to_move_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = make(None), make(None, seed=2)
    before.save(tmp_path)
    replace, loaded = Path.replace, []
    reader = Thread(target=lambda: loaded.append(se.Evaluation.load(tmp_path)))

    def slowly(self: Path, target: Path) -> Path:
        moved = replace(self, target)
        if target.name == "totals.npz":  # the JSON is still that of before
            reader.start()
            reader.join(0.03)
        return moved

    monkeypatch.setattr(Path, "replace", slowly)
    after.save(tmp_path)
    reader.join()
    same_everything(loaded[0], after)


@pytest.mark.parametrize("users", ["csv", "parquet"])
def test_the_json_is_moved_to_its_place_last(
    users: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, moved = Path.replace, []

    def noted(self: Path, target: Path) -> Path:
        moved.append(target)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    make(None).save(tmp_path / "a", table=users)
    copy_saved(tmp_path / "a", tmp_path / "b", {})
    assert len(moved) == 6
    assert moved[2::3] == [tmp_path / name / "summary.json" for name in ("a", "b")]
    assert se.Evaluation.load(tmp_path / "b").mean() == make(None).mean()


def test_a_reader_waits_for_a_save_that_has_nothing_hidden_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = make(None).save(tmp_path / "a"), make(None, seed=2).save(tmp_path / "b")
    (after / "totals.npz").replace(before / "totals.npz")

    def saved_meanwhile(_: float) -> None:
        for file in after.iterdir():
            file.replace(before / file.name)

    monkeypatch.setattr(saving.time, "sleep", saved_meanwhile)
    same_everything(se.Evaluation.load(before), make(None, seed=2))


def test_files_of_the_evaluation_before_are_removed(tmp_path: Path) -> None:
    make(None).save(tmp_path, table="csv")
    (tmp_path / "per_user.txt").write_text("kept")
    make(None).save(tmp_path, table="parquet")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["per_user.parquet", "per_user.txt", "summary.json", "totals.npz"]


@pytest.mark.slow
@pytest.mark.parametrize(("users", "call"), [("csv", 1), ("csv", 2), ("parquet", 3)])
def test_a_save_that_is_killed_leaves_the_one_before_or_the_new_one(
    users: Any, call: int, tmp_path: Path
) -> None:
    """It is killed before it moves one of its three files to its place."""
    before, after = make(None), make(None, seed=2)
    before.save(tmp_path / "a", table=users)
    after.save(tmp_path / "b", table=users)
    code = "import sparse_eval as se\n"
    code += f"se.Evaluation.load(sys.argv[2]).save(sys.argv[1], table={users!r})"
    for _ in range(2):  # the second one finds what the first one left
        run_killed(code, call, tmp_path / "a", tmp_path / "b")
        same_everything(se.Evaluation.load(tmp_path / "a"), before if call == 1 else after)
    before.save(tmp_path / "a", table=users)
    same_everything(se.Evaluation.load(tmp_path / "a"), before)


def test_a_save_that_was_killed_before_it_moved_anything_is_not_read(tmp_path: Path) -> None:
    make(None).save(tmp_path / "a")
    for file in make(None, seed=2).save(tmp_path / "b").iterdir():
        file.replace(temporary_beside(tmp_path / "a" / file.name, "0123456789abcdef"))
    totals = tmp_path / "a" / "totals.npz"
    totals.write_bytes(totals.read_bytes()[:-1])
    with raises(InvalidFileError):
        se.Evaluation.load(tmp_path / "a")


def test_an_evaluation_is_removed_with_its_json_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(None).save(tmp_path / "als")
    unlink = Path.unlink

    def interrupted(path: Path, *given: Any) -> None:
        unlink(path, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remove_saved(folder)
    assert sorted(file.name for file in folder.iterdir()) == ["per_user.csv", "totals.npz"]


def test_files_that_a_save_removes_and_the_next_one_writes_stay_private(tmp_path: Path) -> None:
    lists, held = se.Rankings.from_topk([[0, 1], [1, 0]]), csr_matrix([[1.0, 0], [1, 0]])
    kept, not_kept = (se.evaluate(lists, held, "mrr@2", keep=keep) for keep in ("values", "totals"))
    kept.save(tmp_path)
    (tmp_path / "per_user.csv").chmod(0o600)
    not_kept.save(tmp_path)
    assert not (tmp_path / "per_user.csv").exists()
    kept.save(tmp_path)
    assert (tmp_path / "per_user.csv").stat().st_mode & 0o777 == 0o600
