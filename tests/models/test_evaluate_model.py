"""`evaluate_model`: some users, models and data on disk, blocks, candidates, and data of items."""

import numpy as np
import pandas as pd
import pytest
from exact import exact_model
from implicit.nearest_neighbours import ItemItemRecommender
from raising import raises
from scipy import sparse
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import (
    InvalidDataError,
    InvalidFileError,
    InvalidMetricError,
    UnsupportedModelError,
)
from sparse_eval.evaluation import array_source

N_USERS, N_ITEMS = 300, 80
BUDGET = 200_000_000
OF_LISTS = "ndcg@5,coverage@5,novelty@10,serendipity@5,diversity@5"


def clicks(seed=0):
    """Return what users have seen and what is held out, with users without either."""
    rng = np.random.default_rng(seed)
    seen = csr_matrix(rng.random((N_USERS, N_ITEMS)) < 0.1).astype(np.float32)
    gains = rng.integers(0, 4, (N_USERS, N_ITEMS)) * (rng.random((N_USERS, N_ITEMS)) < 0.05)
    gains[rng.random(N_USERS) < 0.2] = 0
    gains[seen.toarray() > 0] = 0
    return seen, csr_matrix(gains.astype(np.float64))


def factors(seed=1):
    rng = np.random.default_rng(seed)
    users, items = (rng.normal(size=(n, 6)).astype(np.float32) for n in (N_USERS, N_ITEMS))
    return users, items


def same(found, whole):
    pd.testing.assert_frame_equal(found.per_user, whole.per_user, check_exact=True)
    assert found.mean() == whole.mean()
    assert found.retrieval == whole.retrieval
    for name, popular in whole.baselines.items():
        assert found.baselines[name].mean() == popular.mean()


@pytest.fixture
def small_blocks(monkeypatch):
    """Make a budget mean blocks of 70 users, whatever it is."""
    monkeypatch.setattr(array_source, "users_per_block", lambda *given, **options: 70)


def saved(folder, matrix):
    folder.mkdir()
    for name in ("data", "indices", "indptr", "shape"):
        np.save(folder / f"{name}.npy", getattr(matrix, name))
    return folder


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
def test_what_is_on_disk_stays_there(tmp_path):
    (users, items), (train, held) = factors(), clicks()
    np.save(tmp_path / "user_factors.npy", users)
    np.save(tmp_path / "item_factors.npy", items)
    sides = saved(tmp_path / "train", train), saved(tmp_path / "held", held)
    whole = se.evaluate_model((users, items), train, held, OF_LISTS, baselines=True)
    pair = (tmp_path / "user_factors.npy", str(tmp_path / "item_factors.npy"))
    for given in ((str(tmp_path), *map(str, sides)), (pair, *sides)):
        for memory in (None, BUDGET):
            found = se.evaluate_model(*given, OF_LISTS, baselines=True, memory=memory)
            same(found, whole)


@pytest.mark.usefixtures("small_blocks")
def test_a_smaller_validation_matrix_is_of_the_first_users():
    train, held = clicks()
    given = (factors(), train, held[:250, :70], se.Protocol("ndcg@5,err@10", no_relevant="zero"))
    whole = se.evaluate_model(*given, baselines=True)
    assert whole.n_users == whole.baselines["popularity"].n_users == 250
    same(se.evaluate_model(*given, baselines=True, memory=BUDGET), whole)


def test_what_is_refused(tmp_path):
    model, (train, held) = factors(), clicks()
    memory = {"memory": BUDGET}
    for given, options in [
        ((model, train, held), {"memory": 20_000_000}),
        ((model, [train[:9], train[9:]], held), {}),
        (((iter([model[0]]), model[1]), train, held), memory),
        ((model, train, held * 0), memory),
        ((model, train, held), {"users": ["U1"]}),
        ((model, train, held), {"users": [0, N_USERS]}),
        ((model, train, held), {"users": [], **memory}),
        ((model, train, held), {"candidates": sparse.csr_matrix((2, N_ITEMS))}),
        ((model, train, held), {"candidates": [0, N_ITEMS]}),
        ((model, train, held), {"candidates": []}),
    ]:
        with raises(InvalidDataError):
            se.evaluate_model(*given, "ndcg@5", **options).mean()
    neighbours = ItemItemRecommender(K=5)
    neighbours.fit(train.astype(np.float64), show_progress=False)
    with raises(UnsupportedModelError):
        se.evaluate_model(neighbours, train, held, "ndcg@5", candidates=[1, 2])
    with raises(UnsupportedModelError):
        se.recommend(neighbours, train, candidates=[1, 2])
    for given in ((tmp_path, train), (model, tmp_path / "nowhere")):
        with raises(InvalidFileError):
            se.evaluate_model(*given, held, "ndcg@5")


@pytest.mark.parametrize("filter_seen", [True, False])
@pytest.mark.filterwarnings("ignore:.*(unknown to the model|is in its user|no list contains)")
def test_items_that_only_other_users_hold_out(filter_seen):
    """These items are candidates of the chosen users too, as in the evaluation of all users."""
    items = np.array([[4.0], [3.0], [2.0], [1.0]])
    model = se.factor_model(np.ones((2, 1)), items, users=["u0", "u1"], items=list("abcd"))
    train = pd.DataFrame({"user": ["u0", "u1"], "item": ["a", "a"]})
    held = pd.DataFrame(
        {"user": ["u0", "u1", "u1"], "item": ["c", "new", "b"], "gain": [1.0, 4.0, 2.0]}
    )
    truth = se.Relevance.from_frame(held, gain="gain")
    given = se.Interactions.from_frame(train), truth
    for metrics in (["auc", "percentile_rank(gain=binary)"], ["ndcg@2", "err@2"]):
        protocol = se.Protocol(metrics, filter_seen=filter_seen)
        whole = se.evaluate_model(model, *given, protocol)
        for memory in (None, 10**9):
            some = se.evaluate_model(model, *given, protocol, users=["u0"], memory=memory)
            assert some.per_user.equals(whole.per_user.loc[["u0"]])


def test_ids_that_are_whole_numbers_are_not_rows():
    frames = [
        pd.DataFrame({"user": N_USERS - 1 - side.tocoo().row, "item": side.tocoo().col})
        for side in clicks()
    ]
    model = se.train_als(se.Interactions.from_frame(frames[0]).matrix(), factors=4)
    whole = se.evaluate_model(model, *frames, "ndcg@5")
    chosen = whole.per_user.index[[88, 5]].tolist()
    some = se.evaluate_model(model, *frames, "ndcg@5", users=chosen)
    assert set(some.per_user.index) == set(chosen)
    assert some.per_user.equals(whole.per_user.loc[some.per_user.index])


@pytest.mark.filterwarnings("ignore:.*(are not candidates|no training data)")
def test_candidates_are_matched_by_id(holdout):
    model = exact_model(holdout.train)
    rng = np.random.default_rng(0)
    users, items = holdout.users, holdout.items
    mask = rng.random(holdout.train.shape) < 0.3
    mask |= holdout.validation.csr.toarray() > 0
    keyed = {users[u]: items[np.flatnonzero(mask[u])].tolist() for u in rng.permutation(len(users))}
    rows, columns = np.nonzero(mask)
    frame = pd.DataFrame({"user": users[rows], "item": items[columns]})
    frame = frame.sample(frac=1, random_state=0)

    def evaluated(candidates, **options):
        return se.evaluate_model(model, holdout, "ndcg@5,mrr@10", candidates=candidates, **options)

    by_number = evaluated(sparse.csr_matrix(mask))
    for found in (evaluated(keyed), evaluated(frame), evaluated(keyed, memory=10**9)):
        assert found.mean() == by_number.mean()
        assert found._part.candidates == by_number._part.candidates
    recs = se.recommend(model, holdout, k=3, users=[users[5]], candidates=keyed)
    assert set(recs["item"]) <= set(keyed[users[5]])
    ids = se.top_k(model, k=3, train=holdout.train, candidates=keyed, users=[users[5]]).ids
    assert items[ids[0]].tolist() == recs["item"].tolist()
    for_all = sparse.csr_matrix(np.broadcast_to(np.arange(len(items)) < 40, mask.shape))
    assert evaluated(items[:40]).mean() == evaluated(for_all).mean()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("propensity", "recall(weights=snips)@3"),
        ("groups", "categorical_diversity@3"),
        ("vectors", "diversity(similarity=vectors)@3"),
    ],
)
def test_different_side_data_are_not_merged(name, metric):
    values = np.random.default_rng(0).integers(1, 9, (N_ITEMS, 2)) / 9
    values = values if name == "vectors" else values[:, 0]

    def evaluated(rows, given):
        items = se.ItemData(**{name: given})
        return se.evaluate_model(factors(), *clicks(), metric, users=rows, item_data=items)

    first, same = evaluated(range(20), values), evaluated(range(20, 60), values)
    with raises(InvalidDataError):
        first.merge(evaluated(range(20, 60), values[::-1]))
    assert first.merge(same).n_users == first.n_users + same.n_users


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("small_blocks")
def test_metrics_must_declare_that_they_need_the_training_data():
    def popularity(lists):
        return lists.mean_of(lists.train.item_counts.astype(np.float64))

    options = {"over": "lists", "range": (0.0, np.inf)}
    se.register_metric("asks", "popularity", needs=["train"], **options)(popularity)
    se.register_metric("asks_not", "popularity", **options)(popularity)
    arguments = (factors(), *clicks())
    whole = se.evaluate_model(*arguments, ["asks@3", "asks_not@3", "popularity@3"])
    assert len(set(whole.mean().values())) == 1
    cut = se.evaluate_model(*arguments, ["asks@3", "popularity@3"], memory=BUDGET)
    assert cut.mean() == {name: whole[name] for name in cut}
    with raises(InvalidMetricError):
        se.evaluate_model(*arguments, "asks_not@3", memory=BUDGET)
