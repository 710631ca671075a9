"""Results as notebooks show them and as JSON holds them."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparse_eval.core.formatting import (
    MOST_ROWS,
    as_html,
    number,
    numbers,
    plain,
    records,
    text_table,
)
from sparse_eval.core.versions import installed_version, library_versions


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (math.nan, None),
        (np.float64("inf"), None),
        (pd.NA, None),
        (None, None),
        ("a", "a"),
        (("a", 1), "('a', 1)"),
    ],
)
def test_values_become_those_of_json(value: object, expected: object) -> None:
    result = plain(value)
    assert result == expected
    assert type(result) is type(expected)


def test_records_are_the_rows_of_a_table() -> None:
    table = pd.DataFrame({"n": [1, 2], 3: [0.5, math.nan]}, index=["x", "y"])
    assert json.loads(json.dumps(records(table))) == [{"n": 1, "3": 0.5}, {"n": 2, "3": None}]


def test_long_tables_are_cut_and_escaped() -> None:
    table = pd.DataFrame({"<b>": range(MOST_ROWS + 2)})
    shown = as_html("a & b", table, where=".table")
    assert shown.startswith("<p>a &amp; b</p>")
    assert "&lt;b&gt;" in shown
    assert "… and 2 more rows: <code>.table</code>" in shown
    assert "more rows" not in as_html("", table.head(MOST_ROWS), where=".table")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.139281, "0.13928"),
        (0.0043217, "0.0043217"),
        (np.float64(1234.5), "1234.5"),
        (123456.7, "123460"),
        (9.999996, "10.000"),
        (99999.6, "100000"),
        (1.2345678e-7, "1.2346e-07"),
        (1.2345678e12, "1.2346e+12"),
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (-0.25, "-0.25000"),
        (math.inf, "inf"),
        (math.nan, ""),
    ],
)
def test_numbers_have_five_significant_digits(value: float, expected: str) -> None:
    assert number(value) == expected


def test_numbers_that_belong_together_have_the_same_decimals() -> None:
    assert numbers(0.0987654, 0.112345) == ("0.09877", "0.11235")
    assert numbers(-0.5, 0.0001) == ("-0.50000", "0.00010")
    assert numbers(-1e-9, 20.0) == ("0.000", "20.000")
    assert numbers(math.nan, 1.0) == ("", "1.0000")


@given(st.floats(-1e300, 1e300))
def test_numbers_are_rounded_to_five_digits(value: float) -> None:
    text = number(value)
    assert float(text) == pytest.approx(value, rel=0.5001e-4)
    digits = text.partition("e")[0].replace("-", "").replace(".", "").lstrip("0")
    assert len(digits.rstrip("0")) <= 5


def test_no_column_is_cut() -> None:
    name = "x" * 300
    rows = [[name, "0.5", "<b>"] + ["y"] * 50, ["z", "12.25", ""] + [""] * 50]
    headings = ["name", "number", "text", *map(str, range(50))]
    shown = text_table(rows, headings, ["left", "decimal", *["left"] * 51], "simple")
    lines = shown.splitlines()
    assert lines[2].split() == rows[0]
    assert lines[2].index(".") == lines[3].index(".")
    escaped = text_table(rows, headings, ["left", "decimal", *["left"] * 51], "html")
    assert name in escaped
    assert "<b>" not in escaped


def test_versions_name_what_computes() -> None:
    versions = library_versions()
    assert versions["sparse_eval"] == installed_version()
    assert versions["numpy"] == np.__version__
    assert set(versions) == {
        "python", "sparse_eval", "numpy", "scipy", "numba", "pandas", "implicit",
    }  # fmt: skip
