"""What paths mean: each kind of file and folder, as each argument."""

import gzip
import re
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
from exact import exact_model
from raising import raises
from scipy import sparse
from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval import trec
from sparse_eval.errors import InvalidFileError, SparseEvalError
from sparse_eval.inputs.paths import PathKind, kind_of

METRICS = ["ndcg@3", "recall@2", "coverage@2"]

CLICKS = se.datasets.synthetic(n_users=30, n_items=20, seed=0)
HOLDOUT = se.split.random(CLICKS, fraction=0.3, seed=0)
# Without labels: the tables below name users and items by number.
TRAIN, HELD = (part.csr for part in (HOLDOUT.train, HOLDOUT.validation))
#: Relevant items of which not all are in either part.
TRUTH = (TRAIN + HELD).tocsr()


@pytest.fixture(scope="module")
def model():
    return exact_model(TRAIN)


@pytest.fixture(scope="module")
def whole(model):
    """Return the evaluation that every pair of sides gives."""
    return se.evaluate_model(model, TRAIN, HELD, METRICS)


def rows(side, value):
    coo = sparse.coo_matrix(side)
    return pd.DataFrame({"user": coo.row, "item": coo.col, value: coo.data})


@pytest.fixture(scope="module")
def paths(model, whole, tmp_path_factory):
    """Return a file or folder of every kind: recommendations, gains, seen items and a model."""
    folder = tmp_path_factory.mktemp("kinds")
    positions = whole.rankings.to_positions()
    tables = {"recs": rows(positions, "rank"), "held": rows(HELD, "gain")}
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_csv(folder / f"{name}.csv.gz", index=False)
    rows(TRUTH, "gain").to_csv(folder / "truth.csv", index=False)
    for name, matrix in (("recs", positions), ("held", HELD), ("seen", TRAIN)):
        saved_csr(folder / f"{name}-npy", matrix)
        sparse.save_npz(folder / f"{name}.npz", matrix)
    for suffix in ("", ".gz"):
        trec.write_run(whole.rankings, folder / f"als.run{suffix}")
        trec.write_qrels(se.Relevance.from_csr(HELD), folder / f"test.qrels{suffix}")
    model.save(folder / "als.npz")
    (folder / "factors").mkdir()
    for side in ("user_factors", "item_factors"):
        np.save(folder / "factors" / f"{side}.npy", getattr(model, side))
    for name, content in (BROKEN | DAMAGED).items():
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

#: Files whose names promise a table that they do not hold.
DAMAGED = {
    "empty.csv": b"",
    "blank.csv": b"\n \n",
    "garbage.csv": bytes(range(256)),
    "prose.tsv": b"There is nothing here\n",
    "cut.csv.gz": b"\x1f\x8b\x08\x00 no gzip",
    "packed.csv": gzip.compress(b"user,item,rank\n1,1,1\n"),
    "garbage.parquet": bytes(range(256)),
    "garbage.arrow": bytes(range(256)),
    "cut.jsonl": b'{"user": 1, "item',
}

KINDS = {
    "recs.parquet": PathKind.PARQUET,
    "recs.csv": PathKind.TABLE,
    "recs.csv.gz": PathKind.TABLE,
    "held.parquet": PathKind.PARQUET,
    "held.csv": PathKind.TABLE,
    "held.csv.gz": PathKind.TABLE,
    "recs-npy": PathKind.CSR_FOLDER,
    "held-npy": PathKind.CSR_FOLDER,
    "seen-npy": PathKind.CSR_FOLDER,
    "recs.npz": PathKind.MATRIX,
    "held.npz": PathKind.MATRIX,
    "seen.npz": PathKind.MATRIX,
    "als.run": PathKind.RUN,
    "als.run.gz": PathKind.RUN,
    "test.qrels": PathKind.QRELS,
    "test.qrels.gz": PathKind.QRELS,
    "als.npz": PathKind.CHECKPOINT,
    "factors": PathKind.FACTORS_FOLDER,
    "arrays.npz": PathKind.CHECKPOINT,  # a model without factors, which reading it tells
}

NEITHER = [*BROKEN, "missing", "pages.zip", "array.npy", "nothing", "notes"]


@pytest.mark.parametrize("name", KINDS)
def test_kind_of_each_file_and_folder(name, paths):
    assert kind_of(paths[name]) is KINDS[name]
    assert kind_of(str(paths[name])) is KINDS[name]


@pytest.mark.parametrize("name", NEITHER)
def test_refuses_what_is_of_no_kind(name, paths):
    with raises(InvalidFileError, path=paths[name]):
        kind_of(paths[name])


def evaluated(argument, path, paths, model, memory):
    """Evaluate with a path as one argument."""
    if argument == "model":
        return se.evaluate_model(path, TRAIN, HELD, METRICS, memory=memory)
    if argument.endswith("beside a model"):
        sides = {"train": TRAIN, "validation": HELD, argument.partition(" ")[0]: path}
        return se.evaluate_model(model, metrics=METRICS, memory=memory, **sides)
    sides = {"predictions": paths["recs.csv"], "validation": paths["held.csv"]}
    truth = paths["truth.csv"]
    if path.name in MATRICES:
        sides, truth = {"predictions": paths["recs-npy"], "validation": HELD}, TRUTH
    if argument == "train":
        sides["validation"] = truth
    return se.evaluate(**sides | {argument: path}, metrics=METRICS)


SEEN = {"seen-npy", "seen.npz", "held-npy", "held.npz"}
RANKED = {name for name in KINDS if name.startswith(("recs", "als.run"))}
GAINS = {name for name in KINDS if name.startswith(("held", "test.qrels"))}
MATRICES = {name for name in KINDS if KINDS[name] in (PathKind.CSR_FOLDER, PathKind.MATRIX)}
TABLES = {name for name in KINDS if KINDS[name].is_table}

#: The files that each argument takes, with the same numbers; and files that it takes for others.
ARGUMENTS = {
    "predictions": (RANKED, MATRICES),
    "validation": (GAINS, MATRICES | TABLES),
    "train": (set(), MATRICES | TABLES | GAINS),
    "train beside a model": ({"seen-npy", "seen.npz"}, MATRICES),
    "validation beside a model": ({"held-npy", "held.npz"}, MATRICES),
    "model": ({"als.npz", "factors"}, set()),
}


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("name", [*KINDS, *NEITHER, *DAMAGED])
def test_arguments(name, argument, model, paths, whole):
    alike, taken = ARGUMENTS[argument]
    for memory in (None, 1 << 28) if "model" in argument else (None,):
        evaluate = partial(evaluated, argument, paths[name], paths, model, memory)
        if name in alike:
            found = evaluate()
            assert found["ndcg@3"] == whole["ndcg@3"]
            assert found["recall@2"] == whole["recall@2"]
        elif name not in taken:
            with pytest.raises(SparseEvalError, match=re.escape(str(paths[name]))):
                evaluate()


@pytest.mark.parametrize("name", sorted(SEEN | GAINS))
def test_train_of_lists(name, paths):
    sides = paths["recs.csv"], paths["truth.csv"]
    if name in MATRICES:
        sides = paths["recs.npz"], TRUTH
    found = se.evaluate(*sides, "novelty@2", train=paths[name])
    train = TRAIN if name.startswith("seen") else HELD
    expected = se.evaluate(paths["recs.npz"], TRUTH, "novelty@2", train=train)
    assert found["novelty@2"] == pytest.approx(expected["novelty@2"])
