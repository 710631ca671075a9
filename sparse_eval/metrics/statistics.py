"""What a metric is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FULL_LIST", "Statistics"]

#: The cut-off of a metric that is asked for without one: the whole list.
FULL_LIST = 2**62


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sums over each user's list down to one cut-off `k`.

    Every array has one entry for each user. With gain g, hit h (1 if g > 0), rank r and discount
    d(r) = 1 / log2(r + 1), the sums run over the ranks r <= k of the list; the ideal sums over
    the user's gains sorted downward, the first min(n, k) of them.

    Attributes
    ----------
    k : int
        The cut-off; `FULL_LIST` for the whole list.
    n_relevant : ndarray of int64
        n, the user's relevant items.
    first_hit : ndarray of int64
        Rank of the first hit in the whole list, 0 without one.
    hits, gain, dcg, dcg_exp, dcg_binary : ndarray of float64
        Σ h, Σ g, Σ g·d(r), Σ (2^g − 1)·d(r), Σ h·d(r).
    idcg, idcg_exp, idcg_binary : ndarray of float64
        The last three over the ideal order.
    precision_sum : ndarray of float64
        Σ h·(hits down to r) / r.
    reciprocal_sum, reciprocal_gain : ndarray of float64
        Σ h / r, Σ g / r.
    """

    k: int
    n_relevant: NDArray[np.int64]
    first_hit: NDArray[np.int64]
    hits: NDArray[np.float64]
    gain: NDArray[np.float64]
    dcg: NDArray[np.float64]
    dcg_exp: NDArray[np.float64]
    dcg_binary: NDArray[np.float64]
    idcg: NDArray[np.float64]
    idcg_exp: NDArray[np.float64]
    idcg_binary: NDArray[np.float64]
    precision_sum: NDArray[np.float64]
    reciprocal_sum: NDArray[np.float64]
    reciprocal_gain: NDArray[np.float64]
