"""Measure how often a gate passes, fails or is undecided, for equal models and for worse ones.

Also measure the chance that a plan shows for the same users, false failures in a year, losses in
small steps, and a loss of only a few users.

Each night has different users. Users and lists are drawn as in `suites/inference/probe.py`. Two
equally good models draw their lists independently from the same distribution. A model that has lost
10 % of its hits finds 10 % fewer relevant items.
"""

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from suites.inference.probe import draw_lists, draw_users, evaluate, repeat, scaled

import sparse_eval as se
from sparse_eval.results.gate import decide_test
from sparse_eval.results.gate_plan import plan_gate
from sparse_eval.results.gate_rules import Rules

#: Nights with equal models, and with a worse candidate.
NIGHTS = {0.0: 1000, 0.03: 400, 0.05: 400, 0.1: 400, 0.2: 400}
#: Nights for which a plan is computed; the median is shown.
PLANS = 20
N_USERS = 2000
MARGIN, ALPHA = "5%", 0.05
VERDICTS = ("passed", "undecided", "failed")

METRIC = ["ndcg@10"]
FIVE = ["ndcg@10", "recall@10", "mrr@10", "precision@5", "hit_rate@10"]

SEED = 0
#: A part of each seed, so that each simulation has different random numbers.
LISTS, YEARS, DRIFT, SOME = 1, 2, 3, 4

#: Years, nights in each, and the share of years that may have a false failure.
N_YEARS, NIGHTS_PER_YEAR, ALPHA_PER_YEAR = 500, 365, 0.05

#: Series of nights; each night, the new model is a little worse than the champion.
N_SERIES, LENGTH_OF_SERIES, STEP, DRIFT_USERS = 200, 60, 0.01, 30_000

#: One user in ten loses, the others gain.
SOME_NIGHTS, LOSERS, THEIR_LOSS, GAIN = 400, 0.1, 0.4, 0.06


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
    nights = {loss: scaled(number, scale) for loss, number in NIGHTS.items()}
    with tempfile.TemporaryDirectory() as folder:

        def shares(case: Case, loss: float) -> dict[str, float]:
            found = Counter(repeat(partial(verdict, case, loss, Path(folder)), nights[loss]))
            return {name: found[name] / nights[loss] for name in VERDICTS}

        return {
            "alpha": ALPHA,
            "margin": MARGIN,
            "nights": {f"{loss:.0%}": number for loss, number in nights.items()},
            "n_users": N_USERS,
            "shares": {
                title: {f"{loss:.0%}": shares(case, loss) for loss in NIGHTS}
                for title, case in CASES.items()
            },
            "planned": {
                title: planned(case, Path(folder), scaled(PLANS, scale))
                for title, case in CASES.items()
            },
            "some_lose": some_lose(Path(folder), scaled(SOME_NIGHTS, scale)),
            "years": false_failures(scaled(N_YEARS, scale)),
            "drift": drift(scaled(N_SERIES, scale)),
        }


def rules_of(case: Case, folder: Path) -> dict[str, Any]:
    rules = [{"metric": metric, "not_worse_by": MARGIN} for metric in case.metrics]
    if case.n_segments > 1:
        path = folder / "users.csv"
        if not path.exists():
            write_segments(path, np.arange(N_USERS) % case.n_segments)
        rules = [rule | {"segments": str(path)} for rule in rules]
    return {"rule": rules, "alpha": ALPHA}


def write_segments(path: Path, segments: Any) -> None:
    lines = [f"{user},{segment}" for user, segment in enumerate(segments)]
    path.write_text("\n".join(["user,segment", *lines, ""]), "utf-8")


def models(case: Case, times: Any, seed: list[int]) -> tuple[se.Evaluation, se.Evaluation]:
    """Return the champion, and a candidate whose hits are a multiple of the champion's."""
    rng = np.random.default_rng(seed)
    users = draw_users(rng, N_USERS)
    champion, candidate = (
        evaluate(draw_lists(rng, users, each), users.n_relevant, case.metrics)
        for each in (1.0, times)
    )
    return champion, candidate


def verdict(case: Case, loss: float, folder: Path, night: int) -> str:
    """Return the verdict about a candidate that has lost a share of its hits."""
    seed = [SEED, LISTS, len(case.metrics), round(100 * loss), night]
    champion, candidate = models(case, 1.0 - loss, seed)
    return se.gate(rules_of(case, folder), candidate, champion).verdict


def planned(case: Case, folder: Path, nights: int) -> dict[str, dict[str, float]]:
    """Return the planned chances to pass: the smallest of a test, and the product of all."""
    plans = repeat(partial(plan, case, folder), nights)
    return {
        loss: {
            kind: float(np.median([each[kind][column] for each in plans]))
            for kind in ("least", "product")
        }
        for loss, column in {"0%": "equal", "5%": "worse_by_5%", "10%": "worse_by_10%"}.items()
    }


def plan(case: Case, folder: Path, night: int) -> dict[str, dict[str, float]]:
    champion, candidate = models(case, 1.0, [SEED, LISTS, len(case.metrics), 0, night])
    table = plan_gate(rules_of(case, folder), {"one": candidate, "other": champion})
    chances = table[["equal", "worse_by_5%", "worse_by_10%"]]
    return {"least": chances.min().to_dict(), "product": chances.prod().to_dict()}


def some_lose(folder: Path, nights: int) -> dict[str, Any]:
    """Judge a candidate that is much worse for a tenth of the users, and better for others."""
    is_loser = np.arange(N_USERS) < LOSERS * N_USERS
    write_segments(folder / "some.csv", np.where(is_loser, "few", "many"))
    mean = {"metric": "ndcg@10", "not_worse_by": MARGIN}
    rules = {
        "mean": mean,
        "segments": mean | {"segments": str(folder / "some.csv")},
    }
    found = repeat(partial(verdicts_if_some_lose, is_loser, rules), nights)
    return {
        "nights": nights,
        "shares": {
            title: {name: sum(each[title] == name for each in found) / nights for name in VERDICTS}
            for title in rules
        },
    }


def verdicts_if_some_lose(is_loser: Any, rules: dict[str, Any], night: int) -> dict[str, str]:
    times = np.where(is_loser, 1 - THEIR_LOSS, 1 + GAIN)[:, None]
    champion, candidate = models(Case(METRIC), times, [SEED, SOME, night])
    return {
        title: se.gate({"rule": [rule], "alpha": ALPHA}, candidate, champion).verdict
        for title, rule in rules.items()
    }


def draw_verdict(rng: np.random.Generator, rules: Rules, excess: float, error: float) -> str:
    """Return a verdict about one rule, drawn from the moments of a night."""
    freedom = N_USERS - 1
    spread = error * np.sqrt(rng.chisquare(freedom) / freedom)
    test: dict[str, Any] = {
        "distance": (rng.normal(excess, error), float(spread), freedom),
        "n_users": N_USERS,
        "verdict": None,
        "is_paired": False,
    }
    decide_test(test, rules.alpha, rules.alpha_failed)
    return str(test["verdict"])


def false_failures(years: int) -> dict[str, Any]:
    """Count years with a false failure of a candidate at its margin, where it is most likely."""
    rule = {"rule": [{"metric": "ndcg@10", "not_worse_by": MARGIN}], "alpha": ALPHA}
    spent = {"alpha_per_year": ALPHA_PER_YEAR, "nights_per_year": NIGHTS_PER_YEAR}
    found = {}
    for name, given in {"alpha": rule, "alpha_per_year": rule | spent}.items():
        failed = repeat(partial(year_fails, Rules.parse(given)), years)
        found[name] = sum(failed) / years
    return {"n": years, "nights": NIGHTS_PER_YEAR, "most": ALPHA_PER_YEAR, "shares": found}


def year_fails(rules: Rules, year: int) -> bool:
    rng = np.random.default_rng([SEED, YEARS, year])
    nights = range(NIGHTS_PER_YEAR)
    return any(draw_verdict(rng, rules, 0.0, 1.0) == "failed" for _ in nights)


def drift(series: int) -> dict[str, Any]:
    """Promote models that are each a little worse than the champion, with and without reference.

    The mean and the standard error come from simulated lists, scaled to more users.
    """
    champion, candidate = models(Case(METRIC), 1.0, [SEED, DRIFT])
    mean = champion["ndcg@10"]
    gains = candidate.values("ndcg@10") - champion.values("ndcg@10")
    error = float(np.std(gains)) / np.sqrt(DRIFT_USERS) / mean
    found = {
        name: repeat(partial(decline, error, has_reference), series)
        for name, has_reference in {"champion": False, "reference": True}.items()
    }
    return {
        "n": series, "nights": LENGTH_OF_SERIES, "step": STEP, "n_users": DRIFT_USERS,
        "loss": {name: float(np.median([one[0] for one in each])) for name, each in found.items()},
        "promotions": {
            name: float(np.median([one[1] for one in each])) for name, each in found.items()
        },
    }  # fmt: skip


def decline(error: float, has_reference: bool, number: int) -> tuple[float, int]:
    """Return the share that the champion has lost at the end, and the number of promotions."""
    rng = np.random.default_rng([SEED, DRIFT, number])
    rules = Rules.parse({"rule": [{"metric": "ndcg@10", "not_worse_by": MARGIN}], "alpha": ALPHA})
    share = rules.rules[0].size.share
    champion, promotions = 1.0, 0
    for _ in range(LENGTH_OF_SERIES):
        candidate = champion * (1 - STEP)
        others = [champion, 1.0] if has_reference else [champion]
        verdicts = {
            draw_verdict(rng, rules, candidate - (1 - share) * other, error) for other in others
        }
        if verdicts == {"passed"}:
            champion, promotions = candidate, promotions + 1
    return 1 - champion, promotions
