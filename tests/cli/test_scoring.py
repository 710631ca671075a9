"""Test the command evaluate, on files of every kind."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import Command
from scipy import sparse

import sparse_eval as se

RUN = """ann Q0 x 1 0.9 tag
ann Q0 y 2 0.9 tag
bob Q0 x 1 0.5 tag
"""
QRELS = """ann 0 x 1
ann 0 z 2
bob 0 y 0
cat 0 x 1
"""


def test_evaluates_a_run_against_qrels(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    files = (str(tmp_path / "a.run"), str(tmp_path / "a.qrels"))
    options = ("-m", "mrr,recall@2", "--format", "csv", "--per-user")
    status, printed, _ = command("evaluate", *files, *options, "--convention", "trec_eval")
    assert status == 0
    # Of equal scores, the larger name comes first.
    assert printed == "user,mrr,recall@2\nann,0.5,0.5\nbob,0.0,0.0\ncat,,\n"
    _, printed, _ = command("evaluate", *files, *options)
    assert printed == "user,mrr,recall@2\nann,1.0,0.5\nbob,,\ncat,0.0,0.0\n"
    _, printed, _ = command("evaluate", *files, "--convention", "sklearn")  # which lacks mrr
    assert "ndcg@20" in printed


@pytest.mark.parametrize("kind", ["table", "csv"])
def test_notes_means_of_few_users(command: Command, tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    files = (tmp_path / "a.run", tmp_path / "a.qrels")
    out = ("--out", tmp_path / "out")
    status, printed, said = command("evaluate", *files, "-m", "mrr", "--format", kind, *out)
    assert status == 0
    few = "too few users for the intervals of mrr"
    assert few in printed if kind == "table" else f"warning: {few}" in said
    assert (printed + said).count(few) == 1


def _tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return lists and relevant items of 40 users as tables."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(40), 5)
    items = np.concatenate([rng.permutation(20)[:5] for _ in range(40)])
    lists = pd.DataFrame({"user": users, "item": items, "rank": np.tile(np.arange(1, 6), 40)})
    owners, relevant = np.nonzero(rng.random((40, 20)) < 0.2)
    gains = pd.DataFrame(
        {"user": owners, "item": relevant, "gain": rng.integers(1, 4, len(owners))}
    )
    return lists, gains


def _write(folder: Path, kind: str, *, some: bool = False) -> tuple[Path, Path]:
    """Write the tables, or some of the gains, as files of a kind, and return both paths."""
    lists, gains = _tables()
    gains = gains[::3] if some else gains
    folder.mkdir(exist_ok=True)
    paths = folder / f"lists.{kind}", folder / f"gains.{kind}"
    if kind == "parquet":
        lists.to_parquet(paths[0])
        gains.to_parquet(paths[1])
    elif kind == "parts":  # folders of Parquet files
        for frame, path in zip((lists, gains), paths, strict=True):
            path.mkdir()
            frame[: len(frame) // 2].to_parquet(path / "0.parquet")
            frame[len(frame) // 2 :].to_parquet(path / "1.parquet")
    elif kind == "csv":
        lists.to_csv(paths[0], index=False)
        gains.to_csv(paths[1], index=False)
    elif kind == "trec":
        run = lists.assign(q="Q0", score=10 - lists["rank"], tag="t")
        run[["user", "q", "item", "rank", "score", "tag"]].to_csv(
            paths[0], sep=" ", header=False, index=False
        )
        qrels = gains.assign(zero=0)[["user", "zero", "item", "gain"]]
        qrels.to_csv(paths[1], sep=" ", header=False, index=False)
    else:
        for frame, column, path in ((lists, "rank", paths[0]), (gains, "gain", paths[1])):
            matrix = sparse.csr_matrix((frame[column], (frame["user"], frame["item"])), (40, 20))
            if kind == "npz":
                sparse.save_npz(path, matrix)
                continue
            path.mkdir()
            for name in ("data", "indices", "indptr", "shape"):
                np.save(path / f"{name}.npy", np.array(getattr(matrix, name)))
    return paths


KINDS = ["parquet", "parts", "csv", "trec", "npz", "npy"]


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_every_kind_have_the_same_numbers(
    command: Command, tmp_path: Path, kind: str
) -> None:
    paths = _write(tmp_path, kind)
    out = tmp_path / "out"
    words = ("-m", "ndcg@5,recall@{2,5},mrr@5", "--format", "json", "--out", out)
    status, printed, said = command("evaluate", *paths, *words)
    assert status == 0, said
    lists, gains = _tables()
    expected = se.evaluate(
        se.Rankings.from_frame(lists, rank="rank"),
        se.Relevance.from_frame(gains, gain="gain"),
        ["ndcg@5", "recall@2", "recall@5", "mrr@5"],
    )
    found = json.loads(printed)["metrics"]
    assert {name: row["mean"] for name, row in found.items()} == expected.mean()
    loaded = se.Evaluation.load(out)
    assert loaded.mean() == expected.mean()
    assert "evaluate" in loaded.about["command"]


def test_a_folder_of_a_split_stands_for_its_two_files(command: Command, tmp_path: Path) -> None:
    ids, positions = (_write(tmp_path, kind)[0] for kind in ("parquet", "npz"))
    gains = _tables()[1]
    holdout = se.split.random(se.Interactions.from_frame(gains), fraction=0.5, seed=0)
    assert (holdout.users.tolist(), holdout.items.tolist()) == ([*range(40)], [*range(20)])
    holdout.save(tmp_path / "split")
    train, validation = (tmp_path / "split" / f"{name}.npz" for name in ("train", "validation"))
    words = ("-m", "ndcg@5,novelty@5,coverage@5", "--format", "json")
    means = []
    for files in ((ids, tmp_path / "split"), (positions, validation, "--train", train)):
        status, printed, said = command("evaluate", *files, *words)
        assert status == 0, said
        means.append({name: row["mean"] for name, row in json.loads(printed)["metrics"].items()})
    assert means[0] == means[1]
    assert len(means[0]) == 3


@pytest.mark.parametrize("other", KINDS[3:])
def test_refuses_labels_beside_numbers(command: Command, tmp_path: Path, other: str) -> None:
    lists, _ = _write(tmp_path, "parquet")
    _, gains = _write(tmp_path, other)
    status, printed, said = command("evaluate", lists, gains, "-m", "mrr@5")
    assert (status, printed) == (2, "")
    if other == "trec":  # whose ids are text
        assert "the predictions has 0, …, and validation has '0', …" in said
        return
    assert "the predictions has ids of users (0, …) but" in said


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_tables_name_the_file(command: Command, tmp_path: Path, kind: str) -> None:
    lists, gains = _write(tmp_path, kind)
    if gains.is_dir():
        for file in gains.iterdir():
            file.unlink()
    else:
        gains.write_bytes(b"")
    status, printed, said = command("evaluate", lists, gains, "-m", "mrr@5")
    assert (status, printed) == (2, "")
    assert said.startswith(f"error: {gains}: ")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a split and two checkpoints."""
    folder = tmp_path_factory.mktemp("trained")
    clicks = se.datasets.synthetic(n_users=80, n_items=50, seed=0)
    holdout = se.split.random(clicks, seed=0)
    holdout.save(folder / "split")
    for factors in (2, 4):
        model = se.train_als(holdout.train, factors=factors, iterations=2)
        (folder / "models").mkdir(exist_ok=True)
        model.save(str(folder / "models" / f"als{factors}.npz"))
    return folder


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::UserWarning:distributed", "ignore::DeprecationWarning"
)
def test_scores_on_the_workers_of_a_scheduler(command: Command, trained: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    split = ("--split", trained / "split", "-m", "ndcg@{5,10},coverage@10", "--format", "json")
    options = {"dashboard_address": None, "silence_logs": 50, "processes": False, "protocol": "tcp"}
    gc.collect()  # distributed waits forever if it deletes a client while it starts a cluster
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster:
        scheduler = ("--scheduler", cluster.scheduler_address)
        for model in ("models/als4.npz", "models"):
            words = ("score", trained / model, *split)
            status, here, said = command(*words)
            assert status == 0, said
            status, there, said = command(*words, *scheduler)
            assert status == 0, said
            assert _numbers(there) == _numbers(here)


def _numbers(printed: str) -> object:
    """Return what is printed, without what takes the time or depends on the way."""
    columns = ("mean", "std", "ci_low", "ci_high", "interval", "n_users", "n_skipped")
    return [
        [row[name] for name in ("file", "status", "best")]
        + [metric.get(column) for metric in row["metrics"].values() for column in columns]
        for row in json.loads(printed)
    ]


@pytest.mark.parametrize(("address", "expected"), [("x://nowhere", 2), ("tcp://127.0.0.1:9", 75)])
def test_says_that_a_scheduler_cannot_be_reached(
    command: Command, trained: Path, address: str, expected: int
) -> None:
    pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    words = ("score", trained / "models", "--split", trained / "split", "-m", "ndcg@5")
    status, printed, said = command(*words, "--scheduler", address)
    assert (status, printed) == (expected, "")
    assert address in said.splitlines()[-1]
    assert "Traceback" not in said


def test_options_replace_contradicting_ones_of_the_environment(
    command: Command, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = trained / "split"
    files = ("--train", split / "train.npz", "--validation", split / "validation.npz")
    words = ("score", trained / "models" / "als4.npz", "-m", "ndcg@5", "--format", "csv")
    printed = []
    for name, value, typed in (
        ("SPLIT", trained / "nowhere", files),
        ("TRAIN", trained / "nowhere.npz", ("--split", split)),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(f"SPARSE_EVAL_{name}", str(value))
            status, table, said = command(*words, *typed)
        assert status == 0, said
        printed.append(table)
    assert printed[0] == printed[1]
