"""baycomp's correlated Bayesian t-test, with a region of practical equivalence."""

import numpy as np
from baycomp import CorrelatedTTest
from baycomp.single import Posterior


def decisions(
    a: list[float], b: list[float], pooled: list[float], margins: list[float]
) -> dict[str, list[list[float]]]:
    """Return the probabilities that b is better, neither, and a is better, for each margin.

    `a` and `b` are the means of folds; `pooled` has a mean difference, its variance and freedom.
    """
    return {
        "folds": [CorrelatedTTest(np.array(b), np.array(a), size).probs() for size in margins],
        "pooled": [Posterior(*pooled, rope=size).probs() for size in margins],
    }
