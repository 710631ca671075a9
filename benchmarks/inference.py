"""Suite `inference`: intervals hold the truth as often as they say, and tests err no more often.

p-values are compared with ranx's, and with those of `scipy.stats` called directly.
"""

import math
import tempfile
from pathlib import Path
from typing import Any

import environment
from progress import say

COMPARED = (environment.REFERENCE, "ranx")
PROBE = environment.BENCHMARKS / "inference_probe.py"
RANX = environment.BENCHMARKS / "inference_ranx.py"

# What a share has to be between: of intervals of 95 % that hold the truth, from so many users on,
# and of false positives at 5 %.
FEWEST_USERS = 200
HELD = (0.93, 0.97)
SHOWN = (0.04, 0.06)
# Of what is wrong among several comparisons; and the noise of a simulation, in standard errors.
MOST_WRONG = 0.05
NOISE = 2

TOLERANCE = 1e-12
# In standard errors: there are some twenty pairs, and none may fail by chance.
MONTE_CARLO = 5
RANX_TESTS = {
    "student": f"equal to {TOLERANCE:g}",
    "fisher": "draws signs of its own: within Monte-Carlo error of our permutation test",
    "tukey": "not compared: we have none",
}


def run(rivals: list[str], rounds: int) -> dict[str, Any]:
    """Simulate and compare; return the report. Nothing is timed: `rounds` is not used.

    Raises `RuntimeError` when a p-value is not what it should be. A share out of its bounds is
    reported.
    """
    del rounds
    report: dict[str, Any] = {"rivals": {name: environment.describe(name) for name in rivals}}
    say("comparing p-values")
    report["p_values"] = p_values(report["rivals"])
    for job in ("coverage", "false_positives", "families"):
        say(f"simulating {job.replace('_', ' ')}")
        report[job] = environment.run(environment.REFERENCE, PROBE, job)
    report["bounds"] = {"held": HELD, "shown": SHOWN, "wrong": MOST_WRONG}
    report["out_of_bounds"] = out_of_bounds(report)
    for found in report["out_of_bounds"]:
        say(f"out of bounds: {found}")
    return report


def p_values(rivals: dict[str, Any]) -> dict[str, Any]:
    """Return everybody's p-values of some pairs of models."""
    takes_part = "ranx" in rivals and "failed" not in rivals["ranx"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pairs.npz")
        found = environment.run(environment.REFERENCE, PROBE, "p_values", file)
        permutations, cases = found["permutations"], found["cases"]
        for case, tests in cases.items():
            for test, p in tests.items():
                check(f"{test}, {case}", p["sparse_eval"], p["scipy"], allowed=0.0)
        if takes_part:
            theirs = environment.run("ranx", RANX, file, str(permutations))
            compare_with_ranx(cases, theirs, permutations)
    return {
        "scipy": "called directly: equal to the last bit",
        "ranx": RANX_TESTS if takes_part else "not compared: took no part",
        "permutations": permutations,
        "cases": cases,
    }


def compare_with_ranx(cases: dict[str, Any], ranx: dict[str, Any], permutations: int) -> None:
    """Put ranx's p-values beside ours, and how far apart they may be."""
    for case, tests in cases.items():
        for ours, theirs in {"t": "student", "permutation": "fisher"}.items():
            p = tests[ours]
            p["ranx"] = ranx[theirs][case]
            p["allowed"] = TOLERANCE
            if theirs == "fisher":
                p["allowed"] = monte_carlo(max(p["sparse_eval"], p["ranx"]), permutations)
            check(f"{ours}, {case}", p["sparse_eval"], p["ranx"], p["allowed"])


def monte_carlo(p: float, permutations: int) -> float:
    """Return how far apart two estimates of p may be, each from random signs of its own.

    ranx counts how often a difference is as large on either side, of which the variance is
    p (1 − p) / n. Ours is twice the share on one side, of which it is p (2 − p) / n, and counts
    the observed difference among the draws, on that side.
    """
    error = math.sqrt((p * (1 - p) + p * (2 - p)) / permutations)
    return MONTE_CARLO * error + 2 / permutations


def check(what: str, ours: float, theirs: float, allowed: float) -> None:
    if not abs(ours - theirs) <= allowed:
        raise RuntimeError(f"p-values differ: {what}: {ours!r} is ours, {theirs!r} theirs")


def out_of_bounds(report: dict[str, Any]) -> list[str]:
    """Say which shares are not between their bounds."""
    shares = [
        (f"{metric}, {n_users} users: held", share, HELD)
        for n_users, size in report["coverage"]["sizes"].items()
        if int(n_users) >= FEWEST_USERS
        for metric, share in size["held"].items()
    ]
    shares += [
        (f"{entry['test']}, {metric}, {entry['n_users']} users: shown", share, SHOWN)
        for entry in report["false_positives"]["tests"]
        for metric, share in entry["shown"].items()
    ]
    shares += [
        (f"{title}, {name}", found["share"], (0.0, MOST_WRONG + NOISE * found["standard_error"]))
        for title, family in report["families"]["families"].items()
        for name, found in family.items()
    ]
    return [
        f"{what} {100 * share:.2f} %, not between {100 * low:.2f} and {100 * high:.2f} %"
        for what, share, (low, high) in shares
        if not low <= share <= high
    ]
