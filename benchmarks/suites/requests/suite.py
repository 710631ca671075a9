"""Suite `requests`: intervals of requests hold the truth as often as they should."""

import math
from collections.abc import Iterator
from typing import Any

from harness.bounds import NOISE, Share, out_of_bounds
from harness.format import markdown, percent
from harness.job import Job
from harness.progress import say

#: The repetitions of a toy run, as a share of the usual number.
TOY = 0.001

#: The share of intervals that hold the truth, by number of users, and the most false alarms.
COVERAGE = {200: (0.925, 0.97), 2000: (0.935, 0.965)}
ALARMS = 0.055


def run(job: Job) -> dict[str, Any]:
    """Simulate; return the report. Nothing is timed, no rival takes part, there are no rounds."""
    say("simulating requests")
    report = job.call("suites.requests.probe:simulate", TOY if job.smoke else 1.0)
    report["out_of_bounds"] = [] if job.smoke else out_of_bounds(bounded(report))
    return report


def bounded(report: dict[str, Any]) -> Iterator[Share]:
    """Yield the shares of intervals that hold the truth, and of false alarms."""
    for row in report["rows"]:
        title = f"{row['n_users']} users × {row['n_requests']}, correlation {row['correlation']:g}"
        title += ", weighted" * row["weighted"]
        noise = NOISE * math.sqrt(0.05 * 0.95 / row["repetitions"])
        low, high = COVERAGE[row["n_users"]]
        yield f"{title}: held", row["held"], low - noise, high + noise
        yield f"{title}: alarms", row["alarms"], 0.0, ALARMS + noise


def requests(report: dict[str, Any]) -> str:
    """Return the shares by users, requests, correlation and weights."""
    rows = [
        (
            f"{row['n_users']:,} × {row['n_requests']}", f"{row['correlation']:g}",
            "log-normal" if row["weighted"] else "none", percent(row["held"]),
            percent(row["held_as_people"]), percent(row["alarms"]), f"{row['repetitions']:,}",
        )
        for row in report["rows"]
    ]  # fmt: skip
    headings = (
        "users × requests",
        "intra-class correlation",
        "weights",
        "95 % intervals that hold the truth",
        "requests as people",
        "false differences",
        "samples",
    )
    return markdown(headings, rows)


TABLES = {"requests": requests}
