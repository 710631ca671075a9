"""Candidates and rules in sweeps, searches, callbacks and cross-validations, and their folders."""

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
ALLOWED = se.Protocol(METRICS, filter_seen=False)
ALS = {"factors": 4, "iterations": 2}
CLICKS = se.datasets.synthetic(n_users=80, n_items=200, n_interactions=900, seed=0)


def sampled(holdout, seed=0):
    return se.sample_negatives(holdout, n=9, seed=seed)


def unbiased(holdout):
    return sampled(holdout).corrected("unbiased")


def named(kind, corrected=""):
    return [f"{name} ({kind}{corrected})" for name in METRICS]


@pytest.fixture(scope="module")
def one_left():
    return se.split.last_n(CLICKS, n=1, test=1)


def expected(holdout, metrics=METRICS, candidates=None):
    model = se.train_als(holdout.train, **ALS)
    among = sampled(holdout) if candidates is None else candidates
    return list(se.evaluate_model(model, holdout, metrics, candidates=among).mean().values())


@pytest.fixture
def checkpoint(one_left, tmp_path):
    se.save_model(se.train_als(one_left.train, **ALS), tmp_path / "als.npz")
    return tmp_path / "als.npz"


def test_a_search_and_its_test_of_new_users(tmp_path):
    holdout = se.split.users(CLICKS, fraction=0.2, test=0.2, fold_in=0.7, seed=0)
    space = ALS | {"factors": [2, 4]}
    result = se.tune(holdout, METRICS, space=space, candidates=sampled, out=tmp_path)
    columns = named("n+9")
    assert result.trials.columns[-4:-1].tolist() == columns
    last = se.train_als(holdout.train, **ALS | {"iterations": result.trials["best_iteration"][1]})
    ev = se.evaluate_model(last, holdout, METRICS, candidates=sampled(holdout))
    assert result.trials.loc[1, columns].tolist() == list(ev.mean().values())
    whole = holdout.for_test()
    model = se.train_als(whole.train, **result.best)
    tested = se.evaluate_model(model, whole, METRICS, candidates=sampled(whole))
    assert result.test is not None
    assert result.test.to_dict() == tested.to_dict()


def test_a_cross_validation(tmp_path):
    folds = list(se.split.k_fold(CLICKS, k=2, seed=0))
    folds += [se.split.users(CLICKS, fraction=0.2, seed=0)]
    cv = se.cross_validate(
        None, {"als": ALS, "other": ALS}, METRICS, splits=folds, seeds=1,
        candidates=lambda split: se.sample_negatives(split.seen, split.validation, n=9),
        out=tmp_path,
    )  # fmt: skip
    columns = named("n+9")
    for row, fold in zip(cv.table.to_dict("records")[::2], folds, strict=True):
        model = se.train_als(fold.train, **ALS, seed=row["seed"])
        ev = se.evaluate_model(model, fold, METRICS, candidates=sampled(fold))
        assert [row[name] for name in columns] == list(ev.mean().values())
    assert cv.candidates is not None
    assert cv.candidates.n_relevant == 0
    assert cv.summary()["candidates"].tolist() == ["n+9"] * 6
    again = se.CrossValidation.load(tmp_path)
    assert again.table.equals(cv.table)
    assert again.candidates == cv.candidates


def test_candidates_for_all_splits():
    options = {"splits": se.split.k_fold(CLICKS, k=2), "seeds": 1}
    items = CLICKS.items[:100]
    mask = np.broadcast_to(np.arange(200) < 100, (80, 200))
    keyed = {user: items.tolist() for user in CLICKS.users}
    tables = []
    for candidates in (items, sparse.csr_matrix(mask), keyed):
        options["splits"] = se.split.k_fold(CLICKS, k=2)
        with warns():
            cv = se.cross_validate(None, {"als": ALS}, ALLOWED, candidates=candidates, **options)
        tables.append(cv.table)
    assert tables[0].columns[-3:].tolist() == named("candidates")
    assert all(table.equals(tables[0]) for table in tables)


def test_estimates_for_the_whole_catalogue(one_left, checkpoint, tmp_path):
    options = {"candidates": unbiased(one_left)}
    means = expected(one_left, candidates=unbiased(one_left))
    columns = named("1+9", ", unbiased")
    table = se.sweep(checkpoint, one_left, METRICS, **options)
    assert table.loc[0, columns].tolist() == means
    callback = se.EvaluationCallback(one_left, METRICS, every=2, **options)
    se.train_als(one_left.train, **ALS, callback=callback)
    assert callback.history.iloc[-1][columns].tolist() == means
    whole = {"candidates": unbiased}
    result = se.tune(one_left, METRICS, space=ALS, **whole)
    assert result.trials.columns[-4:-1].tolist() == columns
    cv = se.cross_validate(None, {"als": ALS}, METRICS, splits=[one_left], seeds=1, **whole)
    assert cv.table.loc[0, columns].tolist() == means


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


def shown_and_clicked():
    """A split whose validation part stores items that were shown and not clicked, as MIND's."""
    clicks = se.datasets.synthetic(n_users=60, n_items=40, n_interactions=900, seed=0)
    holdout = se.split.random(clicks, fraction=0.4, seed=0)
    validation = holdout.validation.csr
    validation.data[::2] = 0.0
    return se.Holdout(holdout.train, validation, holdout.users, holdout.items)


def test_judged_items(tmp_path, command):
    holdout = shown_and_clicked()
    sides = (holdout.train, holdout.validation)
    protocol = se.Protocol("ndcg@5", judged_only=True)
    model = se.train_als(holdout.train, factors=4, iterations=3)
    expected = se.evaluate_model(model, *sides, protocol)["ndcg@5"]
    assert expected != se.evaluate_model(model, *sides, "ndcg@5")["ndcg@5"]

    se.save_model(model, tmp_path / "als.npz", users=holdout.users, items=holdout.items)
    table = se.sweep(tmp_path / "als.npz", *sides, protocol, out=tmp_path / "sweep")
    assert table["ndcg@5 (judged)"].tolist() == [expected]

    callback = se.EvaluationCallback(*sides, protocol)
    se.train_als(holdout.train, factors=4, iterations=3, callback=callback)
    assert callback.history["ndcg@5 (judged)"].iloc[-1] == expected
    models = {"als": {"factors": 4, "iterations": 3}}
    cv = se.cross_validate(None, models, protocol, splits=[holdout], seeds=[0], out=tmp_path / "cv")
    assert "ndcg@5 (judged)" in str(cv)
    assert se.CrossValidation.load(tmp_path / "cv").request.judged_only

    holdout.save(tmp_path / "split")
    words = ["score", tmp_path / "als.npz", "--split", tmp_path / "split", "-m", "ndcg@5"]
    status, printed, _ = command(*words, "--judged-only")
    assert status == 0
    assert "ndcg@5 (judged)" in printed


def test_warns_if_nothing_was_judged_to_be_not_relevant(one_left):
    model = se.baselines.popularity(one_left)
    with warns():
        se.evaluate_model(model, one_left, se.Protocol("ndcg@3", judged_only=True))


JUDGED = ["ndcg@3", "recall@2", "bpref@4", "judged@3", "infap@3"]


class Sides:
    """Factors, what is seen, and judgements."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n_users, n_items = 12, 25
        users, items = rng.normal(size=(n_users, 3)), rng.normal(size=(n_items, 3))
        self.model = users.astype(np.float32), items.astype(np.float32)
        seen = rng.random((n_users, n_items)) < 0.2
        stored = (rng.random((n_users, n_items)) < 0.4) & ~seen
        stored[-1] = False  # nothing is judged
        gains = rng.choice([0.0, 0.0, 1.0, 2.0], size=stored.shape)
        gains[-2] = 0  # and nothing is relevant
        self.seen = sparse.csr_matrix(seen.astype(np.float64))
        self.truth = sparse.csr_matrix((gains[stored], np.nonzero(stored)), stored.shape)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("rules", [{}, {"judged_only": True}, {"no_relevant": "zero"}])
def test_models_and_popularity_have_the_numbers_of_their_lists(rules):
    sides = Sides(0)
    protocol = se.Protocol(JUDGED, **rules)
    ev = se.evaluate_model(sides.model, sides.seen, sides.truth, protocol, baselines=True)
    n_items = sides.truth.shape[1]
    lists = se.Rankings.from_topk(se.top_k(sides.model, n_items, seen=sides.seen).ids)
    popular = se.Rankings.from_popularity(sides.seen, k=n_items)
    for found, ranked in ((ev, lists), (ev.baselines["popularity"], popular)):
        expected = se.evaluate(ranked, sides.truth, protocol, train=sides.seen)
        assert found.mean() == expected.mean()
        assert found.summary()["random"].tolist() == pytest.approx(expected.summary()["random"])


LAST = se.split.last_n(CLICKS, n=1)
RULES = [
    {"no_relevant": "zero"},
    {"without_list": "exclude"},
    {"filter_seen": False},
    {"judged_only": True},
    {"convention": "ranx"},
]


#: Candidates of which each must be the only ones of a folder.
CANDIDATES = [
    None,
    sampled,
    lambda holdout: sampled(holdout, seed=1),
    unbiased,
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
def test_other_rules_are_refused(tmp_path, job):
    job("ndcg@5", tmp_path)
    for rules in RULES:
        with raises(InvalidFileError):
            job(se.Protocol("ndcg@5", **rules), tmp_path)
    job(se.Protocol("ndcg@5"), tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("job", [sweep, cross_validate, tune])
def test_other_candidates_are_refused(tmp_path, job):
    for number, candidates in enumerate(CANDIDATES):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = job("ndcg@5", folder, candidates)
        for other in CANDIDATES:
            if other is not candidates:
                with raises(InvalidFileError):
                    job("ndcg@5", folder, other)
        assert job("ndcg@5", folder, candidates).equals(table)
