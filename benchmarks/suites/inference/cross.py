"""How often comparisons of cross-validated models find equally good models different.

Users and lists are drawn as in `probe.py`, separately for each fold and seed. A training is more or
less lucky: for all users of its run, it finds something e^x times as often, with x normal. For
identical models, only the seeds differ, and x is drawn for each training. Two equally good models
that learn different things from the same data also have a different x for each fold. Folds share
training data, so these x are correlated. The correlation is the share of the data that is held out,
as assumed by Nadeau and Bengio (2003). The results for such models, and for two folds or two seeds,
are also reported, without bounds.

A share is the share of p-values below 5 %, of `CrossValidation.compare`, and of a t-test over users
only.
"""

from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

import sparse_eval as se
from sparse_eval.inputs.axes import Axis
from sparse_eval.results.runs import Fold, Run, RunValues

from .probe import SEED, SIGNIFICANCE, draw_lists, draw_users, evaluate, noise, repeat, scaled

METRIC = "ndcg@10"
N_USERS = 200
REPETITIONS = 2000
CROSS = 6  # a part of the seeds, as in `probe.py`

Floats = npt.NDArray[np.float64]


class Design(NamedTuple):
    """Folds, seeds, the deviations of x among seeds and folds, and the share of users in a fold."""

    n_folds: int
    n_seeds: int
    of_seeds: float
    of_folds: float = 0.0
    share: float = 1.0


IDENTICAL = {
    "5 folds, 3 seeds": Design(5, 3, 0.0),
    "5 folds, 3 seeds, lucky trainings": Design(5, 3, 0.1),
    "10 folds, 1 seed, lucky trainings": Design(10, 1, 0.1),
    "3 folds, 3 seeds, lucky trainings": Design(3, 3, 0.1),
    "6 windows of half of the users, 2 seeds, lucky trainings": Design(6, 2, 0.1, share=0.5),
    "1 fold, 5 seeds, lucky trainings": Design(1, 5, 0.1),
}
OTHERS = {
    "2 folds, 3 seeds, lucky trainings": Design(2, 3, 0.1),
    "1 fold, 2 seeds, lucky trainings": Design(1, 2, 0.1),
    "5 folds, 3 seeds, other models that are equally good": Design(5, 3, 0.1, 0.1),
}


def simulate(scale: float) -> dict[str, Any]:
    repetitions = scaled(REPETITIONS, scale)
    found = {
        kind: {
            title: shares(np.array(repeat(partial(p_values, design), repetitions)))
            for title, design in designs.items()
        }
        for kind, designs in (("identical", IDENTICAL), ("others", OTHERS))
    }
    return {
        "metric": METRIC,
        "n_users": N_USERS,
        "significance": SIGNIFICANCE,
        **noise(SIGNIFICANCE, repetitions),
        **found,
    }


def shares(p: Floats) -> dict[str, float]:
    below = (p < SIGNIFICANCE).mean(axis=0).tolist()
    return dict(zip(("pooled", "users alone"), below, strict=True))


def p_values(design: Design, repetition: int) -> tuple[float, float]:
    """Return the p-values of a comparison of equal models and of a t-test over users only."""
    numbers = [round(100 * number) for number in design]
    rng = np.random.default_rng([SEED, CROSS, *numbers, repetition])
    users = draw_users(rng, N_USERS)
    in_fold = [np.flatnonzero(rng.random(N_USERS) < design.share) for _ in range(design.n_folds)]
    values: dict[Run, RunValues] = {}
    for model in "ab":
        of_folds = correlated(rng, design.n_folds) * design.of_folds
        runs, rows, times = [], [], []
        for fold, seed in product(range(design.n_folds), range(design.n_seeds)):
            runs.append(Run(model, fold + 1, fold * design.n_seeds + seed))
            rows.append(in_fold[fold])
            x = of_folds[fold] + rng.normal() * design.of_seeds
            times.append(np.full((len(rows[-1]), 1), np.exp(x)))
        drawn = type(users)(*(column[np.concatenate(rows)] for column in users))
        lists = draw_lists(rng, drawn, np.concatenate(times))
        ev = evaluate(lists, drawn.n_relevant, [METRIC])
        columns = np.split(ev.values(METRIC), np.cumsum([len(known) for known in rows])[:-1])
        for run, known, column in zip(runs, rows, columns, strict=True):
            values[run] = RunValues(Axis.of(known), column[None], (float(column.mean()),), {})
    n = design.n_folds
    folds = [Fold(str(fold), str(fold), 100, 100 // n) for fold in range(n)]
    cv = se.CrossValidation(ev.request, folds, values)
    p = float(cv.compare(correction="none").table["p"][0])
    difference = (cv.per_user("a") - cv.per_user("b"))[METRIC].dropna()
    return p, float(stats.ttest_1samp(difference, 0).pvalue)


def correlated(rng: np.random.Generator, n_folds: int) -> Floats:
    """Draw a number for each fold; their correlation is the share of the data that is held out."""
    shared = 1 / n_folds
    numbers = np.sqrt(shared) * rng.normal() + np.sqrt(1 - shared) * rng.normal(size=n_folds)
    return np.asarray(numbers)
