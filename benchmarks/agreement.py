"""Suite `agreement`: every library gives the number that we give under its convention.

python benchmarks/agreement.py      builds the libraries' environments, no more
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import agreement_cases
import environment
from lists import MismatchError
from progress import say

CASES = "agreement_cases.json"


def run(rivals: list[str], rounds: int) -> dict[str, Any]:
    """Compare all libraries; return the report. Nothing is timed: `rounds` is not used.

    Raises `MismatchError` when a library differs in anything that its script does not declare.
    """
    del rounds
    described = {name: environment.describe(name) for name in rivals}
    libraries = {}
    with tempfile.TemporaryDirectory() as folder:
        cases = write_cases(Path(folder))
        for name, entry in described.items():
            if "failed" in entry:
                continue
            say(f"{name}: comparing values")
            libraries[name] = compare(name, cases)
    wrong = [f"{name}: {found}" for name in libraries for found in mismatches(libraries[name])]
    if wrong:
        raise MismatchError("\n  ".join(["values differ", *wrong]))
    return {
        "inputs": {"n_cases": agreement_cases.N_CASES, "seed": agreement_cases.SEED},
        "rivals": described,
        "libraries": libraries,
    }


def write_cases(folder: Path) -> Path:
    path = folder / CASES
    path.write_text(json.dumps(agreement_cases.make()), encoding="utf-8")
    return path


def compare(name: str, cases: Path) -> dict[str, Any]:
    """Return what the probe found: how far our values are from a library's, by metric."""
    values = cases.with_name(f"{name}.json")
    environment.run(name, environment.BENCHMARKS / "agreement_worker.py", name, cases, values)
    probe = environment.BENCHMARKS / "agreement_probe.py"
    return environment.run(environment.REFERENCE, probe, cases, values)


def mismatches(found: dict[str, Any]) -> list[str]:
    """Say which metrics are further apart than the library's script allows, and where."""
    return [
        f"{metric} by {entry['max_difference']:.3g}, in case {entry['furthest_case']}"
        for metric, entry in found["metrics"].items()
        if entry["max_difference"] > found["tolerance"]
    ]


if __name__ == "__main__":
    for rival in environment.COMPARED:
        environment.python(rival)
