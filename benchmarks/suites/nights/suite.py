"""Suite `nights`: `compare --fail-if-worse` stops nightly runs as often as it should."""

import math
from typing import Any

from harness.format import markdown, percent
from harness.job import Job
from harness.progress import say

#: The nights of a toy run, as a share of the usual number.
TOY = 0.001
#: The noise of a simulation, in standard errors.
NOISE = 2


def run(job: Job) -> dict[str, Any]:
    """Simulate; return the report. Nothing is timed, no rival takes part, there are no rounds."""
    say("simulating nights")
    scale = TOY if job.smoke else 1.0
    report = job.call("suites.nights.probe:simulate", scale)
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


def nights(report: dict[str, Any]) -> str:
    """Return how many nights are stopped, with a description of the nights."""
    titles = dict.fromkeys([*report["equal"], *report["lost"]])
    rows = [
        (title, *(percent(report[of][title]) if title in report[of] else "" for of in CASES))
        for title in titles
    ]
    noise = percent((0.05 * 0.95 / report["nights"]) ** 0.5)
    seeds = " and ".join(
        f"{percent(share)} ({int(n_users):,} users)"
        for n_users, share in report["another seed"].items()
    )
    note = (
        f"{report['nights']:,} nights (± {noise} where 5 % are stopped) of {report['n_users']:,} "
        f"users unless said. The detectable loss is that of {100 * report['power']:.0f} % for one "
        "metric and two models; with more, the correction asks for more. ALS that is trained again "
        f"with another seed on the same clicks is stopped in {seeds}: of two trainings one is "
        "worse, and the more users there are, the surer that is."
    )
    headings = ("nights that are stopped", *CASES.values())
    return f"{markdown(headings, rows)}\n\n{note}"


CASES = {"equal": "equally good models", "lost": "a loss of the detectable size"}

TABLES = {"nights": nights}
