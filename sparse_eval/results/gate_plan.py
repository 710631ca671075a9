"""Plan a gate: the chance that equal and worse candidates pass, from past results."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidDataError
from .evaluation import named_evaluations
from .gate import Judge
from .gate_rules import Rules
from .intervals import student

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..core.types import PathLike
    from .evaluation import Evaluation

#: The losses for which the plan shows a chance, as shares of the mean.
LOSSES = (0.0, 0.01, 0.02, 0.05, 0.1)


def plan_gate(
    rules: Rules | Mapping[str, Any] | PathLike, evaluations: Mapping[str, Evaluation]
) -> pd.DataFrame:
    """Return the chance of each rule to pass, with the users of past results.

    Parameters
    ----------
    rules
        As in `gate`.
    evaluations : mapping of str to Evaluation
        Two or more on the same held-out data, such as one model trained with several seeds. The
        chances are computed from the users' differences between the first two.

    Returns
    -------
    pandas.DataFrame
        One row for each test: ``rule``, ``segment``, ``against``, ``n_users``; ``mean`` of the
        second; ``std``, the standard deviation of the users' differences; ``spread``, the standard
        deviation of the means of all results, as a share of their mean; and the chance to pass if
        a candidate is ``equal``, or worse by a share of the mean, such as ``worse_by_1%``. Chances
        are missing for rules about losers, whose share does not follow from the mean.

    Notes
    -----
    The chance is the power of a one-sided t-test, from the noncentral t distribution and the
    standard error of the past results. All rules have to hold, so the gate's chance to pass is at
    most the smallest.
    """
    import pandas as pd
    from scipy.special import nctdtr

    parsed, named = Rules.parse(rules), named_evaluations(evaluations, least=2)
    pair = dict(zip(("candidate", "champion"), islice(named.values(), 2), strict=True))
    judge = Judge(parsed, pair)
    rows = []
    for rule in parsed.rules:
        if rule.against == "reference":
            raise InvalidDataError(f"the rule {rule}: a plan has no reference", argument="rule")
        for test in judge.tests(rule):
            excess, error, freedom = test["distance"]
            mean = test["other"] if test["against"] else test["candidate"]
            higher = pair["candidate"]._part.traits_of(rule.metric).higher_is_better
            if test["against"]:  # as if both means were equal
                excess -= (1 if higher else -1) * test["difference"]
            means = np.array([ev[rule.metric] for ev in named.values()])
            row = {
                "rule": str(rule),
                "segment": test["segment"],
                "against": test["against"],
                "n_users": test["n_users"],
                "mean": mean,
                "std": error * math.sqrt(test["n_users"]) if test["is_paired"] else math.nan,
                "spread": means.std(ddof=1) / means.mean() if not test["segment"] else math.nan,
            }
            for loss in LOSSES:
                name = f"worse_by_{loss:.0%}" if loss else "equal"
                expected = excess - loss * abs(mean)
                is_known = rule.more_than is None and error > 0
                _, least = student(1 - 2 * parsed.alpha, freedom) if is_known else (0.0, 0.0)
                row[name] = (
                    1 - float(nctdtr(freedom, expected / error, least)) if is_known else math.nan
                )
            rows.append(row)
    return pd.DataFrame(rows)
