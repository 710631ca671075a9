"""`evaluate_model`: some users, models and data on disk, blocks, candidates, and data of items."""

import numpy as np
import pandas as pd
import pytest
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
from sparse_eval.models import source

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
    monkeypatch.setattr(source, "users_per_block", lambda *given, **options: 70)


def saved(folder, matrix):
    folder.mkdir()
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(matrix, name))
    np.save(folder / "shape.npy", matrix.shape)
    return folder


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("options", [{}, {"memory": BUDGET}])
def test_what_is_on_disk_stays_there(tmp_path, options):
    (users, items), (train, held) = factors(), clicks()
    np.save(tmp_path / "user_factors.npy", users)
    np.save(tmp_path / "item_factors.npy", items)
    sides = saved(tmp_path / "train", train), saved(tmp_path / "held", held)
    whole = se.evaluate_model((users, items), train, held, OF_LISTS, baselines=True)
    pair = (tmp_path / "user_factors.npy", str(tmp_path / "item_factors.npy"))
    for given in ((tmp_path, *sides), (str(tmp_path), *map(str, sides)), (pair, train, held)):
        same(se.evaluate_model(*given, OF_LISTS, baselines=True, **options), whole)


@pytest.mark.usefixtures("small_blocks")
def test_a_smaller_validation_matrix_is_of_the_first_users():
    train, held = clicks()
    labels = [f"u{n:03}" for n in range(250)]
    for smaller in (held[:250, :70], se.Relevance.from_csr(held[:250, :70], users=labels)):
        given = (factors(), train, smaller, se.Protocol("ndcg@5,err@10", no_relevant="zero"))
        whole = se.evaluate_model(*given, baselines=True)
        assert whole.n_users == whole.baselines["popularity"].n_users == 250
        same(se.evaluate_model(*given, baselines=True, memory=BUDGET), whole)


def test_what_is_refused():
    model, (train, held) = factors(), clicks()
    broken = factors()
    broken[0][200, 3] = np.nan
    memory = {"memory": BUDGET}
    for given, options in [
        ((model, train, held), {"memory": 20_000_000}),
        ((model, train, held), {"memory": "2GB"}),
        ((model, [train[:9], train[9:]], held), {}),
        ((model, train, iter([held])), memory),
        (((iter([model[0]]), model[1]), train, held), memory),
        ((model, train, held * -1), memory),
        ((model, train, held * 0), memory),
        ((broken, train, held), memory),
    ]:
        with raises(InvalidDataError):
            se.evaluate_model(*given, "ndcg@5", **options)
    with raises(UnsupportedModelError):
        se.evaluate_model(se.Recommender(model), train, held, "ndcg@5", **memory)
    with raises(InvalidMetricError):
        se.evaluate_model(model, train, held, "coverage", **memory)


def test_files_that_are_refused(tmp_path):
    (users, items), data = factors(), clicks()
    with raises(InvalidFileError):
        se.evaluate_model(tmp_path, *data, "ndcg@5")
    np.save(tmp_path / "user_factors.npy", users.astype(object), allow_pickle=True)
    with raises(InvalidFileError):
        se.evaluate_model(tmp_path, *data, "ndcg@5")
    with raises(InvalidFileError):
        se.evaluate_model((users, items), tmp_path / "nowhere", data[1], "ndcg@5")


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


@pytest.mark.parametrize("users", [["U1"], [0, N_USERS], [-1], [], [0.5]])
@pytest.mark.parametrize("memory", [None, BUDGET])
def test_refuses_users_that_are_not_there(users, memory):
    with raises(InvalidDataError):
        se.evaluate_model(factors(), *clicks(), "ndcg@5", users=users, memory=memory)


def test_refuses_unknown_ids():
    holdout = se.split.random(se.datasets.synthetic(n_users=50, n_items=30, seed=0), seed=0)
    for users in (["U1", "nobody"], "U1"):
        with raises(InvalidDataError):
            se.evaluate_model(se.baselines.popularity(holdout), holdout, "ndcg@5", users=users)


def test_ids_that_are_whole_numbers_are_not_rows():
    frames = [
        pd.DataFrame({"user": N_USERS - 1 - side.tocoo().row, "item": side.tocoo().col})
        for side in clicks()
    ]
    model = se.train_als(se.Interactions.from_frame(frames[0]).matrix(), factors=4)
    whole = se.evaluate_model(model, *frames, "ndcg@5")
    chosen = whole.users[[88, 5]].tolist()
    some = se.evaluate_model(model, *frames, "ndcg@5", users=chosen)
    assert set(some.users) == set(chosen)
    assert some.per_user.equals(whole.per_user.loc[some.users])


METRICS = ["ndcg@5", "recall@5", "mrr@10", "hit_rate@1"]


@pytest.mark.filterwarnings("ignore:.*(are not candidates|no training data)")
def test_candidates_are_matched_by_id():
    clicks = se.datasets.synthetic(n_users=150, n_items=80, seed=0)
    holdout = se.split.random(clicks, seed=0)
    model = se.train_als(holdout.train, factors=4, iterations=3)
    rng = np.random.default_rng(0)
    users, items = holdout.users, holdout.items
    mask = rng.random((len(users), len(items))) < 0.3
    mask |= holdout.validation.csr.toarray() > 0
    numbered = sparse.csr_matrix(mask)
    keyed = {users[u]: items[np.flatnonzero(mask[u])].tolist() for u in rng.permutation(len(users))}
    rows, columns = np.nonzero(mask)
    frame = pd.DataFrame({"user": users[rows], "item": items[columns]})
    evs = [
        se.evaluate_model(model, holdout, METRICS, candidates=form)
        for form in (numbered, keyed, frame.sample(frac=1, random_state=0))
    ]
    for ev in evs[1:]:
        assert ev.columns.tobytes() == evs[0].columns.tobytes()
        assert ev.candidates == evs[0].candidates
    cut = se.evaluate_model(model, holdout, METRICS, candidates=keyed, memory=10**9)
    assert cut.mean() == evs[0].mean()
    recs = se.recommend(model, holdout, k=3, users=[users[5]], candidates=keyed)
    assert set(recs["item"]) <= set(keyed[users[5]])
    ids = se.top_k(model, k=3, seen=holdout.train, candidates=keyed, users=[users[5]]).ids
    assert items[ids[0]].tolist() == recs["item"].tolist()
    in_list = se.evaluate_model(model, holdout, METRICS, candidates=items[:40])
    as_mask = sparse.csr_matrix(np.broadcast_to(np.arange(len(items)) < 40, mask.shape))
    same = se.evaluate_model(model, holdout, METRICS, candidates=as_mask)
    assert in_list.columns.tobytes() == same.columns.tobytes()


def test_refuses_candidates_that_a_model_cannot_rank():
    train, held = sparse.csr_matrix(np.eye(3, 4)), sparse.csr_matrix(np.eye(3, 4)[:, ::-1])
    model = ItemItemRecommender(K=5)
    model.fit(train, show_progress=False)
    with raises(UnsupportedModelError):
        se.evaluate_model(model, train, held, METRICS, candidates=[1, 2])
    with raises(UnsupportedModelError):
        se.recommend(model, train, candidates=[1, 2])
    factors = np.ones((3, 2)), np.ones((4, 2))
    for candidates in (sparse.csr_matrix((2, 4)), [0, 4]):
        with raises(InvalidDataError, argument="candidates"):
            se.evaluate_model(factors, train, held, METRICS, candidates=candidates)


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
    first, other, same = (
        se.evaluate_model(
            factors(), *clicks(), metric, users=rows, items=se.ItemData(**{name: given})
        )
        for given, rows in (
            (values, range(20)),
            (values[::-1], range(20, 60)),
            (values, range(20, 60)),
        )
    )
    with raises(InvalidDataError):
        first.merge(other)
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
    assert cut.mean() == {name: whole[name] for name in cut.names}
    with raises(InvalidMetricError):
        se.evaluate_model(*arguments, "asks_not@3", memory=BUDGET)
