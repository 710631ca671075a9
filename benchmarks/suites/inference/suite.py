"""Suite `inference`: check the coverage of intervals, and the false-positive rates of tests.

p-values are compared with ranx, and with direct calls of `scipy.stats`.
"""

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import environment
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
        for name in ("coverage", "means", "differences", "false_positives", "families")
    },
    "overall": "suites.inference.overall:simulate",
    "cross_validation": "suites.inference.cross:simulate",
    "decisions": "suites.inference.decisions:simulate",
    "sampled": "suites.inference.sampled:simulate",
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
# False positives of cross-validated models, with few folds and seeds.
CROSS_SHOWN = (0.03, 0.07)
# The bound for wrong results among several comparisons.
MOST_WRONG = 0.05

# The largest allowed difference of p-values from ours. If random signs are drawn, it is in standard
# errors, and large enough that none of about twenty pairs fails by chance.
TOLERANCES = {"scipy": 0.0, "ranx": 1e-12}
MONTE_CARLO = 5


def run(job: Job) -> dict[str, Any]:
    """Simulate and compare; return the report. Nothing is timed, and there are no rounds.

    With ``--case NAME``, only the parts whose names begin with NAME are simulated again, and the
    other parts come from the previous results. Raises `RuntimeError` if a p-value is wrong. Shares
    outside their bounds are reported.
    """
    scale = TOY if job.smoke else 1.0
    report: dict[str, Any] = read("inference") if job.case else {}
    if "p_values".startswith(job.case):
        say("comparing p-values")
        report["p_values"] = p_values(job, scale)
    for name, simulate in PARTS.items():
        if name.startswith(job.case):
            say(f"simulating {name.replace('_', ' ')}")
            report[name] = job.call(simulate, scale)
    report["out_of_bounds"] = [] if job.smoke else out_of_bounds(shares(report))
    return report


def p_values(job: Job, scale: float) -> dict[str, Any]:
    """Return the p-values of all libraries for some pairs of models."""
    takes_part = "ranx" in job.taking_part
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pairs.npz")
        found = job.call("suites.inference.probe:p_values", scale, file)
        permutations, cases = found["permutations"], found["cases"]
        if takes_part:
            theirs = environment.call(
                "ranx", "suites.inference.rivals.ranx:p_values", file, permutations
            )
            for case, tests in cases.items():
                tests["t"]["ranx"] = theirs["student"][case]
                tests["permutation"]["ranx"] = theirs["fisher"][case]
    for case, tests in cases.items():
        for test, p in tests.items():
            check(f"{test}, {case}", p, permutations)
    ranx = {"student": f"equal to {TOLERANCES['ranx']:g}"} if takes_part else "not compared"
    return {"notes": {"ranx": ranx}, "permutations": permutations, "cases": cases}


def check(what: str, p: dict[str, Any], permutations: int) -> None:
    """Add the allowed differences from ours to `p`; raise `RuntimeError` if one is larger."""
    ours, p["allowed"] = p["sparse_eval"], {}
    for name in [name for name in TOLERANCES if name in p]:
        drawn = name in p["drawn_by"]
        allowed = monte_carlo(max(ours, p[name]), permutations) if drawn else TOLERANCES[name]
        p["allowed"][name] = allowed
        if not abs(p[name] - ours) <= allowed:
            raise RuntimeError(f"p-values differ: {what}: {ours!r}, that of {name} is {p[name]!r}")


def monte_carlo(p: float, permutations: int) -> float:
    """Return the allowed difference of two estimates of p, each from its own random signs.

    The variance of an estimate is at most p (2 − p) / n, the variance of twice the share on one
    side. The observed difference may or may not count as one of the draws on this side.
    """
    return MONTE_CARLO * math.sqrt(2 * p * (2 - p) / permutations) + 2 / permutations


def shares(report: dict[str, Any]) -> Iterator[Share]:
    """Yield each share that has bounds, with its description."""
    for n_users, size in report["coverage"]["sizes"].items():
        if int(n_users) >= FEWEST_USERS:
            yield from of_metrics(f"{n_users} users: held", size["held"], *HELD)
    for title, n_users, size in simulated_differences(report):
        what = f"differences, {title}, {n_users} users"
        if n_users >= FEWEST_USERS:
            low, high = HELD_DIFFERENCE
            least = low - NOISE * size["standard_error"]
            yield from of_metrics(f"{what}: held", size["held"], least, high)
        yield from of_metrics(f"{what}: contradicts", size["contradicts"], 0.0, 0.0)
    for entry in report["false_positives"]["tests"]:
        what = f"{entry['test']}, {entry['n_users']} users: shown"
        yield from of_metrics(what, entry["shown"], *SHOWN)
    for n_users, size in report["decisions"]["sizes"].items():
        margin = NOISE * size["standard_error"]
        held = {name: share for name, share in size["held"].items() if name != TIED}
        yield from of_metrics(f"decisions, {n_users} users: held", held, *HELD_DECISION)
        wrong = size["wrong"]
        yield from of_metrics(f"decisions, {n_users} users: wrong", wrong, 0.0, MOST_WRONG + margin)
    for title, found in report["cross_validation"]["identical"].items():
        yield f"cross-validation, {title}: shown", found["pooled"], *CROSS_SHOWN
    for title, family in report["families"]["families"].items():
        for name, found in family.items():
            most = MOST_WRONG + NOISE * found["standard_error"]
            yield f"{title}, {name}", found["share"], 0.0, most


def of_metrics(what: str, found: dict[str, float], low: float, high: float) -> Iterator[Share]:
    for metric, share in found.items():
        yield f"{what}, {metric}", share, low, high
