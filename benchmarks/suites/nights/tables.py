"""The table of the suite `nights`."""

from typing import Any

from harness.format import markdown, percent


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
