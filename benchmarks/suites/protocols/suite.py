"""Suite `protocols`: libraries give the numbers that we give when they evaluate a model."""

import json
import tempfile
from pathlib import Path
from typing import Any

from harness import environment
from harness.job import Job, MismatchError
from harness.progress import say

from . import problems as small

HERE = Path(__file__).parent


def run(job: Job) -> dict[str, Any]:
    """Compare all libraries; return the report. Nothing is timed, and there are no rounds.

    Raises `MismatchError` when a library differs.
    """
    described = {
        name: entry for name, entry in job.describe().items() if name != environment.REFERENCE
    }
    n_problems = small.N_PROBLEMS // 40 if job.smoke else small.N_PROBLEMS
    libraries = {}
    with tempfile.TemporaryDirectory() as folder:
        problems = Path(folder, "problems.json")
        problems.write_text(json.dumps(small.make(n_problems)), encoding="utf-8")
        for name, entry in described.items():
            if "failed" in entry:
                continue
            say(f"{name}: comparing values")
            libraries[name] = compare(name, problems)
    wrong = [f"{name}: {found}" for name in libraries for found in mismatches(libraries[name])]
    if wrong:
        raise MismatchError("\n  ".join(["values differ", *wrong]))
    return {
        "inputs": {"n_problems": n_problems, "seed": small.SEED},
        "rivals": described,
        "libraries": libraries,
    }


def compare(name: str, problems: Path) -> dict[str, Any]:
    """Return what the probe found: how far our values are from a library's, by metric."""
    values = problems.with_name(f"{name}.json")
    script = HERE / "rivals" / f"{name}.py"
    environment.run(name, HERE / "worker.py", script, problems, values)
    return environment.run(environment.REFERENCE, HERE / "probe.py", problems, values)


def mismatches(found: dict[str, Any]) -> list[str]:
    """Say which values are further apart than the library's script allows, and where."""
    return [
        f"{metric} by {entry['max_difference']:.3g}, in problem {entry['furthest_problem']}"
        for metric, entry in found["numbers"].items()
        if entry["max_difference"] > found["tolerance"]
    ]
