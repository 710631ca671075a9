"""Damaged files of every format are read or refused: no other error, no crash, bounded memory."""

import csv
import sys

import numpy as np
import pandas as pd
import pytest
from damage import damaged
from scipy import sparse
from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval.datasets import load
from sparse_eval.errors import InvalidFileError
from sparse_eval.jobs.nights import decide_night, read_nights, series

resource = pytest.importorskip("resource")  # Windows has none
TO_MIB = 2**20 if sys.platform == "darwin" else 2**10
N_TRIES = 200

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),  # doubts about what is left
]

CLICKS = se.datasets.synthetic(n_users=40, n_items=30, seed=0)
HOLDOUT = se.split.random(CLICKS, seed=0)
MODEL = se.train_als(HOLDOUT.train, factors=4, iterations=1)
TRAIN, VALIDATION = (part.csr.copy() for part in (HOLDOUT.train, HOLDOUT.validation))
PARTS = (TRAIN, VALIDATION, "mrr@5")
FRAME = CLICKS.to_frame()

#: A damaged file of a few kilobytes may claim to be large. This much more than before, in MiB,
#: is what a whole run may take: readers work in blocks, and parsers keep caches.
MORE_MEMORY = 600

MIND = "".join(
    f"{i}\tU{i % 7}\t11/{1 + i % 9}/2019 9:0{i % 10}:12 AM\tN1 N{i % 5}\tN{i % 6}-1 N{6 + i % 3}-0"
    "\n"
    for i in range(40)
)


def text(lines):
    content = "".join(lines)
    return lambda path: path.write_text(content)


def saved_evaluation(path):
    se.evaluate_model(MODEL, HOLDOUT, "ndcg@{5,10},coverage@5", baselines=True).save(path.parent)


def loaded(path):
    ev = se.Evaluation.load(path.parent)
    return ev.summary(), repr(ev), len(ev.per_user), se.compare({"a": ev, "b": ev})


def saved_folds(path):
    models = {
        "popularity": lambda train, seed: se.baselines.popularity(train),
        "knn": lambda train, seed: se.baselines.item_knn(train),
    }
    folds = se.split.k_fold(CLICKS, k=2)
    return se.cross_validate(CLICKS, models, "ndcg@5", splits=folds, out=path.parent)


def saved_sweep(path):
    se.save_model(MODEL, path.with_name("one.npz"))
    resume(path)


def resume(path):
    return se.sweep([path.with_name("one.npz")], *PARTS, out=path.parent, progress=False)


def saved_night(path):
    for number in range(3):
        parts = (one[:, : number + 2] for one in (MODEL.user_factors, MODEL.item_factors))
        se.save_model(se.factor_model(*parts), path.with_name(f"{number}.npz"))
    rules = {"rule": [{"metric": "ndcg@5", "not_worse_by": "5%"}]}
    for day in (1, 2):
        decide_night(
            path.parent, f"2026-11-0{day}", HOLDOUT, path.with_name(f"{day}.npz"), rules,
            candidate="newest", first={"champion": path.with_name("0.npz")}, progress=False,
        )  # fmt: skip


def nights(path):
    return series(read_nights(path))


def tables(path):
    lists = FRAME[["user", "item"]].drop_duplicates()
    lists["score"] = np.arange(len(lists)) / 7
    for name, frame in {"recs": lists, "truth": FRAME}.items():
        file = path.with_name(f"{name}{path.suffix}")
        if path.suffix == ".csv":
            frame.to_csv(file, index=False)
        else:
            frame.to_parquet(file, index=False, row_group_size=50)


def trec(path):
    lists = se.evaluate_model(MODEL, HOLDOUT, "ndcg@5", keep="lists").rankings
    se.trec.write_run(lists, path.with_name("a.run"))
    se.trec.write_qrels(se.Relevance.from_csr(HOLDOUT.validation), path.with_name("a.qrels"))


def evaluated(*names):
    return lambda path: se.evaluate(*map(path.with_name, names), "ndcg@5").summary()


def factors(path):
    np.save(path.with_name("user_factors.npy"), MODEL.user_factors)
    np.save(path.with_name("item_factors.npy"), MODEL.item_factors)


def of_model(path):
    return se.evaluate_model(path, HOLDOUT, "mrr@5")


#: What writes a file, and what reads it, by the path from the folder of the case.
FORMATS = {
    "clicks.csv": (lambda path: FRAME.to_csv(path, index=False), load),
    "clicks.csv.gz": (lambda path: FRAME.to_csv(path, index=False), load),
    "clicks.parquet": (lambda path: FRAME.to_parquet(path, index=False), load),
    "u.data": (text(f"{i % 9}\t{i % 7}\t3\t88125{i:04}\n" for i in range(60)), load),
    "behaviors.tsv": (text(MIND), load),
    "adjacency.txt": (
        text(f"{i} {' '.join(str((i * j) % 11) for j in range(6))}\n" for i in range(30)),
        lambda path: load(path, format="adjacency"),
    ),
    "clicks.npz": (lambda path: sparse.save_npz(path, TRAIN), load),
    "als.npz": (lambda path: se.save_model(MODEL, path), of_model),
    "knn.npz": (lambda path: se.baselines.item_knn(HOLDOUT).save(path), of_model),
    "factors/user_factors.npy": (factors, lambda path: se.evaluate_model(path.parent, *PARTS)),
    "csr/indptr.npy": (
        lambda path: saved_csr(path.parent, TRAIN),
        lambda path: se.evaluate_model(MODEL, path.parent, *PARTS[1:]),
    ),
    **dict.fromkeys(
        ("split/train.npz", "split/labels.npz"),
        (lambda path: HOLDOUT.save(path.parent), lambda path: se.Holdout.load(path.parent)),
    ),
    **dict.fromkeys(
        ("ev/summary.json", "ev/metrics.parquet", "ev/lists.parquet", "ev/per_user.parquet"),
        (saved_evaluation, loaded),
    ),
    "cv/cross_validation.jsonl": (saved_folds, lambda path: saved_folds(path).summary()),
    "gate.jsonl": (saved_night, nights),
    **dict.fromkeys(("t/recs.csv", "t/truth.csv"), (tables, evaluated("recs.csv", "truth.csv"))),
    **dict.fromkeys(
        ("t/recs.parquet", "t/truth.parquet"),
        (tables, evaluated("recs.parquet", "truth.parquet")),
    ),
    **dict.fromkeys(("t/a.run", "t/a.qrels"), (trec, evaluated("a.run", "a.qrels"))),
    "sweep/sweep.jsonl": (saved_sweep, resume),
    "negatives.txt": (
        text(f"({u},{u % 30})\t{(u + 3) % 30}\t{(u + 5) % 30}\n" for u in range(40)),
        lambda path: se.read_negatives(path, TRAIN),
    ),
}


@pytest.mark.parametrize("file", FORMATS)
def test_a_damaged_file_is_read_or_refused(file, tmp_path, tries):
    write, read = FORMATS[file]
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    write(path)
    whole = path.read_bytes()
    read(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    files = {one for one in tmp_path.rglob("*") if one.is_file()}
    n_refused = 0
    for random in tries:
        content = damaged(random, whole)
        path.write_bytes(content)
        try:
            read(path)
        except se.SparseEvalError as error:
            n_refused += 1
            message = str(error)
            assert "\n" not in message, message
            assert len(message) < 2000, message
        except Exception:  # kept, and raised again
            keep = tmp_path.with_name(f"failed-{tries.number}-{path.name}")
            keep.write_bytes(content)
            print(f"the file that failed: {keep}; {tries}")  # noqa: T201
            raise
    assert n_refused or tries.seconds == 0
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / TO_MIB
    assert grown < MORE_MEMORY, f"{grown:.0f} MiB more at the peak"
    assert {one for one in tmp_path.rglob("*") if one.is_file()} == files


QUOTED = FRAME.assign(user='u,"' + FRAME["user"].astype(str), title='a "film"\nin two lines')


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("frame", [FRAME, QUOTED], ids=["plain", "quoted"])
def test_a_damaged_csv_has_the_rows_that_pandas_reads(frame, end, tmp_path, tries):
    whole = frame.head(60).to_csv(index=False, lineterminator=end).encode()
    path = tmp_path / "a.csv"
    n_read = 0
    for random in tries:
        path.write_bytes(damaged(random, whole))
        try:
            found = load(path)
        except InvalidFileError:  # which names the file
            continue
        n_read += 1
        ids = found.to_frame()[["user", "item"]].astype(str)
        try:
            text = pd.read_csv(path, dtype=str, na_filter=False, encoding_errors="replace")
        except pd.errors.ParserError:  # a quote is open in the last line
            with path.open(errors="replace", newline="") as file:
                names, *cells = [row for row in csv.reader(file) if row]
            text = pd.DataFrame(cells, columns=names)
        columns = [found.recognized.get(role, role) for role in ("user", "item")]
        assert ids.to_numpy().tolist() == text[columns].to_numpy().tolist(), tries
    assert n_read or tries.seconds == 0
