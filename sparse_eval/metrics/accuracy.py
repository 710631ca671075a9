"""The accuracy metrics: formulas over `Statistics`, one entry of the registry each.

A user without relevant items has n = 0 and sums of 0; what a formula makes of that is not used.
A formula that returns a pair gives numerator and denominator, so that ``average=micro`` can add
them up over users first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .registry import Choice, Definition, Number, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from .statistics import Statistics

    Values = NDArray[np.float64]
    Ratio = tuple[Values, Any]

GAIN = Choice("gain", ("linear", "exp", "binary"), "g, 2^g − 1, or 1 for every relevant item")
BINARY = Choice("gain", ("binary", "linear"), "1 for every relevant item, or g")
AVERAGE = Choice(
    "average",
    ("macro", "micro"),
    "mean over users, or the sum of their numerators / the sum of their denominators",
)
NORMALIZER = Choice(
    "normalizer",
    ("relevant", "min", "hits", "none", "length"),
    "divide by n, by min(n, k), by the hits, not at all, or by min(n, k, list length)",
)


def cg(s: Statistics) -> Values:
    return s.gain


def dcg(s: Statistics, gain: str) -> Values:
    if gain == "exp":
        return s.dcg_exp
    return s.dcg if gain == "linear" else s.dcg_binary


def idcg(s: Statistics, gain: str) -> Values:
    if gain == "exp":
        return s.idcg_exp
    return s.idcg if gain == "linear" else s.idcg_binary


def ndcg(s: Statistics, gain: str) -> Values:
    return dcg(s, gain) / idcg(s, gain)


def precision(s: Statistics, denominator: str, average: str) -> Ratio:
    if denominator == "length":
        return s.hits, s.list_length
    return s.hits, np.minimum(s.n_relevant, s.k) if denominator == "min" else s.k


def recall(s: Statistics, denominator: str, average: str) -> Ratio:
    return s.hits, np.minimum(s.n_relevant, s.k) if denominator == "min" else s.n_relevant


def hit_rate(s: Statistics) -> Values:
    return s.any_hit


def f1(s: Statistics) -> Values:
    # 2pr / (p + r) with p = hits/k and r = hits/n, and 0 where both are 0
    return 2 * s.hits / (s.k + s.n_relevant)


def jaccard(s: Statistics) -> Values:
    return s.hits / (s.list_length + s.n_relevant - s.hits)


def mrr(s: Statistics) -> Values:
    return s.reciprocal_rank


def arhr(s: Statistics, gain: str) -> Values:
    return s.reciprocal_gain if gain == "linear" else s.reciprocal_sum


def _normalized(total: Values, s: Statistics, normalizer: str) -> Values:
    if normalizer == "none":
        return total
    if normalizer == "hits":
        return total / np.maximum(s.hits, 1)
    n = s.n_relevant
    if normalizer == "min":
        return total / np.minimum(n, s.k)
    if normalizer == "length":
        return total / np.maximum(np.minimum(n, s.list_length), 1)
    return total / n


def average_precision(s: Statistics, normalizer: str) -> Values:
    return _normalized(s.precision_sum, s, normalizer)


def average_recall(s: Statistics, normalizer: str) -> Values:
    # The recall at the j-th hit is j / n.
    if normalizer == "hits":  # (1 + … + h) / h, 0 without hits, as a sum that has an expectation
        return (s.hits + s.any_hit) / (2 * s.n_relevant)
    return _normalized(s.step_sum / s.n_relevant, s, normalizer)


def r_precision(s: Statistics, denominator: str) -> Values:
    n = s.n_relevant
    return s.hits_within(n) / (np.minimum(n, s.k) if denominator == "min" else n)


def fcp(s: Statistics) -> Values:
    concordant, discordant = s.pairs
    return concordant / (concordant + discordant)


def auc(s: Statistics) -> Values:
    # Pairs of a hit and a miss below it in the list: hits·L − Σ rank − hits·(hits − 1)/2. Behind
    # the list come n − hits relevant items and C − n − L + hits others in an order that is not
    # known, so half of their pairs. The sum of both, with the squares gone:
    n, length = s.n_relevant, s.list_length
    others = s.candidates - n
    in_order = (s.hits * (s.candidates + length + 1) + n * (others - length)) / 2 - s.rank_sum
    return in_order / (n * others)


def err(s: Statistics, max: float | str) -> Values:  # noqa: A002 - the option's name
    return s.cascade_sum(s.largest_gain if isinstance(max, str) else max)


def rbp(s: Statistics, p: float, gain: str) -> Values:
    if gain == "linear":
        return (1 - p) * s.geometric_sum(p, graded=True) / s.largest_gain
    return (1 - p) * s.geometric_sum(p, graded=False)


def _rank_behind(s: Statistics) -> Values:
    """Return the expected rank of a relevant item that is not in the list."""
    return (s.list_length + 1 + s.candidates) / 2


def mean_rank(s: Statistics) -> Values:
    n = s.n_relevant
    return (s.rank_sum + (n - s.hits) * _rank_behind(s)) / n


def percentile_rank(s: Statistics, gain: str, average: str) -> Ratio:
    if gain == "linear":
        found, in_list, all_of_it = s.gain_rank_sum, s.gain, s.all_gain
    else:
        found, in_list, all_of_it = s.rank_sum, s.hits, s.n_relevant.astype(np.float64)
    ranks = found + (all_of_it - in_list) * _rank_behind(s)
    return (ranks - all_of_it) / np.maximum(s.candidates - 1, 1), all_of_it


def _linear(options: Mapping[str, Any]) -> bool:
    return True


def _define(
    name: str, formula: Callable[..., Any], text: str, description: str, **facts: Any
) -> None:
    register(Definition(name, formula, text, description, **({"closed_form": _linear} | facts)))


_JARVELIN = "Järvelin and Kekäläinen, 2002, ACM TOIS 20(4)"
_KOREN = "Hu, Koren and Volinsky, 2008, ICDM"
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
    options=(
        Choice(
            "denominator",
            ("k", "length", "min"),
            "divide by k, by min(k, list length), or by min(n, k)",
        ),
        AVERAGE,
    ),
    cutoff="required",
)
_define(
    "recall",
    recall,
    "hits / n",
    "share of the relevant items found",
    options=(Choice("denominator", ("relevant", "min"), "divide by n or by min(n, k)"), AVERAGE),
    by_item=True,
)
_define(
    "hit_rate",
    hit_rate,
    "1 if hits > 0, else 0",
    "whether anything relevant was found",
    by_item=True,
)
_define(
    "f1",
    f1,
    "2·precision·recall / (precision + recall)",
    "harmonic mean of precision and recall",
    cutoff="required",
)
_define(
    "jaccard",
    jaccard,
    "hits / (list length + n − hits)",
    "share of what is listed or relevant that is both",
    closed_form=lambda options: False,
    source="Jaccard, 1912, New Phytologist 11(2)",
)
_define("mrr", mrr, "1 / rank of the first hit, else 0", "reciprocal rank of the first hit")
_define(
    "arhr",
    arhr,
    "Σ h(r) / r",
    "reciprocal ranks of all hits, summed",
    options=(BINARY,),
    upper=np.inf,
)
_define(
    "map",
    average_precision,
    "(1/n) Σ h(r)·precision@r",
    "average precision",
    options=(NORMALIZER,),
    upper=lambda options: np.inf if options["normalizer"] == "none" else 1.0,
    closed_form=lambda options: options["normalizer"] != "hits",
)
_define(
    "mar",
    average_recall,
    "(1/n) Σ h(r)·recall@r",
    "average recall",
    options=(NORMALIZER,),
    upper=lambda options: np.inf if options["normalizer"] == "none" else 1.0,
)
_define(
    "r_precision",
    r_precision,
    "hits in the first n / n",
    "precision at the number of relevant items",
    options=(Choice("denominator", ("relevant", "min"), "divide by n or by min(n, k)"),),
    uses=("hits",),
)
_define(
    "fcp",
    fcp,
    "concordant / (concordant + discordant)",
    "share of the list's pairs of different gains whose larger gain comes first",
    uses=("hits",),
    closed_form=lambda options: False,
    expected=lambda s: np.full(len(s.hits), 0.5),  # a list and its reverse are equally likely
    source="Koren and Sill, 2013, IJCAI",
)
_define(
    "auc",
    auc,
    "(Σ over misses of the hits above + (hits + n)/2·misses behind the list) / (n·(C − n))",
    "chance that a relevant item is ranked above one that is not, of the C candidates",
    uses=("hits", "candidates"),
)
_define(
    "err",
    err,
    "Σ (1/r)·R(r)·Π (1 − R before r), R = (2^g − 1) / 2^max",
    "expected reciprocal rank of the item where a reader stops",
    options=(Number("max", "largest", 0, np.inf, "top of the scale of gains"),),
    uses=("hits",),
    closed_form=lambda options: False,
    of_largest=lambda options: isinstance(options["max"], str),
    source="Chapelle, Metzler, Zhang and Grinspan, 2009, CIKM",
)
_define(
    "rbp",
    rbp,
    "(1 − p) Σ h(r)·p^(r − 1)",
    "rank-biased precision: of a reader who goes on with probability p",
    options=(
        Number("p", "0.8", 0, 1, "probability of going on to the next item"),
        Choice("gain", ("binary", "linear"), "1 for every relevant item, or g / the largest gain"),
    ),
    uses=("hits",),
    of_largest=lambda options: options["gain"] == "linear",
    source="Moffat and Zobel, 2008, ACM TOIS 27(1)",
)
_define(
    "mean_rank",
    mean_rank,
    "(1/n) Σ rank of each relevant item",
    "mean rank of the relevant items, one that is not listed in the middle of the rest",
    cutoff="none",
    lower=1.0,
    upper=np.inf,
    uses=("hits", "candidates"),
    higher_is_better=False,
)
_define(
    "percentile_rank",
    percentile_rank,
    "Σ g·(rank − 1)/(C − 1) / Σ g",
    "how far down the relevant items are: 0 first, 1 last of the C candidates",
    options=(Choice("gain", ("linear", "binary"), "weigh items by g, or equally"), AVERAGE),
    cutoff="none",
    uses=("hits", "candidates", "total_gain"),
    source=_KOREN,
    higher_is_better=False,
)
