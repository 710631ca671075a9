"""Sweeps over checkpoints: what the table says, what breaks, and what survives an interruption."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from implicit.nearest_neighbours import CosineRecommender
from scipy import sparse

import sparse_eval as se
import sparse_eval.models.sweep as sweeping
from sparse_eval.cli import main
from sparse_eval.errors import InvalidDataError, InvalidFileError, InvalidMetricError, OutputError

N_USERS, N_ITEMS = 250, 60
METRICS = ["ndcg@10", "recall@{5,20}", "novelty@5"]
NAMES = ["ndcg@10", "recall@5", "recall@20", "novelty@5"]


@pytest.fixture(scope="module")
def holdout() -> Any:
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=2500, seed=3)
    return se.split.random(clicks, fraction=0.3, seed=0)


def save(path: Path, factors: int = 4, seed: int = 0, **arrays: Any) -> Path:
    """Save what a model of implicit would."""
    rng = np.random.default_rng([seed, factors])
    parts = {
        "user_factors": rng.standard_normal((N_USERS, factors)).astype(np.float32),
        "item_factors": rng.standard_normal((N_ITEMS, factors)).astype(np.float32),
        "factors": factors,
        "alpha": 40.0,
        "use_cg": True,
        "dtype": "float32",
    }
    np.savez(path, **(parts | arrays))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder of three checkpoints."""
    made = tmp_path / "checkpoints"
    made.mkdir()
    for factors in (2, 10, 4):
        save(made / f"als-{factors}.npz", factors)
    return made


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the models that are evaluated, as their number of factors."""
    calls: list[int] = []

    def counted(model: Any, *data: Any, **options: Any) -> Any:
        calls.append(model.item_factors.shape[1])
        return se.evaluate_model(model, *data, **options)

    monkeypatch.setattr(sweeping, "evaluate_model", counted)
    return calls


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Say whether two tables are equal, apart from the time that was taken."""
    pd.testing.assert_frame_equal(
        one.drop(columns="seconds"), other.drop(columns="seconds"), check_exact=True
    )
    return True


def test_a_folder_becomes_a_table(folder: Path, holdout: Any, tmp_path: Path) -> None:
    out = tmp_path / "sweep.csv"
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out)
    assert list(table.columns) == [
        "file", "best", "status", "error", "seconds", *NAMES,
        "sha256", "train", "validation", "convention", "sparse_eval",
        "alpha", "dtype", "factors", "use_cg",
    ]  # fmt: skip
    paths = [folder / f"als-{factors}.npz" for factors in (2, 4, 10)]
    assert table["file"].tolist() == [str(path) for path in paths]
    for path, (_, row) in zip(paths, table.iterrows(), strict=True):
        ev = se.evaluate_model(path, holdout.train, holdout.validation, METRICS)
        assert {name: row[name] for name in NAMES} == ev.mean()
        assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert row["seconds"] > 0
    assert table["factors"].tolist() == [2, 4, 10]
    assert table["best"].tolist() == (table["ndcg@10"] == table["ndcg@10"].max()).tolist()
    assert set(table["status"]) == {"ok"}
    assert set(table["error"]) == {""}
    written = rows_of(out)
    assert list(written[0]) == list(table.columns)
    for cells, (_, row) in zip(written, table.iterrows(), strict=True):
        assert all(cells[name] == str(row[name]) for name in table.columns)
    assert same(table, se.sweep(folder, holdout.train, holdout.validation, METRICS))


def test_paths_are_files_folders_or_both(folder: Path, holdout: Any, tmp_path: Path) -> None:
    one = save(tmp_path / "one.npz", 3)
    (folder / "sub.npz").mkdir()
    save(folder / ".als-9.npz", 9)
    (folder / "als-1.npz.tmp").write_bytes(b"")
    data = (holdout.train, holdout.validation, "ndcg@10")
    assert se.sweep(str(one), *data)["factors"].tolist() == [3]
    several = (path for path in (one, str(folder), folder / "als-4.npz", str(one)))
    assert se.sweep(several, *data)["factors"].tolist() == [3, 2, 4, 10]


def test_every_kind_of_model_and_matrix(folder: Path, holdout: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implicit's neighbours convert their own matrices
        model = CosineRecommender(K=5)
        model.fit(holdout.train, show_progress=False)
    model.save(str(folder / "cosine.npz"))
    truth = se.Relevance.from_csr(holdout.validation, users=[f"u{i}" for i in range(N_USERS)])
    before = holdout.train.copy()
    expected = se.sweep(folder, holdout.train, holdout.validation, METRICS)
    assert expected["file"].tolist()[-1] == str(folder / "cosine.npz")
    for train, validation in (
        (holdout.train.tocoo(), truth),
        (sparse.csr_array(holdout.train.astype(np.int64)), holdout.validation.tocsc()),
    ):
        assert same(se.sweep(folder, train, validation, METRICS), expected)
    assert (holdout.train != before).nnz == 0


def test_a_rerun_computes_only_what_is_missing(
    folder: Path, holdout: Any, tmp_path: Path, scored: list[Any]
) -> None:
    data, out = (holdout.train, holdout.validation, METRICS), tmp_path / "sweep.csv"
    expected = se.sweep(folder, *data)
    scored.clear()
    se.sweep([folder / "als-10.npz"], *data, out=out)
    assert scored == [10]
    table = se.sweep(folder, *data, out=out)
    assert scored == [10, 2, 4]
    assert same(table, expected)
    before = (out.stat().st_mtime_ns, out.read_bytes())
    again = se.sweep(folder, *data, out=out)
    assert scored == [10, 2, 4]
    pd.testing.assert_frame_equal(again, table, check_exact=True)
    assert (out.stat().st_mtime_ns, out.read_bytes()) == before
    # in another order of metrics and by another monitor, what is done is done
    other = se.sweep(folder, *data[:2], METRICS[::-1], out=out, monitor="recall@20")
    assert scored == [10, 2, 4]
    assert same(other, se.sweep(folder, *data[:2], METRICS[::-1], monitor="recall@20"))


def test_a_changed_checkpoint_is_scored_again(
    folder: Path, holdout: Any, tmp_path: Path, scored: list[Any]
) -> None:
    data, out = (holdout.train, holdout.validation, METRICS), tmp_path / "sweep.csv"
    se.sweep(folder, *data, out=out)
    scored.clear()
    save(folder / "als-4.npz", 7)
    table = se.sweep(folder, *data, out=out)
    assert scored == [7]
    assert table["factors"].tolist() == [2, 7, 10]
    assert same(table, se.sweep(folder, *data))


def test_results_follow_the_content_of_a_file(
    folder: Path, holdout: Any, tmp_path: Path, scored: list[Any]
) -> None:
    data, out = (holdout.train, holdout.validation, METRICS), tmp_path / "sweep.csv"
    se.sweep(folder, *data, out=out)
    scored.clear()
    (folder / "als-4.npz").rename(folder / "renamed.npz")
    (folder / "als-10.npz").unlink()
    shutil.copy(folder / "als-2.npz", folder / "als-3.npz")
    table = se.sweep(folder, *data, out=out)
    assert scored == []
    # what is gone keeps its result, behind those that are there
    names = [Path(file).name for file in table["file"]]
    assert names == ["als-2.npz", "als-3.npz", "renamed.npz", "als-10.npz"]
    assert table["factors"].tolist() == [2, 2, 4, 10]
    assert table["best"].sum() == 1
    assert rows_of(out)[3]["sha256"] == table["sha256"][3]


def test_equal_contents_are_scored_once(folder: Path, holdout: Any, scored: list[Any]) -> None:
    for copy in ("als-5.npz", "als-6.npz"):
        shutil.copy(folder / "als-4.npz", folder / copy)
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS)
    assert scored == [2, 4, 10]
    copies = table[table["factors"] == 4]
    assert [Path(file).name for file in copies["file"]] == ["als-4.npz", "als-5.npz", "als-6.npz"]
    assert len(copies.drop(columns=["file", "best"]).drop_duplicates()) == 1


CHANGES: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "metrics ndcg@10": lambda holdout, call: call.update(metrics="ndcg@10"),
    "train ": lambda holdout, call: call.update(train=holdout.train * 2),
    "validation ": lambda holdout, call: call.update(validation=holdout.validation * 2),
    "convention ranx": lambda holdout, call: call.update(convention="ranx"),
}


@pytest.mark.parametrize("what", [*CHANGES, "sparse_eval 0.1.0"])
def test_a_table_of_something_else_is_left_alone(
    folder: Path, holdout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    out = tmp_path / "sweep.csv"
    call = {"train": holdout.train, "validation": holdout.validation, "metrics": METRICS}
    if what in CHANGES:
        CHANGES[what](holdout, call)
        se.sweep(folder, **call, out=out)
        call = {"train": holdout.train, "validation": holdout.validation, "metrics": METRICS}
    else:
        se.sweep(folder, **call, out=out)
        monkeypatch.setattr(sweeping, "installed_version", lambda: "99.0")
    before = out.read_bytes()
    with pytest.raises(InvalidFileError, match="was made with other inputs") as error:
        se.sweep(folder, **call, out=out)
    assert f"other inputs: {what}" in str(error.value)
    assert " (here " in str(error.value)
    assert str(error.value).count("(here") == 1
    assert "choose another place for this sweep, or delete that file" in str(error.value)
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"", b"user,item\n1,2\n", b"\xff\xfe\x00", b'"', b"file,best,status,error,seconds,sha256\n"],
)
def test_a_file_that_no_sweep_wrote_is_left_alone(
    folder: Path, holdout: Any, tmp_path: Path, content: bytes
) -> None:
    out = tmp_path / "mine.csv"
    out.write_bytes(content)
    with pytest.raises(InvalidFileError, match="mine.csv: is no table that a sweep wrote"):
        se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out)
    assert out.read_bytes() == content
    with pytest.raises(InvalidFileError, match="cannot be read: Is a directory"):
        se.sweep(folder, holdout.train, holdout.validation, METRICS, out=tmp_path)


@pytest.mark.parametrize(
    ("column", "text"),
    [("status", "good"), ("ndcg@10", "high"), ("recall@5", ""), ("sha256", ""), ("seconds", "")],
)
def test_an_edited_row_is_no_result(
    folder: Path, holdout: Any, tmp_path: Path, column: str, text: str
) -> None:
    out = tmp_path / "sweep.csv"
    se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out)
    frame = pd.read_csv(out, dtype=str, keep_default_na=False)
    frame.loc[1, column] = text
    frame.to_csv(out, index=False)
    with pytest.raises(InvalidFileError, match=r"sweep\.csv, line 3: is not what a sweep wrote"):
        se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:2] + lines[3:]))
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out)
    assert same(table, se.sweep(folder, holdout.train, holdout.validation, METRICS))


def break_checkpoints(folder: Path) -> dict[str, str]:
    """Put broken checkpoints into a folder; return the reasons."""
    good = save(folder / "good.npz").read_bytes()
    nan = np.ones((N_ITEMS, 4), np.float32)
    nan[7, 1] = np.nan
    huge = np.full((N_ITEMS, 4), 1e200)
    save(folder / "nan.npz", item_factors=nan)
    save(folder / "users.npz", user_factors=np.ones((N_USERS + 1, 4), np.float32))
    save(folder / "items.npz", item_factors=np.ones((N_ITEMS - 1, 4), np.float32))
    save(folder / "widths.npz", item_factors=np.ones((N_ITEMS, 5), np.float32))
    save(folder / "pickle.npz", note=np.array({"a": 1}, dtype=object))
    save(folder / "huge.npz", item_factors=huge, user_factors=np.full((N_USERS, 4), 1e200))
    np.savez(folder / "nothing.npz", alpha=1.0)
    (folder / "cut.npz").write_bytes(good[: len(good) // 2])
    (folder / "text.npz").write_text("line one\nline two\n")
    (folder / "empty.npz").write_bytes(b"")
    (folder / "gone.npz").symlink_to(folder / "nowhere.npz")
    os.mkfifo(folder / "pipe.npz")
    return {
        "nan.npz": "item_factors, row 7 is not finite",
        "users.npz": f"train has {N_USERS} users, the model {N_USERS + 1}",
        "items.npz": f"train has {N_ITEMS} items, the model {N_ITEMS - 1}",
        "widths.npz": "user_factors have 4 columns, item_factors 5",
        "pickle.npz": "only pickle could read",
        "huge.npz": "so large",
        "nothing.npz": "neither factors nor similarities, only alpha",
        "cut.npz": "expected an .npz file",
        "text.npz": "expected an .npz file",
        "empty.npz": "expected an .npz file",
        "gone.npz": "does not exist",
        "pipe.npz": "is no file",
    }


def test_broken_checkpoints_have_a_row_and_do_not_stop_the_sweep(
    tmp_path: Path, holdout: Any, scored: list[Any]
) -> None:
    reasons = break_checkpoints(tmp_path)
    reasons["missing.npz"] = "does not exist"
    data = (holdout.train, holdout.validation, METRICS)
    paths, out = [*sorted(tmp_path.iterdir()), tmp_path / "missing.npz"], tmp_path / "sweep.csv"
    paths.remove(tmp_path / "good.npz")
    table = se.sweep([*paths, tmp_path / "good.npz"], *data, out=out)
    failed = table[table["status"] == "failed"].set_index("file")
    assert {Path(file).name for file in failed.index} == {*reasons}
    for name, reason in reasons.items():
        error = failed.loc[str(tmp_path / name), "error"]
        assert reason in error
        assert "\n" not in error
        assert str(tmp_path) not in error
    assert failed[NAMES].isna().all().all()
    assert not failed["best"].any()
    assert table["status"].tolist()[-1] == "ok"
    assert table["best"].tolist()[-1]
    assert len(rows_of(out)) == len(reasons) + 1
    # what failed is tried again, and only that
    scored.clear()
    for name in reasons:
        (tmp_path / name).unlink(missing_ok=True)
        save(tmp_path / name, 3, seed=len(name))
    again = se.sweep([*paths, tmp_path / "good.npz"], *data, out=out)
    assert set(scored) == {3}
    assert set(again["status"]) == {"ok"}
    assert same(again, se.sweep([*paths, tmp_path / "good.npz"], *data))


def test_too_little_memory_is_a_row_until_there_is_enough(
    folder: Path, holdout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(model: Any, *data: Any, **options: Any) -> Any:
        if model.item_factors.shape[1] == 4:
            raise MemoryError
        return se.evaluate_model(model, *data, **options)

    data, out = (holdout.train, holdout.validation, METRICS), tmp_path / "sweep.csv"
    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "evaluate_model", fail)
        table = se.sweep(folder, *data, out=out)
    assert table["error"].tolist() == ["", "there is not enough memory", ""]
    assert table["ndcg@10"].isna().tolist() == [False, True, False]
    assert same(se.sweep(folder, *data, out=out), se.sweep(folder, *data))


def test_what_is_no_fault_of_a_checkpoint_is_raised(
    folder: Path, holdout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(model: Any, *data: Any, **options: Any) -> Any:
        if model.item_factors.shape[1] == 10:
            raise ZeroDivisionError
        return se.evaluate_model(model, *data, **options)

    monkeypatch.setattr(sweeping, "evaluate_model", fail)
    with pytest.raises(ZeroDivisionError):
        se.sweep(folder, holdout.train, holdout.validation, METRICS, out=tmp_path / "s.csv")
    assert [row["factors"] for row in rows_of(tmp_path / "s.csv")] == ["2", "4"]


def overwrite(path: Path, content: bytes) -> None:
    """Write a file in its place, a second after it was last written."""
    last = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(last, last + 10**9))


def swap(path: Path, content: bytes) -> None:
    """Put another file in the place of one, of the same size and time."""
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    other = path.with_suffix(".other")
    other.write_bytes(content)
    os.utime(other, ns=times)
    other.replace(path)


@contextmanager
def changing(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, path: Path, changes: list[Any]
) -> Iterator[None]:
    """Change a file each time that a function has read it, as long as there are changes."""
    read = getattr(owner, name)

    def reads(given: Any, *more: Any) -> Any:
        try:
            return read(given, *more)
        finally:
            if str(getattr(given, "name", given)) in (str(path), path.name) and changes:
                changes.pop(0)()

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, reads)
        yield
    assert changes == []


@pytest.mark.parametrize("change", [overwrite, swap])
@pytest.mark.parametrize(
    ("owner", "name"),
    [(hashlib, "file_digest"), (sweeping, "read_checkpoint")],
)
def test_a_checkpoint_that_changes_while_it_is_read_is_read_again(
    folder: Path,
    holdout: Any,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    change: Callable[[Path, bytes], None],
) -> None:
    path, data = folder / "als-4.npz", (holdout.train, holdout.validation, METRICS)
    new, newer = (save(folder.parent / "new.npz", 4, seed=seed).read_bytes() for seed in (8, 9))
    assert len(new) == len(newer) == path.stat().st_size
    with changing(monkeypatch, owner, name, path, [lambda: change(path, new)]):
        table = se.sweep(folder, *data)
    assert table["sha256"][1] == hashlib.sha256(new).hexdigest()
    assert same(table, se.sweep(folder, *data))

    changes = [lambda: change(path, newer), lambda: change(path, new)]
    with changing(monkeypatch, owner, name, path, changes):
        table = se.sweep(folder, *data)
    assert table["status"].tolist() == ["ok", "failed", "ok"]
    assert table["error"][1].startswith("changed while it was read, twice; score it again")
    assert table.loc[1, NAMES].isna().all()


def test_a_checkpoint_that_is_completed_while_it_fails_is_read_again(
    folder: Path, holdout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = folder / "als-4.npz", (holdout.train, holdout.validation, METRICS)
    whole = path.read_bytes()
    path.write_bytes(whole[:700])
    changes = [lambda: overwrite(path, whole)]
    with changing(monkeypatch, sweeping, "read_checkpoint", path, changes):
        table = se.sweep(folder, *data)
    assert set(table["status"]) == {"ok"}
    assert same(table, se.sweep(folder, *data))


def test_a_known_checkpoint_that_changes_while_it_is_hashed_is_hashed_again(
    folder: Path, holdout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = folder / "als-4.npz", (holdout.train, holdout.validation, METRICS)
    out, new = tmp_path / "sweep.csv", save(tmp_path / "new.npz", 8).read_bytes()
    se.sweep(folder, *data, out=out)
    changes = [lambda: overwrite(path, new)]
    with changing(monkeypatch, hashlib, "file_digest", path, changes):
        table = se.sweep(folder, *data, out=out)
    assert table["factors"].tolist() == [2, 8, 10]
    assert same(table, se.sweep(folder, *data))


def test_one_model_at_a_time_is_held(
    folder: Path, holdout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: list[weakref.ref[Any]] = []
    load = sweeping.as_model

    def watched(path: Path) -> Any:
        assert all(model() is None for model in models)
        models.append(weakref.ref(found := load(path)))
        return found

    monkeypatch.setattr(sweeping, "as_model", watched)
    se.sweep(folder, holdout.train, holdout.validation, METRICS)
    assert len(models) == 3


def test_a_file_is_hashed_in_pieces(tmp_path: Path, holdout: Any) -> None:
    large = tmp_path / "large.npz"
    with large.open("wb") as stream:
        stream.truncate(200_000_000)  # a hole: it takes no space
    se.sweep([large], holdout.train, holdout.validation, METRICS)
    tracemalloc.start()
    try:
        table = se.sweep([large], holdout.train, holdout.validation, METRICS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(table["sha256"][0]) == 64
    assert table["status"].tolist() == ["failed"]
    assert peak < 10_000_000


def test_data_are_checked_and_converted_once(
    folder: Path, holdout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    part = sweeping.train_part
    monkeypatch.setattr(sweeping, "train_part", lambda m: calls.append("train") or part(m))
    convert = se.Relevance.from_csr
    monkeypatch.setattr(
        se.Relevance, "from_csr", lambda *given: calls.append("validation") or convert(*given)
    )
    se.sweep(folder, holdout.train.tocoo(), holdout.validation.tocoo(), METRICS)
    assert calls == ["train", "validation"]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ({"metrics": "ndgc@10"}, InvalidMetricError, "did you mean 'ndcg'"),
        ({"metrics": "ndcg"}, InvalidMetricError, "has no cut-off"),
        ({"metrics": []}, InvalidMetricError, "no metric is asked for"),
        ({"metrics": "calibration@5"}, InvalidMetricError, "needs item_groups"),
        ({"convention": "rank"}, InvalidMetricError, "did you mean 'ranx'"),
        ({"monitor": "mrr@5"}, InvalidMetricError, "monitor is 'mrr@5', which is not among"),
        ({"monitor": "recall@{5,20}"}, InvalidMetricError, "which is not among the metrics"),
        ({"paths": []}, InvalidDataError, "no checkpoint is given"),
        ({"paths": None}, InvalidDataError, "None is a NoneType; expected the path"),
        ({"paths": [3]}, InvalidDataError, "3 is a int; expected the path"),
        ({"paths": "EMPTY"}, InvalidFileError, "has no .npz file in it"),
        ({"validation": "LARGER"}, InvalidDataError, "give both the users and items of the same"),
        ({"validation": "NOTHING"}, InvalidDataError, "none of the 250 users has a stored value"),
        ({"validation": "NEGATIVE"}, InvalidDataError, "the gain in row 0, column 0"),
        ({"train": "NAN"}, InvalidDataError, "the train matrix holds nan in row 0, column 0"),
        ({"train": [[1]]}, InvalidDataError, "expected a scipy sparse matrix"),
        ({"num_threads": 0}, InvalidDataError, "num_threads: expected a whole number of at least"),
        ({"watch": 0}, InvalidDataError, "watch: expected a finite number of at least 0.1"),
        ({"watch": True}, InvalidDataError, "watch: expected a finite number"),
        ({"watch": 1, "paths": "FILE"}, InvalidDataError, "watch follows one folder, found"),
        ({"watch": 1, "paths": []}, InvalidDataError, "watch follows one folder, found nothing"),
        ({"out": "NOWHERE"}, OutputError, "cannot be written: No such file or directory"),
    ],
)
def test_bad_input_is_told_before_the_first_checkpoint(
    folder: Path,
    holdout: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: dict[str, Any],
    error: type[Exception],
    says: str,
) -> None:
    larger = holdout.validation.copy()
    larger.resize((N_USERS, N_ITEMS + 1))
    (tmp_path / "empty").mkdir()
    odd = {
        "EMPTY": tmp_path / "empty",
        "FILE": folder / "als-2.npz",
        "LARGER": larger,
        "NOTHING": holdout.validation * 0,
        "NEGATIVE": sparse.csr_matrix(([-1.0], ([0], [0])), shape=holdout.train.shape),
        "NAN": sparse.csr_matrix(([np.nan], ([0], [0])), shape=holdout.train.shape),
        "NOWHERE": tmp_path / "nowhere" / "sweep.csv",
    }
    given = {name: odd.get(x, x) if isinstance(x, str) else x for name, x in call.items()}
    good = {"paths": folder, "train": holdout.train, "validation": holdout.validation}
    out = tmp_path / "sweep.csv"

    def never(*given: Any) -> Any:
        raise AssertionError("a checkpoint was read")

    monkeypatch.setattr(sweeping, "_attempt", never)
    with pytest.raises(error, match=says):
        se.sweep(**(good | {"metrics": METRICS, "out": out} | given))
    assert not out.exists()


def test_what_is_gone_is_not_the_best(folder: Path, holdout: Any, tmp_path: Path) -> None:
    files = sorted(folder.glob("*.npz"))
    table = se.sweep(files, holdout.train, holdout.validation, "ndcg@10", out=tmp_path / "s.csv")
    best = Path(table.loc[table["best"], "file"].item())
    others = [file for file in files if file.name != best.name]
    again = se.sweep(others, holdout.train, holdout.validation, "ndcg@10", out=tmp_path / "s.csv")
    kept = again[again["best"]]
    assert Path(kept["file"].item()).name in {file.name for file in others}
    rest = table[~table["best"]]
    assert kept["ndcg@10"].item() == rest["ndcg@10"].max()
    assert len(again) == len(table)  # its row stays, for when it comes back


def test_the_best_is_by_what_is_monitored(folder: Path, holdout: Any) -> None:
    shutil.copy(folder / "als-10.npz", folder / "als-11.npz")
    metrics = ["ndcg@10", "gini@10", "recall@5"]
    for monitor, metric, choose in (
        (None, "ndcg@10", max), ("recall @5", "recall@5", max), ("gini@10", "gini@10", min),
    ):  # fmt: skip
        table = se.sweep(folder, holdout.train, holdout.validation, metrics, monitor=monitor)
        first = table[metric].tolist().index(choose(table[metric]))
        assert table.index[table["best"]].tolist() == [first]


def test_nothing_that_failed_or_is_undefined_is_best(
    folder: Path, holdout: Any, tmp_path: Path
) -> None:
    (tmp_path / "broken.npz").write_bytes(b"")
    data = (holdout.train, holdout.validation)
    only_failed = se.sweep([tmp_path / "broken.npz"], *data, METRICS)
    assert not only_failed["best"].any()
    # of one unseen item there are no pairs that could differ
    unseen = np.zeros((N_USERS, N_ITEMS))
    unseen[:, 7] = 1
    data = (sparse.csr_matrix(1 - unseen), sparse.csr_matrix(unseen), "diversity@2")
    out = tmp_path / "sweep.csv"
    undefined = se.sweep(folder, *data, out=out)
    assert undefined["status"].tolist() == ["ok"] * 3
    assert undefined["diversity@2"].isna().all()
    assert not undefined["best"].any()
    assert same(se.sweep(folder, *data, out=out), undefined)


def test_a_convention_is_kept(folder: Path, holdout: Any, tmp_path: Path) -> None:
    data = (holdout.train, holdout.validation, ["mrr", "recall@5"])
    options = {"convention": "trec_eval", "monitor": "mrr"}
    table = se.sweep(folder, *data, **options, out=tmp_path / "sweep.csv")
    assert set(table["convention"]) == {"trec_eval"}
    expected = se.evaluate_model(folder / "als-2.npz", *data, convention="trec_eval")
    assert table["mrr"][0] == expected["mrr"]
    assert same(se.sweep(folder, *data, **options, out=tmp_path / "sweep.csv"), table)


ODD = {
    "seconds": 5,
    "seconds_": 6,
    "ndcg@10": 0.5,
    "train": "mine",
    "note": 'a "quoted", text\r\nof two lines \udcff',
    "long": "x" * 200_000,
    "empty": "",
    "minus": -3,
    "nan": np.nan,
    "big": 2**60 + 1,
    "third": 1 / 3,
    "é ü": np.bool_(True),
}


def test_parameters_and_names_of_every_kind(holdout: Any, tmp_path: Path) -> None:
    names = ["plain.npz", 'comma, "quote".npz', "line\nbreak\r.npz", "ünï.npz", "=1+1.npz"]
    paths = [save(tmp_path / name, seed=place) for place, name in enumerate(names)]
    bytes_name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.npz")
    paths.append(save(Path(bytes_name), seed=9, **ODD))
    out = tmp_path / "sweep.csv"
    data = (holdout.train, holdout.validation, METRICS)
    table = se.sweep(paths, *data, out=out)
    assert set(table["status"]) == {"ok"}
    row = table.iloc[-1]
    assert (row["seconds_"], row["seconds__"], row["ndcg@10_"]) == (5, 6, 0.5)
    assert row["train_"] == "mine"
    assert row["note"] == r'a "quoted", text\r\nof two lines \udcff'
    assert row["long"] == ODD["long"]
    assert "empty" not in table.columns
    assert (row["minus"], row["big"], row["third"]) == (-3, 2**60 + 1, 1 / 3)
    assert row["é ü"] is np.True_ or row["é ü"] is True
    assert all(name.isprintable() for name in table["file"])
    assert table["file"].is_unique
    assert table["big"].isna().tolist() == [True] * 5 + [False]
    parameters = table.columns[table.columns.get_loc("sparse_eval") + 1 :].tolist()
    assert parameters == sorted(parameters)
    again = se.sweep(paths, *data, out=out)
    pd.testing.assert_frame_equal(again, table, check_exact=True)


def test_threads_are_passed_on(folder: Path, holdout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def evaluate(*data: Any, **options: Any) -> Any:
        given.append(options["num_threads"])
        return se.evaluate_model(*data, **options)

    monkeypatch.setattr(sweeping, "evaluate_model", evaluate)
    data = (holdout.train, holdout.validation, METRICS)
    assert same(se.sweep(folder, *data, num_threads=1), se.sweep(folder, *data))
    assert given == [1, 1, 1, None, None, None]


def test_progress_is_shown_where_it_is_asked_for(
    folder: Path, holdout: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (holdout.train, holdout.validation, METRICS)
    se.sweep(folder, *data, progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "score: 100%" in printed.err
    assert "3/3" in printed.err
    assert "als-10.npz" in printed.err
    for progress in (None, False):
        se.sweep(folder, *data, progress=progress)
        assert capsys.readouterr() == ("", "")


# Interruptions


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int) -> Iterator[Any]:
    """Press Ctrl-C when a function is called for the n-th time."""
    calls = [0]
    function = getattr(owner, name)

    def pressed(*given: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return function(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, pressed)
        with pytest.raises(KeyboardInterrupt):
            yield
    assert calls[0] == call


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (hashlib, "file_digest"),
        (sweeping, "read_checkpoint"),
        (sweeping, "as_model"),
        (sweeping, "evaluate_model"),
        (Path, "write_text"),
        (Path, "chmod"),
        (Path, "replace"),
    ],
)
def test_ctrl_c_leaves_what_was_done(
    folder: Path,
    holdout: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    call: int,
) -> None:
    data, out = (holdout.train, holdout.validation, METRICS), tmp_path / "out" / "sweep.csv"
    out.parent.mkdir()
    with interrupted(monkeypatch, owner, name, call):
        se.sweep(folder, *data, out=out)
    assert [path.name for path in out.parent.iterdir()] == ["sweep.csv"] * out.exists()
    if owner is not Path:
        assert len(rows_of(out)) == call - 1
    elif call == 1:  # the table without rows
        assert not out.exists()
    else:
        assert len(rows_of(out)) == call - 2
    assert same(se.sweep(folder, *data, out=out), se.sweep(folder, *data))


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.01)


FULL = """
import resource, signal, sys
from pathlib import Path
import sparse_eval as se

folder, out, split = map(Path, sys.argv[1:])
holdout = se.split.Holdout.load(split)
data = (holdout.train, holdout.validation, ["ndcg@10", "recall@{5,20}", "novelty@5"])
paths = sorted(folder.iterdir())
se.sweep(paths, *data)  # kernels are compiled and kept before nothing can be written
se.sweep(paths[:2], *data, out=out)
before = out.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10,) * 2)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    se.sweep(paths, *data, out=out)
except se.SparseEvalError as error:
    print(type(error).__name__, error)
assert out.read_bytes() == before
"""


def test_a_full_disk_leaves_the_table(folder: Path, holdout: Any, tmp_path: Path) -> None:
    holdout.save(tmp_path / "split")
    out = tmp_path / "out" / "sweep.csv"
    out.parent.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", FULL, folder, out, tmp_path / "split"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"OutputError {out}: cannot be written: File too large\n", done.stderr
    assert done.returncode == 0, done.stderr
    assert [path.name for path in out.parent.iterdir()] == ["sweep.csv"]
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out)
    assert same(table, se.sweep(folder, holdout.train, holdout.validation, METRICS))


KILLED = """
import sys
from pathlib import Path
import sparse_eval as se

folder, split, out = map(Path, sys.argv[1:])
holdout = se.split.Holdout.load(split)
data = (holdout.train, holdout.validation, ["ndcg@10", "recall@{5,20}"])
se.sweep([folder / "als-2.npz"], *data)  # what is slow once only is over
print("ready", flush=True)
sys.stdin.readline()
se.sweep(folder, *data, out=out)
print("done", flush=True)
"""


@pytest.mark.slow
def test_a_sweep_that_is_killed_twenty_times(tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=1000, n_items=300, seed=3)
    holdout = se.split.random(clicks, seed=0)
    holdout.save(tmp_path / "split")
    folder, out, whole = (tmp_path / name for name in ("checkpoints", "killed.csv", "whole.csv"))
    folder.mkdir()
    rng = np.random.default_rng(0)
    sizes = dict(zip(("user_factors", "item_factors"), holdout.train.shape, strict=True))
    for factors in range(2, 82):
        parts = {
            name: rng.standard_normal((size, factors)).astype(np.float32)
            for name, size in sizes.items()
        }
        np.savez(folder / f"als-{factors}.npz", factors=factors, **parts)
    for copy in (5, 30, 31):
        shutil.copy(folder / "als-3.npz", folder / f"als-{copy}.npz")
    for broken in (4, 8, 20):
        (folder / f"als-{broken}.npz").write_bytes(b"broken")
    data = (holdout.train, holdout.validation, ["ndcg@10", "recall@{5,20}"])
    se.sweep(folder, *data, out=whole)
    expected = [{**row, "seconds": ""} for row in rows_of(whole)]
    assert [row["status"] for row in expected].count("failed") == 3
    step = sum(float(row["seconds"]) for row in rows_of(whole)) / 80

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", KILLED, folder, tmp_path / "split", out],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def n_done() -> int:
        return len(rows_of(out)) if out.exists() else 0

    chance = random.Random(5)  # noqa: S311
    waiting, places = [start()], []
    try:
        while len(places) < 20:
            waiting.append(start())  # the next one gets ready while this one works
            process, before = waiting[0], n_done()
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "ready\n"
            process.stdin.write("\n")
            process.stdin.flush()
            goal = before + chance.choice([0, 1, 1, 2])
            wait_for(lambda goal=goal: n_done() >= goal, process)
            time.sleep(chance.uniform(0, 2 * step))
            os.kill(process.pid, signal.SIGKILL)
            said = process.communicate()[0]
            waiting.pop(0)
            if said == "":
                assert process.returncode == -signal.SIGKILL
                places.append(n_done())
                assert before <= places[-1] <= 80
            else:  # so slow a machine that it was done before: that is none of the twenty
                assert [{**row, "seconds": ""} for row in rows_of(out)] == expected
                out.unlink()
    finally:
        for process in waiting:
            process.kill()
            process.communicate()
    assert len({*places}) > 10  # they were killed in the midst of the work, and it went on
    table = se.sweep(folder, *data, out=out)
    assert [{**row, "seconds": ""} for row in rows_of(out)] == expected
    assert same(table, se.sweep(folder, *data))


# Following a folder


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Callable[[], None]]], list[float]]:
    """Do something between one look at the folder and the next, then press Ctrl-C."""

    def play(steps: list[Callable[[], None]]) -> list[float]:
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) > len(steps):
                raise KeyboardInterrupt
            steps[len(slept) - 1]()

        monkeypatch.setattr(sweeping.time, "sleep", sleep)
        return slept

    return play


def aged(path: Path) -> Path:
    os.utime(path, ns=(10**18, 10**18))
    return path


def test_a_folder_is_followed(
    folder: Path,
    holdout: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scored: list[Any],
    looks: Any,
) -> None:
    out, data = tmp_path / "sweep.csv", (holdout.train, holdout.validation, METRICS)
    for path in folder.iterdir():
        aged(path)
    late = save(tmp_path / "late.npz", 7).read_bytes()
    growing = folder / "als-3.npz"
    seen: list[list[str]] = []

    def table() -> list[str]:
        seen.append([f"{Path(row['file']).name} {row['status']}" for row in rows_of(out)])
        return seen[-1]

    def grow(upto: int) -> Callable[[], None]:
        def step() -> None:
            assert "als-3.npz" not in " ".join(table())
            growing.write_bytes(late[:upto])

        return step

    def change() -> None:
        assert table()[1] == "als-3.npz ok"
        save(folder / "als-2.npz", 9)
        save(folder / ".als-1.npz", 1)

    there = ["als-2.npz ok", "als-4.npz ok", "als-10.npz ok"]
    hash_file, hashed = hashlib.file_digest, []
    monkeypatch.setattr(
        hashlib, "file_digest", lambda *given: hashed.append(1) or hash_file(*given)
    )
    slept = looks([
        lambda: seen.append(table()), grow(100), grow(2000), grow(len(late)),
        table, table, change, table, table, lambda: (folder / "als-4.npz").unlink(), table,
    ])  # fmt: skip
    result = se.sweep(folder, *data, out=out, watch=7.5)
    assert slept == [7.5] * 12  # it sleeps between looks, and does nothing else
    assert seen[0] == there
    assert scored == [2, 4, 10, 7, 9]
    assert len(hashed) == 5  # what has not changed is not read again
    names = [Path(file).name for file in result["file"]]
    assert names == ["als-2.npz", "als-3.npz", "als-10.npz", "als-4.npz"]
    assert result["factors"].tolist() == [9, 7, 10, 4]
    assert rows_of(out)[3]["file"] == str(folder / "als-4.npz")
    scored.clear()
    looks([])
    assert same(se.sweep([folder], *data, out=out, watch=7.5), result)
    assert scored == []


def test_what_is_new_at_the_first_look_waits_for_the_next(
    folder: Path, holdout: Any, looks: Any, scored: list[Any]
) -> None:
    aged(folder / "als-4.npz")
    first: list[int] = []
    looks([lambda: first.extend(scored)])
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, watch=3600)
    assert first == [4]
    assert table["factors"].tolist() == [2, 4, 10]


def test_what_stays_broken_fails_until_it_changes(
    folder: Path, holdout: Any, looks: Any, scored: list[Any]
) -> None:
    good = (folder / "als-4.npz").read_bytes()
    (folder / "als-4.npz").write_bytes(good[:900])
    for path in folder.iterdir():
        aged(path)
    looks([])
    data = (holdout.train, holdout.validation, METRICS)
    table = se.sweep(folder, *data, watch=1)
    assert table["status"].tolist() == ["ok", "failed", "ok"]
    looks([lambda: (folder / "als-4.npz").write_bytes(good), lambda: None])
    assert set(se.sweep(folder, *data, watch=1)["status"]) == {"ok"}


def test_what_changes_while_it_is_read_waits(
    folder: Path, holdout: Any, tmp_path: Path, looks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in folder.iterdir():
        aged(path)
    path, out = folder / "als-4.npz", tmp_path / "sweep.csv"
    whole = path.read_bytes()
    numbers: list[int] = []

    def note() -> None:
        numbers.append(len(rows_of(out)))

    def complete() -> None:
        note()
        overwrite(path, whole)

    looks([complete, note, note])
    changes = [lambda: overwrite(path, whole[:800]), lambda: overwrite(path, whole + b"more")]
    with changing(monkeypatch, sweeping, "read_checkpoint", path, changes):
        table = se.sweep(folder, holdout.train, holdout.validation, METRICS, watch=1, out=out)
    assert numbers == [2, 2, 2]  # half of it was no failure: it had changed
    assert table["file"].tolist() == [str(folder / "als-2.npz"), str(folder / "als-10.npz")]


def test_an_empty_folder_may_be_followed(tmp_path: Path, holdout: Any, looks: Any) -> None:
    (tmp_path / "new").mkdir()
    looks([])
    table = se.sweep(tmp_path / "new", holdout.train, holdout.validation, METRICS, watch=1)
    assert len(table) == 0
    assert list(table.columns)[:6] == ["file", "best", "status", "error", "seconds", "ndcg@10"]


def test_a_folder_that_goes_away_ends_the_watch(
    folder: Path, holdout: Any, tmp_path: Path, looks: Any
) -> None:
    for path in folder.iterdir():
        aged(path)
    out = tmp_path / "sweep.csv"
    looks([lambda: shutil.rmtree(folder)])
    with pytest.raises(InvalidFileError, match="checkpoints: cannot be read: No such file"):
        se.sweep(folder, holdout.train, holdout.validation, METRICS, watch=1, out=out)
    assert len(rows_of(out)) == 3


def test_ctrl_c_while_scoring_ends_the_watch_with_the_table(
    folder: Path, holdout: Any, monkeypatch: pytest.MonkeyPatch, looks: Any
) -> None:
    for path in folder.iterdir():
        aged(path)
    looks([])

    def pressed(model: Any, *data: Any, **options: Any) -> Any:
        if model.item_factors.shape[1] == 10:
            raise KeyboardInterrupt
        return se.evaluate_model(model, *data, **options)

    monkeypatch.setattr(sweeping, "evaluate_model", pressed)
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, watch=1)
    assert table["factors"].tolist() == [2, 4]


# The command


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``score`` in this process: its status, what it printed, what it said."""

    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["score", *(str(word) for word in words)])
        printed = capsys.readouterr()
        return int(stop.value.code or 0), printed.out, printed.err

    return run


@pytest.fixture
def split(holdout: Any, tmp_path: Path) -> tuple[object, ...]:
    holdout.save(tmp_path / "split")
    return ("--split", tmp_path / "split", "-m", "ndcg@10,recall@{5,20},novelty@5")


def test_the_command_scores_several(
    command: Command, folder: Path, holdout: Any, split: Any, tmp_path: Path
) -> None:
    expected = se.sweep(folder, holdout.train, holdout.validation, METRICS)
    best = int(expected["best"].argmax())
    status, printed, said = command(folder, *split, "--out", tmp_path / "o")
    assert status == 0, said
    assert "score: 3 checkpoints, " in said
    lines = printed.splitlines()
    assert lines[0].split() == ["file", "best", *NAMES, "factors", "seconds"]
    assert [line.split()[0] for line in lines[2:]] == expected["file"].tolist()
    assert [line.split()[1] == "*" for line in lines[2:]] == [place == best for place in range(3)]
    assert f"{expected['ndcg@10'][0]:.6f}" in lines[2]
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["sweep.csv"]
    before = (tmp_path / "o" / "sweep.csv").read_bytes()

    files = sorted(folder.iterdir())
    status, printed, _ = command(*files, *split, "--out", tmp_path / "o", "--format", "json")
    assert status == 0
    rows = json.loads(printed)
    assert sorted(row["factors"] for row in rows) == [2, 4, 10]
    assert {row["file"]: row["ndcg@10"] for row in rows} == dict(
        zip(expected["file"], expected["ndcg@10"], strict=True)
    )
    assert [row["best"] for row in rows].count(True) == 1

    status, printed, _ = command(folder, *split, "--out", tmp_path / "o", "--format", "csv")
    assert (status, printed.encode()) == (0, before)
    status, printed, _ = command(folder, *split, "--format", "markdown", "--monitor", "recall@20")
    assert status == 0
    lines = printed.splitlines()
    assert lines[0].split()[:4] == ["|", "file", "|", "best"]
    assert " * " in lines[2 + int(expected["recall@20"].argmax())]


def test_the_command_fails_at_the_end_if_a_checkpoint_did(
    command: Command, folder: Path, split: Any, tmp_path: Path
) -> None:
    (folder / "als-3.npz").write_bytes(b"")
    status, printed, said = command(folder, *split, folder / "missing.npz", "--progress")
    assert status == 1
    assert "2 of 5 checkpoints could not be scored" in said.splitlines()[-1]
    assert "score: 100%" in said
    lines = printed.splitlines()
    assert lines[0].split()[-1] == "error"
    assert "expected an .npz file" in lines[3]
    assert lines[-1].endswith("does not exist")
    status, printed, _ = command(folder, *split, "--format", "json")
    assert status == 1
    row = json.loads(printed)[1]
    assert (row["status"], row["ndcg@10"], row["factors"]) == ("failed", None, None)


def test_one_checkpoint_is_reported_as_ever(
    command: Command, folder: Path, split: Any, tmp_path: Path
) -> None:
    status, printed, said = command(folder / "als-2.npz", *split, "--out", tmp_path / "o")
    assert status == 0, said
    assert printed.splitlines()[0].split() == ["metric", "@5", "@10", "@20"]
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == [
        "per_user.csv", "summary.json",
    ]  # fmt: skip


def test_the_command_refuses_before_it_reads(
    command: Command, folder: Path, split: Any, tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    for words, says in (
        ((tmp_path / "none",), "none: has no .npz file in it"),
        ((folder / "als-2.npz", "--monitor", "ndcg@10"), "--monitor says which of several"),
        ((folder / "als-2.npz", "--watch", "1"), "watch follows one folder"),
        ((folder, folder, "--watch", "1"), "watch follows one folder"),
        ((folder, "--watch", "0"), "watch: expected a finite number of at least 0.1"),
        ((folder, "--monitor", "mrr@3"), "monitor is 'mrr@3'"),
        ((folder, "-m", "ndgc@3"), "did you mean 'ndcg'"),
    ):
        status, printed, said = command(*words, *split)
        assert (status, printed) == (2, "")
        assert says in said.splitlines()[-1]
    assert command(folder, *split, "--out", tmp_path / "o")[0] == 0
    status, _, said = command(folder, *split, "-m", "mrr@5", "--out", tmp_path / "o")
    assert status == 2
    assert "sweep.csv: was made with other inputs: metrics" in said


def run_command(*words: object) -> subprocess.Popen[str]:
    script = Path(sys.executable).with_name("sparse-eval")
    return subprocess.Popen(
        [script, "score", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


SLOWLY = """
import sys, time
from pathlib import Path

source, target = map(Path, sys.argv[1:])
content = source.read_bytes()
step = len(content) // 40 + 1
with target.open("wb") as stream:
    for start in range(0, len(content), step):
        stream.write(content[start : start + step])
        stream.flush()
        time.sleep(0.05)
"""


def test_the_command_follows_a_training(
    folder: Path, holdout: Any, split: Any, tmp_path: Path
) -> None:
    words = (folder, *split, "--watch", "0.8", "--format", "csv", "--out", tmp_path / "o")
    out = tmp_path / "o" / "sweep.csv"
    source = save(tmp_path / "source.npz", 7)
    (folder / ".als-8.npz").write_bytes(b"half")

    def states() -> dict[str, str]:
        # Whenever it is read it is whole, and what is being written is not in it.
        rows = rows_of(out) if out.exists() else []
        assert all(row["sparse_eval"] for row in rows)
        assert {row["status"] for row in rows} <= {"ok"}
        return {Path(row["file"]).name: row["factors"] for row in rows}

    process = run_command(*words)
    try:
        wait_for(lambda: len(states()) == 3, process)
        began = time.monotonic()
        writer = subprocess.Popen([sys.executable, "-c", SLOWLY, source, folder / "als-3.npz"])
        wait_for(lambda: "als-3.npz" in states(), process)
        assert time.monotonic() - began > 40 * 0.05
        assert writer.wait() == 0
        save(folder / "als-2.npz", 5)
        wait_for(lambda: states()["als-2.npz"] == "5", process)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, said
    assert printed == out.read_text()
    assert "Traceback" not in said
    assert [path.name for path in out.parent.iterdir()] == ["sweep.csv"]
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS)
    assert same(se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out), table)

    (folder / "als-4.npz").write_bytes(b"broken")
    process = run_command(*words)
    try:
        wait_for(lambda: any(row["status"] == "failed" for row in rows_of(out)), process)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 1
    assert said.splitlines()[-1] == "1 of 4 checkpoints could not be scored"


def test_ctrl_c_ends_the_command_and_a_rerun_goes_on(
    folder: Path, holdout: Any, split: Any, command: Command, tmp_path: Path
) -> None:
    paths = [save(folder / f"als-{n}.npz", n) for n in range(2, 45)]
    out = tmp_path / "o" / "sweep.csv"
    process = run_command(folder, *split, "--out", out.parent)
    try:
        wait_for(lambda: out.exists() and len(rows_of(out)) > 2, process)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130, said
    assert printed == ""
    assert "Traceback" not in said
    assert [path.name for path in out.parent.iterdir()] == ["sweep.csv"]
    n_done = len(rows_of(out))
    assert 2 < n_done < len(paths)
    assert command(folder, *split, "--out", out.parent)[0] == 0
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS)
    assert same(se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out), table)
