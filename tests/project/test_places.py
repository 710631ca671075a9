"""Places to read from and write to: full disks, permissions, pipes, odd names."""

import io
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from exact import exact_model
from failing import full
from numba import config
from raising import raises
from systems import need_posix

import sparse_eval as se
from sparse_eval.cli import main
from sparse_eval.errors import InvalidFileError, OutputError
from sparse_eval.kernels.cache import folders

CLICKS = se.datasets.synthetic(n_users=60, n_items=40, seed=0)
SPLITS = [se.split.random(CLICKS, seed=seed) for seed in (0, 1)]
MODEL = se.baselines.popularity(SPLITS[0])
EVALUATIONS = [se.evaluate_model(MODEL, SPLITS[0], f"ndcg@{k}") for k in (5, 10)]

#: What writes several files: saving one of two, and telling which one is there.
FOLDERS = {
    "evaluation": (
        lambda i, folder: EVALUATIONS[i].save(folder),
        lambda folder: list(se.Evaluation.load(folder)),
    ),
    "split": (
        lambda i, folder: SPLITS[i].save(folder),
        lambda folder: se.Holdout.load(folder).validation.indices.tolist(),
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("n_files", range(3))
def test_what_is_there_stays_whole_where_the_disk_is_full(tmp_path, monkeypatch, name, n_files):
    save, found = FOLDERS[name]
    save(0, tmp_path)
    before, listed = found(tmp_path), sorted(tmp_path.iterdir())
    create = os.open
    created = []

    def failing(path, flags, mode=0o777, **options):
        if flags & os.O_EXCL and str(path).endswith((".npz", ".json", ".csv", ".parquet")):
            if len(created) == n_files:
                full()
            created.append(path)
        return create(path, flags, mode, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        with raises(OutputError):
            save(1, tmp_path)
    assert found(tmp_path) == before
    assert sorted(tmp_path.iterdir()) == listed
    save(1, tmp_path)
    assert found(tmp_path) != before


@pytest.mark.parametrize("name", ["factors", "weights"])
def test_models_are_saved_whole_or_not_at_all(tmp_path, monkeypatch, name):
    factors = np.ones((2, 1)), np.ones((3, 1))
    model = se.factor_model(*factors) if name == "factors" else se.baselines.ease(SPLITS[0])
    model.save(tmp_path / "m")
    content = (tmp_path / "m.npz").read_bytes()
    monkeypatch.setattr(Path, "replace", full)
    for save in (model.save, partial(se.save_model, model)):
        with raises(OutputError):
            save(tmp_path / "m.npz")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("m.npz", content)]


def write_everything(i, folder):
    """Write every kind of file, the first or the second of two."""
    for name, (save, _) in FOLDERS.items():
        save(i, folder / name)
    ev, model = EVALUATIONS[i], exact_model(SPLITS[i].train)
    se.write_report({"a": ev}, folder / "r.html")
    model.save(folder / "factors.npz")
    se.baselines.ease(SPLITS[i]).save(folder / "weights.npz")
    se.trec.write_qrels(se.Relevance.from_csr(SPLITS[i].validation), folder / "qrels")
    CLICKS.to_frame().to_csv(folder / "clicks.csv", index=False)
    run = f"run {folder}/clicks.csv --factors 2 --iterations 1 --seed {i} --out {folder}/run"
    with pytest.raises(SystemExit) as end:
        main(run.split())
    assert not end.value.code


@pytest.mark.long
def test_files_and_folders_keep_their_permissions(tmp_path):
    need_posix()
    write_everything(0, tmp_path)
    for path in tmp_path.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o660)
    # A run removes the results of the previous one before it trains.
    removed = {
        "model.npz", "summary.json", "metrics.parquet", "per_user.parquet", "baselines.parquet",
    }  # fmt: skip
    listed = {
        path: path.stat().st_mode
        for path in tmp_path.rglob("*")
        if path.parent.name != "run" or path.name not in removed
    }
    write_everything(1, tmp_path)
    assert {path: path.stat().st_mode for path in listed} == listed


READERS = {
    **{name: partial(se.datasets.load, format=name) for name in ("csv", "parquet", "npz")},
    "load_movielens": se.datasets.load_movielens,
    "load_mind": se.datasets.load_mind,
    "load_adjacency": se.datasets.load_adjacency,
    "lists": lambda path: se.evaluate(path, SPLITS[0].validation, "ndcg@5"),
    "model": lambda path: se.evaluate_model(path, SPLITS[0], "ndcg@5"),
    "negatives": lambda path: se.read_negatives(path, SPLITS[0].train),
    "evaluation": se.Evaluation.load,
}


@pytest.mark.parametrize("name", READERS)
def test_pipes_are_not_waited_for(tmp_path, name):
    need_posix()
    pipe = tmp_path / "clicks.csv"
    os.mkfifo(pipe)
    with raises(InvalidFileError):
        READERS[name](pipe)


@pytest.mark.parametrize("folder", ["~", "file:", "http:"])
def test_names_that_pandas_and_pyarrow_read_otherwise(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    Path(folder).mkdir()
    ev = EVALUATIONS[0]
    ev.save(f"{folder}/ev")
    assert se.Evaluation.load(f"{folder}/ev").per_user.equals(ev.per_user)
    CLICKS.to_frame().to_parquet(Path(folder).absolute() / "clicks.parquet")
    assert len(se.datasets.load(f"{folder}/clicks.parquet")) == len(CLICKS)
    assert [path.name for path in tmp_path.iterdir()] == [folder]


def test_inputs_are_not_written_over(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    SPLITS[0].save("split")
    CLICKS.to_frame().to_csv("clicks.csv", index=False)
    se.save_model(MODEL, "model.npz")
    Path("train.npz").write_bytes(Path("split/train.npz").read_bytes())
    Path("linked.npz").symlink_to("train.npz")
    EVALUATIONS[0].save("results")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for words in (
        ("split", "train.npz", "--out", "."),
        ("train", "train.npz", "--out", "linked.npz"),
        ("train", "split", "--out", "split/labels.npz"),
        ("run", "split/train.npz", "split/validation.npz", "--out", "."),
        ("recommend", "model.npz", "clicks.csv", "--out", "clicks.csv"),
    ):
        status, _, said = command(*words)
        assert status == 2, words
        assert "is read, and would be replaced; name another place with --out" in said, words
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_command_whose_messages_find_no_place(monkeypatch):
    stream = io.StringIO()
    stream.flush = full
    monkeypatch.setattr("sys.stderr", stream)
    with pytest.raises(SystemExit) as ended:
        main(["compare", "nothing"])
    assert ended.value.code == 2


def test_names_of_several_lines_are_told_in_one(tmp_path, command):
    need_posix()
    odd = tmp_path / "a\nb"
    SPLITS[0].save(odd / "split")
    status, _, said = command("split", odd / "x.csv", "--out", tmp_path / "new")
    assert status == 2
    assert said.startswith(f"error: {tmp_path}/a\\nb/x.csv: ")
    assert said.count("\n") == 1
    SPLITS[0].save(odd)
    status, _, said = command("split", odd / "train.npz", "--out", odd / "new")
    assert status == 0
    assert f"left in {tmp_path}/a\\nb/new: " in said
    assert said.count("\n") == 3


@pytest.mark.parametrize("place", ["relative", "~/nowhere"])
def test_compiled_kernels_are_kept_in_no_relative_folder(monkeypatch, place):
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", place)
    assert [folder.name for folder in folders(__file__)] == ["__pycache__"]
