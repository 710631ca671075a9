"""The table of a sweep: its rows, columns, values, and the best checkpoint."""

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sweep_cases import N_ITEMS, N_USERS, NAMES, rows_of, same_table, save

import sparse_eval as se


def test_a_folder_becomes_a_table(folder, data, tmp_path):
    table = se.sweep(folder, *data, out=tmp_path / "out")
    assert list(table.columns) == [
        "file", "best", "status", "error", "seconds", *NAMES,
        "sha256", "train", "validation", "convention", "seen", "sparse_eval",
        "alpha", "dtype", "factors", "use_cg",
    ]  # fmt: skip
    paths = [folder / f"als-{factors}.npz" for factors in (2, 4, 10)]
    assert table["file"].tolist() == [str(path) for path in paths]
    for path, (_, row) in zip(paths, table.iterrows(), strict=True):
        assert {name: row[name] for name in NAMES} == se.evaluate_model(path, *data).mean()
        assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert row["seconds"] > 0
    assert table["factors"].tolist() == [2, 4, 10]
    assert {*zip(table["status"], table["error"], strict=True)} == {("ok", "")}
    written = rows_of(tmp_path / "out" / "table.csv")
    for cells, (_, row) in zip(written, table.iterrows(), strict=True):
        assert cells == {name: str(value) for name, value in row.items()}


def test_paths_are_files_folders_or_both(folder, data, tmp_path):
    one = save(tmp_path / "one.npz", 3)
    (folder / "sub.npz").mkdir()
    save(folder / ".als-9.npz", 9)
    (folder / "als-1.npz.tmp").write_bytes(b"")
    several = (path for path in (one, str(folder), folder / "als-4.npz", str(one)))
    table = se.sweep(several, *data)
    assert table["factors"].dropna().tolist() == [3, 2, 4, 10]
    failed = table[table["status"] == "failed"]
    assert failed[["file", "error"]].values.tolist() == [[str(folder / "sub.npz"), "is not a file"]]


def test_the_best_is_the_first_by_the_monitored_metric(folder, holdout, data, tmp_path):
    shutil.copy(folder / "als-10.npz", folder / "als-11.npz")
    metrics = ["ndcg@10", "gini@10", "recall@5"]
    for monitor, metric, choose in (
        (None, "ndcg@10", max), ("recall @5", "recall@5", max), ("gini@10", "gini@10", min),
    ):  # fmt: skip
        table = se.sweep(folder, holdout.train, holdout.validation, metrics, monitor=monitor)
        first = table[metric].tolist().index(choose(table[metric]))
        assert table.index[table["best"]].tolist() == [first]
    # a checkpoint that is not given is not the best
    files = sorted(folder.glob("*.npz"))[:3]
    table = se.sweep(files, *data, out=tmp_path / "s")
    best = Path(table.loc[table["best"], "file"].item())
    again = se.sweep([file for file in files if file != best], *data, out=tmp_path / "s")
    (kept,) = again[again["best"]]["ndcg@10"]
    assert kept == table[~table["best"]]["ndcg@10"].max()
    assert len(again) == len(table)


@pytest.mark.long
def test_no_failed_or_undefined_row_is_the_best(folder, data, tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"")
    assert not se.sweep([tmp_path / "broken.npz"], *data)["best"].any()
    # one unseen item has no pairs that could differ
    unseen = np.zeros((N_USERS, N_ITEMS))
    unseen[:, 7] = 1
    data = (sparse.csr_matrix(1 - unseen), sparse.csr_matrix(unseen), "diversity@2")
    undefined = se.sweep(folder, *data, out=tmp_path / "out")
    assert undefined["status"].tolist() == ["ok"] * 3
    assert undefined["diversity@2"].isna().all()
    assert not undefined["best"].any()
    assert same_table(se.sweep(folder, *data, out=tmp_path / "out"), undefined)


ODD = {
    "seconds": 5,
    "seconds_": 6,
    "ndcg@10": 0.5,
    "train": "mine",
    "note": 'a "quoted", text\r\nof two lines \udcff',
    "empty": "",
    "nan": np.nan,
    "big": 2**60 + 1,
    "third": 1 / 3,
    "é ü": np.bool_(True),
}


def test_keeps_parameters_and_names_of_every_kind(data, tmp_path):
    names = ['comma, "quote".npz', "line\nbreak\r.npz", "ünï.npz", "=1+1.npz"]
    paths = [save(tmp_path / name, seed=i) for i, name in enumerate(names)]
    bytes_name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.npz")
    paths.append(save(Path(bytes_name), seed=9, **ODD))
    table = se.sweep(paths, *data, out=tmp_path / "out")
    assert set(table["status"]) == {"ok"}
    row = table.iloc[-1]
    expected = {
        "seconds_": 5, "seconds__": 6, "ndcg@10_": 0.5, "train_": "mine",
        "note": r'a "quoted", text\r\nof two lines \udcff',
        "big": 2**60 + 1, "third": 1 / 3, "é ü": True,
    }  # fmt: skip
    assert row[list(expected)].to_dict() == expected
    assert "empty" not in table.columns
    assert all(name.isprintable() for name in table["file"])
    assert table["file"].is_unique
    assert table["big"].isna().tolist() == [True] * 4 + [False]
    parameters = table.columns[table.columns.get_loc("sparse_eval") + 1 :].tolist()
    assert parameters == sorted(parameters)
    again = se.sweep(paths, *data, out=tmp_path / "out")
    pd.testing.assert_frame_equal(again, table, check_exact=True)
