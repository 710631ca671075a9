"""Suite `inference`: check the coverage of intervals, and the false-positive rates of tests."""

from collections.abc import Iterator
from typing import Any

from harness.bounds import NOISE, Share, out_of_bounds
from harness.job import Job
from harness.progress import say
from harness.report import read

from .decisions import TIED
from .tables import TABLES, simulated_differences

__all__ = ["TABLES", "run"]

#: The simulations, and their functions.
PARTS = {
    **{
        name: f"suites.inference.probe:{name}"
        for name in ("coverage", "means", "differences", "false_positives")
    },
    "overall": "suites.inference.overall:simulate",
    "decisions": "suites.inference.decisions:simulate",
}
#: The repetitions of a toy run, as a share of the usual number.
TOY = 0.001

# The bounds of shares: of 95 % intervals that contain the truth, from `FEWEST_USERS` users on, and
# of false positives at 5 %.
FEWEST_USERS = 200
HELD = (0.93, 0.97)
# For intervals of differences, which are too wide if few users differ.
HELD_DIFFERENCE = (0.93, 1.0)
SHOWN = (0.04, 0.06)
# For intervals for decisions, except of quantiles of tied values, which are wider.
HELD_DECISION = (0.935, 0.965)
# The bound for wrong verdicts.
MOST_WRONG = 0.05


def run(job: Job) -> dict[str, Any]:
    """Simulate; return the report. Nothing is timed, and there are no rounds.

    With ``--case NAME``, only the parts whose names begin with NAME are simulated again, and the
    other parts come from the previous results. Shares outside their bounds are reported.
    """
    scale = TOY if job.smoke else 1.0
    report: dict[str, Any] = read("inference") if job.case else {}
    for name, simulate in PARTS.items():
        if name.startswith(job.case):
            say(f"simulating {name.replace('_', ' ')}")
            report[name] = job.call(simulate, scale)
    report["out_of_bounds"] = [] if job.smoke else out_of_bounds(shares(report))
    return report


def shares(report: dict[str, Any]) -> Iterator[Share]:
    """Yield each share that has bounds, with its description."""
    for n_users, size in report["coverage"]["sizes"].items():
        if int(n_users) >= FEWEST_USERS:
            yield from of_metrics(f"{n_users} users: held", size["held"], *HELD)
    for title, n_users, size in simulated_differences(report):
        if n_users >= FEWEST_USERS:
            what, (low, high) = f"differences, {title}, {n_users} users", HELD_DIFFERENCE
            least = low - NOISE * size["standard_error"]
            yield from of_metrics(f"{what}: held", size["held"], least, high)
    for entry in report["false_positives"]["tests"]:
        what = f"{entry['test']}, {entry['n_users']} users: shown"
        yield from of_metrics(what, entry["shown"], *SHOWN)
    for n_users, size in report["decisions"]["sizes"].items():
        margin = NOISE * size["standard_error"]
        held = {name: share for name, share in size["held"].items() if name != TIED}
        yield from of_metrics(f"decisions, {n_users} users: held", held, *HELD_DECISION)
        wrong = size["wrong"]
        yield from of_metrics(f"decisions, {n_users} users: wrong", wrong, 0.0, MOST_WRONG + margin)


def of_metrics(what: str, found: dict[str, float], low: float, high: float) -> Iterator[Share]:
    for metric, share in found.items():
        yield f"{what}, {metric}", share, low, high
