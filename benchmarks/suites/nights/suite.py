"""Suite `nights`: `compare --fail-if-worse` stops nightly runs as often as it should."""

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
    report["out_of_bounds"] = [] if job.smoke else out_of_bounds(shares(report))
    return report


def shares(report: dict[str, Any]) -> Iterator[Share]:
    """Yield the share of stopped nights, with at most false alarms and at least the power."""
    most, least = round(1 - report["level"], 12), report["power"]
    for title, share in report["equal"].items():
        yield f"{title}: stopped equally good models", share, 0.0, most + noise(most, report)
    for title, share in report["lost"].items():
        if title.startswith("1 metric"):
            low = least - noise(least, report)
            yield f"{title}: stopped detectable losses", share, low, 1.0


def noise(share: float, report: dict[str, Any]) -> float:
    return NOISE * math.sqrt(share * (1 - share) / report["nights"])


def nights(report: dict[str, Any]) -> str:
    """Return how many nights are stopped, with a description of the nights."""
    titles = dict.fromkeys([*report["equal"], *report["lost"]])
    rows = [
        (title, *(percent(report[of][title]) if title in report[of] else "" for of in CASES))
        for title in titles
    ]
    noise = percent((0.05 * 0.95 / report["nights"]) ** 0.5)
    note = (
        f"{report['nights']:,} nights (± {noise} where 5 % are stopped) of {report['n_users']:,} "
        f"users unless said. The detectable loss is that of {100 * report['power']:.0f} % for one "
        "metric and two models; with more, the correction asks for more."
    )
    headings = ("nights that are stopped", *CASES.values())
    return f"{markdown(headings, rows)}\n\n{note}"


CASES = {"equal": "equally good models", "lost": "a loss of the detectable size"}

TABLES = {"nights": nights}
