"""Every metric, convention, kind of model, form of the data, runner and splitter, checked alike."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.cpu.lmf import LogisticMatrixFactorization
from implicit.nearest_neighbours import CosineRecommender, TFIDFRecommender
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

import sparse_eval as se
from sparse_eval.metrics import CONVENTIONS, REGISTRY
from sparse_eval.testing import check_metric, check_model, check_source

# ---- metrics


@pytest.mark.parametrize("n_problems", [1, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", REGISTRY)
def test_metric(name, n_problems):
    check_metric(name, n_problems=n_problems, seed=n_problems)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_metrics_by_convention(convention):
    rules = CONVENTIONS[convention]
    names = []
    for name in ("ndcg", "dcg", "map", "precision", "recall", "mrr", "hit_rate", "auc", "coverage"):
        if name not in rules.unlike:
            names += [name] if name in rules.uncut else [f"{name}@2", f"{name}@5"]
    lists = [name for name in names if name.startswith("coverage")]
    accuracy = [name for name in names if name not in lists]
    for metrics in (accuracy, lists):  # lists have no gaps in the second call
        if metrics:
            check_metric(se.Protocol(metrics, convention=convention), n_problems=1)


# ---- models

CLICKS = se.datasets.synthetic(n_users=45, n_items=30, n_interactions=700, seed=1)
HOLDOUT = se.split.random(CLICKS, fraction=0.3, seed=0)
NEW_USERS = se.split.users(CLICKS, fraction=0.4, seed=0)
TRAIN, HELD_OUT = HOLDOUT.train.csr, HOLDOUT.validation.csr
RNG = np.random.default_rng(0)
#: With ties.
FACTORS = tuple(RNG.integers(-2, 3, (n, 3)).astype(np.float32) for n in TRAIN.shape)
SCORES = FACTORS[0] @ FACTORS[1].T
WEIGHTS = np.round(RNG.normal(size=(TRAIN.shape[1],) * 2), 1)


def fitted(kind, **options):
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implicit about its own matrices
        model = kind(**options)
        model.fit(TRAIN, show_progress=False)
    return model


def saved(model, folder):
    return se.save_model(model, folder / "model.npz")


def als(train=HOLDOUT.train):
    return se.train_als(train, factors=4, iterations=2)


def written(folder, name, array):
    np.save(folder / name, array)
    return folder / name


def factor_folder(folder):
    written(folder, "user_factors.npy", FACTORS[0])
    return written(folder, "item_factors.npy", FACTORS[1]).parent


#: What makes a model in a folder; and the data that it is checked on.
MODELS = {
    "factors": lambda _: FACTORS,
    "factors on disk": factor_folder,
    "biases": lambda _: se.factor_model(*FACTORS, item_biases=WEIGHTS[0], user_biases=SCORES[:, 0]),
    "cosine": lambda _: se.factor_model(FACTORS[0] + 3, FACTORS[1] + 3, similarity="cosine"),
    "scores": lambda _: SCORES,
    "scores on disk": lambda folder: written(folder, "scores.npy", SCORES),
    "function": lambda _: lambda users: SCORES[users],
    "item-item": lambda _: se.Scorer(item_item=WEIGHTS),
    "sparse item-item": lambda _: se.Scorer(item_item=csr_matrix(np.maximum(WEIGHTS, 0))),
    "item-item on disk": lambda folder: saved(se.Scorer(item_item=WEIGHTS), folder),
    "als": lambda _: fitted(AlternatingLeastSquares, factors=4, random_state=0),
    "bpr": lambda _: fitted(BayesianPersonalizedRanking, factors=4, random_state=0, num_threads=1),
    "lmf": lambda _: fitted(LogisticMatrixFactorization, factors=4, random_state=0, num_threads=1),
    "cosine neighbours": lambda _: fitted(CosineRecommender, K=5),
    "tf-idf neighbours": lambda _: fitted(TFIDFRecommender, K=5),
    "checkpoint": lambda folder: saved(se.factor_model(*FACTORS), folder),
}
WITH_IDS = {
    "als": lambda _: als(),
    "checkpoint": lambda folder: saved(als(), folder),
    "recommender": lambda _: se.Recommender(als()),
    "popularity": lambda _: se.baselines.popularity(HOLDOUT),
    "random": lambda _: se.baselines.random(HOLDOUT),
    "item neighbours": lambda _: se.baselines.item_knn(HOLDOUT),
    "ease": lambda _: se.baselines.ease(HOLDOUT),
}
FOLDED = {
    "als": lambda: als(NEW_USERS.train),
    "popularity": lambda: se.baselines.popularity(NEW_USERS),
    "ease": lambda: se.baselines.ease(NEW_USERS),
}


@pytest.mark.parametrize("kind", MODELS)
def test_model(kind, tmp_path):
    check_model(MODELS[kind](tmp_path), TRAIN, HELD_OUT)


@pytest.mark.parametrize("kind", WITH_IDS)
def test_model_with_ids(kind, tmp_path):
    check_model(WITH_IDS[kind](tmp_path), HOLDOUT, k=40)


@pytest.mark.parametrize("kind", FOLDED)
def test_model_of_new_users(kind):
    check_model(FOLDED[kind](), NEW_USERS)


@pytest.mark.parametrize("kind", ["factors", "scores", "item-item"])
@pytest.mark.parametrize("rules", [{"filter_seen": False}, {"no_relevant": "zero"}])
def test_model_by_rules(kind, rules, tmp_path):
    metrics = ["ndcg@5", "recall@10", "coverage@5", "gini@3", "personalization@4"]
    check_model(MODELS[kind](tmp_path), TRAIN, HELD_OUT, metrics=se.Protocol(metrics, **rules))


# ---- data and runners


def sides():
    """Return lists and relevant items as frames of text ids."""
    lists = se.recommend(FACTORS, TRAIN, 12).drop(columns="score")
    held = HELD_OUT.tocoo()
    held = pd.DataFrame({"user": held.row, "item": held.col, "gain": held.data})
    lists, held = (one.sample(frac=1, random_state=2) for one in (lists, held))
    for one in (lists, held):
        one["user"], one["item"] = "u" + one["user"].astype(str), "i" + one["item"].astype(str)
    return lists, held


def in_csv(lists, held, folder):
    lists.to_csv(folder / "lists.csv", index=False)
    held.to_csv(folder / "held.csv", index=False)
    return folder / "lists.csv", folder / "held.csv"


def in_parquet(lists, held, folder):
    lists.to_parquet(folder / "lists.parquet", index=False, row_group_size=50)
    held.to_parquet(folder / "held.parquet", index=False, row_group_size=50)
    return folder / "lists.parquet", folder / "held.parquet"


def objects(lists, held, _):
    return se.Rankings.from_frame(lists, rank="rank"), se.Relevance.from_frame(held, gain="gain")


def labelled_matrices(lists, held, _):
    lists, held = (
        frame.pivot_table(value, "user", "item", fill_value=0)
        for frame, value in ((lists, "rank"), (held, "gain"))
    )
    positions, gains = csr_matrix(lists.astype(int)), csr_matrix(held)
    return (
        se.Rankings.from_positions(positions, users=lists.index, items=lists.columns),
        se.Relevance.from_csr(gains, users=held.index, items=held.columns),
    )


def interactions(lists, held, _):
    return (
        partial(se.Rankings.from_frame, lists, rank="rank"),
        partial(se.Interactions.from_frame, held, value="gain"),
    )


def in_trec(lists, held, folder):
    rankings, relevance = objects(lists, held, folder)
    se.trec.write_run(rankings, folder / "a.run")
    se.trec.write_qrels(relevance, folder / "a.qrels")
    return folder / "a.run", folder / "a.qrels"


FORMS = {
    "csv": in_csv,
    "parquet": in_parquet,
    "objects": objects,
    "interactions": interactions,
    "labelled matrices": labelled_matrices,
    "trec": in_trec,
}


@pytest.fixture(scope="module")
def runners():
    """Return options that choose where to evaluate."""
    with ThreadPoolExecutor(2) as pool:
        yield {"here": {}, "memory": {"memory": 1 << 26}, "executor": {"client": pool}}


@pytest.fixture(scope="module")
def dask():
    """Return a cluster of one thread in this process."""
    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    with distributed.Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None,
        scheduler_kwargs={"dashboard_address": ":0"}, set_as_default=False,
    ) as client:  # fmt: skip
        yield {"client": client}


#: Each form here, one within a budget of memory, and all with every runner in the long run.
SHORT = {*((form, "here") for form in FORMS), ("parquet", "memory")}
CROSSED = [
    pytest.param(
        form, runner,
        marks=() if (form, runner) in SHORT else pytest.mark.long,
    )
    for form in FORMS
    for runner in ("here", "memory", "executor", "dask")
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(("form", "runner"), CROSSED)
def test_data_with_ids(form, runner, runners, request, tmp_path):
    options = request.getfixturevalue(runner) if runner == "dask" else runners[runner]
    check_source(*FORMS[form](*sides(), tmp_path), like=sides(), **options)


def test_items_that_only_train_names_belong_to_the_catalogue():
    items = [f"i{number}" for number in range(7)]
    lists = pd.DataFrame({"user": [0, 0, 1], "item": ["i0", "i2", "i3"], "rank": [1, 2, 1]})
    held = pd.DataFrame({"user": [0, 1], "item": ["i4", "i0"]})
    train = csr_matrix(([1.0, 1.0], ([0, 1], [3, 1])), (2, 7))
    train = se.Relevance.from_csr(train, users=[0, 1], items=items)
    ev = se.evaluate(lists, held, ["mean_rank", "coverage@2"], train=train)
    assert ev["coverage@2"] == 3 / 7
    # The unlisted items that are not in train: 4 of one user, 5 of the other.
    assert ev["mean_rank"] == ((3 + 6) / 2 + (2 + 6) / 2) / 2
