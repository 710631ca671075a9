"""Tables whose columns are named: every library, other names on each side, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from libraries import made
from merge_cases import same_numbers
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError

METRICS = ["ndcg@3", "recall(average=micro)@2", "coverage@2"]

#: What the columns are called, by what they usually are; "user" and "rank" are something else.
RECS_NAMES = {"user": "who", "item": "a `what`.x", "rank": "place", "score": "points"}
TRUTH_NAMES = {"user": "reader", "item": "user", "gain": "item"}


def tables(*, text=False):
    """Return lists with ranks and scores of one order, and gains, in no order."""
    rng = np.random.default_rng(0)
    users = range(30)
    rows = [(user, *row) for user in users for row in enumerate(rng.permutation(12)[:4], start=1)]
    recs = pd.DataFrame(rows, columns=["user", "rank", "item"])
    recs["score"] = -recs["rank"] / 4
    rows = [(user, item) for user in users for item in rng.permutation(12)[:3]]
    truth = pd.DataFrame(rows, columns=["user", "item"])
    truth["gain"] = rng.integers(0, 4, len(truth)).astype(np.float64)
    sides = [side.sample(frac=1, random_state=1, ignore_index=True) for side in (recs, truth)]
    for side in sides if text else []:
        side["user"] = side["user"].map("ü{:02}".format)
        side["item"] = "i" + side["item"].astype(str)
    return sides


def expected_of(recs, truth):
    lists = se.Rankings.from_frame(recs, rank="rank")
    return se.evaluate(lists, se.Relevance.from_frame(truth, gain="gain"), METRICS)


LIBRARIES = ["pandas", "polars", "lazy polars", "arrow", "reader", "duckdb", "csv", "parquet"]


@pytest.mark.parametrize("order", ["rank", "score"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_other_names_on_each_side(library, order, tmp_path):
    recs, truth = tables(text=order == "rank")
    names = {column: RECS_NAMES[column] for column in ("user", "item", order)}
    renamed = made(library, recs.rename(columns=RECS_NAMES), tmp_path, "recs")
    rankings = se.Rankings.scan(renamed, **names)
    renamed = made(library, truth.rename(columns=TRUTH_NAMES), tmp_path, "truth")
    relevance = se.Relevance.scan(renamed, **TRUTH_NAMES)
    expected = expected_of(recs, truth)
    same_numbers(se.evaluate(rankings, relevance, METRICS), expected)
    if library == "parquet":
        same_numbers(se.evaluate(rankings, relevance, METRICS, memory=1 << 24), expected)
    if library == "reader":
        with raises(InvalidDataError):
            se.evaluate(rankings, truth, METRICS)
    else:  # one side named, the other as usual
        same_numbers(se.evaluate(rankings, truth, METRICS), expected)


@pytest.mark.parametrize("memory", [None, 1 << 24])
@pytest.mark.parametrize("side", [0, 1])
def test_whole_numbers_of_a_text_file_beside_text(side, memory, tmp_path):
    sides = [frame.astype({"user": str, "item": str}) for frame in tables()]
    # One side has a user and an item more, which are no numbers.
    row = pd.DataFrame({"user": "x", "item": "y", "rank": 1, "score": 0.0, "gain": 0.0}, [0])
    sides[side] = pd.concat([sides[side], row[sides[side].columns]])
    files = [made("csv", frame, tmp_path, name) for name, frame in zip("ab", sides, strict=True)]
    same_numbers(se.evaluate(*files, METRICS, memory=memory), expected_of(*sides))


@pytest.mark.parametrize("table", [3, np.eye(2), {"user": [1]}, se.Rankings.scan("a.csv")])
def test_refuses_what_is_no_table(table):
    good = pd.DataFrame({"user": [1], "item": [1], "rank": [1]})
    for sides in ((se.Rankings.scan(table), good), (good, se.Relevance.scan(table))):
        with raises(InvalidDataError):
            se.evaluate(*sides, METRICS)


@pytest.mark.parametrize("library", ["pandas", "csv", "parquet"])
@pytest.mark.parametrize(
    ("of_recs", "of_truth"),
    [
        ({"rank": "rank", "score": "score"}, {}),
        ({"user": "who", "rank": "rank"}, {}),
        ({"rank": "rank"}, {"gain": "worth"}),
        ({"user": "item", "rank": "rank"}, {}),
    ],
)
def test_refuses_columns(library, of_recs, of_truth, tmp_path):
    recs, truth = (
        made(library, frame, tmp_path, side)
        for frame, side in zip(tables(), ("recs", "truth"), strict=True)
    )
    with raises((InvalidDataError, InvalidFileError)) as told:
        se.evaluate(
            se.Rankings.scan(recs, **of_recs), se.Relevance.scan(truth, **of_truth), METRICS
        )
    if library != "pandas":
        assert str(tmp_path) in str(told.value)


def test_refuses_a_column_that_is_there_twice():
    recs, truth = tables()
    twice = pd.concat([recs, recs[["user"]]], axis=1)
    with raises(InvalidDataError, column="user"):
        se.evaluate(se.Rankings.scan(twice, rank="rank"), truth, METRICS)
