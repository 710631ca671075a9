"""What paths mean: each kind of file and folder, as each argument."""

from __future__ import annotations

import gzip
import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from merge_cases import same_numbers
from raising import raises
from scipy import sparse
from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval import trec
from sparse_eval.errors import InvalidFileError, SparseEvalError
from sparse_eval.inputs.paths import Kind, kind_of

METRICS = ["ndcg@3", "recall@2", "coverage@2"]

CLICKS = se.datasets.synthetic(n_users=30, n_items=20, seed=0)
HOLDOUT = se.split.random(CLICKS, fraction=0.3, seed=0)
# Without labels: the tables below name users and items by number.
TRAIN, HELD = (part.csr for part in (HOLDOUT.train, HOLDOUT.validation))
#: Relevant items of which not all are in either part.
TRUTH = (TRAIN + HELD).tocsr()


@pytest.fixture(scope="module")
def model() -> Any:
    return se.train_als(TRAIN, factors=4, iterations=2)


@pytest.fixture(scope="module")
def whole(model: Any) -> se.Evaluation:
    """Return the evaluation that every pair of sides gives."""
    return se.evaluate_model(model, TRAIN, HELD, METRICS)


def rows(side: Any, value: str) -> pd.DataFrame:
    coo = sparse.coo_matrix(side)
    return pd.DataFrame({"user": coo.row, "item": coo.col, value: coo.data}).astype(
        {"user": "int64", "item": "int64"}
    )


@pytest.fixture(scope="module")
def paths(model: Any, whole: se.Evaluation, tmp_path_factory: Any) -> dict[str, Path]:
    """Return a file or folder of every kind: recommendations, gains, seen items and a model."""
    folder = tmp_path_factory.mktemp("kinds")
    positions = whole.rankings.to_positions()
    tables = {"recs": rows(positions, "rank"), "held": rows(HELD, "gain")}
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)
        (folder / f"{name}-parts").mkdir()
        table.to_parquet(folder / f"{name}-parts" / "part-0.parquet", index=False)
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_csv(folder / f"{name}-semicolon.txt", index=False, sep=";")
        table.to_csv(folder / f"{name}.csv.gz", index=False)
    rows(TRUTH, "gain").to_csv(folder / "truth.csv", index=False)
    (folder / "held-mark.csv").write_bytes(b"\xef\xbb\xbf" + (folder / "held.csv").read_bytes())
    for name, matrix in (("recs", positions), ("held", HELD), ("seen", TRAIN)):
        saved_csr(folder / f"{name}-npy", matrix)
        sparse.save_npz(folder / f"{name}.npz", matrix)
    for suffix in ("", ".gz"):
        trec.write_run(whole.rankings, folder / f"als.run{suffix}")
        trec.write_qrels(se.Relevance.from_csr(HELD), folder / f"test.qrels{suffix}")
    trec.write_qrels(se.Relevance.from_csr(TRUTH), folder / "truth.qrels")
    model.save(folder / "als.npz")
    (folder / "factors").mkdir()
    for side in ("user_factors", "item_factors"):
        np.save(folder / "factors" / f"{side}.npy", getattr(model, side))
    for name, content in BROKEN.items():
        (folder / name).write_bytes(content)
    np.save(folder / "array.npy", np.ones(3))
    with zipfile.ZipFile(folder / "pages.zip", "w") as archive:
        archive.writestr("page.html", "<p>")
    (folder / "nothing").mkdir()
    (folder / "notes").mkdir()
    (folder / "notes" / "read.me").write_text("no table")
    np.savez(folder / "arrays.npz", a=np.ones(3))
    return {path.name: path for path in folder.iterdir()} | {"missing": folder / "missing"}


BROKEN = {
    "empty": b"",
    "blank.txt": b"\n \n",
    "garbage": bytes(range(256)),
    "prose.txt": b"There is nothing here\n",
    "cut.npz": b"PK\x03\x04 no archive",
    "cut.gz": b"\x1f\x8b\x08\x00 no gzip",
}

KINDS = {
    "recs.parquet": Kind.PARQUET,
    "recs-parts": Kind.PARQUET,
    "recs.csv": Kind.CSV,
    "recs-semicolon.txt": Kind.CSV,
    "recs.csv.gz": Kind.CSV,
    "held.parquet": Kind.PARQUET,
    "held-parts": Kind.PARQUET,
    "held.csv": Kind.CSV,
    "held-mark.csv": Kind.CSV,
    "held-semicolon.txt": Kind.CSV,
    "held.csv.gz": Kind.CSV,
    "recs-npy": Kind.CSR_FOLDER,
    "held-npy": Kind.CSR_FOLDER,
    "seen-npy": Kind.CSR_FOLDER,
    "recs.npz": Kind.MATRIX,
    "held.npz": Kind.MATRIX,
    "seen.npz": Kind.MATRIX,
    "als.run": Kind.RUN,
    "als.run.gz": Kind.RUN,
    "test.qrels": Kind.QRELS,
    "test.qrels.gz": Kind.QRELS,
    "als.npz": Kind.CHECKPOINT,
    "factors": Kind.FACTORS_FOLDER,
    "arrays.npz": Kind.CHECKPOINT,  # a model without factors, which reading it tells
}

NEITHER = [*BROKEN, "missing", "pages.zip", "array.npy", "nothing", "notes"]


@pytest.mark.parametrize("name", KINDS)
def test_kind_of_each_file_and_folder(name: str, paths: dict[str, Path]) -> None:
    assert kind_of(paths[name]) is KINDS[name]
    assert kind_of(str(paths[name])) is KINDS[name]


@pytest.mark.parametrize("name", NEITHER)
def test_refuses_what_is_of_no_kind(name: str, paths: dict[str, Path]) -> None:
    with raises(InvalidFileError, path=paths[name]):
        kind_of(paths[name])


def with_matrices(paths: dict[str, Path], name: str, argument: str) -> se.Evaluation:
    """Evaluate, the other sides being numbered matrices."""
    sides: dict[str, Any] = {"predictions": paths["recs-npy"], "validation": HELD}
    return se.evaluate(**sides | {argument: paths[name]}, metrics=METRICS)


def with_labels(paths: dict[str, Path], name: str, argument: str) -> se.Evaluation:
    """Evaluate, the other sides having ids."""
    text = KINDS.get(name) in (Kind.RUN, Kind.QRELS)  # whose ids are text
    others = ("als.run", "test.qrels") if text else ("recs.csv", "held.parquet")
    sides: dict[str, Any] = dict(zip(("predictions", "validation"), others, strict=True))
    sides = {side: paths[other] for side, other in sides.items()}
    return se.evaluate(**sides | {argument: paths[name]}, metrics=METRICS)


def assert_refused(evaluate: Callable[[], Any], path: Path) -> None:
    """Assert that a path raises an error that names it."""
    with pytest.raises(SparseEvalError, match=re.escape(str(path))):
        evaluate()


RANKED = {name for name in KINDS if name.startswith(("recs", "als.run"))}
GAINS = {name for name in KINDS if name.startswith(("held", "test.qrels"))}
SEEN = {"seen-npy", "seen.npz", "held-npy", "held.npz"}


@pytest.mark.parametrize("argument", ["predictions", "validation"])
@pytest.mark.parametrize("name", [*KINDS, *NEITHER])
def test_sides(name: str, argument: str, paths: dict[str, Path], whole: se.Evaluation) -> None:
    kind = KINDS.get(name)
    is_matrix = kind in (Kind.CSR_FOLDER, Kind.MATRIX)
    if name in (RANKED if argument == "predictions" else GAINS):
        found = (with_matrices if is_matrix else with_labels)(paths, name, argument)
        assert found["ndcg@3"] == whole["ndcg@3"]
        assert found["recall@2"] == whole["recall@2"]
        if is_matrix:
            same_numbers(found, whole)
    elif not (is_matrix or (argument == "validation" and kind in (Kind.PARQUET, Kind.CSV))):
        # Numbers may be positions, and rows may be gains.
        assert_refused(lambda: with_labels(paths, name, argument), paths[name])


@pytest.mark.parametrize("name", [*KINDS, *NEITHER])
def test_train(name: str, paths: dict[str, Path]) -> None:
    metrics = ["novelty@2", "ndcg@3"]

    def evaluate(train: Any) -> se.Evaluation:
        return se.evaluate(paths["recs.npz"], TRUTH, metrics, train=train)

    if name in SEEN:
        same_numbers(evaluate(paths[name]), evaluate(TRAIN if name.startswith("seen") else HELD))
        return
    if name in GAINS:
        labelled = se.evaluate(
            paths["als.run" if name.startswith("test") else "recs.csv"],
            paths["truth.qrels" if name.startswith("test") else "truth.csv"],
            metrics,
            train=paths[name],
        )
        assert labelled["novelty@2"] == pytest.approx(evaluate(HELD)["novelty@2"])
        return
    if KINDS.get(name) in (Kind.PARQUET, Kind.CSV, Kind.CSR_FOLDER, Kind.MATRIX):
        return
    assert_refused(lambda: evaluate(paths[name]), paths[name])


@pytest.mark.parametrize("argument", ["train", "validation"])
@pytest.mark.parametrize("name", [*KINDS, *NEITHER])
def test_matrices_beside_a_model(
    name: str, argument: str, model: Any, paths: dict[str, Path], whole: se.Evaluation
) -> None:
    sides = {"train": TRAIN, "validation": HELD, argument: paths[name]}
    if name.startswith("seen" if argument == "train" else "held") and name in SEEN:
        same_numbers(se.evaluate_model(model, metrics=METRICS, **sides), whole)
        same_numbers(se.evaluate_model(model, metrics=METRICS, memory=1 << 28, **sides), whole)
        return
    if KINDS.get(name) in (Kind.CSR_FOLDER, Kind.MATRIX):
        return
    for memory in (None, 1 << 28):
        evaluate = partial(se.evaluate_model, model, metrics=METRICS, memory=memory, **sides)
        assert_refused(evaluate, paths[name])


@pytest.mark.parametrize("name", [*KINDS, *NEITHER])
def test_model(name: str, paths: dict[str, Path], whole: se.Evaluation) -> None:
    for memory in (None, 1 << 28):
        evaluate = partial(se.evaluate_model, paths[name], TRAIN, HELD, METRICS, memory=memory)
        if name in ("als.npz", "factors"):
            same_numbers(evaluate(), whole)
        else:
            assert_refused(evaluate, paths[name])


def test_text_that_is_packed_is_read_whatever_it_is_called(
    paths: dict[str, Path], tmp_path: Path
) -> None:
    packed = tmp_path / "recs"
    packed.write_bytes(gzip.compress(paths["recs.csv"].read_bytes()))
    assert kind_of(packed) is Kind.CSV
    found = se.evaluate(packed, paths["held.csv"], METRICS).mean()
    assert found == se.evaluate(paths["recs.csv"], paths["held.csv"], METRICS).mean()
