"""The table of a sweep: its rows, columns, values, and the best checkpoint."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sweep_cases import (
    METRICS,
    N_ITEMS,
    N_USERS,
    NAMES,
    rows_of,
    same_table,
    save,
)

import sparse_eval as se


def test_a_folder_becomes_a_table(folder: Path, holdout: Any, tmp_path: Path) -> None:
    out = tmp_path / "out" / "table.csv"
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out.parent)
    assert list(table.columns) == [
        "file", "best", "status", "error", "seconds", *NAMES,
        "sha256", "train", "validation", "convention", "seen", "sparse_eval",
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
    assert same_table(table, se.sweep(folder, holdout.train, holdout.validation, METRICS))


def test_paths_are_files_folders_or_both(folder: Path, holdout: Any, tmp_path: Path) -> None:
    one = save(tmp_path / "one.npz", 3)
    (folder / "sub.npz").mkdir()
    save(folder / ".als-9.npz", 9)
    (folder / "als-1.npz.tmp").write_bytes(b"")
    data = (holdout.train, holdout.validation, "ndcg@10")
    assert se.sweep(str(one), *data)["factors"].tolist() == [3]
    several = (path for path in (one, str(folder), folder / "als-4.npz", str(one)))
    table = se.sweep(several, *data)
    assert table["factors"].dropna().tolist() == [3, 2, 4, 10]
    failed = table[table["status"] == "failed"]
    assert failed["file"].tolist() == [str(folder / "sub.npz")]
    assert failed["error"].tolist() == ["is not a file"]


def test_a_missing_checkpoint_is_not_the_best(folder: Path, holdout: Any, tmp_path: Path) -> None:
    files = sorted(folder.glob("*.npz"))
    table = se.sweep(files, holdout.train, holdout.validation, "ndcg@10", out=tmp_path / "s")
    best = Path(table.loc[table["best"], "file"].item())
    others = [file for file in files if file.name != best.name]
    again = se.sweep(others, holdout.train, holdout.validation, "ndcg@10", out=tmp_path / "s")
    kept = again[again["best"]]
    assert Path(kept["file"].item()).name in {file.name for file in others}
    rest = table[~table["best"]]
    assert kept["ndcg@10"].item() == rest["ndcg@10"].max()
    assert len(again) == len(table)  # the row is kept in case the file comes back


def test_the_best_is_that_of_the_monitored_metric(folder: Path, holdout: Any) -> None:
    shutil.copy(folder / "als-10.npz", folder / "als-11.npz")
    metrics = ["ndcg@10", "gini@10", "recall@5"]
    for monitor, metric, choose in (
        (None, "ndcg@10", max), ("recall @5", "recall@5", max), ("gini@10", "gini@10", min),
    ):  # fmt: skip
        table = se.sweep(folder, holdout.train, holdout.validation, metrics, monitor=monitor)
        first = table[metric].tolist().index(choose(table[metric]))
        assert table.index[table["best"]].tolist() == [first]


def test_no_failed_or_undefined_row_is_the_best(folder: Path, holdout: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.npz").write_bytes(b"")
    data = (holdout.train, holdout.validation)
    only_failed = se.sweep([tmp_path / "broken.npz"], *data, METRICS)
    assert not only_failed["best"].any()
    # one unseen item has no pairs that could differ
    unseen = np.zeros((N_USERS, N_ITEMS))
    unseen[:, 7] = 1
    data = (sparse.csr_matrix(1 - unseen), sparse.csr_matrix(unseen), "diversity@2")
    out = tmp_path / "out" / "table.csv"
    undefined = se.sweep(folder, *data, out=out.parent)
    assert undefined["status"].tolist() == ["ok"] * 3
    assert undefined["diversity@2"].isna().all()
    assert not undefined["best"].any()
    assert same_table(se.sweep(folder, *data, out=out.parent), undefined)


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


def test_keeps_parameters_and_names_of_every_kind(holdout: Any, tmp_path: Path) -> None:
    names = ["plain.npz", 'comma, "quote".npz', "line\nbreak\r.npz", "ünï.npz", "=1+1.npz"]
    paths = [save(tmp_path / name, seed=i) for i, name in enumerate(names)]
    bytes_name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.npz")
    paths.append(save(Path(bytes_name), seed=9, **ODD))
    out = tmp_path / "out" / "table.csv"
    data = (holdout.train, holdout.validation, METRICS)
    table = se.sweep(paths, *data, out=out.parent)
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
    again = se.sweep(paths, *data, out=out.parent)
    pd.testing.assert_frame_equal(again, table, check_exact=True)
