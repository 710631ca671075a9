"""Decide whether a difference matters: margins, verdicts, and the users that a test needs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..core.arguments import check_number
from ..errors import InvalidDataError
from .differences import correct, significance
from .intervals import one_sided, student

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from .differences import Distance

#: A margin as callers give it: a number, or a percentage of the mean of b such as "1%".
Size: TypeAlias = float | str

#: The verdicts about a against b, and the endings of the columns that lead to them.
VERDICTS = ("better", "equivalent", "worse")


class Margin(NamedTuple):
    """The largest difference that does not matter: a number, or a share of the mean of b."""

    absolute: float = 0.0
    share: float = 0.0

    @classmethod
    def parse(cls, size: Size, name: str = "margin") -> Margin:
        """Return the margin for a number or percentage; errors call it by `name`.

        Examples
        --------
        >>> Margin.parse(0.002), Margin.parse("1%")
        (Margin(absolute=0.002, share=0.0), Margin(absolute=0.0, share=0.01))
        """
        text = str(size).strip()
        try:
            number: object = float(text.removesuffix("%")) if isinstance(size, str) else size
        except ValueError:
            raise InvalidDataError(
                f"{name} is {size!r}; expected a number, such as 0.002, or a percentage, such as "
                "'1%'",
                argument=name,
            ) from None
        number = check_number(name, number, 0)
        return cls(share=number / 100) if text.endswith("%") else cls(number)

    def number(self, mean: float) -> float:
        """Return the margin for this mean of b; NaN for a percentage of a mean not above 0."""
        if not self.share:
            return self.absolute
        return math.nan if mean <= 0 else self.share * mean


def parse_margins(
    margin: Size | Mapping[str, Size] | None, metrics: Sequence[str]
) -> dict[str, Margin]:
    """Return the margin of each metric that has one."""
    if margin is None:
        return {}
    if not isinstance(margin, Mapping):
        return dict.fromkeys(metrics, Margin.parse(margin))
    unknown = [name for name in margin if name not in metrics]
    if unknown:
        raise InvalidDataError(
            f"margin names {', '.join(map(str, unknown))}, but the metrics compared are "
            f"{', '.join(metrics)}",
            argument="margin",
        )
    return {name: Margin.parse(size) for name, size in margin.items()}


def decide(
    margin: Margin, size: float, distance: Callable[[float], Distance], higher: bool
) -> dict[str, float]:
    """Return the columns that lead to a verdict.

    Parameters
    ----------
    size : float
        The margin as a number. If it is NaN, so are the columns.
    distance : callable
        Returns a less a multiple of b, its standard error and degrees of freedom. A share m of the
        mean of b is exceeded if a − (1 + m) b is above 0.
    higher : bool
        Whether higher values are better.

    Notes
    -----
    The p-values are of one-sided t-tests: a is better by more than the margin, worse by more than
    it, or both are within it (two one-sided tests). `compare` has the references.
    """
    names = ("margin", *(f"p_{verdict}" for verdict in VERDICTS))
    if math.isnan(size):
        return dict.fromkeys(names, math.nan)
    low, low_error, low_freedom = distance(1 - margin.share)
    high, high_error, high_freedom = distance(1 + margin.share)
    low, high = low + margin.absolute, high - margin.absolute
    better = one_sided(high, high_error, high_freedom)
    worse = one_sided(-low, low_error, low_freedom)
    within = max(one_sided(low, low_error, low_freedom), one_sided(-high, high_error, high_freedom))
    if not higher:
        better, worse = worse, better
    return dict(zip(names, (size, better, within, worse), strict=True))


def add_verdicts(
    table: pd.DataFrame, margins: Mapping[str, Margin], correction: str, level: float
) -> None:
    """Add the verdict of each row, and the corrected p-value that it rests on."""
    found = table[[f"p_{verdict}" for verdict in VERDICTS]].to_numpy()
    # Doubled, as two of the three can be wrong: at the margin each is at (1 − level) / 2.
    table["p_verdict"] = correct(np.minimum(2 * found.min(axis=1), 1.0), correction)
    is_shown = (table["p_verdict"] < significance(level)).to_numpy()
    verdicts = np.where(is_shown, np.array(VERDICTS)[found.argmin(axis=1)], "not shown")
    table["verdict"] = np.where(table["metric"].isin(list(margins)), verdicts, "")


def users_needed(size: float, std: float, level: float, power: float) -> int | None:
    """Return the number of users with which a paired t-test detects a difference.

    Parameters
    ----------
    size : float
        The difference.
    std : float
        The standard deviation of the users' differences.
    level, power : float
        1 − `level` is the two-sided level of significance.

    Returns
    -------
    int or None
        The smallest number whose power, by the noncentral t distribution [1]_, is `power` or more.
        None if one of the first two is unknown or 0.

    References
    ----------
    .. [1] J. Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition,
       Lawrence Erlbaum, 1988, chapter 2.

    Examples
    --------
    >>> users_needed(0.01, 0.1, level=0.95, power=0.8)
    787
    """
    from scipy.special import nctdtr

    def reached(n: int) -> float:
        shift = size / std * math.sqrt(n)
        low, high = student(level, n - 1)
        return float(nctdtr(n - 1, shift, low) + 1 - nctdtr(n - 1, shift, high))

    if not (size > 0 and std > 0):
        return None
    most = 2
    while reached(most) < power:
        most *= 2
    return bisect_left(range(most), power, lo=2, key=reached)
