"""How often intervals for decisions contain the truth, and how often verdicts are wrong.

Users and lists are drawn as in `probe.py`. The second of the two models finds relevant items 1.3
times as often, and the difference of their means is exactly the margin: any verdict except "not
shown" is wrong. Most users have the value 0 with both models. The numbers without ties describe
the quality of the users' lists, which is continuous; the worst are those with the highest.

The interval of a loss in `compare_lists` is that of the difference in `compare`.
"""

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import sparse_eval as se
from sparse_eval.results.distribution import describe_distribution

from .probe import (
    LEVEL,
    POPULATION,
    POPULATION_SIZE,
    SEED,
    by_metric,
    draw_users,
    evaluate,
    noise,
    pair_of,
    repeat,
    scaled,
)

METRIC = "ndcg@10"
QUANTILE = 0.9
TIED = f"quantile {QUANTILE}"
WORST = (0.1, 0.25)
LOSS = 0.1
DECISIONS = 8  # a part of the seeds, as in `probe.py`
#: Users: repetitions.
SIZES = {200: 2000, 2000: 2000, 50_000: 2000}


class Truth(NamedTuple):
    """The quality of each user, the true numbers, and the margins at which verdicts are wrong."""

    quality: npt.NDArray[np.float64]
    numbers: dict[str, float]
    margins: dict[str, float | str]


@cache  # once in a process
def truth() -> Truth:
    quality = draw_users(np.random.default_rng([SEED, POPULATION]), POPULATION_SIZE).quality
    pair = pair_of("moderate", "better")
    first, second = (evaluate(x, pair.n_relevant, METRIC).values(METRIC) for x in pair.lists)
    difference = second - first
    mean, losses, low = difference.mean(), np.sort(difference), np.sort(quality)
    numbers = {
        TIED: np.quantile(second, QUANTILE),
        f"quantile {QUANTILE}, without ties": np.quantile(quality, QUANTILE),
        f"worst {WORST[0]}, without ties": low[-int(WORST[0] * len(low)) :].mean(),
        **{f"worst {x} of differences": losses[: int(x * len(losses))].mean() for x in WORST},
        "share of losers": (difference < 0).mean(),
        f"share of losers by more than {LOSS}": (difference < -LOSS).mean(),
        "effect size": mean / difference.std(),
        "difference, loss of lists": mean,
    }
    margins = {"a number": float(mean), "a percentage": f"{100 * float(mean / first.mean())!r}%"}
    return Truth(quality, {name: float(x) for name, x in numbers.items()}, margins)


def simulate(scale: float) -> dict[str, Any]:
    _, numbers, margins = truth()
    sizes = {}
    for n_users, repetitions in SIZES.items():
        found = repeat(partial(sample, n_users), scaled(repetitions, scale))
        held, wrong = (np.array(part) for part in zip(*found, strict=True))
        sizes[n_users] = {
            "held": by_metric(held, numbers),
            "wrong": by_metric(wrong, margins),
            **noise(LEVEL, len(found)),
        }
    return {"level": LEVEL, "metric": METRIC, "truth": numbers, "margins": margins, "sizes": sizes}


def sample(n_users: int, repetition: int) -> tuple[list[bool], list[bool]]:
    """Return whether each interval of a sample holds the truth, and whether there are verdicts."""
    quality, numbers, margins = truth()
    pair = pair_of("moderate", "better")
    rng = np.random.default_rng([SEED, DECISIONS, n_users, repetition])
    drawn = rng.integers(POPULATION_SIZE, size=n_users)
    first, second = (evaluate(x[drawn], pair.n_relevant[drawn], METRIC) for x in pair.lists)
    both = {"second": second, "first": first}
    tables = [se.compare(both, margin=margin, level=LEVEL).table for margin in margins.values()]
    columns = [f"{what}_{end}" for what in ("effect", "ci") for end in ("low", "high")]
    losers = [second.losers(first, METRIC, margin, level=LEVEL) for margin in (0.0, LOSS)]
    ends = [
        second.distribution(METRIC, quantiles=[QUANTILE], worst=[], level=LEVEL),
        describe_distribution(quality[drawn], False, [QUANTILE], WORST[:1], LEVEL),
        second.distribution(METRIC, minus=first, quantiles=[], worst=WORST, level=LEVEL),
        *losers,
    ]
    intervals = np.concatenate(
        [*(table[["ci_low", "ci_high"]] for table in ends), tables[0][columns].values.reshape(2, 2)]
    )
    true = np.array(list(numbers.values()))
    held = (intervals[:, 0] <= true) & (true <= intervals[:, 1])
    return held.tolist(), [table["verdict"][0] != "not shown" for table in tables]
