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
    """Simulate; return the report. Nothing is timed: no rounds, and no other libraries."""
    say("simulating nights")
    scale = TOY if job.smoke else 1.0
    report = job.call("suites.nights.probe:simulate", scale)
    report["out_of_bounds"] = [] if job.smoke else out_of_bounds(bounded(report))
    return report


def bounded(report: dict[str, Any]) -> Iterator[Share]:
    """Yield the shares of wrong verdicts, and of passes to compare with the plan."""
    most = report["alpha"]

    def noise(share: float, n: int) -> float:
        return NOISE * math.sqrt(share * (1 - share) / n)

    nights = report["nights"]
    for title, by_loss in report["shares"].items():
        failed = by_loss["0%"]["failed"]
        yield f"{title}: failed equal models", failed, 0.0, most + noise(most, nights["0%"])
        for loss in ("10%", "20%"):
            share = by_loss[loss]["passed"]
            yield f"{title}: passed a loss of {loss}", share, 0.0, most + noise(most, nights[loss])
        # All rules have to hold: at most as often as the hardest, at least as the product.
        plan = report["planned"][title]["0%"]
        low, high = (plan[kind] - noise(plan[kind], nights["0%"]) for kind in ("product", "least"))
        high = 2 * plan["least"] - high
        yield f"{title}: passed equal models", by_loss["0%"]["passed"], low, high
    years = report["years"]
    share = years["shares"]["alpha_per_year"]
    yield "years", share, 0.0, years["most"] + noise(years["most"], years["n"])


def nights(report: dict[str, Any]) -> str:
    """Return the shares of nights by verdict, with a description of the nights."""
    planned = report["planned"]
    rows = []
    for title, by_loss in report["shares"].items():
        for loss, shares in by_loss.items():
            plan = planned[title].get(loss)
            chance = "" if plan is None else percent(plan["least"])
            if plan is not None and plan["product"] != plan["least"]:
                chance = f"{percent(plan['product'])} to {chance}"
            rows.append((title, loss, chance, *(percent(share) for share in shares.values())))
    counts = report["nights"]
    note = (
        f"{counts['0%']:,} nights with equal models and {counts['5%']:,} with each loss, of "
        f"{report['n_users']:,} users; every rule is "
        f'`not_worse_by = "{report["margin"]}"`, at `alpha = {report["alpha"]:g}`. Planned: the '
        "chance to pass by `gate --plan`; of several tests, from the product to the smallest."
    )
    headings = ("rules", "hits that the candidate lost", "planned", "passed", "undecided", "failed")
    return f"{markdown(headings, rows)}\n\n{note}"


def losses(report: dict[str, Any]) -> str:
    """Return the table of losses of few users, with a note on small steps and on years."""
    years, drift, some = report["years"], report["drift"], report["some_lose"]
    shares = {name: percent(share) for name, share in years["shares"].items()}
    rows = [
        (title, *(percent(share) for share in by_name.values()))
        for title, by_name in some["shares"].items()
    ]
    lost = {name: percent(share) for name, share in drift["loss"].items()}
    headings = (
        "rule, if one user in ten loses 40 % and the others gain 6 %", "passed", "undecided",
        "failed",
    )  # fmt: skip
    promotions = {name: f"{number:.0f}" for name, number in drift["promotions"].items()}
    note = (
        f"{some['nights']:,} nights; the segments are the losers and the others. In series of "
        f"{drift['nights']} nights with {drift['n_users']:,} users, each new model is "
        f"{percent(drift['step'])} worse than the champion. Medians of {drift['n']:,} series: "
        f"without a reference, {promotions['champion']} models are promoted, and the last champion "
        f"is {lost['champion']} worse than the first; with one, {promotions['reference']} and "
        f"{lost['reference']}. If the candidate is exactly at its margin, {shares['alpha']} of "
        f"{years['n']:,} years of {years['nights']} nights have a false failure with only `alpha`, "
        f"and {shares['alpha_per_year']} with `alpha_per_year = {years['most']:g}`."
    )
    return f"{markdown(headings, rows)}\n\n{note}"


TABLES = {"nights": nights, "losses": losses}
