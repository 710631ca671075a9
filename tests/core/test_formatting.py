"""Results as notebooks show them and as JSON holds them."""

import json
import math

import numpy as np
import pandas as pd

from sparse_eval.core.formatting import MOST_ROWS, as_html, number, numbers, records, text_table


def test_records_are_the_rows_of_a_table():
    table = pd.DataFrame({"n": [1, 2], 3: [0.5, math.nan], "b": [np.bool_(True), pd.NA]})
    assert json.loads(json.dumps(records(table))) == [
        {"n": 1, "3": 0.5, "b": True},
        {"n": 2, "3": None, "b": None},
    ]


def test_long_tables_are_cut_and_escaped():
    table = pd.DataFrame({"<b>": range(MOST_ROWS + 2)})
    shown = as_html("a & b", table, where=".table")
    assert shown.startswith("<p>a &amp; b</p>")
    assert "&lt;b&gt;" in shown
    assert "… and 2 more rows: <code>.table</code>" in shown
    assert "more rows" not in as_html("", table.head(MOST_ROWS), where=".table")


def test_numbers_have_three_significant_digits():
    values = (0.139281, 0.0043217, 9.999996, 1234.5678, 1.2345678e-7, 0.0, -0.0, math.inf)
    assert " ".join(map(number, values)) == "0.139 0.00432 10.0 1235 1.23e-07 0.00 0.00 inf"
    assert number(math.nan) == ""


def test_numbers_that_belong_together_have_the_same_decimals():
    assert numbers(0.0987654, 0.112345) == ("0.099", "0.112")
    assert numbers(-0.5, 0.0001) == ("-0.50", "0.00")
    assert numbers(-1e-9, 20.0) == ("0", "20")
    assert numbers(1.2341e12, 1.2344e12) == ("1.23410e+12", "1.23440e+12")
    assert numbers(5e-324, 0.0) == ("4.94e-324", "0.00e+00")
    assert numbers(0.0832, 0.0712, 0.0952) == ("0.083", "0.071", "0.095")
    assert numbers(math.nan, 1.0) == ("", "1.00")
    # They have as many digits as their interval supports.
    assert numbers(0.1351234, 0.1348231, 0.1354237) == ("0.1351", "0.1348", "0.1354")
    assert numbers(0.5, 0.5 + 1e-14) == ("0.500000000", "0.500000000")


def test_tables_of_notebooks_have_their_own_padding_and_no_control_characters():
    shown = as_html("a\u202eb", pd.DataFrame({"c": ["d\u202e\ne"]}), where=".table")
    assert "\u202e" not in shown
    assert "a\\u202eb" in shown
    assert "d\\u202e\\ne" in shown
    assert shown.count("padding: ") == 2


def test_a_table_wider_than_the_terminal_is_stacked(monkeypatch):
    table = (
        [["als.npz", "0.25"], ["bpr.npz", ""]],
        ["file", "ndcg@10"],
        ["left", "decimal"],
        "simple",
    )
    whole = text_table(*table)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert text_table(*table) == whole
    monkeypatch.setenv("COLUMNS", "12")
    assert text_table(*table) == "file     als.npz\nndcg@10  0.25\n\nfile  bpr.npz"
