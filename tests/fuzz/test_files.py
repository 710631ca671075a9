"""Damaged files of every format are read or refused: no other error, no crash, bounded memory."""

import resource

import numpy as np
import pytest
from damage import damaged
from scipy import sparse

import sparse_eval as se
from sparse_eval import sweep
from sparse_eval.datasets import load

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
LISTS = se.top_k(MODEL, k=5, seen=HOLDOUT.train)
LABELLED = se.Rankings.from_topk(LISTS.ids, users=HOLDOUT.users, items=HOLDOUT.items)

#: A damaged file of a few kilobytes may claim to be large. This much more than before, in MiB,
#: is what a whole run may take: readers work in blocks, and parsers keep caches.
MORE_MEMORY = 600

MIND = "".join(
    f"{i}\tU{i % 7}\t11/{1 + i % 9}/2019 9:0{i % 10}:12 AM\tN1 N{i % 5}\tN{i % 6}-1 N{6 + i % 3}-0"
    "\n"
    for i in range(40)
)


def text(content):
    return lambda path: path.write_text(content) and None


def saved_split(path):
    HOLDOUT.save(path.parent)


def saved_evaluation(path):
    se.evaluate_model(MODEL, HOLDOUT, "ndcg@{5,10},coverage@5", baselines=True).save(path.parent)


def saved_folds(path):
    models = {
        "popularity": lambda train, seed: se.baselines.popularity(train),
        "knn": lambda train, seed: se.baselines.item_knn(train),
    }
    folds = se.split.k_fold(CLICKS, k=2)
    se.cross_validate(CLICKS, models, "ndcg@5", splits=folds, seeds=1, out=path.parent)


def saved_sweep(path):
    se.save_model(MODEL, path.parent / "one.npz")
    resume(path)


def saved_night(path):
    history = se.History(path)
    for night in range(1, 4):
        ev = se.evaluate_model(MODEL, HOLDOUT, ["ndcg@5", "mean_rank"])
        history.append(ev, "als", time=f"2026-11-0{night}T03:00Z")


def nights(path):
    history = se.History(path)
    return history.to_frame(), history.changes(), history.notes()


def resume(path):
    return sweep([path.parent / "one.npz"], *PARTS, out=path.parent, progress=False)


def tables(kind):
    def make(path):
        lists = FRAME.drop_duplicates(["user", "item"]).assign(
            score=lambda rows: np.arange(len(rows)) / 7
        )
        for name, frame in {"recs": lists[["user", "item", "score"]], "truth": FRAME}.items():
            file = path.parent / f"{name}.{kind}"
            if kind == "csv":
                frame.to_csv(file, index=False)
            else:
                frame.to_parquet(file, index=False, row_group_size=50)

    return make


def evaluated(path):
    recs, truth = (path.parent / f"{name}{path.suffix}" for name in ("recs", "truth"))
    return se.evaluate(recs, truth, "ndcg@5").summary()


def trec(path):
    se.trec.write_run(LABELLED, path.parent / "run.txt")
    relevance = se.Relevance.from_csr(VALIDATION, users=HOLDOUT.users, items=HOLDOUT.items)
    se.trec.write_qrels(relevance, path.parent / "qrels.txt")


def evaluated_trec(path):
    return se.evaluate(path.parent / "run.txt", path.parent / "qrels.txt", "ndcg@5").summary()


def factors(path):
    np.save(path.parent / "user_factors.npy", MODEL.user_factors)
    np.save(path.parent / "item_factors.npy", MODEL.item_factors)


def csr_folder(path):
    for name in ("data", "indices", "indptr"):
        np.save(path.parent / f"{name}.npy", getattr(TRAIN, name))
    np.save(path.parent / "shape.npy", np.array(TRAIN.shape))


def of_model(path):
    return se.evaluate_model(path, HOLDOUT, "mrr@5")


def of_folder(path):
    return se.evaluate_model(path.parent, *PARTS)


#: What writes a file, and what reads it, by the path from the folder of the case.
FORMATS = {
    "clicks.csv": (lambda path: FRAME.to_csv(path, index=False), load),
    "clicks.csv.gz": (lambda path: FRAME.to_csv(path, index=False), load),
    "clicks.parquet": (lambda path: FRAME.to_parquet(path, index=False), load),
    "u.data": (text("".join(f"{i % 9}\t{i % 7}\t3\t88125{i:04}\n" for i in range(60))), load),
    "behaviors.tsv": (text(MIND), load),
    "adjacency.txt": (
        text("".join(f"{i} {' '.join(str((i * j) % 11) for j in range(6))}\n" for i in range(30))),
        lambda path: load(path, format="adjacency"),
    ),
    "clicks.npz": (lambda path: sparse.save_npz(path, TRAIN), load),
    "als.npz": (lambda path: se.save_model(MODEL, path), of_model),
    "knn.npz": (lambda path: se.baselines.item_knn(HOLDOUT).save(path), of_model),
    "factors/user_factors.npy": (factors, of_folder),
    "csr/indptr.npy": (csr_folder, lambda path: se.evaluate_model(MODEL, path.parent, *PARTS[1:])),
    "split/train.npz": (saved_split, lambda path: se.Holdout.load(path.parent)),
    "split/labels.npz": (saved_split, lambda path: se.Holdout.load(path.parent)),
    "ev/summary.json": (saved_evaluation, lambda path: _load(path.parent)),
    "ev/totals.npz": (saved_evaluation, lambda path: _load(path.parent)),
    "ev/per_user.csv": (saved_evaluation, lambda path: _load(path.parent)),
    "cv/cross_validation.jsonl": (
        saved_folds,
        lambda path: se.CrossValidation.load(path.parent).summary(),
    ),
    "nights.jsonl": (saved_night, nights),
    "tables/recs.csv": (tables("csv"), evaluated),
    "tables/truth.csv": (tables("csv"), evaluated),
    "blocks/recs.parquet": (tables("parquet"), evaluated),
    "blocks/truth.parquet": (tables("parquet"), evaluated),
    "trec/run.txt": (trec, evaluated_trec),
    "trec/qrels.txt": (trec, evaluated_trec),
    "sweep/sweep.jsonl": (saved_sweep, resume),
    "negatives.txt": (
        text("".join(f"({u},{u % 30})\t{(u + 3) % 30}\t{(u + 5) % 30}\n" for u in range(40))),
        lambda path: se.read_negatives(path, TRAIN),
    ),
}


def _load(folder):
    ev = se.Evaluation.load(folder)
    return ev.summary(), repr(ev), len(ev.per_user), se.compare({"a": ev, "b": ev})


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
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MORE_MEMORY, f"{grown:.0f} MiB more at the peak"
    assert {one for one in tmp_path.rglob("*") if one.is_file()} == files
