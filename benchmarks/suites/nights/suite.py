"""Suite `nights`: `gate` passes and fails candidates as often as it should."""

import math
from collections.abc import Iterator
from typing import Any

from harness.bounds import NOISE, Share, out_of_bounds
from harness.format import markdown, percent
from harness.job import Job
from harness.progress import say

#: The nights of a toy run, as a share of the usual number.
TOY = 0.001


def run(job: Job) -> dict[str, Any]:
    """Simulate; return the report. Nothing is timed, no rival takes part, there are no rounds."""
    say("simulating nights")
    scale = TOY if job.smoke else 1.0
    report = job.call("suites.nights.probe:simulate", scale)
    report["out_of_bounds"] = [] if job.smoke else out_of_bounds(bounded(report))
    return report


def bounded(report: dict[str, Any]) -> Iterator[Share]:
    """Yield the shares of nights with a wrong verdict, which may be `alpha` at most."""
    most = report["alpha"]
    noise = NOISE * math.sqrt(most * (1 - most) / report["nights"])
    for title, by_loss in report["shares"].items():
        yield f"{title}: failed equal models", by_loss["0%"]["failed"], 0.0, most + noise
        for loss in ("10%", "20%"):
            share = by_loss[loss]["passed"]
            yield f"{title}: passed a loss of {loss}", share, 0.0, most + noise


def nights(report: dict[str, Any]) -> str:
    """Return the shares of nights by verdict, with a description of the nights."""
    rows = [
        (title, loss, *(percent(share) for share in shares.values()))
        for title, by_loss in report["shares"].items()
        for loss, shares in by_loss.items()
    ]
    note = (
        f"{report['nights']:,} nights of {report['n_users']:,} users; every rule is "
        f'`not_worse_by = "{report["margin"]}"`, at `alpha = {report["alpha"]:g}`.'
    )
    headings = ("rules", "hits that the candidate lost", "passed", "undecided", "failed")
    return f"{markdown(headings, rows)}\n\n{note}"


TABLES = {"nights": nights}
