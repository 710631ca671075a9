"""Paired tests by name and their p-values, and corrections for multiple comparisons."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import Floats

#: A permutation test draws so many sign flips, unless it can go through all of them.
PERMUTATIONS = 9999

#: Wilcoxon's test of up to so many differences enumerates all signs, as `scipy.stats.wilcoxon`.
_FEW_FOR_RANKS = 13

#: Signs drawn at once, few enough for the processor's cache.
_SIGNS_PER_BATCH = 1 << 18


def significance(level: float) -> float:
    """Return 1 − level without its rounding error: 0.05, not 0.050000000000000044."""
    return round(1 - level, 12)


def p_value(a: Floats, b: Floats, test: str, level: float) -> tuple[float, int]:
    """Return the p-value, and whether the test favours a (1), b (-1) or neither (0)."""
    if len(a) < 2:
        return math.nan, 0
    if (a == b).all():
        return 1.0, 0
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        # scipy warns of nearly equal differences, and of approximations for few users.
        warnings.simplefilter("ignore")
        p = TESTS[test].p_value(a - b)
        favours = int(np.sign((a - b).mean()))
        if test == "wilcoxon" and p < significance(level):  # else not needed, and as slow
            from scipy.stats import rankdata

            # The sign of the sum of signed ranks, which may be other than that of the mean.
            unequal = (a - b)[a != b]
            favours = int(np.sign((np.sign(unequal) * rankdata(np.abs(unequal))).sum()))
        return p, favours


def two_sided(t: float, freedom: float) -> float:
    """Return the p-value of Student's t, whatever its sign."""
    # The same bits as stats.t.sf; importing scipy.stats takes longer than most comparisons.
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(t)))


def _t(differences: Floats) -> float:
    n = len(differences)
    mean = differences.mean()
    # In the order of operations of stats.ttest_rel, and so the same bits.
    variance = np.square(differences - mean).mean() * (n / (n - 1))
    with np.errstate(divide="ignore"):  # of differences that are all equal
        return two_sided(mean / np.sqrt(variance / n), n - 1)


def _wilcoxon(differences: Floats) -> float:
    from scipy import stats

    if len(differences) > _FEW_FOR_RANKS:
        return float(stats.wilcoxon(differences).pvalue)
    # The same bits as `stats.wilcoxon`, which calls a Python function for all signs if there are
    # zeros or ties. Sums of ranks are multiples of 1/2 and exact.
    differences = differences[differences != 0]
    ranks = stats.rankdata(np.abs(differences))
    sums = np.zeros(1)
    for rank in ranks:  # positive or not
        sums = np.concatenate((sums, sums + rank))
    observed = ranks[differences > 0].sum()
    return min(2 * float(min((sums <= observed).mean(), (sums >= observed).mean())), 1.0)


def _permutation_p(differences: Floats) -> float:
    """Return the p-value of a mean difference under all sign flips, or many random ones."""
    from scipy import stats

    if 2 ** len(differences) <= PERMUTATIONS + 1:
        return float(
            stats.permutation_test(
                (differences,),
                np.mean,
                permutation_type="samples",
                n_resamples=PERMUTATIONS,
                vectorized=True,
            ).pvalue
        )
    rng = np.random.default_rng(0)

    def random_signs(size: tuple[int, int]) -> Floats:
        # `stats.permutation_test` draws them as well, and takes 30 times as long.
        n = size[0] * size[1]
        bits = np.unpackbits(rng.integers(0, 256, (n + 7) // 8, np.uint8), count=n)
        return np.asarray((1.0 - 2.0 * bits.reshape(size)) * differences)

    return float(
        stats.monte_carlo_test(
            differences,
            random_signs,
            np.mean,
            n_resamples=PERMUTATIONS,
            batch=max(_SIGNS_PER_BATCH // len(differences), 1),
            vectorized=True,
        ).pvalue
    )


def correct(p: Floats, correction: str) -> Floats:
    """Correct the p-values that are not NaN for multiple comparisons."""
    corrected = p.astype(float).copy()
    defined = np.flatnonzero(~np.isnan(corrected))
    values = corrected[defined]
    if correction == "bonferroni":
        corrected[defined] = np.minimum(values * len(values), 1.0)
    elif correction == "bh":
        from scipy import stats

        corrected[defined] = stats.false_discovery_control(values, method="bh")
    elif correction == "holm":  # not in scipy; steps down from the smallest
        order = np.argsort(values, kind="stable")
        steps = np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
        corrected[defined[order]] = np.minimum(steps, 1.0)
    return corrected


class PairedTest(NamedTuple):
    """A test of whether differences are around 0.

    Attributes
    ----------
    title : str
    p_value : callable
        From the differences of at least 2 users, not all 0.
    """

    title: str
    p_value: Callable[[Floats], float]


#: By the name that callers give; the first is the default.
TESTS = {
    "t": PairedTest("paired t-test", _t),
    "wilcoxon": PairedTest("Wilcoxon's signed-rank test", _wilcoxon),
    "permutation": PairedTest("sign-flip permutation test", _permutation_p),
}

#: Other names of tests.
ALIASES = {"ttest": "t"}

#: Titles of the corrections, likewise.
CORRECTIONS = {
    "holm": "Holm's",
    "bonferroni": "Bonferroni's",
    "bh": "Benjamini and Hochberg's",
    "none": "",
}
