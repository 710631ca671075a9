"""The recipes in docs/recipes.md, run, and compared with the libraries' own scores."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import sparse_eval as se

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
PARTS = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.M)[1:]
RECIPES = {
    title: re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    for title, text in zip(PARTS[::2], PARTS[1::2], strict=True)
}


@pytest.fixture(scope="module")
def holdout():
    clicks = se.datasets.synthetic(n_users=60, n_items=40, n_interactions=900, seed=2)
    return se.split.random(clicks, fraction=0.25, seed=0)


def run(title, number=0, result="model", **names):
    """Return the model, or the lists, that a recipe makes of what it takes from its reader."""
    recipe = RECIPES[title][number]
    assert len(recipe.splitlines()) <= 10
    space = names | {"se": se, "np": np, "sparse": sparse}
    exec(compile(recipe, f"{PAGE}: {title}", "exec"), space)  # noqa: S102 - our own page
    return space[result]


def check(model, holdout, scores, *, exact=False):
    """Compare a model's lists, and the metrics, with sorting the library's own scores."""
    train = holdout.train.csr
    lists = se.recommend(model, holdout, k=40)
    rows = holdout.users.get_indexer(lists["user"])
    columns = holdout.items.get_indexer(lists["item"])
    assert (rows >= 0).all()
    assert (columns >= 0).all()
    assert (np.asarray(train[rows, columns]) == 0).all()
    rtol = 0 if exact else 1e-5
    np.testing.assert_allclose(lists["score"], scores[rows, columns], rtol=rtol, atol=rtol)
    table = np.array(scores, np.float64)
    table[train.nonzero()] = -np.inf
    plain = se.Rankings.from_scores(table, k=10)
    expected = se.evaluate(plain, holdout.validation.csr, ["ndcg@10", "recall@10"])
    ev = se.evaluate_model(model, holdout, ["ndcg@10", "recall@10"])
    assert ev.mean() == pytest.approx(expected.mean(), abs=1e-6)


def missing(*names):
    for name in names:
        pytest.importorskip(name, reason=f"{name} is not installed")


def test_torch_embeddings(holdout):
    missing("torch")
    import torch

    torch.manual_seed(0)
    network = torch.nn.Module()
    network.users = torch.nn.Embedding(60, 8)
    network.items, network.biases = torch.nn.Embedding(40, 8), torch.nn.Embedding(40, 1)
    network.score_all_items = lambda users: (
        network.users(users) @ network.items.weight.T + network.biases.weight.T
    )
    scores = network.score_all_items(torch.arange(60)).detach().numpy()
    check(run("PyTorch", network=network), holdout, scores)
    check(run("PyTorch", 1, network=network, torch=torch), holdout, scores)


def test_lightfm(holdout):
    missing("lightfm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lightfm import LightFM

        model = LightFM(no_components=8, loss="warp", random_state=0)
        model.fit(sparse.coo_matrix(holdout.train.csr, dtype=np.float32), epochs=3)
        users, items = np.divmod(np.arange(60 * 40, dtype=np.int32), np.int32(40))
        scores = model.predict(users, items).reshape(60, 40)
    made = run("LightFM", lightfm_model=model, item_features=None, user_features=None)
    check(made, holdout, scores)


@pytest.mark.parametrize("kind", ["MF", "BPR", "WMF", "EASE"])
def test_cornac(kind, holdout):
    missing("cornac")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from cornac import models
        from cornac.data import Dataset

        coo = holdout.train.tocoo()
        users, items = holdout.users[coo.row], holdout.items[coo.col]
        train_set = Dataset.from_uir(list(zip(users, items, coo.data.astype(float), strict=True)))
        if kind == "WMF":
            missing("tensorflow")
        options = {} if kind == "EASE" else {"k": 8, "max_iter": 5, "seed": 0}
        model = getattr(models, kind)(**options).fit(train_set)
    scores = np.empty((60, 40))
    scores[:] = np.nan
    places = holdout.items.get_indexer(list(train_set.iid_map))
    for user, row in zip(train_set.uid_map, range(60), strict=True):
        scores[holdout.users.get_loc(user), places] = np.ravel(model.score(row))
    if np.isnan(scores).any():
        pytest.skip("cornac does not know items without training data")
    check(run("cornac", cornac_model=model, train_set=train_set), holdout, scores)


def test_an_item_item_matrix(holdout):
    item_item = np.random.default_rng(0).integers(-3, 4, (40, 40))
    made = run("EASE, SLIM, SAR and other item-item models", item_item=item_item)
    check(made, holdout, holdout.train.csr @ item_item.astype(float), exact=True)


@pytest.fixture(scope="module")
def als(holdout):
    return se.train_als(holdout.train, factors=8, iterations=5, seed=0)


def recall(lists, als, holdout):
    """Return the recall@10 of an index, whose lists hold no seen item."""
    exact = se.evaluate_model(als, holdout, "ndcg@10", keep="lists")
    index = se.evaluate(lists, holdout.validation, "ndcg@10", train=holdout.train, keep="lists")
    assert index.to_dict()["n_listed_seen"] == 0
    table = se.compare_lists(index, exact, train=holdout.train)
    return float(table.loc[("all", "all", "recall@10"), "mean"])


@pytest.mark.parametrize("kind", ["Flat", "IVF4,Flat", "HNSW8"])
def test_faiss(kind, holdout, als):
    missing("faiss")
    index = run("FAISS", result="index", kind=kind, item_factors=als.item_factors)
    names = {"index": index, "user_factors": als.user_factors, "holdout": holdout, "k": 10}
    if kind == "IVF4,Flat":
        index.nprobe = 2
        assert 0.2 < recall(run("FAISS", 1, "lists", **names), als, holdout) < 1.0
        index.nprobe = 4  # all of them
    least = 0.8 if kind == "HNSW8" else 1.0 - 1e-9  # a graph misses some items
    assert recall(run("FAISS", 1, "lists", **names), als, holdout) >= least


@pytest.mark.parametrize("kind", ["faiss", "annoy"])
def test_approximate_models_of_implicit(kind, holdout, als, monkeypatch):
    missing(kind)
    title = "Approximate models of implicit"
    making, listing = RECIPES[title]
    small = making.replace("nlist=256, nprobe=16", "nlist=4, nprobe=2")  # of 40 items
    if kind == "annoy":
        small = making.replace("faiss", "annoy").replace("Faiss", "Annoy")
        small = small.replace(", nlist=256, nprobe=16", "")
    monkeypatch.setitem(RECIPES, title, [small, listing])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        approximate = run(title, result="approximate_model", model=als, holdout=holdout)
    names = {"approximate_model": approximate, "holdout": holdout, "k": 10}
    assert 0.2 < recall(run(title, 1, "lists", **names), als, holdout) <= 1.0
