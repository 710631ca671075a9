"""Suite `protocols`: libraries give the numbers that we give when they evaluate a model."""

from pathlib import Path
from typing import Any

from harness.job import Job
from harness.libraries import compare_all

from . import problems as small


def run(job: Job) -> dict[str, Any]:
    """Compare all libraries; return the report. Nothing is timed, and there are no rounds.

    Raises `MismatchError` if a library differs.
    """
    n_problems = small.N_PROBLEMS // 40 if job.smoke else small.N_PROBLEMS
    inputs = {"n_problems": n_problems, "seed": small.SEED}
    found = compare_all(job, Path(__file__).parent, small.make(n_problems), "problem", "numbers")
    return {"inputs": inputs, **found}
