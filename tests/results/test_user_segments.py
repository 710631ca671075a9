"""Comparisons by segments of the users: their numbers, their correction, what is refused."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import reporting
from raising import raises
from scipy import stats

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, SparseEvalError
from sparse_eval.results.differences import correct
from sparse_eval.results.segments import segmentations

USERS = [f"u{n}" for n in range(230)]


@pytest.fixture(scope="module")
def pair():
    models = reporting.three(odd=True)
    return dict(zip(("a", "b"), models.values(), strict=False))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "user": [*USERS, "never evaluated"],
            "country": [*rng.choice(["DE", "FR", "AT"], 200), *[""] * 31],
            "plan": rng.choice(["free", "paid"], 231),
        }
    )


def test_every_segment_is_compared_by_itself(pair, table):
    compared = se.compare(pair, "ndcg@10", by=table)
    a, b = (ev.per_user["ndcg@10"].dropna() for ev in pair.values())
    expected = []
    for column in ("country", "plan"):
        for segment in sorted(set(table[column]) - {""}):
            users = a.index.intersection(table.loc[table[column] == segment, "user"])
            p = stats.ttest_rel(a[users], b[users]).pvalue
            expected.append([column, segment, len(users), (a[users] - b[users]).mean(), p])
    columns = ["by", "segment", "n_users", "difference", "p"]
    expected = pd.DataFrame(expected, columns=columns)
    pd.testing.assert_frame_equal(compared.table[columns], expected, rtol=1e-6, atol=1e-12)
    # Corrected over all segments of all columns.
    corrected = correct(compared.table["p"].to_numpy(), "holm")
    assert compared.table["p_corrected"].tolist() == corrected.tolist()
    assert (compared.table["better"] != "").tolist() == (corrected < 0.05).tolist()
    without = len(a) - expected.loc[expected["by"] == "country", "n_users"].sum()
    assert f"country: {without} of {len(a)} users have none and are in no segment" in compared.notes


def test_every_form_of_the_table_is_the_same(pair, table, tmp_path):
    table.to_csv(tmp_path / "users.tsv.gz", index=False, sep="\t")
    expected = se.compare(pair, "ndcg@10", by=table)
    for by in (
        table.set_index("user"),
        table.sample(frac=1, random_state=1),
        pa.table(table),
        str(tmp_path / "users.tsv.gz"),
    ):
        found = se.compare(pair, "ndcg@10", by=by)
        pd.testing.assert_frame_equal(found.table, expected.table)
        assert found.notes == expected.notes
    plans = table.set_index("user")["plan"]
    one, same = (se.compare(pair, "ndcg@10", by=by) for by in (plans, plans.to_dict()))
    assert (one.by, same.by) == (("plan",), ("segment",))
    pd.testing.assert_frame_equal(same.table.drop(columns="by"), one.table.drop(columns="by"))


def test_notes_display_and_papers_name_the_segments(pair, table):
    plans = table[["user", "plan"]]
    compared = se.compare(pair, ["ndcg@10", "coverage@10"], by=plans)
    assert set(compared.table["metric"]) == {"ndcg@10"}
    assert any(note.startswith("coverage@10: not compared by segment") for note in compared.notes)
    with raises(InvalidDataError):
        se.compare(pair, "coverage@10", by=plans)
    assert "paid" in compared._repr_html_()
    assert list(compared.shown()["segment"]) == ["free", "paid"]
    assert compared.to_dict()["differences"][0]["segment"] == "free"
    assert re.search(r"ndcg@10, free +& +ndcg@10, paid", compared.to_latex())
    assert "ndcg@10, plan free" in se.compare(pair, "ndcg@10", by=table).to_markdown()


@pytest.mark.parametrize(
    "by",
    [
        {"x": 1},
        {},
        {user: user for user in USERS},
        pd.DataFrame([["a", "b"]] * 230, USERS, ["x", "x"]),
        ["a"] * 240,
        "none.csv",
    ],
)
def test_refuses(pair, by):
    with raises(SparseEvalError):
        se.compare(pair, "ndcg@10", by=by)


def test_bands_stay_in_their_order_and_numbers_whole():
    users = pd.Index([1, 2, 3, 4])
    ages = pd.Series([9, 15, 31, np.nan], users)
    bands = pd.cut(ages, [0, 10, 20, 100], labels=["young", "old", "ancient"])
    found = segmentations(pd.DataFrame({"band": bands, "age": ages}), users)
    assert found[0].names == ["young", "old", "ancient"]
    assert found[1].names == ["9", "15", "31"]
    assert [column.codes.tolist() for column in found] == [[0, 1, 2, -1]] * 2
    assert segmentations(dict.fromkeys(users, "a"), users)[0].note() == ""
    # Users of files are text, and numbers elsewhere.
    text = segmentations({"4": "b", "2": "a"}, users)[0]
    assert (text.names, text.codes.tolist()) == (["a", "b"], [-1, 0, -1, 1])
