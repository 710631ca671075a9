"""The table of a sweep: its rows, columns, values, and the best checkpoint."""

from __future__ import annotations

import hashlib
import os
import shutil
import tracemalloc
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from implicit.nearest_neighbours import CosineRecommender
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
import sparse_eval.models.sweep as sweeping
from sparse_eval.models.evaluate import evaluate_request
from sparse_eval.models.sweep_table import natural


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


def test_the_folder_of_the_table_is_made(folder: Path, holdout: Any, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder" / "table.csv"
    se.sweep(folder / "als-2.npz", holdout.train, holdout.validation, METRICS, out=out.parent)
    assert [path.name for path in out.parent.iterdir()] == ["table.csv"]


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


def test_names_that_are_too_long_and_numbers_of_thousands_of_digits(
    folder: Path, holdout: Any, tmp_path: Path
) -> None:
    long = tmp_path / f"{'x' * 300}.npz"
    table = se.sweep([long, folder], holdout.train, holdout.validation, METRICS)
    assert "File name too long" in table.loc[table["status"] == "failed", "error"].item()
    names = [f"als-{'1' * 5000}2.npz", "als-10.npz", f"als-{'1' * 5000}.npz", "als-9.npz"]
    assert sorted(names, key=natural)[:2] == ["als-9.npz", "als-10.npz"]


def test_takes_every_kind_of_model_and_matrix(folder: Path, holdout: Any) -> None:
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
        found = se.sweep(folder, train, validation, METRICS)
        digests = ["train", "validation"]  # ids count there, of which these have others
        assert same_table(found.drop(columns=digests), expected.drop(columns=digests))
    assert (holdout.train != before).nnz == 0


def test_holds_one_model_at_a_time(
    folder: Path, holdout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: list[weakref.ref[Any]] = []
    load = sweeping.as_model

    def counted(path: Path) -> Any:
        assert all(earlier() is None for earlier in models)
        models.append(weakref.ref(model := load(path)))
        return model

    monkeypatch.setattr(sweeping, "as_model", counted)
    se.sweep(folder, holdout.train, holdout.validation, METRICS)
    assert len(models) == 3


def test_a_file_is_hashed_in_pieces(tmp_path: Path, holdout: Any) -> None:
    large = tmp_path / "large.npz"
    with large.open("wb") as stream:
        stream.truncate(200_000_000)  # a sparse file, which takes no space
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
    part = sweeping.open_train
    monkeypatch.setattr(sweeping, "open_train", lambda m: calls.append("train") or part(m))
    convert = se.Relevance.from_csr
    monkeypatch.setattr(
        se.Relevance, "from_csr", lambda *given: calls.append("validation") or convert(*given)
    )
    se.sweep(folder, holdout.train.tocoo(), holdout.validation.tocoo(), METRICS)
    assert calls == ["train", "validation"]


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


def test_keeps_the_convention(folder: Path, holdout: Any, tmp_path: Path) -> None:
    data = (holdout.train, holdout.validation, ["mrr", "recall@5"])
    options = {"convention": "trec_eval", "monitor": "mrr"}
    table = se.sweep(folder, *data, **options, out=tmp_path / "sweep")
    assert set(table["convention"]) == {"trec_eval"}
    expected = se.evaluate_model(folder / "als-2.npz", *data, convention="trec_eval")
    assert table["mrr"][0] == expected["mrr"]
    assert same_table(se.sweep(folder, *data, **options, out=tmp_path / "sweep"), table)


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


def test_threads_are_passed_on(folder: Path, holdout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def evaluate(*data: Any, **options: Any) -> Any:
        given.append(options["num_threads"])
        return evaluate_request(*data, **options)

    monkeypatch.setattr(sweeping, "evaluate_request", evaluate)
    data = (holdout.train, holdout.validation, METRICS)
    assert same_table(se.sweep(folder, *data, num_threads=1), se.sweep(folder, *data))
    assert given == [1, 1, 1, None, None, None]


def test_shows_progress_on_request(
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
