"""Printed tables: their rows, and the figures of a model that no seed decides."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest
from benchmark_calls import BENCHMARKS, call

PRINTED = BENCHMARKS / "suites" / "published" / "printed.toml"
SHARED = Path(__file__).parents[3] / "shared" / "published"


def test_printed_rows_are_whole() -> None:
    tables = tomllib.loads(PRINTED.read_text(encoding="utf-8"))
    for table in tables.values():
        assert len(table["metrics"]) == len(table["heads"])
        for row in table["rows"]:
            assert len(row["printed"]) == len(table["metrics"])
            # Of what a seed decides, a note says so.
            assert not row.get("stochastic") or "note" in row


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the published files are not beside the project")
@pytest.mark.parametrize("table", ["ncf_ml1m", "spectralcf_ml1m"])
def test_ease_is_as_printed(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    tolerance = importlib.import_module("suites.published.suite").TOLERANCE
    printed = tomllib.loads(PRINTED.read_text(encoding="utf-8"))[table]
    row = next(row for row in printed["rows"] if row.get("model") == "ease")
    asked = {"model": "ease", "options": row["options"], "runs": 1, "metrics": printed["metrics"]}
    found = call("suites.published.probe:row", table, SHARED / table, asked)
    for (metric, values), figure in zip(found["values"].items(), row["printed"], strict=True):
        assert values[0] == pytest.approx(float(figure), abs=tolerance), metric
