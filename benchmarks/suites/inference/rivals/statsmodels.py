"""statsmodels' paired tests of equivalence, and its power of a paired t-test."""

from typing import Any

import numpy as np
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_paired


def decisions(file: str, margins: list[float], level: float, power: float) -> dict[str, Any]:
    """Return a p-value and a number of users for each margin; the file has the users' values."""
    with np.load(file, allow_pickle=False) as values:
        a, b = values["a"], values["b"]
    std = (a - b).std(ddof=1)
    solve = TTestPower().solve_power
    return {
        "p_equivalent": [float(ttost_paired(a, b, -size, size)[0]) for size in margins],
        "users_needed": [
            float(solve(size / std, alpha=1 - level, power=power)) for size in margins
        ],
    }
