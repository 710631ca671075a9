"""Suite `scorers`: rank the candidates of each user, compared with implicit and NumPy."""

from typing import Any

from harness import environment
from harness.format import conditions, markdown, timed
from harness.job import Job
from harness.progress import say
from harness.turns import compare_processes

PROBE = "suites.scorers.probe"
TITLES = {
    "evaluate_model": "`evaluate_model(…, candidates=…)`",
    "implicit": "implicit, `recommend(user, …, items=…)`, user by user",
    "NumPy": "NumPy, product and `argsort`, user by user",
}
# Others rank by scores in single precision, so nearly equal scores may change places.
TOLERANCE = 1e-4


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report.

    Raises `MismatchError` if two methods give different numbers.
    """
    sizes = (300, 500, 20) if job.smoke else (50_000, 51_277, 100)  # users, items, candidates
    folder = job.inputs / "scorers" / f"{sizes[0]}x{sizes[1]}"
    say("making the data")
    made = job.call(f"{PROBE}:make", folder, *sizes)
    calls = {name: (environment.REFERENCE, f"{PROBE}:rank", folder, name) for name in TITLES}
    options = {"reference": "evaluate_model", "tolerance": TOLERANCE}
    entries, _ = compare_processes(job, "candidates", calls, **options)
    return {"inputs": made, "candidates": entries}


def scorers(report: dict[str, Any]) -> str:
    """Return the cost of ranking the candidates of each user."""
    inputs = report["inputs"]
    head = (
        f"{inputs['n_candidates']} candidates of each user, {inputs['n_users']:,} users × "
        f"{inputs['n_items']:,} items, {inputs['n_factors']} factors"
    )
    rows = [(TITLES[name], *timed(entry)) for name, entry in report["candidates"].items()]
    return f"{markdown((head, 'time', '× the first'), rows)}\n\n{conditions(report)}"


TABLES = {"scorers": scorers}
