"""Printed tables: data in their authors' formats, models by their definitions, what is refused."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import pytest
from benchmark_calls import BENCHMARKS, call

PRINTED = BENCHMARKS / "suites" / "published" / "printed.toml"
SHARED = Path(__file__).parents[3] / "shared" / "published"


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(name)


def evaluate(table: str, folder: Path, model: str, metrics: list[str], **options: Any) -> Any:
    asked = {"model": model, "options": options, "runs": 1, "metrics": metrics}
    return call("suites.published.probe:row", table, folder, asked)


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
    tolerance = module("suites.published.suite", monkeypatch).TOLERANCE
    printed = tomllib.loads(PRINTED.read_text(encoding="utf-8"))[table]
    row = next(row for row in printed["rows"] if row.get("model") == "ease")
    found = evaluate(table, SHARED / table, "ease", printed["metrics"], **row["options"])
    for (metric, values), figure in zip(found["values"].items(), row["printed"], strict=True):
        assert values[0] == pytest.approx(float(figure), abs=tolerance), metric
