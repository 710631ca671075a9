"""What a new user writes: the right number, or an error or warning that says what to check."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from implicit.cpu.bpr import BayesianPersonalizedRanking
from raising import raises, warns
from scipy import sparse

import sparse_eval as se
from sparse_eval.datasets import GuessWarning
from sparse_eval.errors import InvalidDataError, InvalidMetricError

CLICKS = se.datasets.synthetic(n_users=300, n_items=120, seed=0)


@pytest.fixture(scope="module")
def holdout() -> se.Holdout:
    return se.split.random(CLICKS, seed=0)


@pytest.fixture(scope="module")
def model(holdout: se.Holdout) -> Any:
    return se.train_als(holdout.train, factors=8, iterations=5)


@pytest.fixture(scope="module")
def truth(holdout: se.Holdout) -> pd.DataFrame:
    """Return the validation part as a table of ids, its rows in no order."""
    coo = holdout.validation.tocoo()
    frame = pd.DataFrame({"user": holdout.users[coo.row], "item": holdout.items[coo.col]})
    return frame.sample(frac=1, random_state=0, ignore_index=True)


def test_labels_on_one_side(model: Any, holdout: se.Holdout, truth: pd.DataFrame) -> None:
    expected = se.evaluate_model(model, holdout, "ndcg@10")["ndcg@10"]
    # The model and the train part know their ids, and a table is matched with them.
    relevance = se.Relevance.from_frame(truth)
    assert se.evaluate_model(model, holdout.train, relevance, "ndcg@10")["ndcg@10"] == expected
    ids = se.top_k(model, k=10, seen=holdout.train).ids
    with raises(InvalidDataError):
        se.evaluate(se.Rankings.from_topk(ids), relevance, "ndcg@10")
    lists = se.Rankings.from_topk(ids, users=holdout.users, items=holdout.items)
    assert se.evaluate(lists, relevance, "ndcg@10")["ndcg@10"] == expected
    plain = sparse.csr_matrix(holdout.train)
    numbered = se.train_als(plain, factors=8, iterations=5)
    with raises(InvalidDataError):
        se.evaluate_model(numbered, plain, relevance, "ndcg@10")
    with raises(InvalidDataError):
        se.evaluate(lists, relevance, "ndcg@10", train=plain)


def test_train_and_validation_swapped(model: Any, holdout: se.Holdout) -> None:
    with raises(InvalidDataError):
        se.evaluate_model(model, holdout.validation, holdout.train, "ndcg@10")


def test_the_validation_part_as_train(model: Any, holdout: se.Holdout) -> None:
    lists = se.Rankings.from_topk(se.top_k(model, k=10, seen=holdout.train).ids)
    with raises(InvalidDataError):
        se.evaluate(lists, holdout.validation, "ndcg@10", train=holdout.validation)
    held = sparse.csr_matrix(holdout.validation)
    with raises(InvalidDataError):
        se.evaluate(lists, held, "ndcg@10", train=held)
    with raises(InvalidDataError):
        se.evaluate_model(model, held, held, "ndcg@10")


def test_seen_items_in_lists(model: Any, holdout: se.Holdout) -> None:
    lists = se.Rankings.from_topk(se.top_k(model, k=10).ids)
    with warns():
        se.evaluate(lists, holdout.validation, "ndcg@10", train=holdout.train)


def test_a_transposed_side() -> None:
    positions = sparse.csr_matrix(([1, 1], ([0, 1], [4, 2])), shape=(2, 5))
    with raises(InvalidDataError):
        se.evaluate(positions, sparse.csr_matrix(np.eye(5, 2)), "mrr")


def test_a_pair_before_and_after_the_cut() -> None:
    frame = pd.DataFrame({"user": [*"aaab"], "item": [*"xxxy"], "timestamp": [10, 20, 30, 20]})
    holdout = se.split.temporal(se.Interactions.from_frame(frame), at=15)
    assert holdout.train.toarray().tolist() == [[1, 0], [0, 0]]
    assert holdout.left_out.repeated == 2


def test_the_history_of_mind_is_trained_on(tmp_path: Path) -> None:
    (tmp_path / "behaviors.tsv").write_text(
        "1\tU1\t11/11/2019 9:05:58 AM\tN1 N2\tN3-1 N4-0\n"
        "2\tU1\t11/13/2019 9:05:58 AM\tN1 N2\tN5-1 N4-0\n"
    )
    holdout = se.split.temporal(se.datasets.load(tmp_path), at="2019-11-11")
    assert holdout.train.nnz == 2
    assert holdout.items[holdout.train.indices].tolist() == ["N1", "N2"]


def test_cold_users_are_said(holdout: se.Holdout) -> None:
    seen = sparse.csr_matrix(holdout.train, copy=True)
    seen.data[: seen.indptr[100]] = 0
    seen.eliminate_zeros()
    model = se.train_als(seen, factors=4, iterations=2)
    with warns():
        ev = se.evaluate_model(model, seen, sparse.csr_matrix(holdout.validation), "ndcg@10")
    assert ev.n_cold
    assert f"{ev.n_cold} cold" in str(ev)


def test_lift_where_less_is_better(model: Any, holdout: se.Holdout) -> None:
    ranks = se.ranks(model, holdout.validation, seen=holdout.train)
    ev = se.evaluate(ranks, holdout.validation, ["mean_rank", "ndcg"], train=holdout.train)
    table = ev.summary()
    assert (table["lift"] > 1).all()
    row = table.loc["mean_rank"]
    assert row["lift"] == row["random"] / row["mean"]


def test_frames_of_interactions_keep_values_and_times() -> None:
    shown = se.Interactions.from_frame(
        pd.DataFrame({"user": [1, 1], "item": [5, 6], "value": [1, 0], "timestamp": [7, 8]})
    )
    again = se.Interactions.from_frame(shown.to_frame())
    assert again.values.tolist() == [1, 0]
    assert again.timestamps is not None
    assert again.timestamps.tolist() == [7, 8]
    assert se.Relevance.from_frame(shown.to_frame()).n_relevant.tolist() == [1]
    lists = pd.DataFrame({"user": [1, 1], "item": [6, 5], "rank": [1, 2]})
    assert se.evaluate(lists, shown.to_frame(), "mrr")["mrr"] == 0.5


def test_bpr_on_explicit_zeros(holdout: se.Holdout) -> None:
    shown = holdout.train.copy()
    shown.data[::4] = 0
    model = BayesianPersonalizedRanking(factors=4, iterations=2, random_state=0)
    model.fit(shown, show_progress=False)
    with warns():
        se.evaluate_model(model, shown, holdout.validation, "ndcg@10")
    fitted = [
        se.EvaluationCallback(shown, holdout.validation, "ndcg@10"),
        se.EvaluationCallback(holdout.train.multiply(shown != 0), holdout.validation, "ndcg@10"),
    ]
    with warns():
        factors = [
            callback.fit(
                BayesianPersonalizedRanking(factors=4, iterations=2, random_state=0, num_threads=1)
            ).item_factors
            for callback in fitted
        ]
    np.testing.assert_array_equal(*factors)


def test_no_item_in_common(tmp_path: Path) -> None:
    lists = pd.DataFrame({"user": [1], "item": [5], "rank": [1]})
    truth = pd.DataFrame({"user": [1], "item": [6]})
    sides: list[tuple[Any, Any]] = [
        (lists, truth),
        (se.Rankings.from_frame(lists, rank="rank"), se.Relevance.from_frame(truth)),
        (sparse.csr_matrix([[1, 0]]), sparse.csr_matrix([[0, 1]])),
    ]
    se.trec.write_run(sides[1][0], tmp_path / "run")
    se.trec.write_qrels(sides[1][1], tmp_path / "qrels")
    sides.append((tmp_path / "run", tmp_path / "qrels"))
    for name, side in (("lists", lists), ("truth", truth)):
        side.to_csv(tmp_path / f"{name}.csv", index=False)
    sides.append((tmp_path / "lists.csv", tmp_path / "truth.csv"))
    for predictions, validation in sides:
        with warns():
            assert se.evaluate(predictions, validation, "recall@5")["recall@5"] == 0


def test_lines_that_begin_with_a_count(tmp_path: Path) -> None:
    (tmp_path / "users.dat").write_text("2 10 11\n1 11\n2 10 12\n1 12\n")
    clicks = se.datasets.load(tmp_path / "users.dat")
    assert clicks.shape == (4, 3)
    assert "'line number' as user" in repr(clicks)


def test_vectors_that_no_metric_uses() -> None:
    lists, truth = se.Rankings.from_topk([[0, 1]]), sparse.csr_matrix([[1, 0]])
    train = sparse.csr_matrix(np.eye(3, 2))
    items = se.ItemData(vectors=np.eye(2))
    with raises(InvalidMetricError, metric="diversity@2"):
        se.evaluate(lists, truth, "diversity@2", train=train, items=items)
    with warns():
        ev = se.evaluate(
            lists, truth, "diversity@2,diversity(similarity=vectors)@2", train=train, items=items
        )
    assert ev["diversity(similarity=vectors)@2"] == 1


def test_ratings_of_zero(tmp_path: Path) -> None:
    (tmp_path / "BX-Book-Ratings.csv").write_bytes(
        '"User-ID";"ISBN";"Book-Rating"\n"1";"034";"0"\n"1";"035";"5"\n"2";"03é";"0"\n'.encode(
            "latin-1"
        )
    )
    with pytest.warns(GuessWarning) as told:
        se.datasets.load(tmp_path / "BX-Book-Ratings.csv")
    said = " ".join(str(warning.message) for warning in told)
    assert "read as Latin-1" in said
    assert "2 of 3 values in the column 'Book-Rating' are 0" in said


def test_a_table_with_other_names_of_columns(
    model: Any, holdout: se.Holdout, truth: pd.DataFrame, tmp_path: Path
) -> None:
    recs = se.recommend(model, holdout, 10)
    expected = se.evaluate(recs, truth, "ndcg@10")["ndcg@10"]
    renamed = {"user": "userId", "item": "movieId"}
    sides = (recs.rename(columns=renamed), truth.rename(columns=renamed))
    assert se.evaluate(*sides, "ndcg@10")["ndcg@10"] == expected
    for name, side in zip(("recs", "truth"), sides, strict=True):
        side.to_csv(tmp_path / f"{name}.csv", index=False)
        side.to_parquet(tmp_path / f"{name}.parquet", index=False)
    for suffix in ("csv", "parquet"):
        paths = (tmp_path / f"recs.{suffix}", tmp_path / f"truth.{suffix}")
        assert se.evaluate(*paths, "ndcg@10")["ndcg@10"] == expected
    assert se.train_als(sides[1], factors=2, iterations=1).user_ids is not None


def test_ratings_are_gains_and_said() -> None:
    recs = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "rank": [1, 2]})
    truth = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "rating": [0, 1]})
    with pytest.warns(GuessWarning) as told:
        assert se.evaluate(recs, truth, "precision@2")["precision@2"] == 0.5
    assert "the column 'rating' was taken for gains" in str(told[0].message)
    assert se.Relevance.from_frame(truth, gain=None).gains.tolist() == [1, 1]
    with raises(InvalidDataError):
        se.evaluate(recs, truth.assign(count=1), "precision@2")


def test_lists_of_some_users_by_number(model: Any, holdout: se.Holdout) -> None:
    ids = se.top_k(model, k=10, seen=holdout.train).ids[250:280]
    with warns():
        se.evaluate(se.Rankings.from_topk(ids), holdout.validation, "ndcg@10")
    lists = se.Rankings.from_topk(ids, users=holdout.users[250:280], items=holdout.items)
    with warns():
        assert se.evaluate(lists, holdout.validation, "hit_rate@10")["hit_rate@10"] > 0


def test_full_rankings_know_no_seen_items(model: Any, holdout: se.Holdout) -> None:
    ranks = se.ranks(model, holdout.validation, seen=holdout.train)
    with warns():
        se.evaluate(ranks, holdout.validation, "auc")
    right = se.evaluate(ranks, holdout.validation, "auc", train=holdout.train)["auc"]
    scores = model.user_factors.astype(float) @ model.item_factors.astype(float).T
    aucs = []
    for user in range(holdout.train.shape[0]):
        unseen = np.flatnonzero(holdout.train[user].toarray().ravel() == 0)
        relevant = holdout.validation[user].toarray().ravel()[unseen] > 0
        if relevant.any() and not relevant.all():
            of = scores[user, unseen]
            against = of[relevant][:, None] - of[~relevant]
            aucs.append(np.mean((against > 0) + (against == 0) / 2))
    assert right == pytest.approx(np.mean(aucs))


@pytest.mark.parametrize("user", [7, "7"])
def test_an_item_that_is_twice_in_a_list_is_named_as_it_is_given(user: object) -> None:
    lists = pd.DataFrame({"user": [user, user], "item": [3, 3], "score": [1.0, 2.0]})
    with raises(InvalidDataError, user=user):
        se.Rankings.from_frame(lists, score="score")


def test_threads_may_use_a_name_first_at_the_same_time() -> None:
    program = """
import threading, sparse_eval as se
failed = []
def use(name):
    try:
        getattr(se, name)
    except BaseException as error:
        failed.append((name, error))
threads = [threading.Thread(target=use, args=(name,)) for name in se.__all__]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
raise SystemExit(str(failed) if failed else 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
