"""The real libraries, in their own environments, give the numbers that we give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SUITE = BENCHMARKS / "suites" / "agreement"
LIBRARIES = sorted(path.stem for path in (SUITE / "rivals").glob("*.py"))
SINGLE_PRECISION = {"torchmetrics"}


def run(python: Path | str, script: str, *arguments: Path | str) -> str:
    # -P: the libraries must not import the benchmarks' modules for theirs.
    command = [python, "-P", SUITE / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agreement") / "cases.json"
    run(sys.executable, "cases.py", path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_same_numbers(name: str, cases: Path, tmp_path: Path) -> None:
    environment = BENCHMARKS / "environments" / name
    if not (environment / "requirements.txt").exists():
        pytest.skip(f"{name} is not installed; scripts/test --agreement does that")
    values = tmp_path / "values.json"
    script = SUITE / "rivals" / f"{name}.py"
    run(environment / "bin" / "python", "worker.py", script, cases, values)
    found: dict[str, Any] = json.loads(
        run(sys.executable, "probe.py", cases, values).splitlines()[-1]
    )
    tolerance = 1e-6 if name in SINGLE_PRECISION else 1e-9
    apart = {
        metric: entry
        for metric, entry in found["metrics"].items()
        if not entry["max_difference"] <= tolerance
    }
    assert not apart
    assert found["n_cases"] >= 200
    assert found["metrics"]
