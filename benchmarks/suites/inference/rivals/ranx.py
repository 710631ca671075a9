"""ranx's p-values of pairs of models, in ranx's environment.

`student` and `fisher` are the tests of ranx for a pair.

ranx seeds the thread that calls `fisher`, but other threads draw the signs, each from its own
generator, so p-values are not repeatable. Here there is only one such thread, and it is seeded.
"""

import os

os.environ["NUMBA_NUM_THREADS"] = "1"  # read when numba is imported

import numpy as np
from numba import njit, prange
from ranx.statistical_tests import compute_statistical_significance

SEED = 0


def p_values(file: str, permutations: int) -> dict[str, dict[str, float]]:
    """Return {test: {pair: p}}; the file has an array for each pair, with a row for each model."""
    with np.load(file, allow_pickle=False) as pairs:
        models = {name: {pair: pairs[pair][row] for pair in pairs} for row, name in enumerate("ab")}
    seed_thread()
    found = {}
    for test in ("student", "fisher"):
        # As `ranx.compare` calls it, once it has each user's values.
        compared = compute_statistical_significance(
            ["a", "b"], models, test, n_permutations=permutations
        )
        of_pairs = compared[frozenset("ab")]
        found[test] = {pair: float(entry["p_value"]) for pair, entry in of_pairs.items()}
    return found


@njit(parallel=True)
def seed_thread() -> None:
    for _ in prange(1):
        np.random.seed(SEED)  # noqa: NPY002 - numba's, the one that ranx draws from
