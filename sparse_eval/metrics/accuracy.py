"""The accuracy metrics: formulas over `Statistics`.

A user without relevant items has n = 0 and sums of 0; the formula's value for such a user is
discarded. A formula may return a pair of numerator and denominator, so that ``average=micro`` can
sum each of them over users first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..core import elementary
from ..kernels import hits as kernels
from .plan import WEIGHTED, YANG
from .registry import Choice, Number, always, metric, never

if TYPE_CHECKING:
    from ..core.types import Floats, Integers
    from .random_baseline import ExpectedStatistics
    from .registry import Arguments
    from .user_statistics import Statistics

    Ratio: TypeAlias = tuple[Floats, Floats | Integers | int]

GAIN = Choice("gain", ("linear", "exp", "binary"), "g, 2^g − 1, or 1 for every relevant item")
BINARY = Choice("gain", ("binary", "linear"), "1 for every relevant item, or g")
NORMALIZER = Choice(
    "normalizer",
    ("relevant", "min", "hits", "none", "length"),
    "divide by n, by min(n, k), by the hits, not at all, or by min(n, k, list length)",
)
ITEMS = Choice(
    "items",
    ("all", "repeat", "explore"),
    "of all relevant items, of those the user has interacted with in train, or of the others; "
    "users without any are left out",
    needs={"repeat": "train", "explore": "train"},
)
DENOMINATOR = Choice("denominator", ("relevant", "min"), "divide by n or by min(n, k)")

JARVELIN = "Järvelin and Kekäläinen, 2002, ACM TOIS 20(4), doi:10.1145/582415.582418"
LI = "items=: Li, Jullien, Ariannezhad and de Rijke, 2023, ACM TOIS 41(4), doi:10.1145/3587153"
JAIN = "Jain, Prabhu and Varma, 2016, KDD, doi:10.1145/2939672.2939756"
RIJSBERGEN = "van Rijsbergen, 1979, Information Retrieval, chapter 7"

#: Above the upper bound, β² and the metric would be infinite.
BETA = Number("beta", "1", 0, 1e100, "recall counts β times as much as precision")


#: The option of metrics whose values can be averaged as ratios or as logarithms.
AVERAGE = Choice(
    "average",
    ("macro", "micro"),
    "mean over users, or the sum of their numerators / the sum of their denominators",
)
GEOMETRIC = Choice(
    "average",
    ("macro", "geometric"),
    "mean over users, or the geometric mean of their values, 0.00001 at least",
)

#: The value that replaces smaller ones in a geometric mean, as in trec_eval.
_LEAST = 1e-5

#: The options of metrics relative to the largest possible sums of weights.
PROPENSITY = (
    Choice(
        "average",
        ("micro", "macro"),
        "the sum of the users' numerators / the sum of their denominators, or the mean over users",
    ),
    Choice(
        "propensity",
        ("jain", "given"),
        "1 / (1 + C·(users of i + b)^−a), C = (ln N − 1)·(b + 1)^a, N users in train; or as given "
        "to evaluate",
        needs={"jain": "train", "given": "propensity"},
    ),
    Number("a", "0.55", 0, math.inf, "0.5 is usual for Wikipedia, 0.6 for Amazon"),
    Number("b", "1.5", 0, math.inf, "0.4 is usual for Wikipedia, 2.6 for Amazon"),
)

#: ε of infap, as in trec_eval.
_SMOOTHING = 1e-5

#: The levels of the eleven-point average.
LEVELS = tuple(level / 10 for level in range(11))

#: A bound on the floating-point error of products of levels and numbers of items.
_NEAR = 1e-9


def logarithms(values: Floats, n_relevant: Integers) -> tuple[Floats, Floats]:
    """Return the logarithms that a geometric mean averages, and their weights of 1.

    If users without relevant items count, their value is 0.
    """
    known = np.where(n_relevant > 0, values, 0.0)
    return elementary.log(np.maximum(known, _LEAST)), np.ones(len(values))


def f_measure(s: Statistics, n_listed: Integers | int, beta: float) -> Floats:
    """Return (1 + β²)·pr / (β²·p + r) for p = hits / n_listed and r = hits / n; 0 if both are 0."""
    square = beta * beta
    values: Floats = (1 + square) * s.hits / (n_listed + square * s.n_relevant)
    return values


def hits_needed(level: float, n_relevant: Integers, rounding: str) -> Integers:
    """Return the number of hits needed for the given recall."""
    exact = level * n_relevant
    if rounding == "trec9":
        needed = np.floor(exact + 0.9)
    elif rounding == "nearest":
        needed = np.floor(exact + 0.5)
    else:
        needed = np.ceil(exact - _NEAR)
    whole: Integers = needed.astype(np.int64)
    return whole


def _upper_unless_weighted(options: Arguments) -> float:
    return 1.0 if options["weights"] == "none" else np.inf


@metric("cg", upper=np.inf, averages_ties=always, source=JARVELIN)
def cg(s: Statistics) -> Floats:
    """cumulative gain: the sum of the gains in the list

    Σ g(r)

    How much relevance the list contains in total, at any position.
    """
    return s.gain


@metric(
    "dcg",
    options=(GAIN, *WEIGHTED),
    upper=np.inf,
    averages_ties=always,
    source=f"{JARVELIN}; {YANG}",
)
def dcg(s: Statistics, gain: str, weights: str, gamma: float | str) -> Floats:
    """discounted cumulative gain

    Σ g(r) / log2(r + 1)

    How much relevance the list contains; items further down count less.
    """
    if gain == "exp":
        return s.dcg_exp
    return s.dcg if gain == "linear" or weights != "none" else s.dcg_binary


@metric("idcg", options=(GAIN,), upper=np.inf, averages_ties=always, source=JARVELIN)
def idcg(s: Statistics, gain: str) -> Floats:
    """the largest dcg that is possible for the user

    dcg of the first min(n, k) gains in descending order

    The dcg that a perfect list would reach for the user, to which ndcg compares the list.
    """
    if gain == "exp":
        return s.idcg_exp
    return s.idcg if gain == "linear" else s.idcg_binary


@metric(
    "ndcg",
    options=(GAIN, *WEIGHTED),
    averages_ties=always,
    source=f"{JARVELIN}; {YANG}",
    upper=_upper_unless_weighted,
)
def ndcg(s: Statistics, gain: str, weights: str, gamma: float | str) -> Floats:
    """normalized discounted cumulative gain

    dcg / idcg

    How close the list is to the best possible order: 1 if all relevant items are on top, 0 if none
    is in the list; items further up count more.
    """
    return dcg(s, gain, weights, gamma) / idcg(s, gain)


def _hits(s: Statistics, weights: str) -> Floats:
    """Return the number of hits, or the sum of their weights, which then replace the gains."""
    return s.hits if weights == "none" else s.gain


@metric(
    "precision",
    options=(
        Choice(
            "denominator",
            ("k", "length", "min"),
            "divide by k, by min(k, list length), or by min(n, k)",
        ),
        AVERAGE,
        *WEIGHTED,
    ),
    cutoff="required",
    source=YANG,
    averages_ties=always,
    upper=_upper_unless_weighted,
)
def precision(
    s: Statistics, denominator: str, average: str, weights: str, gamma: float | str
) -> Ratio:
    """share of the list that is relevant

    hits / k

    Of the items shown, the share that the user was interested in.
    """
    hits = _hits(s, weights)
    if denominator == "length":
        return hits, s.list_length
    return hits, np.minimum(s.n_relevant, s.k) if denominator == "min" else s.k


@metric(
    "recall",
    options=(DENOMINATOR, AVERAGE, ITEMS, *WEIGHTED),
    by_item=True,
    source=f"{LI}; {YANG}",
    averages_ties=always,
    upper=_upper_unless_weighted,
)
def recall(
    s: Statistics, denominator: str, average: str, items: str, weights: str, gamma: float | str
) -> Ratio:
    """share of the relevant items found

    hits / n

    Of the items that the user was interested in, the share that was shown.
    """
    hits = _hits(s, weights)
    return hits, np.minimum(s.n_relevant, s.k) if denominator == "min" else s.n_relevant


@metric("hit_rate", options=(ITEMS,), by_item=True, source=LI)
def hit_rate(s: Statistics, items: str) -> Floats:
    """whether anything relevant was found

    1 if hits > 0, else 0

    The share of users who were shown at least one item that they were interested in.
    """
    return s.any_hit


@metric("f1", options=(BETA,), cutoff="required", source=RIJSBERGEN, averages_ties=always)
def f1(s: Statistics, beta: float) -> Floats:
    """harmonic mean of precision and recall

    (1 + β²)·precision·recall / (β²·precision + recall)

    One number for precision and recall together, high only if both are.
    """
    return f_measure(s, s.k, beta)


@metric(
    "jaccard",
    closed_form=never,
    source="Jaccard, 1912, New Phytologist 11(2), doi:10.1111/j.1469-8137.1912.tb05611.x",
)
def jaccard(s: Statistics) -> Floats:
    """share of what is listed or relevant that is both

    hits / (list length + n − hits)

    How much the items shown and the items of interest overlap; 1 if they are the same.
    """
    return s.hits / (s.list_length + s.n_relevant - s.hits)


@metric("mrr")
def mrr(s: Statistics) -> Floats:
    """reciprocal rank of the first hit

    1 / rank of the first hit, else 0

    How far up the first item of interest is: 1 if it is always first, 0.5 if second, 0.1 if tenth.
    """
    return s.reciprocal_rank


@metric("arhr", options=(BINARY, *WEIGHTED), upper=np.inf, source=YANG)
def arhr(s: Statistics, gain: str, weights: str, gamma: float | str) -> Floats:
    """reciprocal ranks of all hits, summed

    Σ h(r) / r

    How many items of interest are shown; items further down count less, the second one half, the
    tenth one tenth.
    """
    return s.reciprocal_gain if gain == "linear" or weights != "none" else s.reciprocal_sum


def _upper_if_normalized(options: Arguments) -> float:
    return np.inf if options["normalizer"] == "none" else 1.0


def _normalized(total: Floats, s: Statistics, normalizer: str) -> Floats:
    """Divide a sum over hits by the normalizer that the option names."""
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


@metric(
    "map",
    options=(NORMALIZER, GEOMETRIC),
    upper=_upper_if_normalized,
    closed_form=lambda o: o["normalizer"] != "hits" and o["average"] == "macro",
)
def average_precision(s: Statistics, normalizer: str, average: str) -> Floats | Ratio:
    """average precision

    (1/n) Σ h(r)·precision@r

    How well the list puts items of interest before other items; 1 if all of them come first.
    """
    values = _normalized(s.precision_sum, s, normalizer)
    return logarithms(values, s.n_relevant) if average == "geometric" else values


@metric("mar", options=(NORMALIZER,), upper=_upper_if_normalized)
def average_recall(s: Statistics, normalizer: str) -> Floats:
    """average recall

    (1/n) Σ h(r)·recall@r

    How many of the items of interest the list finds; each further one adds more.
    """
    # The recall at the j-th hit is j / n.
    if normalizer == "hits":  # (1 + … + h) / h, 0 without hits, as a sum with an expectation
        return (s.hits + s.any_hit) / (2 * s.n_relevant)
    return _normalized(s.step_sum / s.n_relevant, s, normalizer)


@metric(
    "r_precision",
    options=(
        Choice("denominator", ("relevant", "min"), "divide by m·n or by min(m·n, k)"),
        Number("multiple", "1", 0, np.inf, "m; m·n is rounded up"),
    ),
    uses=("hits",),
)
def r_precision(s: Statistics, denominator: str, multiple: float) -> Floats:
    """precision at the number of relevant items, or a multiple m of it

    hits in the first m·n / m·n

    The share of items of interest in the first n, for a user with n items of interest.
    """
    first = hits_needed(multiple, s.n_relevant, "up")
    return s.hits_within(first) / (np.minimum(first, s.k) if denominator == "min" else first)


@metric(
    "fcp",
    uses=("hits",),
    closed_form=never,
    expected=lambda s: np.full(len(s.hits), 0.5),  # a list and its reverse are equally likely
    source="Koren and Sill, 2013, IJCAI",
)
def fcp(s: Statistics) -> Floats:
    """share of the pairs of listed items with different gains that are in the right order

    concordant / (concordant + discordant)

    How often the more valued one of two listed items that the user values differently comes first;
    0.5 is chance.
    """
    concordant, discordant = s.pairs
    return concordant / (concordant + discordant)


def _expected_auc(s: ExpectedStatistics, among: str, weights: str, gamma: float | str) -> Floats:
    if weights == "none":
        return auc(s, among, weights, gamma)
    # On average, half of the misses are below an item that a list can hold, for any length of the
    # list. Below any other item are half of the misses behind the list. Misses that no list can
    # hold are behind it.
    n_misses, listed = s.candidates - s.n_relevant, s.chances.gain
    behind = (s.all_gain - listed) * (n_misses - s.list_length + s.hits) / n_misses
    behind += s.gain * (n_misses + s.chances.n_hits - s.chances.n_candidates) / n_misses
    return (listed + behind) / (2 * s.n_relevant)


@metric(
    "auc",
    options=(
        Choice(
            "among",
            ("candidates", "list"),
            "of the C candidates, or of the list alone: 0 without a hit, 1 without a miss",
        ),
        *WEIGHTED,
    ),
    uses=("hits", "candidates"),
    averages_ties=lambda o: o["among"] == "candidates" and o["weights"] == "none",
    expected=_expected_auc,
    source=YANG,
    upper=_upper_unless_weighted,
)
def auc(s: Statistics, among: str, weights: str, gamma: float | str) -> Floats:
    """chance that a relevant item is ranked above one that is not, of the C candidates

    (Σ over misses of the hits above + (hits + n)/2·misses behind the list) / (n·(C − n))

    How often an item of interest is ranked above one that is not; 0.5 is chance, 1 is always.
    """
    if among == "list":
        return s.order_of_list
    # Pairs of a hit and a miss below it in the list: hits·L − Σ rank − hits·(hits − 1)/2. Below
    # the list, n − hits relevant and C − n − L + hits irrelevant items are in unknown order, so
    # half of their pairs count. The squares cancel in the sum of both terms.
    n, length = s.n_relevant, s.list_length
    n_misses = s.candidates - n
    # Without a pair, auc is undefined. Sums over ties are rounded, so they are not always 0 then.
    n_pairs = np.where(n * n_misses > 0, n * n_misses, np.nan)
    if weights == "none":
        pairs = (s.hits * (s.candidates + length + 1) + n * (n_misses - length)) / 2 - s.rank_sum
        return pairs / n_pairs
    # Weigh each hit: the number of misses above it is its rank minus the hits down to it.
    below = s.gain * n_misses - (s.gain_rank_sum - s.gain_step_sum)
    behind = (s.all_gain - s.gain) * (n_misses - length + s.hits) / 2
    return (below + behind) / n_pairs


@metric(
    "gauc",
    options=(
        Choice(
            "weight",
            ("impressions", "relevant"),
            "weigh users by their candidates C, or by their relevant items n",
        ),
    ),
    uses=("hits", "candidates"),
    averages_ties=always,
    is_ratio=True,
    source="Zhou, Zhu, Song et al., 2018, KDD, doi:10.1145/3219819.3219823",
)
def gauc(s: Statistics, weight: str) -> Ratio:
    """mean auc over users, weighted by the number of their candidates (impressions)

    Σ w·auc / Σ w, w = C

    How often an item of interest is ranked above one that is not; users with more candidates count
    more, and 0.5 is chance.
    """
    weights = (s.n_relevant if weight == "relevant" else s.candidates).astype(np.float64)
    return weights * auc(s, "candidates", "none", "given"), weights  # NaN leaves a user out


@metric(
    "err",
    options=(Number("max", "largest", 0, np.inf, "top of the scale of gains"),),
    uses=("hits",),
    closed_form=never,
    of_largest=lambda o: isinstance(o["max"], str),
    source="Chapelle, Metzler, Zhang and Grinspan, 2009, CIKM, doi:10.1145/1645953.1646033",
)
def err(s: Statistics, max: float | str) -> Floats:  # noqa: A002 - the option's name
    """expected reciprocal rank of the item where a reader stops

    Σ (1/r)·R(r)·Π (1 − R before r), R = (2^g − 1) / 2^max

    How soon a reader who reads from the top until satisfied stops; 1 is at the first item.
    """
    return s.cascade_sum(s.largest_gain if isinstance(max, str) else max)


@metric(
    "rbp",
    options=(
        Number("p", "0.8", 0, 1, "probability of going on to the next item"),
        Choice(
            "gain",
            ("binary", "linear", "raw"),
            "1 for every relevant item, g / the largest gain, or g itself",
        ),
    ),
    upper=lambda o: np.inf if o["gain"] == "raw" else 1.0,
    uses=("hits",),
    of_largest=lambda o: o["gain"] == "linear",
    source="Moffat and Zobel, 2008, ACM TOIS 27(1), doi:10.1145/1416950.1416952",
)
def rbp(s: Statistics, p: float, gain: str) -> Floats:
    """rank-biased precision, for a reader who goes on to the next item with probability p

    (1 − p) Σ h(r)·p^(r − 1)

    How many items of interest are seen by a reader who may give up after each item; items at the
    top count most.
    """
    value = (1 - p) * s.geometric_sum(p, graded=gain != "binary")
    return value / s.largest_gain if gain == "linear" else value


def _unlisted_rank(s: Statistics) -> Floats:
    """Return the expected rank of a relevant item that is not in the list."""
    return (s.list_length + 1 + s.candidates) / 2


@metric(
    "mean_rank",
    cutoff="none",
    lower=1.0,
    upper=np.inf,
    uses=("hits", "candidates"),
    higher_is_better=False,
    averages_ties=always,
)
def mean_rank(s: Statistics) -> Floats:
    """mean rank of the relevant items, those not listed at the mean of the remaining ranks

    (1/n) Σ rank of each relevant item

    The average rank of an item of interest; 1 is the top.
    """
    n = s.n_relevant
    return (s.rank_sum + (n - s.hits) * _unlisted_rank(s)) / n


@metric(
    "percentile_rank",
    options=(Choice("gain", ("linear", "binary"), "weigh items by g, or equally"), AVERAGE),
    cutoff="none",
    uses=("hits", "candidates", "total_gain"),
    source="Hu, Koren and Volinsky, 2008, ICDM, doi:10.1109/ICDM.2008.22",
    higher_is_better=False,
    averages_ties=always,
)
def percentile_rank(s: Statistics, gain: str, average: str) -> Ratio:
    """how far down the relevant items are: 0 first, 1 last of the C candidates

    Σ g·(rank − 1)/(C − 1) / Σ g

    How far down the ranking items of interest are: 0 is the top, 1 the bottom, 0.5 chance.
    """
    if gain == "linear":
        listed_ranks, listed_gain, total_gain = s.gain_rank_sum, s.gain, s.all_gain
    else:
        listed_ranks, listed_gain = s.rank_sum, s.hits
        total_gain = s.n_relevant.astype(np.float64)
    ranks = listed_ranks + (total_gain - listed_gain) * _unlisted_rank(s)
    return (ranks - total_gain) / np.maximum(s.candidates - 1, 1), total_gain


@metric("psp", options=PROPENSITY, uses=("ideal_gain",), source=JAIN)
def psp(s: Statistics, **_: object) -> Ratio:
    """precision where a hit counts 1 / its propensity p, relative to the best possible

    Σ h(r) / p(i) / the largest such sum

    Precision in which finding a little-known item counts more than finding a popular one; 1 is the
    best possible.
    """
    return s.gain, s.largest_sum


@metric("psrecall", options=PROPENSITY, uses=("ideal_gain",), source=JAIN)
def psrecall(s: Statistics, **_: object) -> Ratio:
    """recall where a hit counts 1 / its propensity p, relative to the best possible

    Σ h(r) / p(i) / n / the largest such sum / n

    Recall in which finding a little-known item counts more than finding a popular one; 1 is the
    best possible.
    """
    n = np.maximum(s.n_relevant, 1)
    return s.gain / n, s.largest_sum / n


@metric("psndcg", options=PROPENSITY, source=JAIN)
def psndcg(s: Statistics, **_: object) -> Ratio:
    """ndcg where a hit counts 1 / its propensity p, relative to the best possible

    Σ h(r) / p(i) / log2(r + 1) / idcg(gain=binary), / the largest such sum

    Ndcg in which finding a little-known item counts more than finding a popular one; 1 is the best
    possible.
    """
    best = np.where(s.n_relevant > 0, s.idcg_binary, 1.0)
    return s.dcg / best, s.idcg / best


@metric(
    "bpref",
    options=(GEOMETRIC,),
    uses=("judged", "hits"),
    closed_form=never,
    source="Buckley and Voorhees, 2004, SIGIR, doi:10.1145/1008992.1009000",
)
def bpref(s: Statistics, average: str) -> Floats | tuple[Floats, Floats]:
    """share of the preferences for relevant over other judged items that the list keeps

    (1/n) Σ h(r)·(1 − min(judged misses above r, n) / min(judged misses, n))

    How rarely an item judged as not of interest is above an item of interest; items that were not
    judged do not count.
    """
    out = np.empty(len(s.hits))
    kernels.sum_preferences(s.hits_of_list, s.k, s.n_relevant, s.judged_items, out)
    values = out / s.n_relevant
    return logarithms(values, s.n_relevant) if average == "geometric" else values


@metric(
    "infap",
    uses=("judged", "hits"),
    closed_form=never,
    source="Yilmaz and Aslam, 2006, CIKM, doi:10.1145/1183614.1183633",
)
def infap(s: Statistics) -> Floats:
    """average precision, inferred from judged items as of a sample

    (1/n) Σ h(r)·(1 + judged above r·(hits above r + ε) / (judged above r + 2ε)) / r, ε = 0.00001

    An estimate of map if only some of the items were judged.
    """
    out = np.empty(len(s.hits))
    kernels.sum_inferred(s.hits_of_list, s.k, _SMOOTHING, out)
    return out / s.n_relevant


@metric("judged", uses=("judged",), for_all_users=True)
def judged(s: Statistics) -> tuple[Floats, Integers]:
    """share of the list that is judged, relevant or not

    judged items / list length

    The share of the list that was judged, which shows how far other metrics can be trusted.
    """
    return s.hits, s.list_length


@metric(
    "iprec_at_recall",
    options=(
        Number(
            "level", "average", 0, 1, "recall; by default the mean over eleven levels", closed=True
        ),
        Choice(
            "rounding",
            ("up", "trec9", "nearest"),
            "level·n as the next whole number of hits; as ⌊level·n + 0.9⌋ in floating point "
            "(trec_eval 9); or as the nearest (trec_eval 10)",
        ),
    ),
    uses=("hits",),
    closed_form=never,
    source="Manning, Raghavan and Schütze, 2008, Introduction to Information Retrieval, 8.4",
)
def iprec_at_recall(s: Statistics, level: float | str, rounding: str) -> Floats:
    """interpolated precision at a level of recall, or its mean at 0, 0.1, …, 1

    largest precision@r of ranks r where hits ≥ level·n, else 0

    The precision of the list once it has found a given share of the items of interest.
    """
    levels = LEVELS if isinstance(level, str) else (level,)
    total, out = np.zeros((2, len(s.hits)))
    for each in levels:
        needed = hits_needed(each, s.n_relevant, rounding)
        kernels.interpolate(s.hits_of_list, s.k, needed, out)
        total += out
    return total / len(levels)


@metric("set_precision", cutoff="none")
def set_precision(s: Statistics) -> Ratio:
    """share of the whole list that is relevant

    hits / list length

    Of all items listed, the share that the user was interested in.
    """
    return s.hits, s.list_length


@metric("set_relative_precision", cutoff="none")
def set_relative_precision(s: Statistics) -> Ratio:
    """precision of the whole list relative to the best of its length

    hits / min(n, list length)

    The share of the list that is of interest, relative to what a list of its length can reach.
    """
    return s.hits, np.minimum(s.list_length, s.n_relevant)


@metric("set_f", options=(BETA,), cutoff="none", source=RIJSBERGEN)
def set_f(s: Statistics, beta: float) -> Floats:
    """weighted harmonic mean of the whole list's precision and recall

    (1 + β²)·hits / (list length + β²·n)

    One number for precision and recall of the whole list, high only if both are.
    """
    return f_measure(s, s.list_length, beta)


@metric(
    "set_map",
    cutoff="none",
    # h² = h(h + 1) − h
    expected=lambda s: (2 * s.step_sum - s.hits, s.list_length * s.n_relevant),
)
def set_map(s: Statistics) -> Ratio:
    """precision times recall of the whole list

    hits² / (list length·n)

    Precision times recall of the whole list, high only if both are.
    """
    return s.hits**2, s.list_length * s.n_relevant


@metric("utility", lower=-np.inf, upper=np.inf, for_all_users=True)
def utility(s: Statistics) -> Floats:
    """relevant items of the list less the others

    hits − misses

    How many more items of interest than other items the list contains; below 0 if there are fewer.
    """
    return 2 * s.hits - s.list_length


@metric("num_ret", upper=np.inf, for_all_users=True)
def num_ret(s: Statistics) -> Floats:
    """number of listed items

    list length

    How many items were listed.
    """
    return s.list_length.astype(np.float64)


@metric("num_rel", cutoff="none", upper=np.inf)
def num_rel(s: Statistics) -> Floats:
    """number of relevant items

    n

    How many items the user was interested in, listed or not.
    """
    return s.n_relevant.astype(np.float64)


@metric("num_rel_ret", upper=np.inf)
def num_rel_ret(s: Statistics) -> Floats:
    """number of relevant items in the list

    hits

    How many items of interest were listed.
    """
    return s.hits


@metric(
    "num_nonrel_judged_ret",
    upper=np.inf,
    higher_is_better=False,
    uses=("judged",),
    for_all_users=True,
)
def num_nonrel_judged_ret(s: Statistics) -> Floats:
    """number of items in the list that are judged and not relevant

    judged items − hits

    How many listed items were judged as not of interest.
    """
    return 2 * s.hits - s.gain  # judged items have gain 2 if relevant, else 1
