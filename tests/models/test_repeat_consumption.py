"""Models that may recommend again: every item is a candidate, and repeated items count apart."""

import math

import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from raising import raises, warns
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError

NAMES = ["ndcg", "recall", "hit_rate", "mrr", "precision"]
KINDS = ["all", "repeat", "explore"]
METRICS = [f"{name}@3" for name in NAMES] + [
    f"{name}(items={kind})@3" for name in ("recall", "hit_rate") for kind in KINDS[1:]
]


@st.composite
def cases(draw):
    """Integer factors, so that scores are exact; what was seen and is held out may overlap."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = int(rng.integers(1, 7)), int(rng.integers(3, 12))
    factors = tuple(rng.integers(-3, 4, (n, 3)).astype(float) for n in shape)
    sides = []
    for _ in range(2):
        side = sparse.random(*shape, density=0.4, rng=rng, format="csr")
        side.data = rng.integers(0, 3, side.nnz).astype(float)  # explicit zeros among them
        sides.append(side)
    assume((sides[1].data > 0).any())
    return factors, *sides


def row(matrix, user):
    entries = slice(matrix.indptr[user], matrix.indptr[user + 1])
    return dict(zip(matrix.indices[entries].tolist(), matrix.data[entries].tolist(), strict=True))


def best(scores, k, without=()):
    """The best items, the lower one first among equals."""
    order = sorted(range(len(scores)), key=lambda item: (-scores[item], item))
    return [item for item in order if item not in without][:k]


def of_kind(gains, history, kind):
    if kind == "all":
        return gains
    known = {item for item, value in history.items() if value}
    return {i: gain for i, gain in gains.items() if (i in known) == (kind == "repeat")}


def parsed(metric):
    name = metric.partition("@")[0].partition("(")[0]
    return name, next((kind for kind in KINDS if f"items={kind}" in metric), "all")


def check(ev, lists_of, train, validation, candidates_of):
    """Compare every value of every user, and the random baseline, with plain definitions."""
    per_user, expected = ev.per_user, {metric: [] for metric in ev}
    for user in range(validation.shape[0]):
        gains, history = row(validation, user), row(train, user)
        ranked = {item: rank for rank, item in enumerate(lists_of(user, history), 1)}
        has_relevant = any(gains.values())
        for metric in ev:
            name, kind = parsed(metric)
            own = of_kind(gains, history, kind)
            value = oracle.value(name, {}, 3, ranked, own) if has_relevant else math.nan
            assert per_user[metric].iloc[user] == pytest.approx(value, nan_ok=True)
            n = sum(gain > 0 for gain in own.values())
            if n and name in ("recall", "hit_rate"):
                size, excluded = candidates_of(history)
                found = sum(gain > 0 for item, gain in own.items() if item not in excluded)
                none = math.comb(size - found, min(3, size)) / math.comb(size, min(3, size))
                share = found / n * min(3, size) / size
                expected[metric].append(share if name == "recall" else 1 - none)
    random = ev.summary()["random"]
    for metric, values in expected.items():
        if values:
            assert random[metric] == pytest.approx(np.mean(values))


@settings(max_examples=25)
@given(cases(), st.booleans())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_are_those_of_the_definitions(case, filter_seen):
    factors, train, validation = case
    scores = factors[0] @ factors[1].T
    n_items = train.shape[1]
    data = (factors, train, validation, se.Protocol(METRICS, filter_seen=filter_seen))
    try:
        ev = se.evaluate_model(*data, baselines=True)
    except InvalidDataError as error:
        assert filter_seen
        assert "relevant items are" in str(error)  # noqa: PT017 - one of two outcomes
        return
    counts = np.count_nonzero(train.toarray(), axis=0)

    def excluded(history):
        return history if filter_seen else ()

    def candidates_of(history):
        return n_items - len(excluded(history)), excluded(history)

    def listed(user, history):
        return best(scores[user], 3, excluded(history))

    def popular(_, history):
        return best(counts, 3, excluded(history))

    check(ev, listed, train, validation, candidates_of)
    check(ev.baselines["popularity"], popular, train, validation, candidates_of)


def test_full_rankings_are_counted_among_all_items():
    lists = se.Rankings.from_topk([[2, 0, 1, 3]])
    seen, held_out = sparse.csr_matrix([[1, 0, 1, 0]]), sparse.csr_matrix([[0, 1, 0, 0]])
    protocol = se.Protocol(["auc", "mean_rank"], filter_seen=False)
    with warns():
        ev = se.evaluate(lists, held_out, protocol, train=seen)
    assert ev.mean() == {"auc": pytest.approx(1 / 3), "mean_rank": 3.0}


@settings(max_examples=25)
@given(cases(), st.sampled_from(["exclude", "zero", "judged"]))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_users_without_such_items_are_left_out(case, no_relevant):
    factors, train, validation = case
    micro = [f"recall(average=micro,items={kind})@2" for kind in KINDS]
    metrics = ["recall(items=repeat)@2", *micro]
    protocol = se.Protocol(metrics, no_relevant=no_relevant, filter_seen=False)
    ev = se.evaluate_model(factors, train, validation, protocol)
    found, totals = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    scores = factors[0] @ factors[1].T
    for user in range(len(scores)):
        items = set(best(scores[user], 2))
        for kind in KINDS:
            gains = of_kind(row(validation, user), row(train, user), kind)
            relevant = {item for item, gain in gains.items() if gain > 0}
            found[kind] += len(items & relevant)
            totals[kind] += len(relevant)
            if kind == "repeat" and not relevant:
                assert math.isnan(ev.per_user["recall(items=repeat)@2"].iloc[user])
    assert found["all"] == found["repeat"] + found["explore"]
    for kind, metric in zip(KINDS, ev.keys()[1:], strict=True):
        assert ev[metric] == pytest.approx(found[kind] / max(totals[kind], 1))


@pytest.fixture(scope="module")
def holdout():
    rng = np.random.default_rng(1)
    n = 4000
    frame = pd.DataFrame(
        {
            "user": rng.integers(0, 60, n),
            "item": rng.zipf(1.4, n) % 80,
            "at": np.sort(rng.integers(0, 10**6, n)),
        }
    )
    events = se.Interactions.from_frame(frame, timestamp="at")
    return se.split.temporal(events, at=700_000, repeats="keep")


@pytest.fixture(scope="module")
def als(holdout):
    return se.train_als(holdout.train, factors=8, iterations=4)


def test_lists_are_those_of_implicit(holdout, als):
    rows = np.arange(10)
    train = holdout.train.csr.astype(np.float32)
    ids, _ = als.recommend(rows, train[rows], N=5, filter_already_liked_items=False)
    recs = se.recommend(als, holdout, 5, users=holdout.users[rows], filter_seen=False)
    assert holdout.items.get_indexer(recs["item"]).reshape(-1, 5).tolist() == ids.tolist()
    protocol = se.Protocol(METRICS, filter_seen=False)
    expected = se.evaluate_model(als, holdout, protocol)
    own = se.evaluate_model(se.Recommender(als), holdout, protocol)
    for ev in (expected, own):
        assert ev.mean() == expected.mean()
        assert ev.retrieval.n_seen == 0
        assert ev.to_dict()["n_relevant_seen"] > 100


@pytest.mark.long
def test_is_saved_shown_and_not_compared_with_another_setting(holdout, als, tmp_path):
    ev = se.evaluate_model(als, holdout, se.Protocol(METRICS, filter_seen=False))
    assert "seen items may be recommended again" in str(ev)
    assert ev.to_dict()["seen"] == "allow"
    ev.save(tmp_path / "als")
    again = se.Evaluation.load(tmp_path / "als")
    assert again.mean() == ev.mean()
    assert "seen items may be recommended again" in str(again)
    page = se.write_report({"als": again, "same": ev}, tmp_path / "report.html")
    assert "all items, seen ones too" in page.read_text(encoding="utf-8")
    with warns():
        other = se.evaluate_model(als, holdout, METRICS)
    assert "again" not in str(other)
    with raises(InvalidDataError):
        se.compare({"a": again, "b": other}, "recall@3")


def test_refuses_other_words_and_missing_train(holdout, als):
    for call in (
        lambda: se.Protocol("ndcg@5", filter_seen="include"),
        lambda: se.recommend(als, holdout, filter_seen="allow"),
        lambda: se.Rankings.from_popularity(holdout.train, 5, filter_seen=None),
    ):
        with raises(InvalidDataError, argument="filter_seen"):
            call()
    lists = se.Rankings.from_popularity(holdout.train, 5)
    with raises(InvalidMetricError, metric="recall(items=repeat)@5"):
        se.evaluate(lists, holdout, "recall(items=repeat)@5")
    with raises(InvalidMetricError, metric="recall(items=new)@5"):
        se.evaluate(lists, holdout, "recall(items=new)@5", train=holdout.train)
