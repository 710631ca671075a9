"""Suite `comparison`: five models compared and reported, and compared by ranx.

Each round starts a new process for each side, in turn.
"""

from statistics import median
from typing import Any

from harness import environment
from harness.format import conditions, duration, markdown, medians
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
    say("all metrics")
    ours = [job.call(f"{PROBE}:compare_all", folder) for _ in range(job.rounds)]
    means = found[environment.REFERENCE][0]["values"]
    seconds = {what: median(one["seconds"][what] for one in ours) for what in ours[0]["seconds"]}
    return {
        "inputs": made,
        **{key: ours[0][key] for key in ("n_metrics", "n_differences", "page_bytes")},
        "seconds": seconds,
        "n_several": len(next(iter(means.values()))),
        "several": several,
    }


def comparison(report: dict[str, Any]) -> str:
    """Return our times with all metrics, and the ratio to ranx with the metrics that it has."""
    inputs = report["inputs"]
    models = f"{inputs['n_models']} models, {inputs['n_users']:,} users"
    table = markdown(
        (f"{models}, {report['n_metrics']} metrics", "median"),
        [(what, duration(time)) for what, time in report["seconds"].items()],
    )
    theirs = markdown(
        (f"{models}, {report['n_several']} metrics evaluated, Student's test", "median", "× ours"),
        medians(report, report["several"]),
    )
    note = (
        f"{report['n_differences']:,} differences with intervals and corrected p-values; the page "
        f"has {report['page_bytes'] / 1e6:.2f} MB."
    )
    return "\n\n".join([table, theirs, f"{note} {conditions(report)}"])


TABLES = {"comparison": comparison}
