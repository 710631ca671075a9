"""Models that know the ids of their users and items, and data that are matched with them."""

import numpy as np
import pandas as pd
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidCheckpointError, InvalidDataError

METRICS = ["ndcg@5", "recall@10", "mrr@10"]


def day(seed, users, items, n):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "user": [f"u{user}" for user in rng.choice(users, n)],
            "item": [f"i{item}" for item in rng.choice(items, n)],
        }
    )
    return frame.drop_duplicates(ignore_index=True)


YESTERDAY = day(1, range(40), range(30), 300)
#: Users 0 to 9 are gone, 40 to 54 are new; items 0 to 4 are gone, 30 to 39 are new.
TODAY = day(2, range(10, 55), range(5, 40), 250)


@pytest.fixture(scope="module")
def model():
    return se.train_als(se.Interactions.from_frame(YESTERDAY), factors=6, iterations=3)


def by_hand(model, seen, truth):
    """Rank every known user's unseen items with NumPy, and evaluate tables of labels."""
    users, items = model.user_ids.tolist(), model.item_ids.tolist()
    scores = model.user_factors.astype(float) @ model.item_factors.astype(float).T
    seen_by = seen.groupby("user")["item"].agg(set).to_dict()
    rows = []
    for user in truth["user"].unique():
        if user not in users:
            continue
        row = scores[users.index(user)]
        candidates = [c for c in range(len(items)) if items[c] not in seen_by.get(user, ())]
        best = sorted(candidates, key=lambda c: (-row[c], c))[:10]
        rows += [(user, items[c], rank) for rank, c in enumerate(best, start=1)]
    lists = pd.DataFrame(rows, columns=["user", "item", "rank"])
    return se.evaluate(lists, truth, METRICS)


def fresh(seen):
    """Return today's clicks on what their users had not seen."""
    pairs = set(map(tuple, seen[["user", "item"]].to_numpy()))
    return TODAY[[(u, i) not in pairs for u, i in TODAY[["user", "item"]].to_numpy()]]


def test_yesterdays_model_on_todays_clicks(model, tmp_path):
    truth = fresh(YESTERDAY)
    expected = by_hand(model, YESTERDAY, truth)
    YESTERDAY.to_csv(tmp_path / "train.csv", index=False)
    for train, validation in (
        (tmp_path / "train.csv", truth),
        (se.Interactions.from_frame(YESTERDAY), se.Relevance.from_frame(truth)),
    ):
        found = se.evaluate_model(model, train, validation, METRICS)
        assert found.mean() == expected.mean()
        assert found.per_user.sort_index().equals(expected.per_user.sort_index())
        assert found.retrieval is not None
        users, items = set(YESTERDAY["user"]), set(YESTERDAY["item"])
        assert found.retrieval.n_unknown_users == len(set(truth["user"]) - users) > 0
        assert found.retrieval.n_unknown_items == len(set(truth["item"]) - items) > 0


@pytest.mark.parametrize("metrics", [["ndcg@5"], ["ndcg@5", "coverage@5", "novelty@5"]])
def test_seen_today_and_unknown_to_the_model(model, metrics):
    """Training data of today: with users and items that the model does not know."""
    truth = fresh(YESTERDAY)[1::2]
    seen = pd.concat([YESTERDAY, fresh(YESTERDAY)[::2]])
    with pytest.warns(UserWarning, match="trained on pairs that are not in train"):
        whole, blocks = (
            se.evaluate_model(model, seen, truth, metrics, baselines=True, memory=memory)
            for memory in (None, 10**9)
        )
    assert whole.mean() == blocks.mean()
    assert whole.baselines["popularity"].mean() == blocks.baselines["popularity"].mean()
    assert whole["ndcg@5"] == by_hand(model, seen, truth)["ndcg@5"]


def test_ids_of_models_of_others(tmp_path):
    clicks = se.Interactions.from_frame(YESTERDAY)
    labels = {"users": clicks.users, "items": clicks.items}
    plain = clicks.matrix().csr
    als, neighbours = se.train_als(plain, factors=4), se.train_model(CosineRecommender(), plain)
    for maker, ids in ((als, labels), (neighbours, {"items": clicks.items})):
        path = se.save_model(maker, tmp_path / "model.npz", **ids)
        shuffled = YESTERDAY.sample(frac=1, random_state=3)
        found = se.evaluate_model(path, shuffled, fresh(YESTERDAY), METRICS)
        assert found.mean() == pytest.approx(
            se.evaluate_model(maker, clicks, fresh(YESTERDAY), METRICS).mean()
        )


def test_refuses_ids_that_do_not_fit(model, tmp_path):
    matrix = se.Interactions.from_frame(YESTERDAY).matrix()
    plain, n_users = matrix.csr, matrix.shape[0]
    numbered = model.user_factors, model.item_factors
    numbers = TODAY.assign(user=range(len(TODAY)), item=range(len(TODAY)))
    path = tmp_path / "m.npz"
    for call in (
        lambda: se.evaluate_model(numbered, plain, TODAY, METRICS),
        lambda: se.evaluate_model(numbered, YESTERDAY, TODAY, METRICS),
        lambda: se.evaluate_model(model, matrix, numbers, METRICS),
        lambda: se.save_model(model, path, users=["a", "b", "c"]),
        lambda: se.save_model(model, path, users=[(n,) for n in range(n_users)]),
        lambda: se.save_model(model, path, users=dict.fromkeys(range(n_users))),
        lambda: se.save_model(model, path, users="u" * n_users),
        lambda: se.save_model(model, path, users=["u"] * n_users),
    ):
        with raises(InvalidDataError):
            call()
    assert not path.exists()
    se.save_model(model, path, users=map(str, range(n_users)))


def test_a_holdout_stands_for_its_parts():
    holdout = se.split.random(se.Interactions.from_frame(YESTERDAY), seed=0)
    model = se.train_als(holdout.train, factors=4, iterations=2)
    expected = se.evaluate_model(model, holdout.train, holdout.validation, METRICS)
    assert se.evaluate_model(model, holdout, METRICS).mean() == expected.mean()
    with raises(ValueError):
        se.evaluate_model(model, holdout)
    with raises(InvalidDataError):
        se.evaluate_model(model, holdout, holdout.validation, METRICS)
    lists = se.Rankings.from_topk([[0]])
    for call in (  # swapped
        lambda: se.evaluate(lists, holdout.validation, "mrr", train=holdout.validation),
        lambda: se.evaluate_model(model, holdout.validation, holdout.train, METRICS),
        lambda: se.sweep("x.npz", holdout.validation, holdout.train, METRICS),
        lambda: se.EvaluationCallback(holdout.validation, holdout.train, METRICS),
    ):
        with raises(InvalidDataError):
            call()


def small_model(users, items):
    """Return a model whose scores fall with the position of the item, for every user."""
    model = AlternatingLeastSquares(factors=1)
    model.user_factors = np.ones((len(users), 1), np.float32)
    model.item_factors = np.arange(len(items), 0, -1, dtype=np.float32)[:, None]
    model.user_ids, model.item_ids = list(users), list(items)
    return model


def pairs(*words):
    return pd.DataFrame([tuple(word) for word in words], columns=["user", "item"])


def ways(model, train, validation, metrics, **more):
    """Evaluate in memory, by lists, in blocks and without the values of the users."""
    return [
        se.evaluate_model(model, train, validation, metrics, **more, **options)
        for options in ({}, {"keep": "lists"}, {"memory": 10**9}, {"keep": "totals"})
    ]


def test_users_whose_relevant_items_are_unknown_get_a_list():
    model = small_model("ab", "xyz")
    train, held = pairs("ax", "bx"), pairs("ay", "bN")
    for ev in ways(model, train, held, "user_coverage@1,coverage@1,ndcg@2"):
        assert ev["user_coverage@1"] == 1
        assert ev["coverage@1"] == 1 / 4  # of x, y, z and the unknown N
        assert ev["ndcg@2"] == 0.5
    train, held = pairs("ax", "qy"), pairs("aN", "by", "qx")
    recs = se.recommend(model, train, 2)
    expected = se.evaluate(recs, held, "ndcg@2", convention="trec_eval")
    for ev in ways(model, train, held, "ndcg@2", convention="trec_eval"):
        assert ev.mean() == expected.mean()
        assert ev.n_users == expected.n_users


def test_the_popularity_ranking_is_of_all_that_train_has():
    train = pairs("aq", "br", "cs", "dt", "ex")
    for ev in ways(small_model("ab", "xyz"), train, pairs("at", "by"), "recall@10", baselines=True):
        # The most popular unseen items, t among them; nobody has seen y.
        assert ev.baselines["popularity"]["recall@10"] == 1.0


def test_a_callback_of_other_data_is_refused():
    holdout = se.split.random(se.Interactions.from_frame(YESTERDAY), seed=0)
    callback = se.EvaluationCallback(holdout, "ndcg@5")
    other = se.Interactions.from_frame(YESTERDAY, users=holdout.users[::-1]).matrix()
    with raises(InvalidDataError):
        se.train_als(other, factors=2, iterations=1, callback=callback)


def test_ranks_are_of_the_items_with_these_ids():
    model = small_model("ab", "xyz")
    held = se.Relevance.from_frame(pairs("ay", "by"))
    assert se.ranks(model, held, k=3).positions.tolist() == [2, 2]
    with raises(InvalidDataError):
        se.ranks((model.user_factors, model.item_factors), held)


def test_ids_of_a_damaged_checkpoint_are_refused(tmp_path):
    path = tmp_path / "als.npz"
    users = np.array([0x55, 0x31, 0xFFFFFFFF, 0x110000], np.uint32).view("<U2")  # no characters
    factors = {"user_factors": np.ones((2, 1)), "item_factors": np.ones((3, 1))}
    np.savez(path, **factors, user_ids=users)
    with raises(InvalidCheckpointError):
        se.evaluate_model(path, *(csr_matrix(np.eye(2, 3)[::sign]) for sign in (1, -1)), "ndcg@1")


@pytest.mark.parametrize("kind", ["als", "scores", "weights"])
def test_a_saved_model_is_loaded_with_its_ids(kind, tmp_path):
    clicks = se.datasets.synthetic(n_users=30, n_items=20, seed=0)
    holdout = se.split.random(clicks, seed=0)
    models = {
        "als": lambda: se.train_als(holdout, factors=4),
        "scores": lambda: se.Scorer(
            np.random.default_rng(0).random((30, 20)), users=clicks.users, items=clicks.items
        ),
        "weights": lambda: se.baselines.ease(holdout),
    }
    path = se.save_model(models[kind](), tmp_path / "model.npz")
    model = se.load_model(path)
    if kind != "weights":
        assert list(model.user_ids) == list(holdout.users)
    assert list(model.item_ids) == list(holdout.items)
    one, other = (se.evaluate_model(each, holdout, "ndcg@10") for each in (model, path))
    assert one.mean() == other.mean()
    with raises(InvalidCheckpointError):
        se.load_model(tmp_path / "none.npz")
