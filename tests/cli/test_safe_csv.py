"""The option --safe-csv: CSV that a spreadsheet shows, and does not run."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Command
from hypothesis import given
from hypothesis import strategies as st

import sparse_eval as se
from sparse_eval.cli.options import csv_text

#: Ids of users and items as someone who wants to be clicked would choose them, and as YouTube does.
USERS = ["=1+1", "@SUM(A1)", "anna"]
ITEMS = ["-dQw4w9W", "+49 30", "\tcmd", "cat; =1", 'say "hi"', "'quoted"]
CLICKS = pd.DataFrame(
    [(user, item) for n, user in enumerate(USERS) for item in ITEMS[n : n + 4]],
    columns=["user", "item"],
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("formulas")
    CLICKS.to_csv(folder / "clicks.csv", index=False)
    model = se.train_als(se.datasets.load_frame(CLICKS), factors=2, iterations=2)
    se.save_model(model, folder / "=als.npz")
    recs = CLICKS.assign(rank=CLICKS.groupby("user").cumcount() + 1)
    recs.to_csv(folder / "recs.csv", index=False)
    lists = (recs, CLICKS, "ndcg@2")
    for name in ("=a", "b"):
        se.evaluate(*lists).save(folder / "results" / name)
    return {path.name: path for path in folder.iterdir()}


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(StringIO(text, newline="")))


def harmless(cell: str) -> str:
    return "'" + cell if cell[:1] in set("=+-@\t\r\n＝＋－＠") - {""} else cell


CELLS = st.one_of(
    st.text(max_size=5), st.sampled_from([*USERS, *ITEMS, "\r=1", "\n=1", "＝1", "-1", "", "NaN"])
)


@given(
    st.lists(st.tuples(CELLS, st.integers(-9, 9), st.floats(-9, 9)), max_size=4),
    st.tuples(CELLS, CELLS, CELLS),
)
def test_text_begins_as_no_formula_and_numbers_stay(
    cells: list[tuple[str, int, float]], names: tuple[str, str, str]
) -> None:
    table = pd.DataFrame(cells, columns=list(names))
    before = table.copy()
    header, *found = rows(csv_text(table, safe=True))
    pd.testing.assert_frame_equal(table, before)
    assert header == [harmless(name) for name in names]
    assert [(a, int(b), float(c)) for a, b, c in found] == [
        (harmless(text), whole, number) for text, whole, number in cells
    ]


def test_what_is_asked_for_alone() -> None:
    table = pd.DataFrame({"item": ["=1", "a;=1"], "score": [-0.5, np.nan], "rank": [-1, 2]})
    assert csv_text(table, safe=False) == "item,score,rank\n=1,-0.5,-1\na;=1,,2\n"
    assert csv_text(table, safe=True) == ('"item","score","rank"\n"\'=1",-0.5,-1\n"a;=1","",2\n')


def test_recommendations(command: Command, files: dict[str, Path], tmp_path: Path) -> None:
    words = ("recommend", files["=als.npz"], files["clicks.csv"], "-k", 3)
    status, plain, said = command(*words, "--format", "csv")
    assert status == 0, said
    safe = command(*words, "--format", "csv", "--safe-csv")[1]
    out = tmp_path / "recs.csv"
    status, _, said = command(*words, "--out", out, "--safe-csv")
    assert status == 0
    assert out.read_bytes().decode() == safe
    written = rows(safe)
    assert written == [[harmless(cell) if n < 2 else cell for n, cell in enumerate(row)]
                       for row in rows(plain)]  # fmt: skip
    assert {row[0] for row in written} == {"user", "'=1+1", "'@SUM(A1)", "anna"}


def test_ids_and_names_of_files_and_results(
    command: Command, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files["=als.npz"].parent)
    data = ("--train", "clicks.csv", "--validation", "recs.csv", "-m", "ndcg@2")
    both = ("score", "=als.npz", "none.npz", *data, "--allow-seen", "--format", "csv")
    compared = ("compare", "results", "--format", "csv")
    lists = ("evaluate", "recs.csv", "clicks.csv", "-m", "ndcg@2", "--per-user", "--format", "csv")
    for words in (both, compared, lists):
        plain, safe = rows(command(*words)[1]), rows(command(*words, "--safe-csv")[1])
        assert any(cell.startswith("=") for row in plain for cell in row)
        assert not any(cell.startswith("=") for row in safe for cell in row)


def test_what_is_read_again_is_as_it_was(
    command: Command, files: dict[str, Path], tmp_path: Path
) -> None:
    words = ("evaluate", files["recs.csv"], files["clicks.csv"], "-m", "ndcg@2", "--format", "csv")
    for folder, option in (("plain", ()), ("safe", ("--safe-csv",))):
        assert command(*words, *option, "--out", tmp_path / folder)[0] == 0
    plain, safe = ((tmp_path / name / "per_user.csv").read_bytes() for name in ("plain", "safe"))
    assert plain == safe
    assert list(se.Evaluation.load(tmp_path / "safe").per_user.index) == sorted(USERS)
