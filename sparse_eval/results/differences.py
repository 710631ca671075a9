"""The numbers of one pair of evaluations and one metric; paired tests and corrections."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..core.exact_sums import Moments
from .intervals import interval_around, interval_of_moments, two_sided

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import Floats
    from .intervals import Interval
    from .partial_results import Part

#: A difference, its standard error and degrees of freedom; NaN if unknown.
Distance: TypeAlias = tuple[float, float, float]

#: Power of the test for the detectable difference.
POWER = 0.8


@lru_cache(maxsize=64)
def detectable_standard_errors(level: float, freedom: float) -> float:
    """Return the smallest difference that a t-test detects with `POWER`, in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, [0.5 + level / 2, POWER]).sum())


def compare_values(
    a: Floats, b: Floats, test: str, level: float, gains: Floats | None = None
) -> dict[str, float | str]:
    """Compare the values of users with a value in both.

    For weighted means, `a` and `b` are as from `linear_pair`, and `gains` are the differences of
    the users' own values.
    """
    defined = ~(np.isnan(a) | np.isnan(b))
    a, b = a[defined], b[defined]
    n = len(a)
    difference = a - b
    mean = float(difference.mean()) if n else math.nan
    std = float(difference.std(ddof=1)) if n > 1 else math.nan
    # For few users too: differences are less skewed than the values of one model, and Student's
    # interval covers them more often than a bootstrap in simulations.
    interval = interval_of_moments(Moments.of(difference), level)
    p, favours = p_value(a, b, test, level)
    detectable = math.nan
    if n > 1:
        detectable = detectable_standard_errors(level, n - 1) * std / math.sqrt(n)
    means = {f"mean_{side}": float(x.mean()) if n else math.nan for side, x in (("a", a), ("b", b))}
    gains = difference if gains is None else gains[defined]
    return means | _columns(mean, interval, level, p, favours, n, gains, std, detectable)


def compare_replicates(
    pair: tuple[Part, Part], metric: str, level: float, n_users: int, all_users: bool
) -> dict[str, float | str]:
    """Compare a metric of all users together, unless users were left out."""
    a, b = (part.value(part.row_of(metric)) if all_users else math.nan for part in pair)
    distance = replicates_distance(pair, metric, all_users, 1.0)
    interval = interval_around(*distance, level, "jackknife")
    p = math.nan if interval.method == "none" else two_sided(*distance)
    favours = int(np.sign(a - b)) if a == a and b == b else 0
    return {"mean_a": a, "mean_b": b} | _columns(a - b, interval, level, p, favours, n_users)


def values_distance(a: Floats, b: Floats, factor: float) -> Distance:
    """Return the mean of a less a multiple of b, over the users for whom both are defined."""
    differences = a - factor * b
    moments = Moments.of(differences[~np.isnan(differences)])
    error = moments.std / math.sqrt(moments.n) if moments.n else math.nan
    return moments.mean, error, moments.n - 1


def replicates_distance(
    pair: tuple[Part, Part], metric: str, all_users: bool, factor: float
) -> Distance:
    """Return the same of a metric of all users together."""
    if not all_users:
        return math.nan, math.nan, math.nan
    rows = [part.row_of(metric) for part in pair]
    a, b = (part.replicates(row) for part, row in zip(pair, rows, strict=True))
    differences = a - factor * b
    is_known = len(differences) > 1 and np.isfinite(differences).all()
    error = float(differences.std(ddof=1)) if is_known else math.nan
    mean, other = (part.value(row) for part, row in zip(pair, rows, strict=True))
    return mean - factor * other, error, len(differences) - 1


def _columns(
    difference: float,
    interval: Interval,
    level: float,
    p: float,
    favours: int,
    n_users: int,
    values: Floats | None = None,
    std: float = math.nan,
    detectable: float = math.nan,
) -> dict[str, float | str]:
    """Return the columns of a difference, of whose users there may be `values`."""
    of_users: dict[str, float] = dict.fromkeys(
        ("wins", "ties", "losses", "effect_size", "effect_low", "effect_high"), math.nan
    )
    if values is not None:
        counts = ((values > 0).sum(), (values == 0).sum(), (values < 0).sum())
        of_users = dict(zip(of_users, map(int, counts), strict=False))
        # Cohen's d; the standard deviation of equal differences is rounding error.
        is_spread = std > 1e-12 * abs(difference)
        undefined = 0.0 if difference == 0 else math.nan
        of_users["effect_size"] = difference / std if is_spread else undefined
        if is_spread and interval.method == "t":
            ends = effect_interval(difference / std, n_users, level)
            of_users["effect_low"], of_users["effect_high"] = ends
    return {
        "difference": difference,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "interval": interval.method,
        "p": p,
        "favours": favours,
        **of_users,
        "detectable": detectable,
        "n_users": n_users,
    }


def effect_interval(effect: float, n: int, level: float) -> tuple[float, float]:
    """Return the interval of Cohen's d of the differences of n users.

    References
    ----------
    .. [1] G. Cumming and S. Finch, "A primer on the understanding, use, and calculation of
       confidence intervals that are based on central and noncentral distributions", Educational
       and Psychological Measurement 61(4), 2001, pp. 532-574. doi:10.1177/0013164401614002
    """
    from scipy.special import nctdtr, nctdtrinc

    t, shares = effect * math.sqrt(n), np.array([(1 + level) / 2, (1 - level) / 2])
    ends = nctdtrinc(n - 1, shares, t)
    for _ in range(2):  # secant steps, since the inverse has an error of about 1e-6
        found = nctdtr(n - 1, ends, t)
        ends = ends - (found - shares) * 1e-4 / (nctdtr(n - 1, ends + 1e-4, t) - found)
    low, high = ends / math.sqrt(n)
    return float(low), float(high)


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

            # The sign of the sum of signed ranks, which may differ from the sign of the mean.
            unequal = (a - b)[a != b]
            favours = int(np.sign((np.sign(unequal) * rankdata(np.abs(unequal))).sum()))
        return p, favours


def _t(differences: Floats) -> float:
    n = len(differences)
    mean = differences.mean()
    # In the order of operations of stats.ttest_rel, and so the same bits.
    variance = np.square(differences - mean).mean() * (n / (n - 1))
    return two_sided(float(mean), float(np.sqrt(variance / n)), n - 1)


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
        Computed from the differences of at least 2 users, not all 0.
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
