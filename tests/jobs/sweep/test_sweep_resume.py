"""Sweeps that are interrupted and continue from a folder, and folders that they refuse."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from failing import interrupted_at
from raising import raises
from sweep_cases import METRICS, rows_of, same_table

import sparse_eval as se
import sparse_eval.jobs.scoring as scoring
from sparse_eval.errors import InvalidFileError


def test_a_rerun_computes_only_what_is_missing(folder, data, tmp_path, scored):
    out = tmp_path / "out" / "table.csv"
    expected = se.sweep(folder, *data)
    scored.clear()
    se.sweep([folder / "als-10.npz"], *data, out=out.parent)
    assert scored == [10]
    table = se.sweep(folder, *data, out=out.parent)
    assert scored == [10, 2, 4]
    assert same_table(table, expected)
    before = (out.stat().st_mtime_ns, out.read_bytes())
    again = se.sweep(folder, *data, out=out.parent)
    pd.testing.assert_frame_equal(again, table, check_exact=True)
    assert (out.stat().st_mtime_ns, out.read_bytes()) == before
    # nothing is computed again for another order of metrics or another monitor
    other = se.sweep(folder, *data[:2], METRICS[::-1], out=out.parent, monitor="recall@20")
    assert scored == [10, 2, 4]
    assert same_table(other, se.sweep(folder, *data[:2], METRICS[::-1], monitor="recall@20"))


def test_results_follow_the_content_of_a_file(folder, data, tmp_path, scored):
    out = tmp_path / "out" / "table.csv"
    for copy in ("als-3.npz", "als-5.npz"):
        shutil.copy(folder / "als-2.npz", folder / copy)
    table = se.sweep(folder, *data, out=out.parent)
    assert scored == [2, 4, 10]  # equal contents once
    copies = table[table["factors"] == 2].drop(columns=["file", "best"])
    assert (len(copies), len(copies.drop_duplicates())) == (3, 1)
    (folder / "als-4.npz").rename(folder / "renamed.npz")
    (folder / "als-10.npz").unlink()
    (folder / "als-5.npz").unlink()
    table = se.sweep(folder, *data, out=out.parent)
    assert scored == [2, 4, 10]
    names = [Path(file).name for file in table["file"]]
    assert names == ["als-2.npz", "als-3.npz", "renamed.npz"]  # of those that exist
    assert table["factors"].tolist() == [2, 2, 4]
    assert table["best"].sum() == 1
    assert [row["sha256"] for row in rows_of(out)] == table["sha256"].tolist()
    # files that exist but are not given keep their results, after the others
    table = se.sweep(folder / "renamed.npz", *data, out=out.parent)
    assert [Path(file).name for file in table["file"]] == ["renamed.npz", *names[:2]]
    assert table["best"].tolist() == [True, False, False]


def test_refuses_a_folder_of_other_inputs(folder, holdout, tmp_path, monkeypatch):
    out = tmp_path / "out"
    call = {"train": holdout.train, "validation": holdout.validation, "metrics": METRICS}
    se.sweep(folder, **call, out=out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for change in (
        {"metrics": "ndcg@10"},
        {"train": holdout.train.csr * 2},
        {"validation": holdout.validation.csr * 2},
        {"convention": "ranx"},
        {"metrics": se.Protocol(METRICS, filter_seen=False)},
        {},
    ):
        if not change:
            monkeypatch.setattr(scoring, "NUMBERS_VERSION", 99)
        with raises(InvalidFileError) as error:
            se.sweep(folder, **call | change, out=out)
        assert str(error.value).count("(now") == 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (out / "sweep.jsonl").unlink()
    with raises(InvalidFileError):
        se.sweep(folder, **call, out=out)


@pytest.mark.parametrize("call", [1, 3])
@pytest.mark.parametrize(("owner", "name"), [(scoring, "evaluate_request"), (Path, "replace")])
def test_ctrl_c_keeps_the_finished_rows(folder, data, tmp_path, owner, name, call):
    out = tmp_path / "out"
    out.mkdir()
    with interrupted_at(owner, name, call):
        se.sweep(folder, *data, out=out)
    assert {path.name for path in out.iterdir()} - {".lock"} == {"sweep.jsonl", "table.csv"}
    assert len(rows_of(out / "table.csv")) == call - 1
    assert same_table(se.sweep(folder, *data, out=out), se.sweep(folder, *data))
