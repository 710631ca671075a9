"""The real libraries, in their own environments, evaluate models as we do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SUITE = BENCHMARKS / "suites" / "protocols"
LIBRARIES = sorted(path.stem for path in (SUITE / "rivals").glob("*.py"))
SINGLE_PRECISION = {"lightfm"}


def run(python: Path | str, script: str, *arguments: Path | str) -> str:
    # -P: the libraries must not import the benchmarks' modules for theirs.
    command = [python, "-P", SUITE / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("protocols") / "problems.json"
    run(sys.executable, "problems.py", path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_same_numbers(name: str, problems: Path, tmp_path: Path) -> None:
    environment = BENCHMARKS / "environments" / name
    if not (environment / "requirements.txt").exists():
        pytest.skip(f"{name} is not installed; scripts/test --agreement does that")
    values = tmp_path / "values.json"
    script = SUITE / "rivals" / f"{name}.py"
    run(environment / "bin" / "python", "worker.py", script, problems, values)
    found: dict[str, Any] = json.loads(
        run(sys.executable, "probe.py", problems, values).splitlines()[-1]
    )
    tolerance = 1e-6 if name in SINGLE_PRECISION else 1e-9
    apart = {
        metric: entry
        for metric, entry in found["numbers"].items()
        if not entry["max_difference"] <= tolerance
    }
    assert not apart
    assert found["n_problems"] >= 50
    assert found["numbers"]
