"""The difference of two evaluations in one metric: its interval, test, wins and effect size."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .intervals import interval_of_difference, interval_of_replicates
from .paired_tests import p_value, two_sided

if TYPE_CHECKING:
    from ..core.types import Floats
    from .evaluated import Evaluated
    from .intervals import Interval
    from .runs import Estimate

#: Power of the test for which the detectable difference is given.
POWER = 0.8


def effect_size(mean: float, std: float) -> float:
    """Return Cohen's d; the standard deviation of equal differences is rounding error."""
    return mean / std if std > 1e-12 * abs(mean) else (0.0 if mean == 0 else math.nan)


@lru_cache(maxsize=64)
def detectable_standard_errors(level: float, freedom: float) -> float:
    """Return the smallest difference that a t-test detects with `POWER`, in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, [0.5 + level / 2, POWER]).sum())


def compare_values(a: Floats, b: Floats, test: str, level: float) -> dict[str, float | str]:
    """Compare the values of users for whom both are defined."""
    defined = ~(np.isnan(a) | np.isnan(b))
    a, b = a[defined], b[defined]
    n = len(a)
    difference = a - b
    mean = float(difference.mean()) if n else math.nan
    std = float(difference.std(ddof=1)) if n > 1 else math.nan
    interval = interval_of_difference(difference, level)
    p, favours = p_value(a, b, test, level)
    detectable = math.nan
    if n > 1:
        detectable = detectable_standard_errors(level, n - 1) * std / math.sqrt(n)
    means = {f"mean_{side}": float(x.mean()) if n else math.nan for side, x in (("a", a), ("b", b))}
    return means | _columns(mean, interval, p, favours, n, difference, std, detectable)


def compare_replicates(
    pair: tuple[Evaluated, Evaluated], metric: str, level: float, n_users: int, all_users: bool
) -> dict[str, float | str]:
    """Compare a metric of all users together, unless users were left out."""
    a, b = (ev[metric] if all_users else math.nan for ev in pair)
    differences = np.zeros(0)
    if all_users:
        differences = pair[0].replicates(metric) - pair[1].replicates(metric)
    interval = interval_of_replicates(a - b, differences, level)
    p = math.nan
    if interval.method != "none":
        error = float(differences.std(ddof=1))
        freedom = len(differences) - 1
        p = two_sided((a - b) / error, freedom) if error else float(a == b)
    favours = int(np.sign(a - b)) if a == a and b == b else 0
    return {"mean_a": a, "mean_b": b} | _columns(a - b, interval, p, favours, n_users)


def compare_estimate(estimate: Estimate, level: float) -> dict[str, Any]:
    """Return the columns of a pooled difference."""
    mean, error, values = estimate.mean, estimate.error, estimate.users
    detectable = math.nan
    if values is not None and error.freedom == error.freedom:
        detectable = detectable_standard_errors(level, error.freedom) * math.sqrt(error.variance)
    favours = 0 if math.isnan(mean) else int(np.sign(mean))
    interval, p = error.interval(mean, level), error.p_value(mean)
    n_users = estimate.n_users
    return _columns(mean, interval, p, favours, n_users, values, estimate.std, detectable)


def _columns(
    difference: float,
    interval: Interval,
    p: float,
    favours: int,
    n_users: int,
    values: Floats | None = None,
    std: float = math.nan,
    detectable: float = math.nan,
) -> dict[str, float | str]:
    """Return the columns of a difference, of whose users there may be `values`."""
    of_users: dict[str, float] = dict.fromkeys(("wins", "ties", "losses", "effect_size"), math.nan)
    if values is not None:
        counts = ((values > 0).sum(), (values == 0).sum(), (values < 0).sum())
        of_users = dict(zip(of_users, map(int, counts), strict=False))
        of_users["effect_size"] = effect_size(difference, std)
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
