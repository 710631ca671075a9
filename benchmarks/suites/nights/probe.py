"""How often a gate passes, fails or does not decide a night, for equal models and for worse ones.

Each night has different users. Users and lists are drawn as in `suites/inference/probe.py`. Two
equally good models draw their lists in the same way, independently. A model that has lost a share
finds so much fewer items.
"""

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from suites.inference.probe import draw_lists, draw_users, evaluate, repeat, scaled

import sparse_eval as se

NIGHTS = 400
N_USERS = 2000
MARGIN, ALPHA = "5%", 0.05
LOSSES = (0.0, 0.03, 0.05, 0.1, 0.2)
VERDICTS = ("passed", "undecided", "failed")

METRIC = ["ndcg@10"]
FIVE = ["ndcg@10", "recall@10", "mrr@10", "precision@5", "hit_rate@10"]

SEED = 0
#: The purpose of random numbers, a part of their seeds.
LISTS = 1


class Case(NamedTuple):
    """The metrics of the rules, and into how many segments users are divided."""

    metrics: list[str]
    n_segments: int = 1


CASES = {
    "1 metric": Case(METRIC),
    "5 metrics": Case(FIVE),
    "1 metric, 3 segments": Case(METRIC, 3),
}


def simulate(scale: float) -> dict[str, Any]:
    nights = scaled(NIGHTS, scale)
    with tempfile.TemporaryDirectory() as folder:

        def shares(case: Case, loss: float) -> dict[str, float]:
            found = Counter(repeat(partial(verdict, case, loss, Path(folder)), nights))
            return {name: found[name] / nights for name in VERDICTS}

        return {
            "alpha": ALPHA,
            "margin": MARGIN,
            "nights": nights,
            "n_users": N_USERS,
            "shares": {
                title: {f"{loss:.0%}": shares(case, loss) for loss in LOSSES}
                for title, case in CASES.items()
            },
        }


def verdict(case: Case, loss: float, folder: Path, night: int) -> str:
    """Return the verdict about a candidate that has lost a share of its hits."""
    rng = np.random.default_rng([SEED, LISTS, len(case.metrics), round(100 * loss), night])
    users = draw_users(rng, N_USERS)
    champion, candidate = (
        evaluate(draw_lists(rng, users, times), users.n_relevant, case.metrics)
        for times in (1.0, 1.0 - loss)
    )
    rules = [{"metric": metric, "not_worse_by": MARGIN} for metric in case.metrics]
    if case.n_segments > 1:
        path = folder / "users.csv"
        if not path.exists():
            lines = [f"{user},{user % case.n_segments}" for user in range(N_USERS)]
            path.write_text("\n".join(["user,segment", *lines, ""]), "utf-8")
        rules = [rule | {"segments": str(path)} for rule in rules]
    return se.gate({"rule": rules, "alpha": ALPHA}, candidate, champion).verdict
