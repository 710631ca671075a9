"""Results as notebooks show them and as JSON holds them."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from sparse_eval.core.formatting import MOST_ROWS, as_html, number, plain, records
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
    shown = as_html("a & b", table, index=False, where=".table")
    assert shown.startswith("<p>a &amp; b</p>")
    assert "&lt;b&gt;" in shown
    assert "… and 2 more rows: <code>.table</code>" in shown
    assert "more rows" not in as_html("", table.head(MOST_ROWS), index=False, where=".table")
    assert (number(0.12345), number(math.nan)) == ("0.1235", "")


def test_versions_name_what_computes() -> None:
    versions = library_versions()
    assert versions["sparse_eval"] == installed_version()
    assert versions["numpy"] == np.__version__
    assert set(versions) == {
        "python", "sparse_eval", "numpy", "scipy", "numba", "pandas", "implicit",
    }  # fmt: skip
