"""Suite `agreement`: every library gives the number that we give under its convention."""

import json
import tempfile
from pathlib import Path
from typing import Any

from harness import environment
from harness.job import Job, MismatchError
from harness.progress import say

from . import cases as small

HERE = Path(__file__).parent


def run(job: Job) -> dict[str, Any]:
    """Compare all libraries; return the report. Nothing is timed, and there are no rounds.

    Raises `MismatchError` when a library differs in anything that its script does not declare.
    """
    described = {name: entry for name, entry in job.describe().items() if has_script(name)}
    n_cases = small.N_CASES // 40 if job.smoke else small.N_CASES
    libraries = {}
    with tempfile.TemporaryDirectory() as folder:
        cases = Path(folder, "cases.json")
        cases.write_text(json.dumps(small.make(n_cases)), encoding="utf-8")
        for name, entry in described.items():
            if "failed" in entry:
                continue
            say(f"{name}: comparing values")
            libraries[name] = compare(name, cases)
    wrong = [f"{name}: {found}" for name in libraries for found in mismatches(libraries[name])]
    if wrong:
        raise MismatchError("\n  ".join(["values differ", *wrong]))
    return {
        "inputs": {"n_cases": n_cases, "seed": small.SEED},
        "rivals": described,
        "libraries": libraries,
    }


def has_script(name: str) -> bool:
    return (HERE / "rivals" / f"{name}.py").exists()


def compare(name: str, cases: Path) -> dict[str, Any]:
    """Return what the probe found: how far our values are from a library's, by metric."""
    values = cases.with_name(f"{name}.json")
    script = HERE / "rivals" / f"{name}.py"
    environment.run(name, HERE / "worker.py", script, cases, values)
    return environment.run(environment.REFERENCE, HERE / "probe.py", cases, values)


def mismatches(found: dict[str, Any]) -> list[str]:
    """Say which metrics are further apart than the library's script allows, and where."""
    return [
        f"{metric} by {entry['max_difference']:.3g}, in case {entry['furthest_case']}"
        for metric, entry in found["metrics"].items()
        if entry["max_difference"] > found["tolerance"]
    ]
