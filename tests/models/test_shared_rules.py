"""Candidates and rules in sweeps, searches, callbacks and cross-validations, and their folders."""

from functools import partial

import numpy as np
import pytest
from raising import raises, warns
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError

pytestmark = [
    pytest.mark.filterwarnings("ignore:metrics among sampled candidates"),
    pytest.mark.filterwarnings("ignore:filter_seen=False, but no held-out item is in"),
]

METRICS = ["hit_rate@5", "ndcg@5", "auc"]
ALS = {"factors": 4, "iterations": 2}
CLICKS = se.datasets.synthetic(n_users=80, n_items=200, n_interactions=900, seed=0)


def sampled(holdout, seed=0):
    return se.sample_negatives(holdout, n=9, seed=seed)


def named(kind):
    return [f"{name} ({kind})" for name in METRICS]


@pytest.fixture(scope="module")
def one_left():
    return se.split.last_n(CLICKS, n=1, test=1)


@pytest.fixture
def checkpoint(one_left, tmp_path):
    se.save_model(se.train_als(one_left.train, **ALS), tmp_path / "als.npz")
    return tmp_path / "als.npz"


@pytest.mark.long
def test_a_search_and_its_test_of_new_users(tmp_path):
    holdout = se.split.users(CLICKS, fraction=0.2, test=0.2, fold_in=0.7, seed=0)
    space = ALS | {"factors": [2, 4]}
    result = se.tune(holdout, METRICS, space=space, candidates=sampled, out=tmp_path)
    trial = result.trials.set_index("factors").loc[ALS["factors"]]
    last = se.train_als(holdout.train, **ALS | {"iterations": trial["best_iteration"]})
    ev = se.evaluate_model(last, holdout, METRICS, candidates=sampled(holdout))
    assert trial[named("n+9")].tolist() == list(ev.mean().values())
    whole = holdout.for_test()
    model = se.train_als(whole.train, **result.best)
    tested = se.evaluate_model(model, whole, METRICS, candidates=sampled(whole))
    assert result.test is not None
    assert result.test.to_dict() == tested.to_dict()


@pytest.mark.long
def test_a_cross_validation(tmp_path):
    folds = [*se.split.k_fold(CLICKS, k=2, seed=0), se.split.users(CLICKS, fraction=0.2, seed=0)]
    options = {"splits": folds, "seeds": 1, "candidates": sampled, "out": tmp_path}
    cv = se.cross_validate(None, {"als": ALS, "other": ALS}, METRICS, **options)
    for row, fold in zip(cv.table.to_dict("records")[::2], folds, strict=True):
        model = se.train_als(fold.train, **ALS, seed=row["seed"])
        ev = se.evaluate_model(model, fold, METRICS, candidates=sampled(fold))
        assert {name: row[name] for name in METRICS} == ev.mean()
        assert row["candidates"] == "n+9"
    assert cv.summary()["candidates"].tolist() == ["n+9"] * 6
    assert "candidates: n+9" in repr(cv)
    again = se.cross_validate(None, {"als": ALS, "other": ALS}, METRICS, **options)
    assert again.table.equals(cv.table)


def test_candidates_for_all_splits():
    items = CLICKS.items[:100]
    mask = np.broadcast_to(np.arange(200) < 100, (80, 200))
    keyed = {user: items.tolist() for user in CLICKS.users}
    allowed = se.Protocol(METRICS, filter_seen=False)
    tables = []
    for candidates in (items, sparse.csr_matrix(mask), keyed):
        options = {"splits": se.split.k_fold(CLICKS, k=2), "seeds": 1, "candidates": candidates}
        with warns():
            tables.append(se.cross_validate(None, {"als": ALS}, allowed, **options).table)
    assert set(tables[0]["candidates"]) == {"candidates"}
    assert all(table.equals(tables[0]) for table in tables)


def test_sampled_candidates_in_a_sweep_and_a_callback(one_left, checkpoint):
    options = {"candidates": sampled(one_left)}
    model = se.train_als(one_left.train, **ALS)
    means = list(se.evaluate_model(model, one_left, METRICS, **options).mean().values())
    columns = named("1+9")
    table = se.sweep(checkpoint, one_left, METRICS, **options)
    assert table.loc[0, columns].tolist() == means
    callback = se.EvaluationCallback(one_left, METRICS, every=2, **options)
    se.train_als(one_left.train, **ALS, callback=callback)
    assert callback.history.iloc[-1][columns].tolist() == means


def test_refuses_candidates_of_another_part(one_left, checkpoint):
    of_test = sampled(one_left.for_test())
    with raises(InvalidDataError):
        se.sweep(checkpoint, one_left, METRICS, candidates=of_test)
    with raises(InvalidDataError):
        se.EvaluationCallback(one_left, METRICS, candidates=of_test)
    with raises(InvalidDataError):
        se.tune(one_left.train, one_left.validation, METRICS, candidates=sampled)
    with raises(InvalidDataError):
        se.cross_validate(CLICKS, {"als": ALS}, METRICS, candidates=sampled(one_left))
    wrong = np.ones((3, 200), np.int8)
    with raises(InvalidDataError, argument="candidates") as error:
        se.cross_validate(CLICKS, {"als": ALS}, METRICS, candidates=sparse.csr_matrix(wrong))
    assert error.value.__notes__ == ["This is about fold 1."]


def test_judged_items(tmp_path):
    """Of a split whose validation part stores items that were shown and not clicked, as MIND's."""
    clicks = se.datasets.synthetic(n_users=60, n_items=40, n_interactions=900, seed=0)
    holdout = se.split.random(clicks, fraction=0.4, seed=0)
    shown = holdout.validation.csr
    shown.data[::2] = 0.0
    holdout = se.Holdout(holdout.train, shown, holdout.users, holdout.items)
    sides = holdout.train, holdout.validation
    protocol = se.Protocol("ndcg@5", judged_only=True)
    callback = se.EvaluationCallback(*sides, protocol)
    model = se.train_als(holdout.train, **ALS, callback=callback)
    expected = se.evaluate_model(model, *sides, protocol)["ndcg@5"]
    assert expected != se.evaluate_model(model, *sides, "ndcg@5")["ndcg@5"]
    assert callback.history["ndcg@5 (judged)"].iloc[-1] == expected
    table = se.sweep(se.save_model(model, tmp_path / "als.npz"), *sides, protocol)
    assert table["ndcg@5 (judged)"].tolist() == [expected]
    options = {"splits": [holdout], "seeds": [0], "out": tmp_path / "cv"}
    assert "candidates: judged" in str(se.cross_validate(None, {"als": ALS}, protocol, **options))


def test_warns_if_nothing_was_judged_to_be_not_relevant(one_left):
    model = se.baselines.popularity(one_left)
    with warns():
        se.evaluate_model(model, one_left, se.Protocol("ndcg@3", judged_only=True))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("rules", [{}, {"judged_only": True}, {"no_relevant": "zero"}])
def test_judged_items_of_models_and_popularity_are_those_of_their_lists(rules):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(12, 3)), rng.normal(size=(25, 3))
    part = rng.choice(3, (12, 25), p=(0.5, 0.2, 0.3))  # 1: seen, 2: judged
    part[-1] %= 2  # nothing is judged
    gains = rng.choice([0.0, 0.0, 1.0, 2.0], part.shape)
    gains[-2] = 0  # nothing is relevant
    truth = sparse.csr_matrix((gains[part == 2], np.nonzero(part == 2)), part.shape)
    data = sparse.csr_matrix(part == 1, dtype=float), truth
    metrics = ["ndcg@3", "recall@2", "bpref@4", "judged@3", "infap@3"]
    protocol = se.Protocol(metrics, **rules)
    ev = se.evaluate_model(factors, *data, protocol, baselines=True)
    lists = se.Rankings.from_topk(se.top_k(factors, 25, train=data[0]).ids)
    popular = se.Rankings.from_popularity(data[0], k=25)
    for found, ranked in ((ev, lists), (ev.baselines["popularity"], popular)):
        expected = se.evaluate(ranked, truth, protocol, train=data[0])
        assert found.mean() == expected.mean()
        assert found.summary()["random"].tolist() == expected.summary()["random"].tolist()


LAST = se.split.last_n(CLICKS, n=1)
RULES = [
    {"no_relevant": "zero"},
    {"without_list": "exclude"},
    {"filter_seen": False},
    {"judged_only": True},
    {"convention": "ranx"},
]


def sweep(protocol, folder, candidates=None):
    path = folder / "model.npz"
    if not path.exists():
        se.save_model(se.baselines.popularity(LAST), path)
    among = candidates and candidates(LAST)
    return se.sweep(path, LAST, protocol, out=folder / "out", candidates=among)


def cross_validate(protocol, folder, candidates=None):
    models = {"popular": lambda train, seed: se.baselines.popularity(train)}
    options = {"splits": [LAST], "seeds": 1, "candidates": candidates}
    return se.cross_validate(None, models, protocol, out=folder, **options).table


def tune(protocol, folder, candidates=None):
    space = {"factors": 2, "iterations": 1}
    return se.tune(LAST, protocol, space=space, out=folder, candidates=candidates).trials


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("job", [sweep, cross_validate, tune])
def test_a_folder_of_other_rules_or_candidates_is_refused(tmp_path, job):
    job("ndcg@5", tmp_path)
    for rules in RULES:
        with raises(InvalidFileError):
            job(se.Protocol("ndcg@5", **rules), tmp_path)
    with raises(InvalidFileError):
        job("ndcg@5", tmp_path, sampled)
    (tmp_path / "sampled").mkdir()
    table = job("ndcg@5", tmp_path / "sampled", sampled)
    for other in (None, partial(sampled, seed=1)):
        with raises(InvalidFileError):
            job("ndcg@5", tmp_path / "sampled", other)
    assert job("ndcg@5", tmp_path / "sampled", sampled).equals(table)
