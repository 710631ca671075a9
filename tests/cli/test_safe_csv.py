"""The option --safe-csv: CSV that a spreadsheet shows, and does not run."""

import csv
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparse_eval as se
from sparse_eval.cli.options import csv_text

pytestmark = pytest.mark.long

#: Ids of users and items as someone who wants to be clicked would choose them, and as YouTube does.
USERS = ["=1+1", "@SUM(A1)", "anna"]
ITEMS = ["-dQw4w9W", "+49 30", "\tcmd", "cat; =1", 'say "hi"', "'quoted"]


def rows(text):
    return list(csv.reader(StringIO(text, newline="")))


def harmless(cell):
    return "'" + cell if cell[:1] in set("=+-@\t\r\n＝＋－＠") - {""} else cell


CELLS = st.one_of(
    st.text(max_size=5), st.sampled_from([*USERS, *ITEMS, "\r=1", "\n=1", "＝1", "-1", "", "NaN"])
)


@given(
    st.lists(st.tuples(CELLS, st.integers(-9, 9), st.floats(-9, 9)), max_size=4),
    st.tuples(CELLS, CELLS, CELLS),
)
def test_text_begins_as_no_formula_and_numbers_stay(cells, names):
    table = pd.DataFrame(cells, columns=list(names))
    before = table.copy()
    header, *found = rows(csv_text(table, safe=True))
    pd.testing.assert_frame_equal(table, before)
    assert header == [harmless(name) for name in names]
    assert [(a, int(b), float(c)) for a, b, c in found] == [
        (harmless(text), whole, number) for text, whole, number in cells
    ]


def test_what_is_asked_for_alone():
    table = pd.DataFrame({"item": ["=1", "a;=1"], "score": [-0.5, np.nan], "rank": [-1, 2]})
    assert csv_text(table, safe=False) == "item,score,rank\n=1,-0.5,-1\na;=1,,2\n"
    assert csv_text(table, safe=True) == ('"item","score","rank"\n"\'=1",-0.5,-1\n"a;=1","",2\n')


def test_ids_and_names_of_files_and_results(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clicks = [(user, item) for n, user in enumerate(USERS) for item in ITEMS[n : n + 4]]
    frame = pd.DataFrame(clicks, columns=["user", "item"])
    frame.to_csv("clicks.csv", index=False)
    recs = frame.assign(rank=frame.groupby("user").cumcount() + 1)
    recs.to_csv("recs.csv", index=False)
    se.save_model(
        se.train_als(se.Interactions.from_frame(frame), factors=2, iterations=2), "=als.npz"
    )
    Path("none.npz").write_bytes(b"")  # cannot be scored
    for name in ("=a", "b"):
        se.evaluate(recs, frame, "ndcg@2").save(Path("results", name))
    data = ("--train", "clicks.csv", "--validation", "recs.csv", "-m", "ndcg@2", "--allow-seen")
    recommend = ("recommend", "=als.npz", "clicks.csv", "-k", 3)
    for words in (
        recommend,
        ("score", "=als.npz", "none.npz", *data),
        ("compare", "results"),
        ("evaluate", "recs.csv", "clicks.csv", "-m", "ndcg@2", "--per-user", "--out", "saved"),
    ):
        printed = [command(*words, "--format", "csv", *safe)[1] for safe in ((), ("--safe-csv",))]
        plain, safe = map(rows, printed)
        assert any(cell.startswith("=") for row in plain for cell in row)
        assert not any(cell.startswith("=") for row in safe for cell in row)
        if words is recommend:
            assert safe == [
                [*map(harmless, row[:2]), *row[2:]] for row in plain
            ]  # a negative score is a number
            assert command(*words, "--safe-csv", "--out", "out.csv")[0] == 0
            assert Path("out.csv").read_bytes().decode() == printed[1]
    # A saved evaluation is read again, so that it keeps its ids.
    assert list(se.Evaluation.load("saved").per_user.index) == sorted(USERS)
