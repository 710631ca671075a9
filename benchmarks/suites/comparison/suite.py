"""Suite `comparison`: five models evaluated and compared, by us and by ranx.

Each round starts a new process for each side, in turn.
"""

from typing import Any

from harness import environment
from harness.format import conditions, markdown, medians
from harness.job import Job
from harness.progress import say
from harness.turns import compare_processes

PROBE = "suites.comparison.probe"

#: The largest allowed difference of means.
TOLERANCE = 1e-9


def run(job: Job) -> dict[str, Any]:
    """Measure; return the report. Raises `MismatchError` if a rival's means differ from ours."""
    say("making the lists of five models")
    users, items = (300, 200) if job.smoke else (50_000, 51_277)
    folder = job.inputs / "comparison" / f"{users}x{items}"
    made = job.call(f"{PROBE}:make", folder, users, items)
    calls = {}
    for name in job.taking_part:
        module = PROBE if name in job.references else f"suites.comparison.rivals.{name}"
        calls[name] = (name, f"{module}:compare_several", folder)
    several, found = compare_processes(job, "several", calls, tolerance=TOLERANCE)
    means = found[environment.REFERENCE][0]["values"]
    return {"inputs": made, "n_several": len(next(iter(means.values()))), "several": several}


def comparison(report: dict[str, Any]) -> str:
    """Return our time and the time of ranx, with the metrics that both have."""
    inputs = report["inputs"]
    head = (
        f"{inputs['n_models']} models, {inputs['n_users']:,} users, {report['n_several']} metrics "
        "evaluated, Student's test"
    )
    table = markdown((head, "median", "× ours"), medians(report, report["several"]))
    return f"{table}\n\n{conditions(report)}"


TABLES = {"comparison": comparison}
