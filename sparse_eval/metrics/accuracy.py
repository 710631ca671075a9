"""The accuracy metrics: formulas over `Statistics`, one entry of the registry each.

A user without relevant items has n = 0 and sums of 0; what a formula makes of that is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .registry import Definition, Option, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .statistics import Statistics

    Values = NDArray[np.float64]

GAIN = Option("gain", ("linear", "exp", "binary"), "g, 2^g − 1, or 1 for every relevant item")
NORMALIZER = Option(
    "normalizer",
    ("relevant", "min", "hits", "none"),
    "divide by n, by min(n, k), by the hits, or not at all",
)


def cg(s: Statistics) -> Values:
    return s.gain


def dcg(s: Statistics, gain: str) -> Values:
    return {"linear": s.dcg, "exp": s.dcg_exp, "binary": s.dcg_binary}[gain]


def idcg(s: Statistics, gain: str) -> Values:
    return {"linear": s.idcg, "exp": s.idcg_exp, "binary": s.idcg_binary}[gain]


def ndcg(s: Statistics, gain: str) -> Values:
    return dcg(s, gain) / idcg(s, gain)


def precision(s: Statistics) -> Values:
    return s.hits / s.k


def recall(s: Statistics, denominator: str) -> Values:
    n = s.n_relevant
    return s.hits / (np.minimum(n, s.k) if denominator == "min" else n)


def hit_rate(s: Statistics) -> Values:
    return (s.hits > 0).astype(np.float64)


def f1(s: Statistics) -> Values:
    # 2pr / (p + r) with p = hits/k and r = hits/n, and 0 where both are 0
    return 2 * s.hits / (s.k + s.n_relevant)


def mrr(s: Statistics) -> Values:
    reached = (s.first_hit > 0) & (s.first_hit <= s.k)
    return np.where(reached, 1.0 / np.maximum(s.first_hit, 1), 0.0)


def arhr(s: Statistics, gain: str) -> Values:
    return s.reciprocal_gain if gain == "linear" else s.reciprocal_sum


def average_precision(s: Statistics, normalizer: str) -> Values:
    if normalizer == "none":
        return s.precision_sum
    if normalizer == "hits":
        return s.precision_sum / np.maximum(s.hits, 1)
    n = s.n_relevant
    return s.precision_sum / (np.minimum(n, s.k) if normalizer == "min" else n)


def _define(
    name: str,
    formula: Callable[..., Values],
    text: str,
    description: str,
    *,
    options: tuple[Option, ...] = (),
    cutoff: str = "optional",
    upper: float = 1.0,
    averages_ties: bool = False,
    source: str = "",
) -> None:
    register(
        Definition(
            name=name,
            formula=formula,
            text=text,
            description=description,
            options=options,
            cutoff_required=cutoff == "required",
            upper=upper,
            averages_ties=averages_ties,
            source=source,
        )
    )


_JARVELIN = "Järvelin and Kekäläinen, 2002, ACM TOIS 20(4)"
_define(
    "cg",
    cg,
    "Σ g(r)",
    "cumulative gain: the gains found",
    upper=np.inf,
    averages_ties=True,
    source=_JARVELIN,
)
_define(
    "dcg",
    dcg,
    "Σ g(r) / log2(r + 1)",
    "discounted cumulative gain",
    options=(GAIN,),
    upper=np.inf,
    averages_ties=True,
    source=_JARVELIN,
)
_define(
    "idcg",
    idcg,
    "dcg of the gains sorted downward, first min(n, k)",
    "the largest dcg the user allows",
    options=(GAIN,),
    upper=np.inf,
    averages_ties=True,
    source=_JARVELIN,
)
_define(
    "ndcg",
    ndcg,
    "dcg / idcg",
    "normalized discounted cumulative gain",
    options=(GAIN,),
    averages_ties=True,
    source=_JARVELIN,
)
_define(
    "precision",
    precision,
    "hits / k",
    "share of the list that is relevant",
    cutoff="required",
)
_define(
    "recall",
    recall,
    "hits / n",
    "share of the relevant items found",
    options=(Option("denominator", ("relevant", "min"), "divide by n or by min(n, k)"),),
)
_define("hit_rate", hit_rate, "1 if hits > 0, else 0", "whether anything relevant was found")
_define(
    "f1",
    f1,
    "2·precision·recall / (precision + recall)",
    "harmonic mean of precision and recall",
    cutoff="required",
)
_define("mrr", mrr, "1 / rank of the first hit, else 0", "reciprocal rank of the first hit")
_define(
    "arhr",
    arhr,
    "Σ h(r) / r",
    "reciprocal ranks of all hits, summed",
    options=(Option("gain", ("binary", "linear"), "sum h(r)/r or g(r)/r"),),
    upper=np.inf,
)
_define(
    "map",
    average_precision,
    "(1/n) Σ h(r)·precision@r",
    "average precision",
    options=(NORMALIZER,),
    upper=np.inf,
)
