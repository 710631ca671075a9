"""Suite `nights`: `compare --fail-if-worse` stops nightly runs as often as it should."""

import math
from pathlib import Path
from typing import Any

from harness import environment
from harness.job import Job
from harness.progress import say

PROBE = Path(__file__).parent / "probe.py"
#: The nights of a toy run, as a share of the usual number.
TOY = "0.001"
#: The noise of a simulation, in standard errors.
NOISE = 2


def run(job: Job) -> dict[str, Any]:
    """Simulate; return the report. Nothing is timed, no rival takes part, there are no rounds."""
    say("simulating nights")
    report = environment.run(environment.REFERENCE, PROBE, TOY if job.smoke else "1")
    report["out_of_bounds"] = [] if job.smoke else out_of_bounds(report)
    for found in report["out_of_bounds"]:
        say(f"out of bounds: {found}")
    return report


def out_of_bounds(report: dict[str, Any]) -> list[str]:
    """Return the shares that are outside their bounds, as text."""
    most = round(1 - report["level"], 12)
    most += NOISE * math.sqrt(most * (1 - most) / report["nights"])
    found = [
        f"{title}: stopped {100 * share:.1f} % of equally good models, more than {100 * most:.1f} %"
        for title, share in report["equal"].items()
        if share > most
    ]
    power = report["power"]
    least = power - NOISE * math.sqrt(power * (1 - power) / report["nights"])
    found += [
        f"{title}: stopped {100 * share:.1f} % of detectable losses, less than {100 * least:.1f} %"
        for title, share in report["lost"].items()
        if title.startswith("1 metric") and share < least
    ]
    return found
