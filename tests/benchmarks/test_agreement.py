"""The real libraries, in their own environments, give the numbers that we give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
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


def run(python: Path | str, script: Path, *arguments: Path) -> str:
    # -P: the libraries must not import the benchmarks' modules for theirs.
    command = [python, "-P", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the file of the problems of each suite."""
    paths = {}
    for suite in SUITES:
        path = paths[suite.name] = tmp_path_factory.mktemp(suite.name) / "problems.json"
        run(sys.executable, BENCHMARKS / "suites" / suite.name / f"{suite.problems}.py", path)
    return paths


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "name"), LIBRARIES)
def test_same_numbers(suite: Suite, name: str, problems: dict[str, Path], tmp_path: Path) -> None:
    environment = BENCHMARKS / "environments" / name
    if not (environment / "requirements.txt").exists():
        pytest.skip(f"{name} is not installed; scripts/test --agreement does that")
    folder, asked = BENCHMARKS / "suites" / suite.name, problems[suite.name]
    values = tmp_path / "values.json"
    script = folder / "rivals" / f"{name}.py"
    run(environment / "bin" / "python", folder / "worker.py", script, asked, values)
    found: dict[str, Any] = json.loads(
        run(sys.executable, folder / "probe.py", asked, values).splitlines()[-1]
    )
    check(found[suite.numbers], name)
    assert found[f"n_{suite.problems}"] >= suite.fewest


@pytest.mark.parametrize("name", sorted(path.stem for path in PRINTED.glob("*.json")))
def test_numbers_that_libraries_have_printed(name: str, tmp_path: Path) -> None:
    folder, values = BENCHMARKS / "suites" / "agreement", PRINTED / f"{name}.json"
    every, asked = tmp_path / "every.json", tmp_path / "asked.json"
    run(sys.executable, folder / "cases.py", every)
    n_cases = len(json.loads(values.read_text(encoding="utf-8"))["cases"])
    cases = json.loads(every.read_text(encoding="utf-8"))[:n_cases]
    asked.write_text(json.dumps(cases), encoding="utf-8")
    found = json.loads(run(sys.executable, folder / "probe.py", asked, values).splitlines()[-1])
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
