"""Requests and weights: means, errors and tests by a plain definition, and by users."""

import json
import math
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import (
    InvalidDataError,
    InvalidFileError,
    InvalidMetricError,
    UnsupportedModelError,
)

METRICS = "mrr@10,recall@10,hit_rate@1"
#: Numbers of requests that users have, and a seed.
SHAPES = st.tuples(st.lists(st.integers(1, 5), min_size=2, max_size=30), st.integers(0, 99))


def draw(counts, seed=0, alike=0.5):
    """Return lists and relevant items of requests: ranks 1 to 10, alike within a user."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(counts)), counts)
    own = rng.integers(1, 11, len(counts))[users]
    ranks = np.where(rng.random(len(users)) < alike, own, rng.integers(1, 12, len(users)))
    n = len(users)
    lists = np.tile(np.arange(1, 11), (n, 1))
    found = np.flatnonzero(ranks <= 10)
    lists[found, ranks[found] - 1] = 0
    relevant = csr_matrix((np.ones(n), (np.arange(n), np.zeros(n, int))), (n, 11))
    values = np.where(ranks <= 10, 1 / ranks, 0.0)
    return se.Rankings.from_topk(lists, shape=(n, 11)), relevant, users, values, rng


def requests_of(counts, seed=0, weights=None):
    lists, relevant, users, values, _ = draw(counts, seed)
    requests = se.Requests.from_csr(relevant, [f"u{user:03d}" for user in users], weights=weights)
    return lists, requests, users, values


def plain(values, users, weights):
    """Return the weighted mean, and its error that is robust against clusters (CR1)."""
    mean = math.fsum(values * weights) / math.fsum(weights)
    residuals = [math.fsum((weights * (values - mean))[users == user]) for user in np.unique(users)]
    n = len(residuals)
    error = math.sqrt(n / (n - 1) * math.fsum(x * x for x in residuals)) / math.fsum(weights)
    return mean, error, n - 1


@given(SHAPES, st.booleans())
def test_means_and_errors_are_those_of_the_plain_definition(shape, weighted):
    counts, seed = shape
    n = sum(counts)
    weights = np.random.default_rng(seed).lognormal(size=n) if weighted else np.ones(n)
    lists, requests, users, values = requests_of(counts, seed, weights if weighted else None)
    ev = se.evaluate(lists, requests, METRICS)
    mean, error, _ = plain(values, users, weights)
    assert ev["mrr@10"] == pytest.approx(mean, rel=1e-12)
    std = ev.summary()["std"]["mrr@10"]
    assert std / math.sqrt(len(counts)) == pytest.approx(error, rel=1e-9, abs=1e-12)
    assert ev.n_users == len(counts)
    by_user = pd.Series(values * weights).groupby(users).sum()
    by_user /= pd.Series(weights).groupby(users).sum()
    assert ev.per_user["mrr@10"].tolist() == pytest.approx(by_user.tolist(), rel=1e-12)
    assert ev.per_request["mrr@10"].tolist() == pytest.approx(values.tolist(), rel=1e-12)
    assert ev.per_request["weight"].tolist() == weights.tolist()


def test_intervals_of_many_users_are_students():
    counts = np.random.default_rng(1).integers(1, 9, 400)
    lists, requests, users, values = requests_of(counts)
    row = se.evaluate(lists, requests, METRICS).summary().loc["mrr@10"]
    mean, error, freedom = plain(values, users, np.ones(len(users)))
    half = stats.t.ppf(0.975, freedom) * error
    assert (row["interval"], row["n_users"]) == ("t", 400)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([mean - half, mean + half], rel=1e-9)


def test_one_request_of_each_user_gives_the_bits_of_users():
    lists, requests, users, _ = requests_of([1] * 250)
    ids = [f"u{user:03d}" for user in users]
    alone = se.evaluate(lists, se.Relevance.from_csr(requests.relevance.to_csr()), METRICS)
    for average in ("request", "user"):
        ev = se.evaluate(lists, requests, METRICS, average=average)
        pd.testing.assert_frame_equal(ev.summary(), alone.summary())
        assert ev.per_user.index.tolist() == ids
        np.testing.assert_array_equal(ev.per_user.to_numpy(), alone.per_user.to_numpy())


def test_the_mean_of_users():
    counts = np.random.default_rng(2).integers(1, 9, 300)
    lists, requests, users, values = requests_of(counts)
    ev = se.evaluate(lists, requests, METRICS, average="user")
    means = pd.Series(values).groupby(users).mean()
    row = ev.summary().loc["mrr@10"]
    assert row["mean"] == pytest.approx(means.mean(), rel=1e-12)
    assert row["std"] == pytest.approx(means.std(), rel=1e-12)
    assert "means of users over" in str(ev)
    assert f"{len(users):,} requests of 300 users" in str(ev)


def test_weights_of_users_and_requests():
    counts = np.random.default_rng(3).integers(1, 6, 250)
    rng = np.random.default_rng(4)
    of_requests, of_users = rng.lognormal(size=counts.sum()), rng.lognormal(size=250)
    lists, requests, users, values = requests_of(counts, 0, of_requests)
    named = {f"u{user:03d}": weight for user, weight in enumerate(of_users)}
    ev = se.evaluate(lists, requests, METRICS, weights=named)
    mean, error, _ = plain(values, users, of_requests * of_users[users])
    row = ev.summary().loc["mrr@10"]
    assert row["mean"] == pytest.approx(mean, rel=1e-12)
    assert row["std"] / math.sqrt(250) == pytest.approx(error, rel=1e-9)
    assert ev.per_request["weight"].tolist() == (of_requests * of_users[users]).tolist()
    row = se.evaluate(lists, requests, METRICS, average="user", weights=named).summary()
    means = ev.per_user["mrr@10"].to_numpy()  # the weight of a user does not change them
    mean, error, _ = plain(means, np.arange(250), of_users)
    assert row["mean"]["mrr@10"] == pytest.approx(mean, rel=1e-12)
    assert row["std"]["mrr@10"] / math.sqrt(250) == pytest.approx(error, rel=1e-9)
    with raises(InvalidMetricError):
        se.evaluate(lists, requests, "coverage@5")


@pytest.mark.parametrize("form", ["array", "mapping", "series", "table"])
def test_weights_of_users(form, tmp_path):
    lists, relevant, _, values, rng = draw([1] * 240)
    weights = rng.lognormal(size=240)
    names = [f"u{user:03d}" for user in range(240)]
    given = {
        "array": weights,
        "mapping": dict(zip(names, weights, strict=True)),
        "series": pd.Series(weights, names).iloc[::-1],
        "table": pd.DataFrame({"user": names, "w": weights}),
    }[form]
    truth = se.Relevance.from_csr(relevant, users=None if form == "array" else names)
    ev = se.evaluate(lists, truth, METRICS, weights=given)
    mean, error, _ = plain(values, np.arange(240), weights)
    row = ev.summary().loc["mrr@10"]
    assert row["mean"] == pytest.approx(mean, rel=1e-12)
    assert row["std"] / math.sqrt(240) == pytest.approx(error, rel=1e-9)
    equal = se.evaluate(lists, relevant, METRICS, weights=np.full(240, 3.0))
    truth = relevant
    pd.testing.assert_frame_equal(equal.summary(), se.evaluate(lists, truth, METRICS).summary())


def two_models(counts, weights=None):
    """Return evaluations of two models on the same requests, and their values."""
    one, other = (requests_of(counts, seed, weights) for seed in (3, 4))
    evs = [se.evaluate(lists, requests, METRICS) for lists, requests, *_ in (one, other)]
    return evs, one[2], one[3], other[3]


@pytest.mark.parametrize("weighted", [False, True])
def test_differences_are_paired_by_user(weighted, tmp_path):
    counts = np.random.default_rng(5).integers(1, 7, 260)
    rng = np.random.default_rng(6)
    weights = rng.lognormal(size=counts.sum()) if weighted else np.ones(counts.sum())
    (one, other), users, a, b = two_models(counts, weights if weighted else None)
    difference, error, freedom = plain(a - b, users, weights)
    p = 2 * stats.t.sf(abs(difference) / error, freedom)
    saved = {name: ev.save(tmp_path / name) for name, ev in (("one", one), ("other", other))}
    for pair in ({"one": one, "other": other}, saved):
        (row,) = se.compare(pair, "mrr@10", margin=0.01).table.to_dict("records")
        assert row["difference"] == pytest.approx(difference, rel=1e-9)
        assert row["p"] == pytest.approx(p, rel=1e-6)
        of_users = pd.Series((a - b) * weights).groupby(users).sum()
        assert row["wins"] == (of_users > 0).sum()
        assert row["ties"] == (of_users == 0).sum()
        excess = difference + 0.01
        (test,) = se.gate({"rule": [{"metric": "mrr@10", "not_worse_by": 0.01}]}, *pair.values()
                          ).table.to_dict("records")  # fmt: skip
        assert test["excess"] == pytest.approx(excess, rel=1e-9)
        assert test["p_passed"] == pytest.approx(stats.t.sf(excess / error, freedom), rel=1e-6)
    losers = one.losers(other, "mrr@10")
    assert losers["losers"].item() == (of_users < 0).sum()


def test_segments_are_means_of_their_own_requests():
    counts = np.random.default_rng(7).integers(1, 7, 260)
    (one, other), users, a, b = two_models(counts)
    plans = {f"u{user:03d}": "free" if user % 3 else "paid" for user in range(260)}
    table = se.compare({"one": one, "other": other}, "mrr@10", by=plans).table
    for row in table.to_dict("records"):
        chosen = (users % 3 > 0) == (row["segment"] == "free")
        n = int(chosen.sum())
        difference, error, freedom = plain((a - b)[chosen], users[chosen], np.ones(n))
        assert row["difference"] == pytest.approx(difference, rel=1e-9)
        assert row["mean_a"] == pytest.approx(a[chosen].mean(), rel=1e-9)
        assert row["p"] == pytest.approx(2 * stats.t.sf(abs(difference) / error, freedom), rel=1e-6)


def test_saved_evaluations_have_the_same_numbers(tmp_path):
    counts = np.random.default_rng(8).integers(1, 7, 60)
    weights = np.random.default_rng(9).lognormal(size=counts.sum())
    for each, average in ((None, "request"), (weights, "request"), (None, "user")):
        lists, requests, *_ = requests_of(counts, 0, each)
        more = "" if each is not None else ",coverage@5"
        ev = se.evaluate(lists, requests, f"{METRICS}{more}", average=average)
        again = se.Evaluation.load(ev.save(tmp_path / "ev"))
        pd.testing.assert_frame_equal(again.summary(), ev.summary())
        pd.testing.assert_frame_equal(again.per_user, ev.per_user)
        pd.testing.assert_frame_equal(again.per_request, ev.per_request)
        assert str(again) == str(ev)


def tables(counts, seed=0, shown=False):
    """Return lists and clicks of sessions as tables."""
    rng = np.random.default_rng(seed)
    rows, lists = [], []
    for user, count in enumerate(counts):
        for number in range(count):
            session = f"s{user}-{number}"
            items = rng.permutation(8)[:5].tolist()
            clicked = items[rng.integers(5)]
            for rank, item in enumerate(rng.permutation(items).tolist(), 1):
                lists.append((session, f"i{item}", rank))
                if shown or item == clicked:
                    rows.append((session, f"u{user}", f"i{item}", int(item == clicked)))
    clicks = pd.DataFrame(rows, columns=["session", "user", "item", "clicked"])
    return pd.DataFrame(lists, columns=["session", "item", "rank"]), clicks


def test_tables_in_any_order_blocks_and_workers_give_the_same_bits(tmp_path):
    lists, clicks = tables(np.random.default_rng(0).integers(1, 6, 40))
    requests = se.Requests.from_frame(clicks, request="session")
    expected = se.evaluate(lists, requests, METRICS).summary()
    shuffled = clicks.sample(frac=1, random_state=0).reset_index(drop=True)
    clicks.to_parquet(tmp_path / "c.parquet")
    lists.to_csv(tmp_path / "l.csv", index=False)
    with ThreadPoolExecutor(1) as pool:
        for ranked, source, options in (
            (lists.sample(frac=1, random_state=1), shuffled, {}),
            (str(tmp_path / "l.csv"), str(tmp_path / "c.parquet"), {}),
            (lists, clicks, {"memory": "16MiB"}),
            (lists, clicks, {"client": pool}),
        ):
            again = se.Requests.from_frame(source, request="session")
            found = se.evaluate(ranked, again, METRICS, **options).summary()
            columns = [name for name in found if not name.startswith("random") and name != "lift"]
            pd.testing.assert_frame_equal(found[columns], expected[columns])


def test_items_shown_are_the_candidates():
    lists, clicks = tables(np.random.default_rng(0).integers(1, 6, 40), shown=True)
    requests = se.Requests.from_frame(clicks, request="session")
    assert repr(requests).endswith("8 items, with the items shown>")
    ev = se.evaluate(lists, requests, "auc,mrr@5")
    places = lists.merge(clicks[clicks["clicked"] == 1], on=["session", "item"])
    expected = ((5 - places["rank"]) / 4).mean()
    assert ev["auc"] == pytest.approx(expected, rel=1e-12)
    assert ev.summary()["random"]["auc"] == pytest.approx(0.5)


def test_the_command_line(command, tmp_path):
    lists, clicks = tables([2, 3, 1, 4])
    clicks["w"] = clicks.groupby("session").ngroup() + 1
    lists.to_csv(tmp_path / "l.csv", index=False)
    clicks.to_csv(tmp_path / "c.csv", index=False)
    words = ("evaluate", tmp_path / "l.csv", tmp_path / "c.csv", "-m", "mrr@5", "--format", "json")
    for more, options in (
        ((), {}), (("--average", "user"), {"average": "user"}), (("--weight", "w"), {}),
    ):  # fmt: skip
        status, printed, said = command(*words, "--request", "session", *more)
        assert status == 0, said
        weight = "w" if "--weight" in more else None
        requests = (
            se.Requests.from_frame(clicks, request="session", gain="clicked", weight=weight)
            if weight is None
            else se.Requests.from_frame(clicks, request="session", weight=weight)
        )
        ev = se.evaluate(lists, requests, "mrr@5", **options)
        assert json.loads(printed)["metrics"]["mrr@5"]["mean"] == ev["mrr@5"]
    users = lists.merge(clicks[["session", "user"]].drop_duplicates())
    users.groupby(["user", "item"], as_index=False).first().to_csv(tmp_path / "l.csv", index=False)
    status, _, said = command(*words, "--gain", "clicked")
    assert "--request session evaluates each session by itself" in said
    lists.to_csv(tmp_path / "l.csv", index=False)
    status, _, said = command(*words, "--weight", "w")
    assert (status, "name their column with --request" in said) == (2, True)
    status, _, said = command(*words, "--request", "visit")
    assert (status, "there is no column 'visit'" in said) == (2, True)


def test_faults():
    lists, requests, *_ = requests_of([2, 1, 3])
    matrix = requests.relevance.to_csr()
    frame = pd.DataFrame({"r": ["a", "a"], "user": ["x", "y"], "item": [1, 2]})
    with raises(InvalidDataError):
        se.Requests.from_frame(frame, request="r")
    with raises(InvalidDataError, argument="request"):
        se.Requests.from_frame(frame, request="session")
    with raises(InvalidDataError, argument="users"):
        se.Requests.from_csr(matrix, ["u"] * 5)
    for weights in ([1.0] * 5, [1.0] * 5 + [0.0], [1.0] * 5 + [math.nan]):
        with raises(InvalidDataError, argument="weights"):
            se.Requests.from_csr(matrix, ["u"] * 6, weights=weights)
    for weights in ([1.0] * 3, {"u000": 1}, {f"u{n:03d}": n for n in range(3)}):
        with raises(InvalidDataError, argument="weights"):
            se.evaluate(lists, requests, "mrr@10", weights=weights)
    with raises(InvalidDataError, argument="train"):
        se.evaluate(lists, requests, "mrr@10", train=matrix)
    with raises(InvalidDataError, argument="keep"):
        se.evaluate(lists, requests, "mrr@10", keep="totals")
    with raises(InvalidDataError):
        se.evaluate(lists, requests, "mrr@10", average="session")
    ev = se.evaluate(lists, requests, "mrr@10")
    other = se.evaluate(*requests_of([1, 2])[:2], "mrr@10")
    for call in (lambda: ev.by({}), lambda: ev.rankings, lambda: se.Evaluation.merge(ev, other)):
        with raises(InvalidDataError):
            call()
    with raises(InvalidDataError):
        _ = se.evaluate(lists, matrix, "mrr@10").per_request
    by_user = se.evaluate(lists, requests, "mrr@10", average="user")
    with raises(InvalidDataError):
        se.compare({"a": ev, "b": by_user})


N_USERS, N_ITEMS = 40, 30
FACTORS = np.random.default_rng(0).standard_normal((N_USERS + N_ITEMS, 5))
SIDES = FACTORS[:N_USERS], FACTORS[N_USERS:]
IDS = {"users": [f"u{n}" for n in range(N_USERS)], "items": [f"i{n}" for n in range(N_ITEMS)]}


def impressions(n_users, seed=0):
    """Return a table of impressions, each of 8 items of which the user clicks 1 to 3."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"r{number}", f"u{user}", f"i{item}", int(place < clicks))
        for number, (user, clicks) in enumerate(
            zip(rng.integers(n_users, size=200), rng.integers(1, 4, 200), strict=True)
        )
        for place, item in enumerate(rng.choice(N_ITEMS, 8, replace=False))
    ]
    return pd.DataFrame(rows, columns=["imp", "user", "item", "clicked"])


def scored(frame, users=N_USERS):
    """Return the reciprocal rank of each impression of users whom the model knows, by NumPy."""
    values = {}
    for name, one in frame.groupby("imp"):
        user = int(one["user"].iloc[0][1:])
        items = one["item"].str[1:].astype(int).to_numpy()
        order = np.argsort(-(SIDES[1][items] @ SIDES[0][min(user, users - 1)]), kind="stable")
        ranks = np.flatnonzero(one["clicked"].to_numpy()[order] > 0)
        values[name] = 1 / (ranks[0] + 1) if user < users else 0.0
    return values


@pytest.mark.parametrize("memory", [None, "200MB"])
@pytest.mark.parametrize("n_users", [N_USERS, N_USERS + 2])
def test_a_model_ranks_the_items_shown(n_users, memory):
    frame = impressions(n_users)
    requests = se.Requests.from_frame(frame, request="imp")
    model = se.factor_model(*SIDES, **IDS)
    with warnings.catch_warnings(record=True) as given_warnings:
        warnings.simplefilter("always")
        ev = se.evaluate_model(model, None, requests, "mrr,ndcg@5", memory=memory)
    said = [str(one.message) for one in given_warnings]
    assert len(said) == (n_users > N_USERS)
    assert all("unknown to the model" in one for one in said)
    expected = scored(frame)
    found = ev.per_request["mrr"].droplevel("user").to_dict()
    assert found == pytest.approx(expected, rel=1e-12)
    assert ev["mrr"] == pytest.approx(np.mean(list(expected.values())), rel=1e-12)
    weights = dict.fromkeys(frame["user"].unique(), 2.0)
    doubled = se.evaluate_model(model, None, requests, "mrr,ndcg@5", weights=weights)
    assert doubled["mrr"] == ev["mrr"]


def test_a_model_ranks_all_items_for_each_request():
    frame = impressions(N_USERS)
    clicks = frame[frame["clicked"] == 1]
    requests = se.Requests.from_frame(clicks, request="imp", gain="clicked")
    ev = se.evaluate_model(se.factor_model(*SIDES, **IDS), None, requests, "recall@5")
    scores = SIDES[0] @ SIDES[1].T
    for name, one in clicks.groupby("imp"):
        best = np.argsort(-scores[int(one["user"].iloc[0][1:])], kind="stable")[:5]
        recall = one["item"].str[1:].astype(int).isin(best).mean()
        assert ev.per_request["recall@5"].droplevel("user")[name] == pytest.approx(recall)
    # Without ids, by number.
    users = clicks.groupby("imp")["user"].first().str[1:].astype(int).to_numpy()
    matrix = requests.relevance.to_csr().csr
    columns = [int(item[1:]) for item in requests.relevance.items_index]
    moved = csr_matrix((matrix.data, np.array(columns)[matrix.indices], matrix.indptr),
                       (matrix.shape[0], N_ITEMS))  # fmt: skip
    plain_requests = se.Requests.from_csr(moved, users)
    again = se.evaluate_model(se.factor_model(*SIDES), None, plain_requests, "recall@5")
    assert again["recall@5"] == ev["recall@5"]


def test_faults_of_models():
    requests = se.Requests.from_frame(impressions(N_USERS), request="imp")
    model = se.factor_model(*SIDES, **IDS)
    for wrong in ({"train": csr_matrix((1, 1))}, {"users": ["u1"]}, {"baselines": True}):
        with raises(InvalidDataError, argument=next(iter(wrong))):
            train = wrong.pop("train", None)
            se.evaluate_model(model, train, requests, "mrr", **wrong)
    with raises(InvalidDataError):
        se.evaluate_model(se.factor_model(*SIDES), None, requests, "mrr")
    with raises(UnsupportedModelError):
        se.evaluate_model(np.zeros((3, 4)), None, requests, "mrr")
    with raises(InvalidMetricError):
        se.evaluate_model(model, None, requests)
    with raises(InvalidMetricError):
        se.evaluate_model(model, None, requests, "novelty@5")


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_cover_means_of_alike_requests(weighted):
    """Treating requests as people covers far less than the level; users cover it."""
    held = {"users": 0, "rows": 0}
    times = 400
    for seed in range(times):
        rng = np.random.default_rng(seed)
        counts = np.full(200, 20)
        users = np.repeat(np.arange(200), counts)
        found = rng.random(4000) < rng.beta(1, 1, 200)[users]  # an intra-class correlation of 1/3
        weights = rng.lognormal(size=4000) if weighted else None
        lists = np.where(found, 0, 1)[:, None]
        relevant = csr_matrix((np.ones(4000), (np.arange(4000), np.zeros(4000, int))), (4000, 2))
        rankings = se.Rankings.from_topk(lists, shape=(4000, 2))
        by_user = se.Requests.from_csr(relevant, users, weights=weights)
        as_users = se.Requests.from_csr(relevant, np.arange(4000), weights=weights)
        for name, requests in (("users", by_user), ("rows", as_users)):
            row = se.evaluate(rankings, requests, "hit_rate@1").summary().iloc[0]
            held[name] += row["ci_low"] <= 0.5 <= row["ci_high"]
    assert 0.92 <= held["users"] / times <= 0.975
    assert held["rows"] / times < 0.8


MIND = """\
1\tU1\t11/11/2019 9:05:58 AM\tN30\tN20-1 N10-0 N11-0
2\tU2\t11/11/2019 9:06:58 AM\t\tN10-0 N20-1
3\tU1\t11/12/2019 9:05:58 AM\tN30 N20\tN11-1 N12-1 N10-0
"""


def test_impressions_of_mind(tmp_path):
    (tmp_path / "behaviors.tsv").write_text(MIND)
    requests = se.datasets.load_mind(tmp_path, by="request")
    assert repr(requests) == "<Requests: 3 requests of 2 users, 4 items, with the items shown>"
    gains = requests.relevance.to_csr()
    assert gains.csr.nnz == 8
    of_items = dict(zip(gains.items, gains.csr.toarray().sum(axis=0), strict=True))
    assert of_items == {"N10": 0, "N11": 1, "N12": 1, "N20": 2}
    ranked = {"N20": 4.0, "N11": 3.0, "N10": 2.0, "N12": 1.0}
    factors = np.ones((2, 1)), np.array([*ranked.values()])[:, None]
    model = se.factor_model(*factors, users=["U1", "U2"], items=list(ranked))
    ev = se.evaluate_model(model, None, requests, "auc,mrr")
    assert ev.per_request["auc"].droplevel("user").to_dict() == {"1": 1, "2": 1, "3": 0.5}
    assert ev.per_user["auc"].to_dict() == {"U1": 0.75, "U2": 1}
    with raises(InvalidDataError, argument="by"):
        se.datasets.load_mind(tmp_path, by="session")
    (tmp_path / "behaviors.tsv").write_text(MIND + MIND)
    with raises(InvalidFileError):
        se.datasets.load_mind(tmp_path, by="request")


def test_comparisons_that_would_be_wrong():
    counts = np.random.default_rng(5).integers(1, 7, 60)
    (one, other), *_ = two_models(counts)
    with raises(InvalidDataError, argument="test"):
        se.compare({"one": one, "other": other}, "mrr@10", test="wilcoxon")
    (heavier, _), *_ = two_models(counts, np.arange(counts.sum()) + 1.0)
    with raises(InvalidDataError):
        se.compare({"one": one, "heavier": heavier}, "mrr@10")
    # Lists of other requests: each mean would be of its own.
    lists, clicks = tables(counts)
    requests = se.Requests.from_frame(clicks, request="session")
    listed = se.Protocol("mrr@5", without_list="exclude")
    whole = se.evaluate(lists, requests, listed)
    some = se.evaluate(lists[lists["session"].str[-1] == "0"], requests, listed)
    rules = {"rule": [{"metric": "mrr@5", "not_worse_by": "50%"}]}
    for call in (
        lambda: se.compare({"some": some, "whole": whole}),
        lambda: se.gate(rules, some, whole),
        lambda: some.losers(whole, "mrr@5"),
    ):
        with raises(InvalidDataError):
            call()


def test_lists_of_unknown_requests(tmp_path):
    lists, clicks = tables([2, 1, 3])
    requests = se.Requests.from_frame(clicks, request="session")
    more = pd.concat([lists, pd.DataFrame({"session": ["new"], "item": ["i0"], "rank": [1]})])
    expected = se.evaluate(lists, requests, "mrr@5")
    assert se.evaluate(more, requests, "mrr@5").per_request.equals(expected.per_request)
    with raises(InvalidDataError):
        se.evaluate(more, requests, se.Protocol("mrr@5", no_relevant="zero"))
    by_user = lists.rename(columns={"session": "user"})
    by_user.to_csv(tmp_path / "l.csv", index=False)
    for wrong in (by_user, tmp_path / "l.csv"):
        with raises(InvalidDataError):
            se.evaluate(wrong, requests, "mrr@5")


def test_candidates_by_request():
    frame = impressions(N_USERS)
    clicks = frame[frame["clicked"] == 1]
    requests = se.Requests.from_frame(clicks, request="imp", gain="clicked")
    model = se.factor_model(*SIDES, **IDS)
    shown = se.Requests.from_frame(frame, request="imp")
    expected = se.evaluate_model(model, None, shown, "mrr")["mrr"]
    given = frame.groupby("imp")["item"].agg(list)
    turned = {name: given[name] for name in reversed(given.index)}
    assert se.evaluate_model(model, None, requests, "mrr", candidates=turned)["mrr"] == expected
    with raises(InvalidDataError, argument="candidates"):
        se.evaluate_model(model, None, requests, "mrr", candidates=csr_matrix((3, N_ITEMS)))


@pytest.mark.parametrize(
    "weights",
    [["a"] * 6, [True] * 6, [1j] * 6, np.full(6, "2020-01-01", "M8[D]"), [1e-320] * 6, [1e200] * 6],
)
def test_weights_are_numbers(weights):
    matrix = requests_of([2, 1, 3])[1].relevance.to_csr()
    with raises(InvalidDataError, argument="weights"):
        se.Requests.from_csr(matrix, list("aabbcc"), weights=weights)


def test_shapes_and_ids():
    matrix = requests_of([2, 1, 3])[1].relevance.to_csr()
    for users in (5, [["a"]] * 6, [1, "a"] * 3):
        with raises(InvalidDataError):
            se.Requests.from_csr(matrix, users)
    with raises(InvalidDataError):
        se.Requests.from_csr(csr_matrix((0, 3)), [])
    frame = pd.DataFrame([["a", "x", "y", 1]], columns=["r", "user", "user", "item"])
    with raises(InvalidDataError, argument="user"):
        se.Requests.from_frame(frame, request="r")


def test_one_weight_that_decides_has_a_note():
    lists, relevant, *_ = draw([1] * 300)
    weights = np.ones(300)
    weights[0] = 1e6
    assert "too few users for the intervals" in str(
        se.evaluate(lists, relevant, "mrr@10", weights=weights)
    )


def test_the_order_of_rows_makes_no_difference():
    counts = np.random.default_rng(0).integers(1, 9, 50)
    lists, requests, users, _ = requests_of(counts)
    matrix, names = requests.relevance.to_csr().csr, [f"r{n:04d}" for n in range(len(users))]
    order = np.random.default_rng(1).permutation(len(users))
    positions = csr_matrix((lists.positions, lists.items, lists.indptr), lists.shape)
    found = []
    for rows in (np.arange(len(users)), order):
        ids = [names[row] for row in rows]
        some = se.Requests.from_csr(matrix[rows], users[rows], requests=ids)
        ranked = se.Rankings.from_positions(positions[rows], users=ids)
        found.append(se.evaluate(ranked, some, METRICS))
    pd.testing.assert_frame_equal(*(ev.per_user for ev in found), check_exact=True)
    pd.testing.assert_frame_equal(
        *(ev.summary().drop(columns="random_se") for ev in found), check_exact=True
    )
