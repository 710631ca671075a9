"""Sums over the ranks of each user's judged items, for measures that know what was not judged.

In every kernel, `indptr` holds the bounds of each user's judged items in `ranks` (ascending) and
`gains`, which are above 1 where the item is relevant, and `out` receives one value per user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array


@kernel
def sum_preferences(
    indptr: Array,
    ranks: Array,
    gains: Array,
    k: int,
    n_relevant: Array,
    n_judged: Array,
    out: Array,
) -> None:
    """Write Σ 1 − min(judged misses above, n) / min(judged misses, n) over the hits to rank k.

    References
    ----------
    C. Buckley and E. M. Voorhees (2004). Retrieval evaluation with incomplete information.
    SIGIR 2004. https://doi.org/10.1145/1008992.1009000
    """
    for user in range(len(out)):
        n = n_relevant[user]
        most = min(n_judged[user] - n, n)
        misses = 0
        total = 0.0
        for entry in range(indptr[user], indptr[user + 1]):
            if ranks[entry] > k:
                break
            if gains[entry] <= 1.0:
                misses += 1
            elif misses > 0:
                total += 1.0 - min(misses, n) / most
            else:
                total += 1.0
        out[user] = total


@kernel
def sum_inferred(
    indptr: Array, ranks: Array, gains: Array, k: int, smoothing: float, out: Array
) -> None:
    """Write the sum over the hits to rank k of the precisions that are inferred at their ranks.

    Those are 1/r + (judged above / r)·(hits above + ε) / (judged above + 2ε), ε being `smoothing`.

    References
    ----------
    E. Yilmaz and J. A. Aslam (2006). Estimating average precision with incomplete and imperfect
    judgments. CIKM 2006. https://doi.org/10.1145/1183614.1183633
    """
    for user in range(len(out)):
        hits = 0
        total = 0.0
        start = indptr[user]
        for entry in range(start, indptr[user + 1]):
            rank = ranks[entry]
            if rank > k:
                break
            if gains[entry] > 1.0:
                judged = entry - start
                share = (hits + smoothing) / (judged + 2 * smoothing)
                total += 1.0 / rank + judged / rank * share
                hits += 1
        out[user] = total
