"""Suite `agreement`: every library gives the number that we give under its convention."""

from typing import Any

from harness.job import Job
from harness.libraries import compare_all

from . import cases as small
from .tables import TABLES

__all__ = ["TABLES", "run"]


def run(job: Job) -> dict[str, Any]:
    """Compare all libraries; return the report. Nothing is timed, and there are no rounds.

    Raises `MismatchError` if a library differs in anything that its script does not declare.
    """
    n_cases = small.N_CASES // 40 if job.smoke else small.N_CASES
    inputs = {"n_cases": n_cases, "seed": small.SEED}
    return {"inputs": inputs} | compare_all(
        job, "agreement", small.make(n_cases), "case", "metrics"
    )
