"""What a new user writes: the right number, or an error or warning that says what to check."""

import re
import subprocess
import sys
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from exact import exact_model
from implicit.cpu.bpr import BayesianPersonalizedRanking
from raising import raises, warns
from scipy import sparse

import sparse_eval as se
from sparse_eval.core.arguments import SPELLINGS
from sparse_eval.datasets import GuessWarning
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics.registry import REGISTRY

CLICKS = se.datasets.synthetic(n_users=300, n_items=120, seed=0)


@pytest.fixture(scope="module")
def holdout():
    return se.split.random(CLICKS, seed=0)


@pytest.fixture(scope="module")
def model(holdout):
    return exact_model(holdout.train)


def test_doubtful_sides(model, holdout):
    lists = se.Rankings.from_topk(se.top_k(model, k=10).ids)
    with warns():  # seen items in lists
        se.evaluate(lists, holdout.validation, "ndcg@10", train=holdout.train)
    ranks = se.ranks(model, holdout.validation, train=holdout.train)
    with warns():  # the ranks are of unseen items, and nobody says which these are
        se.evaluate(ranks, holdout.validation, "auc")
    with warns():  # no item in common
        se.evaluate(sparse.csr_matrix([[1, 0]]), sparse.csr_matrix([[0, 1]]), "recall@5")
    with raises(InvalidDataError):  # a transposed side
        se.evaluate(sparse.csr_matrix([[1, 2, 0]]), sparse.csr_matrix(np.eye(3, 1)), "mrr")
    held = holdout.validation.csr
    with raises(InvalidDataError):  # the validation part as train
        se.evaluate(lists, held, "ndcg@10", train=held)


def test_bpr_on_explicit_zeros(holdout):
    shown, held = holdout.train.csr.copy(), holdout.validation
    shown.data[::4] = 0
    model = BayesianPersonalizedRanking(factors=4, iterations=2, random_state=0, num_threads=1)
    model.fit(shown, show_progress=False)
    with warns():
        se.evaluate_model(model, shown, held, "ndcg@10")
    callbacks = [
        se.EvaluationCallback(train, held, "ndcg@10")
        for train in (shown, shown.multiply(shown != 0))
    ]
    with warns():
        factors = [
            callback.fit(
                BayesianPersonalizedRanking(factors=4, iterations=2, random_state=0, num_threads=1)
            ).item_factors
            for callback in callbacks
        ]
    np.testing.assert_array_equal(*factors)


def test_ratings_are_gains_and_said():
    recs = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "rank": [1, 2]})
    truth = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "rating": [0, 1]})
    with pytest.warns(GuessWarning) as told:
        assert se.evaluate(recs, truth, "precision@2")["precision@2"] == 0.5
    assert "values in column 'rating' are 0" in str(told[0].message)
    assert se.Relevance.from_frame(truth, gain=None).gains.tolist() == [1, 1]
    with raises(InvalidDataError):
        se.evaluate(recs, truth.assign(count=1), "precision@2")


@pytest.mark.long
def test_threads_may_use_a_name_first_at_the_same_time():
    program = """if True:
        import sparse_eval as se
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(len(se.__all__)) as pool:
            list(pool.map(lambda name: getattr(se, name), se.__all__))
    """
    subprocess.run([sys.executable, "-c", program], check=True)


LISTS = {"ann": ["x", "y", "z"], "bob": ["z", "q"]}
HELD = pd.DataFrame({"user": ["ann", "bob", "bob"], "item": ["y", "z", "w"]})
PAIRS = {user: [(item, 0.5 - n) for n, item in enumerate(row)] for user, row in LISTS.items()}
SERIES = {user: pd.Series(dict(row)) for user, row in PAIRS.items()}
NESTED = pd.DataFrame({"user": [*LISTS], "recs": [*LISTS.values()]})
HIDDEN = pl.from_pandas(pd.DataFrame({"user": [*LISTS, "eve"], "recs": [*LISTS.values(), ["y"]]}))
NUMBERS = sparse.csr_matrix([[0, 1, 0, 0, 0], [0, 0, 1, 0, 1]])
FAISS = np.array([[0, 1, 2], [2, 3, -1]])


@pytest.mark.parametrize(
    ("predictions", "validation"),
    [
        (LISTS, HELD),
        ({user: {i: -n for n, i in enumerate(row)} for user, row in LISTS.items()}, HELD),
        (LISTS, {"ann": ["y"], "bob": ["z", "w"]}),
        (LISTS, {"ann": {"y": 1, "q": 0}, "bob": {"z": 1, "w": 1}}),
        ({**LISTS, "eve": []}, HELD),
        *((scored, HELD) for scored in (PAIRS, SERIES, {**PAIRS, "bob": SERIES["bob"]})),
        ({**PAIRS, "eve": []}, HELD),
        (LISTS, {"ann": [("y", 1), ("q", 0)], "bob": pd.Series({"z": 1, "w": 1})}),
        ({user: pd.Series(row) for user, row in LISTS.items()}, HELD),
        (HIDDEN.lazy().with_columns(pl.when(pl.col("user") != "eve").then("recs")), HELD),
        *((frame, HELD) for frame in (NESTED, pl.from_pandas(NESTED), pa.table(NESTED))),
        (se.Rankings.from_topk([*LISTS.values()], users=[*LISTS]), HELD),
        (se.Rankings.from_topk(LISTS), HELD),
        (se.Rankings.from_topk(FAISS, users=[*LISTS], items=["x", "y", "z", "q"]), HELD),
        ([[0, 1, 2], [2, 3]], NUMBERS),
        ([[0, 1, 2], [2, 3, 0]], NUMBERS),
    ],
)
def test_lists_in_any_form(predictions, validation):
    expected = (1 / np.log2(3) + 1 / (1 + 1 / np.log2(3))) / 2
    assert se.evaluate(predictions, validation, "ndcg@3")["ndcg@3"] == pytest.approx(expected)


def test_refuses_lists_that_name_users_if_the_other_side_numbers_them():
    texts = [["x"], ["z"]]
    for predictions, validation in (({0: [0], 1: [2]}, NUMBERS), (texts, HELD), (texts, NUMBERS)):
        with raises(InvalidDataError):
            se.evaluate(predictions, validation, "ndcg@3")
    with raises(InvalidDataError):
        se.evaluate({"ann": "xyz"}, HELD, "ndcg@3")
    for mixed in ([1, "x"], [2**63, 1]):
        with raises(InvalidDataError):
            se.evaluate(pd.DataFrame({"user": ["ann"], "recs": [mixed]}), HELD, "ndcg@3")
    with raises(InvalidDataError, hint=None):
        se.evaluate(se.Rankings.from_topk([[0], [1]], users=[5, 9]), NUMBERS[[0, 1, 1]], "mrr")


@pytest.mark.parametrize(
    "row",
    [
        [(1, 5), (2, 4)],
        [(0.9, 1), (0.8, 2)],
        pd.Series([5, 4], index=[1, 2]),
        pd.Series([0.5, 0.4]),
    ],
)
def test_numbers_that_could_be_items_or_scores_are_an_error(row):
    for sides in (({"u": row}, {"u": [1]}), ({"u": [1]}, {"u": row})):
        with raises(InvalidDataError):
            se.evaluate(*sides, "mrr")
    with raises(InvalidDataError):
        se.evaluate({"u": [1]}, {"u": [1]}, "mrr", candidates={"u": row})


def test_pairs_of_whole_numbers_and_scores():
    truth = {"u": [1], "v": [2]}
    for row in ([(1, 0.9), (2, 0.8)], pd.Series({1: 0.9, 2: 0.8})):
        run = {"u": row, "v": {2: 0.7}}
        assert se.evaluate(run, truth, "mrr", candidates=run)["mrr"] == 1


def test_splits_take_frames_and_files(tmp_path):
    frame, logs = CLICKS.to_frame(), tmp_path / "logs"
    logs.mkdir()
    first, second = frame.iloc[:700], frame.iloc[700:]
    first.to_csv(logs / "1.csv", index=False)
    second.to_csv(logs / "2.csv", index=False)
    for given in (frame, pl.from_pandas(frame), logs, f"{logs}/*.csv"):
        found, expected = se.split.temporal(given), se.split.temporal(CLICKS)
        for part in ("train", "validation"):
            one, other = getattr(found, part), getattr(expected, part)
            assert (one.csr != other.csr).nnz == 0
            assert one.users.equals(other.users)
    parts = se.Holdout.from_frames(first, logs / "2.csv", test=frame.iloc[:5])
    for part, rows in ((parts.train, first), (parts.validation, second)):
        assert part.nnz == len(rows[["user", "item"]].drop_duplicates())
    assert parts.users.equals(CLICKS.users)
    with raises(InvalidDataError):
        se.Holdout.from_frames(frame, frame.assign(user=1))


def test_the_last_share_of_each_users_pairs():
    frame = pd.DataFrame({"user": [1] * 5 + [2], "item": [*"abcdea"], "at": range(6)})
    clicks = se.Interactions.from_frame(frame, timestamp="at")
    held = se.split.last_n(clicks, fraction=0.4).validation.csr.toarray()
    assert held.tolist() == [[0, 0, 0, 1, 1], [0] * 5]
    with raises(InvalidDataError):
        se.split.last_n(clicks, n=2, fraction=0.4)


@pytest.mark.parametrize("name", SPELLINGS)
def test_arguments_of_other_libraries_show_ours(name):
    n_shown = 0
    for function in (
        se.evaluate, se.evaluate_model, se.top_k, se.recommend, se.compare, se.train_als,
        se.cross_validate, se.split.random, se.split.last_n, se.split.k_fold,
        se.write_report, se.Evaluation.save, se.tune, se.EvaluationCallback.__init__,
        se.datasets.load, se.split.temporal, se.Rankings.from_scores,
    ):  # fmt: skip
        own = function.__annotations__.keys()
        if name in own or not own & SPELLINGS[name].keys():
            continue
        with pytest.raises(TypeError, match=f"has no argument {name}; give"):
            function(**{name: 10})
        n_shown += 1
    assert n_shown


def test_a_split_without_a_test_part(holdout):
    assert holdout.test is None
    with pytest.raises(InvalidDataError, match="Pass holdout.validation"):
        se.evaluate_model(lambda rows: rows, holdout.train, holdout.test, "ndcg@10")


def test_ids_of_candidates_in_a_list(holdout):
    model = se.baselines.popularity(holdout.train)
    ids = holdout.items
    expected = se.evaluate_model(model, holdout, "ndcg@10", candidates=ids.index)
    for given in (ids.tolist(), tuple(ids.tolist()), np.array(ids.tolist())):
        found = se.evaluate_model(model, holdout, "ndcg@10", candidates=given)
        assert dict(found) == dict(expected)


def test_a_folder_of_results_is_compared(tmp_path):
    for name, lists in (("one", [[0, 1]]), ("two", [[1, 0]])):
        rankings = se.Rankings.from_topk(np.repeat(lists, 3, axis=0))
        ev = se.evaluate(rankings, sparse.csr_matrix([[1.0, 0.0]] * 3), "mrr@2")
        ev.save(tmp_path / "all" / name)
    assert se.compare(tmp_path / "all").names == ("one", "two")
    (tmp_path / "none").mkdir()
    with pytest.raises(InvalidDataError, match=re.escape("se.sweep(..., save=True) write them")):
        se.compare(str(tmp_path / "none"))


def test_models_are_no_checkpoints(holdout):
    with pytest.raises(InvalidDataError, match="expected paths. Save models with se.save_model"):
        se.sweep({"a": se.baselines.popularity(holdout.train)}, holdout, "ndcg@10")


def test_an_evaluation_is_like_a_mapping_of_means():
    ev = se.evaluate({"u": ["a", "b"]}, {"u": ["b"]}, ["ndcg@10", "mrr"])
    assert list(ev) == ["ndcg@10", "mrr"]
    assert dict(ev) == ev.mean()
    assert "mrr" in ev
    assert "MRR" in ev
    assert "map" not in ev


@mock.patch.dict(REGISTRY)
def test_a_cell_that_registers_a_metric_runs_again():
    cell = """if True:
        import sparse_eval as se

        @se.register_metric("hits_of_cell", "hits", cutoff="required")
        def hits_of_cell(s):
            return s.hits * {}
    """
    values = []
    for factor in (1.0, 2.0):
        exec(cell.format(factor), {"__name__": "notebook"})  # noqa: S102
        values.append(se.evaluate({"u": ["b"]}, {"u": ["b"]}, "hits_of_cell@1")["hits_of_cell@1"])
    assert values == [1.0, 2.0]
    with raises(se.errors.InvalidMetricError):

        @se.register_metric("hits_of_cell", "other hits", cutoff="required")
        def other_hits(s):
            return s.hits

    with raises(se.errors.InvalidMetricError):

        @se.register_metric("ndcg", "another")
        def ndcg(s):
            return s.hits


def test_wrong_forms_show_the_right_one(model, holdout, tmp_path):
    ev = se.evaluate_model(model, holdout, "ndcg@10")
    n_users, n_items = holdout.train.shape
    ids = np.zeros((n_users, 1), int), np.zeros((n_users, 1))  # as implicit recommends
    for wrong in (
        lambda: se.evaluate_model(model, holdout, {"ndcg": 10}),
        lambda: se.Rankings.from_topk(ids),
        lambda: se.top_k(model, users=np.ones(n_users, bool)),
        lambda: se.evaluate_model(model, holdout, "ndcg@10", users=[True, False]),
        lambda: se.top_k(model, candidates=np.ones(n_items, bool)),
        lambda: se.compare([ev, ev]),
        lambda: se.compare({"a": ev, "b": ev}, by="activity"),
        lambda: se.plots.distribution({"a": ev}, ["ndcg@10"]),
        lambda: se.plots.losers({"a": ev}, "ndcg@10"),
        lambda: se.write_report({"a": ev}, tmp_path / "report.pdf"),
        lambda: se.cross_validate(holdout, {"a": {}}, "ndcg@10", seeds=1),
        lambda: se.evaluate_model(model, holdout, "ndcg@10", memory="a lot"),
    ):
        with raises(se.SparseEvalError):
            wrong()
    assert not any(tmp_path.iterdir())
    fractions = pd.DataFrame({"user": [1], "item": [1], "timestamp": [1795867416.95]})
    with raises(InvalidDataError):
        se.datasets.load(fractions)


def test_usual_forms_of_memory_and_threads(model, holdout):
    evs = [
        se.evaluate_model(model, holdout, "ndcg@10", memory=memory, num_threads=num_threads)
        for memory in (None, 10**9, "1GB", "953.67431640625 MiB")
        for num_threads in (None, 1, -1)
    ]
    assert len({ev["ndcg@10"] for ev in evs}) == 1


def test_a_split_as_training_data(model, holdout):
    recs = se.recommend(model, holdout, k=10)
    values = [
        se.evaluate(recs, holdout, "novelty@10", train=train)["novelty@10"]
        for train in (holdout, holdout.train)
    ]
    assert values[0] == values[1]
    fold_in = se.split.users(CLICKS, fraction=0.2, seed=0)
    recs = se.recommend(model, fold_in.seen, k=10)
    values = [
        se.evaluate(recs, fold_in, "novelty@10", train=train)["novelty@10"]
        for train in (fold_in, fold_in.seen)
    ]
    assert values[0] == values[1]


def test_lists_of_half_of_the_users(model, holdout):
    recs = se.recommend(model, holdout, k=10)
    half = recs[recs["user"].isin(list(holdout.users)[:100])]
    with warns():  # ids: no rows to assign
        se.evaluate(half, holdout, "ndcg@10")
    with warns():  # rows
        ids = se.top_k(model, users=list(holdout.users)[:100]).ids
        se.evaluate(se.Rankings.from_topk(ids, items=holdout.items), holdout, "ndcg@10")


@pytest.mark.parametrize("name", ["random", "last_n", "temporal", "leave_k_out", "users"])
def test_a_threshold_of_a_split_shows_the_filter(name):
    with pytest.raises(TypeError, match=r"filter\(min_value=4\)"):
        getattr(se.split, name)(threshold=4)


def test_groups_in_tables(model, holdout):
    genres = {item: ["a", "b"][: 1 + n % 2] for n, item in enumerate(holdout.items)}
    rows = pd.Series(genres).explode().rename_axis("item").reset_index(name="genre")
    weights = pd.DataFrame({g: [g in row for row in genres.values()] for g in "ab"}, [*genres])
    first = {item: row[-1] for item, row in genres.items()}
    table = pd.DataFrame({"item": [*first], "group": [*first.values()]})
    for forms in ((genres, rows, pl.from_pandas(rows), weights), (table, first)):
        evs = [
            se.evaluate_model(model, holdout, "calibration@5", item_data=se.ItemData(groups=groups))
            for groups in forms
        ]
        assert len({ev["calibration@5"] for ev in evs}) == 1
    ev = se.evaluate_model(model, holdout, "ndcg@10", keep="lists")
    plans = {user: "free" if n % 2 else "paid" for n, user in enumerate(holdout.users)}
    table = pd.DataFrame({"user": [*plans], "plan": [*plans.values()]})
    for known in (table, pl.from_pandas(table), table.set_index("user")):
        assert ev.by(known).equals(ev.by(plans))
    with raises(InvalidDataError):
        ev.by(table.assign(age=3))


def test_ids_of_other_dtypes_are_compared_exactly():
    train = pd.DataFrame({"user": [1, 2, 1], "item": [1, 2, 2]})
    held_out = pd.DataFrame({"user": [2.0], "item": [1]})
    assert list(se.Holdout.from_frames(train, held_out).users) == [1, 2]
    lists = pd.DataFrame({"user": [2**52 + 1, 7], "item": ["x", "x"], "rank": [1, 1]})
    truth = pd.DataFrame({"user": [2.0**52, 7.0], "item": ["x", "x"]})
    assert se.evaluate(lists, truth, "mrr")["mrr"] == 0.5


VECTORS = pd.DataFrame({"item": [3, 1, 0, 2], "x": [1.0, 1, 1, 0], "y": [1.0, 0, 0, 1]})
GROUPS = pd.DataFrame({"item": [3, 1, 0, 2], "group": [2, 1, 3, 1]})
CHANCES = pd.DataFrame({"item": [3, 1, 0, 2], "p": [0.2, 0.1, 0.3, 0.5]})


@pytest.mark.parametrize(
    ("argument", "table", "metric"),
    [
        ("vectors", VECTORS, "diversity(similarity=vectors)@3"),
        ("groups", GROUPS, "categorical_diversity@3"),
        ("groups", GROUPS.astype({"group": str}), "categorical_diversity@3"),
        ("propensity", CHANCES, "recall(weights=ips)@3"),
    ],
)
def test_tables_of_items_are_matched_by_their_item_column(argument, table, metric):
    """In any order of the rows, whose numbers no one reads."""
    lists, truth = {1: [0, 1, 2], 2: [2, 3, 0]}, {1: [0], 2: [3]}
    by_id = table.set_index("item")
    forms = [table, table.sort_values("item"), table.set_axis([4, 1, 3, 2]), by_id]
    forms += [pl.from_pandas(table), table.sample(frac=1, random_state=0)]
    forms += [by_id.iloc[:, 0]] if len(by_id.columns) == 1 else []
    values = {
        se.evaluate(lists, truth, metric, item_data=se.ItemData(**{argument: form}))[metric]
        for form in forms
    }
    assert len(values) == 1


def test_sources_that_would_be_misread_show_the_next_call(tmp_path):
    whole, floats, open_, numbers = (tmp_path / f"{name}.csv" for name in "abcd")
    whole.write_text("user,item\n1,10\n2,11\n")
    floats.write_text("user,item\n1.0,10\n2.0,11\n")
    open_.write_text("user,item,timestamp\n1,10,1700000000\n3,12,\n")
    numbers.write_text("34,103,1705853490\n35,104,1705853491\n")
    objects = tmp_path / "a.json"
    objects.write_text('[{"user": 1, "item": 2}]')
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 2]})
    dates = pd.to_datetime(["2024-01-01", "2024-01-02"])
    for source in (
        floats,
        [whole, floats],
        open_,
        numbers,
        objects,
        frame.assign(timestamp=["1700000000", "1700000001"]),
        frame.assign(timestamp=["31.12.2023", "1.1.2024"]),
        frame.assign(timestamp=dates.to_period("D")),
        frame.set_index(pd.Index(dates, name="timestamp")),
        frame.set_index("user"),
        [(1, 2), (3, 4)],
    ):
        with raises((InvalidDataError, se.errors.InvalidFileError)):
            se.datasets.load(source)
    for lists, truth in (
        ([(0, 5, 2), (1, 7, 3)], sparse.csr_matrix(np.eye(8)[:2])),
        (frame, {1: [2]}),
        (frame.assign(rank=[0, 1]), {1: [2]}),
        (np.array([[1, 2]]), sparse.csr_matrix([[0, 1, 1]])),
        ([[1, 2]], [[1]]),
        ({}, {1: [2]}),
    ):
        with raises(InvalidDataError):
            se.evaluate(lists, truth, "mrr")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_list_of_files_is_one_table(tmp_path, suffix):
    lists = pd.DataFrame({"user": [1, 1, 2], "item": [10, 11, 12], "rank": [1, 2, 1]})
    paths = [tmp_path / f"{number}.{suffix}" for number in range(2)]
    for path, part in zip(paths, (lists[:2], lists[2:]), strict=True):
        part.to_csv(path, index=False) if suffix == "csv" else part.to_parquet(path)
    truth = {1: [11], 2: [12]}
    for options in ({}, {"memory": "64MB"}):
        assert se.evaluate(paths, truth, "mrr", **options)["mrr"] == 0.75
    assert se.evaluate(truth, paths, "recall")["recall"] == 0.75


ONE_LIST = se.Rankings.from_topk([[1, 0]])
ONE_HIT = sparse.csr_matrix([[1.0, 0.0]])
TWO_ITEMS = np.ones((1, 1)), np.ones((2, 1))

FORMER_SPELLINGS = {
    "evaluate": lambda: se.evaluate(ONE_LIST, ONE_HIT, "ndcg@2", items=None),
    "evaluate_model": lambda: se.evaluate_model(TWO_ITEMS, ONE_HIT, ONE_HIT, "ndcg@2", items=None),
    "top_k": lambda: se.top_k(TWO_ITEMS, 2, seen=ONE_HIT),
    "ranks": lambda: se.ranks(TWO_ITEMS, ONE_HIT, seen=None),
    "from_scores": lambda: se.Rankings.from_scores([[1.0]], seen=None),
    "leave_k_out": lambda: se.split.leave_k_out(ONE_HIT, k=2),
    "callback": lambda: se.EvaluationCallback(ONE_HIT, ONE_HIT, "ndcg@2", keep="best"),
    "names": lambda: se.evaluate(ONE_LIST, ONE_HIT, "ndcg@2").names,
    "n_skipped": lambda: se.evaluate(ONE_LIST, ONE_HIT, "ndcg@2").n_skipped,
    "compare": lambda: se.evaluate(ONE_LIST, ONE_HIT, "ndcg@2").compare,
    "to_pandas": lambda: se.evaluate(ONE_LIST, ONE_HIT, "ndcg@2").to_pandas,
    "leave_one_out": lambda: se.split.leave_one_out,
}
NEW_SPELLINGS = {
    "evaluate": "item_data=",
    "evaluate_model": "item_data=",
    "top_k": "train=",
    "ranks": "train=",
    "from_scores": "train=",
    "leave_k_out": "n=2",
    "callback": "checkpoints='best'",
    "names": "list(ev)",
    "n_skipped": 'ev.to_dict()["n_skipped"]',
    "compare": "se.compare(",
    "to_pandas": "ev.to_frame()",
    "leave_one_out": "se.split.leave_k_out(interactions, n=1)",
}


@pytest.mark.parametrize("name", FORMER_SPELLINGS)
def test_former_spellings_show_the_new_ones(name):
    with pytest.raises((TypeError, AttributeError), match=re.escape(NEW_SPELLINGS[name])):
        FORMER_SPELLINGS[name]()
