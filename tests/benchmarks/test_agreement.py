"""The real libraries, in their own environments, give the numbers that we give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from benchmark_calls import BENCHMARKS, call

SINGLE_PRECISION = {"lightfm", "lightgcn", "pyxclib", "tensorflow_recommenders", "torchmetrics"}


class Suite(NamedTuple):
    """What a suite compares: how it calls problems and numbers, and how many there have to be."""

    name: str
    problems: str
    numbers: str
    fewest: int


SUITES = [
    Suite("agreement", "cases", "metrics", 200),
    Suite("protocols", "problems", "numbers", 50),
]
LIBRARIES = [
    pytest.param(suite, path.stem, id=f"{suite.name}-{path.stem}")
    for suite in SUITES
    for path in sorted((BENCHMARKS / "suites" / suite.name / "rivals").glob("*.py"))
]
PRINTED = BENCHMARKS / "suites" / "agreement" / "printed"


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the file of the problems of each suite."""
    paths = {}
    for suite in SUITES:
        path = paths[suite.name] = tmp_path_factory.mktemp(suite.name) / "problems.json"
        made = call(f"suites.{suite.name}.{suite.problems}:make")
        path.write_text(json.dumps(made), encoding="utf-8")
    return paths


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "name"), LIBRARIES)
def test_same_numbers(suite: Suite, name: str, problems: dict[str, Path], tmp_path: Path) -> None:
    environment = BENCHMARKS / "environments" / name
    if not (environment / "requirements.txt").exists():
        pytest.skip(f"{name} is not installed; scripts/test --agreement does that")
    folder, asked = f"suites.{suite.name}", problems[suite.name]
    values = tmp_path / "values.json"
    python = environment / "bin" / "python"
    script = f"{folder}.rivals.{name}"
    call("harness.libraries:answer", suite.name, script, asked, values, python=python)
    found = call(f"{folder}.probe:compare", asked, values)
    check(found[suite.numbers], name)
    assert found[f"n_{suite.problems}"] >= suite.fewest


@pytest.mark.parametrize("name", sorted(path.stem for path in PRINTED.glob("*.json")))
def test_numbers_that_libraries_have_printed(name: str, tmp_path: Path) -> None:
    values, asked = PRINTED / f"{name}.json", tmp_path / "asked.json"
    n_cases = len(json.loads(values.read_text(encoding="utf-8"))["cases"])
    cases = call("suites.agreement.cases:make", n_cases)
    asked.write_text(json.dumps(cases), encoding="utf-8")
    found = call("suites.agreement.probe:compare", asked, values)
    check(found["metrics"], name)
    assert found["n_cases"] >= 30


def check(numbers: dict[str, Any], name: str) -> None:
    tolerance = 1e-6 if name in SINGLE_PRECISION else 1e-9
    apart = {
        metric: entry
        for metric, entry in numbers.items()
        if not entry["max_difference"] <= tolerance
    }
    assert not apart
    assert numbers
