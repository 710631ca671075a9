"""The net: public calls, and what they return to the last bit, on every machine.

Each call has a name. `python tests/helpers/public_calls.py` writes what all calls return into
``tests/net/*.json``, one file for each group, and `tests/net/test_net.py` compares. A number of all
users is written in full, deviations, random baselines and the values of users as a digest of their
bits. Intervals and p-values are written in full, because SciPy computes their last bits.

The inputs are fixed. No model is trained by implicit or LAPACK, whose results depend on the
processor and the number of threads.
"""

import hashlib
import itertools
import json
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError
from sparse_eval.metrics import CONVENTIONS, REGISTRY
from sparse_eval.metrics.plan import check_weights

N_USERS, N_ITEMS, LENGTH = 230, 60, 15

#: Where the returned values are.
NET = Path(__file__).parents[1] / "net"

#: Public data next to the project, which may be missing.
GOWALLA = Path(__file__).parents[3] / "shared" / "data" / "gowalla"


@cache
def problem():
    """Return lists of several lengths, of some users none; gains; what users had seen; a model.

    Scores are exact in float32, so that no processor rounds them otherwise.
    """
    rng = np.random.default_rng(0)
    shape = (N_USERS, N_ITEMS)
    factors = tuple(rng.integers(-8, 9, (n, 6)).astype(np.float32) / 8 for n in shape)
    scores = np.einsum("ik,jk->ij", *factors)
    seen = rng.random(shape) < 0.15
    stored = (rng.random(shape) < 0.12) & ~seen
    stored[5:9] = False  # users without relevant items
    gains = csr_matrix(stored * rng.choice([1.0, 2.0], shape))
    zeros = csr_matrix((rng.choice([0.0, 1.0, 2.0], stored.sum()), np.nonzero(stored)), shape)
    order = np.argsort(np.where(seen, np.inf, -scores), axis=1, kind="stable")[:, :LENGTH]
    lengths = np.where(np.arange(N_USERS) % 17 == 3, 0, rng.integers(1, LENGTH + 1, N_USERS))
    ids = np.where(np.arange(LENGTH) < lengths[:, None], order, -1)
    items = se.ItemData(
        groups=rng.integers(0, 3, N_ITEMS),
        vectors=rng.integers(-4, 5, (N_ITEMS, 3)) / 4,
        propensity=rng.integers(1, 9, N_ITEMS) / 8,
    )
    return SimpleNamespace(
        lists=se.Rankings.from_topk(ids, shape=shape),
        graded=gains,
        zeros=zeros,
        train=csr_matrix(seen * 1.0),
        items=items,
        factors=factors,
    )


@cache
def spellings():
    """Return every metric, with every choice of every option, without a cut-off."""
    names = []
    for entry in REGISTRY.values():
        names.append(entry.name)
        for option in entry.options:
            values = getattr(option, "values", ("0.5",) if option.name == "p" else ())
            names += [f"{entry.name}({option.name}={value})" for value in values]
    return names


def spelled(convention, *endings):
    """Every metric with every choice of every option, with the first ending that is defined."""
    found = []
    for name in spellings():
        for metric in (name + ending for ending in endings):
            with suppress(InvalidMetricError):
                (one,) = se.Protocol(metric, convention=convention).metrics
                check_weights(one, CONVENTIONS[convention].arguments(one))
                found.append(metric)
                break
    return found


def written(ev):
    """Return the mean of each metric, the number of users, a digest of all else, the interval."""
    summary = ev.summary().drop(columns="candidates", errors="ignore")
    intervals = summary[["ci_low", "ci_high"]].to_numpy().tolist()
    rows = summary.drop(columns=["ci_low", "ci_high"]).itertuples(index=False)
    found = {}
    for name, row, interval in zip(ev.keys(), rows, intervals, strict=True):
        digest = hashlib.sha256(repr([str(cell) for cell in row]).encode())
        if ev._part.traits_of(name).per_user and ev._part.values is not None:
            values = ev.values(name)  # processors differ in the sign of NaN
            digest.update(np.where(np.isnan(values), np.nan, values).tobytes())
        n_users = ev._part.count(ev._part.row_of(name))
        found[name] = [float(ev[name]), n_users, digest.hexdigest()[:12], *interval]
    return found


def evaluated(*arguments, **options):
    return written(se.evaluate(*arguments, **options))


def of_model(*arguments, **options):
    return written(se.evaluate_model(*arguments, **options))


def digest_of(matrix):
    """Return a digest of the pairs and values of a matrix."""
    pairs = csr_matrix(matrix.tocsr()).sorted_indices().tocoo()
    arrays = (pairs.row.astype(np.int64), pairs.col.astype(np.int64), pairs.data.astype(float))
    return hashlib.sha256(b"".join(one.tobytes() for one in arrays)).hexdigest()[:16]


def conventions():
    """Every metric by every convention, of graded gains, and of stored zeros if it takes them."""
    given = problem()
    for convention, cut in itertools.product(CONVENTIONS, ("@5", "")):
        names = [name + cut for name in spellings() if _is_defined(name + cut, convention)]
        truth = given.graded if CONVENTIONS[convention].zeros == "error" else given.zeros
        yield f"{convention}{cut}", partial(
            _each, given.lists, truth, names, train=given.train, item_data=given.items,
            convention=convention,
        )  # fmt: skip


def _is_defined(name, convention):
    try:
        se.Protocol(name, convention=convention)
    except se.SparseEvalError:
        return False
    return True


#: Metrics that take all data of items, which are refused where no metric takes them.
TAKE_ALL = ["recall(weights=snips)@5", "diversity(similarity=vectors)@5"]


def _each(lists, truth, names, **options):
    """Evaluate metrics together; of those that are refused, tell by which error."""
    try:
        found = evaluated(lists, truth, [*names, *TAKE_ALL], **options)
    except se.SparseEvalError as error:
        if len(names) == 1:
            return {names[0]: type(error).__name__}
        half = len(names) // 2
        parts = (_each(lists, truth, part, **options) for part in (names[:half], names[half:]))
        return {name: cells for part in parts for name, cells in part.items()}
    return {name: cells for name, cells in found.items() if name not in TAKE_ALL}


METRICS = ["ndcg@{5,10}", "map@10", "recall@3", "mrr@10", "err@10", "rbp@10", "coverage@5"]
OF_ITEMS = [
    "diversity(similarity=vectors)@5", "recall(weights=snips)@10", "novelty@5", "calibration@5",
]  # fmt: skip
RANKED = ["auc", "ndcg@10", "percentile_rank", "mrr"]


def ways():
    """One problem by every way to an evaluation."""
    given = problem()
    lists, truth, train = given.lists, given.graded, given.train
    frames = tables(given)
    matrix = lists.to_positions()
    rules = se.Protocol(METRICS, no_relevant="zero", filter_seen=False)
    judged = se.Protocol(METRICS[:-1], judged_only=True)
    candidates = csr_matrix(np.tile(np.arange(N_ITEMS) % 3 > 0, (N_USERS, 1)))
    options = {"train": train, "item_data": given.items}
    yield "lists", partial(evaluated, lists, truth, METRICS, train=train)
    yield "positions", partial(evaluated, matrix, truth, METRICS, train=train)
    yield "rules", partial(evaluated, lists, truth, rules, train=train)
    yield "judged", partial(evaluated, lists, given.zeros, judged)
    yield "candidates", partial(evaluated, lists, truth, METRICS, candidates=candidates)
    yield "totals", partial(evaluated, lists, truth, METRICS, keep="totals")
    yield "data of items", partial(evaluated, lists, truth, OF_ITEMS, **options)
    yield "memory", partial(evaluated, lists, truth, OF_ITEMS, **options, memory=1 << 24)
    yield "executor", partial(_by_executor, lists, truth, **options)
    yield "pandas", partial(evaluated, *frames[:2], METRICS)
    yield "Parquet", partial(_by_files, frames, "to_parquet", "parquet")
    yield "CSV", partial(_by_files, frames, "to_csv", "csv")
    yield "NumPy", partial(_by_folder, matrix, truth)
    users, items = given.factors
    scores = np.einsum("ik,jk->ij", users, items)  # not by BLAS, which is no part of this package
    model = partial(of_model, train=train, validation=truth)
    yield "factors", partial(model, given.factors, metrics=METRICS)
    yield "ranks", partial(model, given.factors, metrics=METRICS[:-1], baselines=True)
    yield "whole ranks", partial(model, given.factors, metrics=RANKED, baselines=True)
    yield "kept lists", partial(model, given.factors, metrics=METRICS[:-1], keep="lists")
    yield "blocks", partial(model, given.factors, metrics=METRICS, memory=1 << 29)
    yield "scores", partial(model, scores, metrics=METRICS)
    yield "function", partial(model, lambda rows: scores[rows], metrics=METRICS)
    weights = csr_matrix(np.einsum("ik,jk->ij", items, items) * (np.arange(N_ITEMS) % 2))
    yield "item-item", partial(model, se.Scorer(item_item=weights), metrics=METRICS)
    biased = se.factor_model(users, items, item_biases=items[:, 0], similarity="dot")
    yield "biases", partial(model, biased, metrics=METRICS)
    distant = se.factor_model(users, items, similarity="euclidean")
    yield "distance", partial(model, distant, metrics=METRICS)
    yield "checkpoint", partial(_by_checkpoint, given)
    yield "some users", partial(model, given.factors, metrics=METRICS, users=[7, 3, 100])
    among = partial(model, candidates=candidates, item_data=given.items)
    yield "some candidates", partial(among, given.factors, metrics=OF_ITEMS)
    judged = se.Protocol("ndcg@5", judged_only=True)
    yield "judged by a model", partial(of_model, given.factors, train, given.zeros, judged)
    yield "top_k", lambda: [one.tolist() for one in se.top_k(given.factors, 3, train=train)]
    ranks = partial(se.ranks, given.factors, truth, train=train)
    yield "exact ranks", lambda: digest_of(ranks().to_positions())
    for dtype in ("float32", "float64"):
        rounded = partial(_rounded, dtype)
        yield f"{dtype} factors", lambda rounded=rounded: model(rounded(), metrics=RANKED)
        yield f"{dtype} top_k", lambda rounded=rounded: _bits_of(*se.top_k(rounded(), 7))
        for similarity in ("cosine", "euclidean"):
            like = partial(_nearest, rounded, similarity)
            yield f"{dtype} {similarity}", like


def _rounded(dtype):
    """Return factors whose products are rounded."""
    rng = np.random.default_rng(1)
    return tuple((rng.random((n, 33)) - 0.5).astype(dtype) for n in (N_USERS, N_ITEMS))


def _nearest(rounded, similarity):
    return _bits_of(*se.top_k(se.factor_model(*rounded(), similarity=similarity), 7))


def _bits_of(*arrays):
    """Return a digest of arrays."""
    content = b"".join(np.ascontiguousarray(one).tobytes() for one in arrays)
    return hashlib.sha256(content).hexdigest()[:16]


def tables(given):
    """Return lists, gains and training data as frames with text ids."""
    frames = []
    for side, name in (
        (given.lists.to_positions(), "rank"),
        (given.graded, "gain"),
        (given.train, "value"),
    ):
        coo = side.tocoo()
        users, items = [f"u{row:03d}" for row in coo.row], [f"i{column:03d}" for column in coo.col]
        frames.append(pd.DataFrame({"user": users, "item": items, name: coo.data}))
    return frames


def _by_executor(lists, truth, **options):
    with ThreadPoolExecutor(2) as pool:
        return evaluated(lists, truth, OF_ITEMS, client=pool, **options)


def _by_files(frames, method, ending):
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.{ending}" for name in ("lists", "truth")]
        for frame, path in zip(frames, paths, strict=False):
            getattr(frame, method)(path, index=False)
        return evaluated(*paths, METRICS)


def _by_folder(matrix, truth):
    with tempfile.TemporaryDirectory() as folder:
        paths = saved_csr(Path(folder, "lists"), matrix), saved_csr(Path(folder, "truth"), truth)
        return evaluated(*paths, METRICS)


def _by_checkpoint(given):
    with tempfile.TemporaryDirectory() as folder:
        users = [f"u{row:03d}" for row in range(N_USERS)]
        items = [f"i{column:03d}" for column in range(N_ITEMS)]
        model = se.factor_model(*given.factors)
        path = se.save_model(model, Path(folder) / "model.npz", users=users, items=items)
        _, truth, train = tables(given)
        return of_model(path, train, truth, METRICS)


@cache
def clicks():
    return se.datasets.synthetic(n_users=150, n_items=90, n_interactions=3000, seed=3)


def splits():
    """The pairs of synthetic clicks, of every part of every split, and of sampled negatives."""
    split, events = se.split, clicks()
    yield "synthetic", lambda: [digest_of(events.matrix()), _bits_of(events.timestamps)]
    for by in ("uniform", "popularity"):
        for n in (10, 70):  # the larger number exhausts the items of some users
            sampled = partial(_sampled, n, by)
            yield f"negatives {by} {n}", sampled
    made = {
        "random": lambda: [split.random(events, seed=1)],
        "leave_k_out": lambda: [split.leave_k_out(events, n=2, seed=1)],
        "last_n": lambda: [split.last_n(events, n=2, test=1)],
        "temporal": lambda: [split.temporal(events, fraction=0.2, test=0.1)],
        "temporal with repeats": lambda: [split.temporal(events, fraction=0.3, repeats="keep")],
        "rolling": lambda: split.rolling(events, window="3D", fraction=0.3),
        "users": lambda: [split.users(events, seed=2, test=0.1)],
        "k_fold": lambda: split.k_fold(events, k=3, seed=5),
    }
    for name, make in made.items():
        yield name, partial(_parts, make)


def _sampled(n, by):
    holdout = se.split.random(clicks(), seed=1)
    return digest_of(se.sample_negatives(holdout, n=n, by=by, seed=1).to_csr())


def _parts(make):
    parts = ("train", "validation", "test", "fold_in")
    return [
        {part: digest_of(getattr(one, part)) for part in parts if getattr(one, part) is not None}
        for one in make()
    ]


def results():
    """Intervals, comparisons, segments, baselines, negatives, folds and saved results."""
    given, holdout = problem(), se.split.random(clicks(), seed=1)
    names = ["ndcg@5", "recall@10", "map@10"]
    for level in (0.9, 0.95):
        yield f"intervals {level}", partial(_summary, given, names, level)
    for test, correction in itertools.product(
        ("t", "wilcoxon", "permutation"), ("holm", "bh", "none")
    ):
        yield f"compare {test} {correction}", partial(_compared, given, test, correction)
    yield "segments", lambda: cells_of(_lists(given, names).by(np.arange(N_USERS) % 3))
    models = {
        "popularity": se.baselines.popularity(holdout),
        "random": se.baselines.random(holdout, seed=1),
        "item_knn": se.baselines.item_knn(holdout),
    }
    for name, model in models.items():
        yield f"baseline {name}", partial(of_model, model, holdout, METRICS)
    for by in ("uniform", "popularity"):
        negatives = se.sample_negatives(holdout, n=20, by=by, seed=1)
        among = partial(of_model, models["popularity"], holdout, METRICS, candidates=negatives)
        yield f"negatives by {by}", among
    trainers = {name: partial(_trained, name) for name in ("popularity", "random")}
    cross = partial(se.cross_validate, clicks(), trainers, names, seeds=2)
    yield "cross_validate", lambda: cells_of(cross().summary())
    yield "merge", partial(_merged, given, names)
    yield "saved", partial(_saved, given, names)


def _lists(given, metrics):
    return se.evaluate(given.lists, given.graded, metrics, train=given.train)


def _summary(given, names, level):
    return cells_of(_lists(given, names).summary(level))


def _compared(given, test, correction):
    evaluations = {
        f"first {n}": se.evaluate(given.lists.head(n), given.graded, ["ndcg@10", "recall@10"])
        for n in (4, 7, 15)
    }
    return cells_of(se.compare(evaluations, test=test, correction=correction).table)


def _trained(name, train, seed):
    make = getattr(se.baselines, name)
    return make(train, seed=seed) if name == "random" else make(train)


def _merged(given, names):
    half = N_USERS // 2
    users = [f"u{row}" for row in range(N_USERS)]
    parts = [
        se.evaluate(
            se.Rankings.from_positions(given.lists.to_positions()[rows], users=users[rows]),
            se.Relevance.from_csr(given.graded[rows], users=users[rows]),
            names,
        )
        for rows in (slice(0, half), slice(half, N_USERS))
    ]
    return written(parts[0].merge(parts[1]))


def _saved(given, names):
    with tempfile.TemporaryDirectory() as folder:
        _lists(given, names).save(folder)
        return cells_of(se.Evaluation.load(folder).summary())


def mind():
    """MIND's clicks: read, split, and evaluated by the notebook's convention and by others."""
    log = Path(__file__).parents[2] / "data" / "mind_small" / "behaviors.tsv"
    for history in (True, False):
        read = partial(se.datasets.load_mind, log, history=history)
        yield f"clicks, history {history}", lambda read=read: _events(read())
    events = se.datasets.load_mind(log)
    made = {
        "random": se.split.random(events, seed=0),
        "temporal": se.split.temporal(events, at="2019-12-01", gap="12h"),
    }
    for name, holdout in made.items():
        yield f"{name} split", partial(_parts, lambda holdout=holdout: [holdout])
        model = se.baselines.popularity(holdout)
        for convention in ("mind-notebook", "standard", "trec_eval"):
            metrics = ["ndcg@5", "ndcg@10", "mrr"]
            call = partial(of_model, model, holdout, metrics, convention=convention)
            yield f"{name}, popularity, {convention}", call
    negatives = partial(se.sample_negatives, made["random"], n=30, by="popularity", seed=2)
    yield "negatives", lambda: digest_of(negatives().to_csr())


def _events(events):
    return [repr(events), digest_of(events.matrix()), _bits_of(events.timestamps)]


def gowalla():
    """The real split and checkpoint, if they are next to the project."""
    files = [GOWALLA / name for name in ("train.txt", "test.txt")]
    holdout = se.Holdout.from_frames(*map(se.datasets.load_adjacency, files))
    with np.load(GOWALLA / "als64_top20.npz", allow_pickle=False) as stored:
        users, ids = stored["users"], stored["ids"]
    shape = holdout.validation.shape
    lists = se.Rankings.from_topk(ids, user_rows=users, shape=shape)
    metrics = ["ndcg@{10,20}", "recall@20", "map@20", "mrr", "coverage@20", "gini@20", "novelty@20"]
    evaluate = partial(evaluated, lists, holdout.validation, metrics, train=holdout.train)
    yield "lists", evaluate
    yield "lists, totals", partial(evaluate, keep="totals")
    yield "lists, memory", partial(evaluate, memory=1 << 28)
    for convention in ("recbole", "lightgcn", "trec_eval", "mind-notebook"):
        names = ["ndcg@20", "recall@20"]
        call = partial(evaluated, lists, holdout.validation, names, convention=convention)
        yield f"lists, {convention}", call
    model = partial(of_model, GOWALLA / "als64.npz", holdout)
    yield "checkpoint", partial(model, METRICS)
    yield "checkpoint, ranks", partial(model, RANKED)
    yield "checkpoint, memory", partial(model, METRICS, memory=1 << 29)
    yield "popularity", partial(of_model, se.baselines.popularity(holdout), holdout, METRICS)


def cells_of(table):
    """Return the rows of a table by column, numbers in full."""
    return [
        {name: float(cell) if isinstance(cell, float) else str(cell) for name, cell in row.items()}
        for row in table.reset_index().to_dict("records")
    ]


GROUPS = {one.__name__: one for one in (conventions, ways, splits, results, mind, gowalla)}


def returned(group):
    """Make the calls of a group, and return what JSON keeps of what they return."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: json.loads(json.dumps(call())) for name, call in GROUPS[group]()}


def write(groups):
    """Write what the calls of some groups return, a call in a line."""
    for group in groups:
        found = {name: json.dumps(value) for name, value in returned(group).items()}
        lines = ",\n".join(f"{json.dumps(name)}: {value}" for name, value in found.items())
        (NET / f"{group}.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    write(sys.argv[1:] or GROUPS)
