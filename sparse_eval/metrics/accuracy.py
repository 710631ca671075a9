"""The accuracy metrics: formulas over `Statistics`, and their entries of the registry.

A user without relevant items has n = 0 and sums of 0; the formula's value for such a user is
discarded. A formula that returns a pair gives numerator and denominator, so that ``average=micro``
can sum both over users first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .averages import AVERAGE, GEOMETRIC, logarithms
from .interpolated import hits_needed
from .propensity import WEIGHTED, YANG
from .registry import Choice, Definition, Number, always, never
from .sets import BETA, RIJSBERGEN, f_measure

if TYPE_CHECKING:
    from ..core.types import Floats, Integers
    from .expectation import ExpectedStatistics
    from .registry import Arguments
    from .statistics import Statistics

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

#: Of recall and hit rate apart for repeated and for new items.
LI = "items=: Li, Jullien, Ariannezhad and de Rijke, 2023, ACM TOIS 41(4), doi:10.1145/3587153"


def dcg(s: Statistics, gain: str, weights: str, gamma: float | str) -> Floats:
    if gain == "exp":
        return s.dcg_exp
    return s.dcg if gain == "linear" or weights != "none" else s.dcg_binary


def idcg(s: Statistics, gain: str) -> Floats:
    if gain == "exp":
        return s.idcg_exp
    return s.idcg if gain == "linear" else s.idcg_binary


def ndcg(s: Statistics, gain: str, weights: str, gamma: float | str) -> Floats:
    return dcg(s, gain, weights, gamma) / idcg(s, gain)


def _hits(s: Statistics, weights: str) -> Floats:
    """Return the hits, or the sum of their weights, which are then in place of gains."""
    return s.hits if weights == "none" else s.gain


def precision(
    s: Statistics, denominator: str, average: str, weights: str, gamma: float | str
) -> Ratio:
    hits = _hits(s, weights)
    if denominator == "length":
        return hits, s.list_length
    return hits, np.minimum(s.n_relevant, s.k) if denominator == "min" else s.k


def recall(
    s: Statistics, denominator: str, average: str, items: str, weights: str, gamma: float | str
) -> Ratio:
    hits = _hits(s, weights)
    return hits, np.minimum(s.n_relevant, s.k) if denominator == "min" else s.n_relevant


def f1(s: Statistics, beta: float) -> Floats:
    return f_measure(s, s.k, beta)


def jaccard(s: Statistics) -> Floats:
    return s.hits / (s.list_length + s.n_relevant - s.hits)


def arhr(s: Statistics, gain: str, weights: str, gamma: float | str) -> Floats:
    return s.reciprocal_gain if gain == "linear" or weights != "none" else s.reciprocal_sum


def _normalized(total: Floats, s: Statistics, normalizer: str) -> Floats:
    """Divide a sum over hits as the option says."""
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


def average_precision(s: Statistics, normalizer: str, average: str) -> Floats | Ratio:
    values = _normalized(s.precision_sum, s, normalizer)
    return logarithms(values, s.n_relevant) if average == "geometric" else values


def average_recall(s: Statistics, normalizer: str) -> Floats:
    # The recall at the j-th hit is j / n.
    if normalizer == "hits":  # (1 + … + h) / h, 0 without hits, as a sum that has an expectation
        return (s.hits + s.any_hit) / (2 * s.n_relevant)
    return _normalized(s.step_sum / s.n_relevant, s, normalizer)


def r_precision(s: Statistics, denominator: str, multiple: float) -> Floats:
    first = hits_needed(multiple, s.n_relevant, "up")
    return s.hits_within(first) / (np.minimum(first, s.k) if denominator == "min" else first)


def fcp(s: Statistics) -> Floats:
    concordant, discordant = s.pairs
    return concordant / (concordant + discordant)


def auc(s: Statistics, among: str, weights: str, gamma: float | str) -> Floats:
    if among == "list":
        return s.order_of_list
    # Pairs of a hit and a miss below it in the list: hits·L − Σ rank − hits·(hits − 1)/2. Below
    # the list, n − hits relevant and C − n − L + hits irrelevant items are in unknown order, so
    # half of their pairs count. The squares cancel in the sum of both.
    n, length = s.n_relevant, s.list_length
    n_misses = s.candidates - n
    # Without a pair it is undefined; sums over ties are rounded, and not always 0 then.
    n_pairs = np.where(n * n_misses > 0, n * n_misses, np.nan)
    if weights == "none":
        pairs = (s.hits * (s.candidates + length + 1) + n * (n_misses - length)) / 2 - s.rank_sum
        return pairs / n_pairs
    # Each hit by its weight: the misses above it are its rank less the hits down to it.
    below = s.gain * n_misses - (s.gain_rank_sum - s.gain_step_sum)
    behind = (s.all_gain - s.gain) * (n_misses - length + s.hits) / 2
    return (below + behind) / n_pairs


def gauc(s: Statistics, weight: str) -> Ratio:
    weights = (s.n_relevant if weight == "relevant" else s.candidates).astype(np.float64)
    return weights * auc(s, "candidates", "none", "given"), weights  # NaN leaves a user out


def err(s: Statistics, max: float | str) -> Floats:  # noqa: A002 - the option's name
    return s.cascade_sum(s.largest_gain if isinstance(max, str) else max)


def rbp(s: Statistics, p: float, gain: str) -> Floats:
    value = (1 - p) * s.geometric_sum(p, graded=gain != "binary")
    return value / s.largest_gain if gain == "linear" else value


def _unlisted_rank(s: Statistics) -> Floats:
    """Return the expected rank of a relevant item that is not in the list."""
    return (s.list_length + 1 + s.candidates) / 2


def mean_rank(s: Statistics) -> Floats:
    n = s.n_relevant
    return (s.rank_sum + (n - s.hits) * _unlisted_rank(s)) / n


def percentile_rank(s: Statistics, gain: str, average: str) -> Ratio:
    if gain == "linear":
        listed_ranks, listed_gain, total_gain = s.gain_rank_sum, s.gain, s.all_gain
    else:
        listed_ranks, listed_gain = s.rank_sum, s.hits
        total_gain = s.n_relevant.astype(np.float64)
    ranks = listed_ranks + (total_gain - listed_gain) * _unlisted_rank(s)
    return (ranks - total_gain) / np.maximum(s.candidates - 1, 1), total_gain


def _upper_if_normalized(options: Arguments) -> float:
    return np.inf if options["normalizer"] == "none" else 1.0


def _upper_unless_weighted(options: Arguments) -> float:
    return 1.0 if options["weights"] == "none" else np.inf


def _averages_auc(options: Arguments) -> bool:
    return options["among"] == "candidates" and options["weights"] == "none"


def _expected_auc(s: ExpectedStatistics, among: str, weights: str, gamma: float | str) -> Floats:
    if weights == "none":
        return auc(s, among, weights, gamma)
    # Half of the misses are below an item that a list can hold, wherever it ends; below any other,
    # half of those behind the list.
    n_misses, listed = s.candidates - s.n_relevant, s.chances.gain
    behind = (s.all_gain - listed) * (n_misses - s.list_length + s.hits) / n_misses
    return (listed + behind) / (2 * s.n_relevant)


def _expected_fcp(s: ExpectedStatistics) -> Floats:
    return np.full(len(s.hits), 0.5)  # a list and its reverse are equally likely


METRICS = (
    Definition(
        "cg",
        lambda s: s.gain,
        "Σ g(r)",
        "cumulative gain: the sum of the gains in the list",
        plain="How much relevance the list holds in all, wherever in it.",
        upper=np.inf,
        averages_ties=always,
        source=JARVELIN,
    ),
    Definition(
        "dcg",
        dcg,
        "Σ g(r) / log2(r + 1)",
        "discounted cumulative gain",
        plain=(
            "How much relevance the list holds, where an item counts the less the further down "
            "it is."
        ),
        options=(GAIN, *WEIGHTED),
        upper=np.inf,
        averages_ties=always,
        weighted=True,
        source=f"{JARVELIN}; {YANG}",
    ),
    Definition(
        "idcg",
        idcg,
        "dcg of the first min(n, k) gains in descending order",
        "the largest dcg that is possible for the user",
        plain=(
            "The dcg that a perfect list would reach for the user: what ndcg is measured against."
        ),
        options=(GAIN,),
        upper=np.inf,
        averages_ties=always,
        source=JARVELIN,
    ),
    Definition(
        "ndcg",
        ndcg,
        "dcg / idcg",
        "normalized discounted cumulative gain",
        plain=(
            "How close the list comes to the best order possible: 1 means that all relevant "
            "items are on top, 0 that none is there; the higher an item stands, the more it "
            "counts."
        ),
        options=(GAIN, *WEIGHTED),
        upper=_upper_unless_weighted,
        averages_ties=always,
        weighted=True,
        source=f"{JARVELIN}; {YANG}",
    ),
    Definition(
        "precision",
        precision,
        "hits / k",
        "share of the list that is relevant",
        plain="Of the items shown, the share that the user was interested in.",
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
        upper=_upper_unless_weighted,
        weighted=True,
        source=YANG,
        averages_ties=always,
    ),
    Definition(
        "recall",
        recall,
        "hits / n",
        "share of the relevant items found",
        plain="Of the items that the user was interested in, the share that was shown.",
        options=(DENOMINATOR, AVERAGE, ITEMS, *WEIGHTED),
        upper=_upper_unless_weighted,
        by_item=True,
        weighted=True,
        source=f"{LI}; {YANG}",
        averages_ties=always,
    ),
    Definition(
        "hit_rate",
        lambda s, items: s.any_hit,
        "1 if hits > 0, else 0",
        "whether anything relevant was found",
        plain="The share of users who were shown at least one item that they were interested in.",
        options=(ITEMS,),
        by_item=True,
        source=LI,
    ),
    Definition(
        "f1",
        f1,
        "(1 + β²)·precision·recall / (β²·precision + recall)",
        "harmonic mean of precision and recall",
        plain="One number for precision and recall together, high only if both are.",
        options=(BETA,),
        cutoff="required",
        source=RIJSBERGEN,
        averages_ties=always,
    ),
    Definition(
        "jaccard",
        jaccard,
        "hits / (list length + n − hits)",
        "share of what is listed or relevant that is both",
        plain=(
            "How much the items shown and the items of interest overlap; 1 if they are the same"
            " ones."
        ),
        closed_form=never,
        source="Jaccard, 1912, New Phytologist 11(2), doi:10.1111/j.1469-8137.1912.tb05611.x",
    ),
    Definition(
        "mrr",
        lambda s: s.reciprocal_rank,
        "1 / rank of the first hit, else 0",
        "reciprocal rank of the first hit",
        plain=(
            "How far up the first item of interest stands: 1 if it is always first, 0.5 if "
            "second, 0.1 if tenth."
        ),
    ),
    Definition(
        "arhr",
        arhr,
        "Σ h(r) / r",
        "reciprocal ranks of all hits, summed",
        plain=(
            "How many items of interest are shown, where one counts the less the further down "
            "it is: the second half, the tenth a tenth."
        ),
        options=(BINARY, *WEIGHTED),
        upper=np.inf,
        weighted=True,
        source=YANG,
    ),
    Definition(
        "map",
        average_precision,
        "(1/n) Σ h(r)·precision@r",
        "average precision",
        plain=(
            "How well the list puts items of interest before all others; 1 if all of them come "
            "first."
        ),
        options=(NORMALIZER, GEOMETRIC),
        upper=_upper_if_normalized,
        closed_form=lambda o: o["normalizer"] != "hits" and o["average"] == "macro",
    ),
    Definition(
        "mar",
        average_recall,
        "(1/n) Σ h(r)·recall@r",
        "average recall",
        plain="How many of the items of interest the list finds, where each further one adds more.",
        options=(NORMALIZER,),
        upper=_upper_if_normalized,
    ),
    Definition(
        "r_precision",
        r_precision,
        "hits in the first m·n / m·n",
        "precision at the number of relevant items, or a multiple m of it",
        plain=(
            "Of as many top items as the user has items of interest, the share that are of "
            "interest."
        ),
        options=(
            Choice("denominator", ("relevant", "min"), "divide by m·n or by min(m·n, k)"),
            Number("multiple", "1", 0, np.inf, "m; m·n is rounded up"),
        ),
        uses=("hits",),
    ),
    Definition(
        "fcp",
        fcp,
        "concordant / (concordant + discordant)",
        "share of the pairs of listed items with different gains that are in the right order",
        plain=(
            "How often, of two listed items that the user values differently, the more valued "
            "one comes first; 0.5 is chance."
        ),
        uses=("hits",),
        closed_form=never,
        expected=_expected_fcp,
        source="Koren and Sill, 2013, IJCAI",
    ),
    Definition(
        "auc",
        auc,
        "(Σ over misses of the hits above + (hits + n)/2·misses behind the list) / (n·(C − n))",
        "chance that a relevant item is ranked above one that is not, of the C candidates",
        plain=(
            "How often an item of interest is ranked above one that is not; 0.5 is chance, 1 is"
            " always."
        ),
        options=(
            Choice(
                "among",
                ("candidates", "list"),
                "of the C candidates, or of the list alone: 0 without a hit, 1 without a miss",
            ),
            *WEIGHTED,
        ),
        upper=_upper_unless_weighted,
        uses=("hits", "candidates"),
        averages_ties=_averages_auc,
        expected=_expected_auc,
        weighted=True,
        source=YANG,
    ),
    Definition(
        "gauc",
        gauc,
        "Σ w·auc / Σ w, w = C",
        "mean auc over users, weighted by the number of their candidates (impressions)",
        plain=(
            "How often an item of interest is ranked above another one, where users with more "
            "candidates count more; 0.5 is chance."
        ),
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
    ),
    Definition(
        "err",
        err,
        "Σ (1/r)·R(r)·Π (1 − R before r), R = (2^g − 1) / 2^max",
        "expected reciprocal rank of the item where a reader stops",
        plain=(
            "How soon a reader who goes down the list and stops when satisfied comes to stop; 1"
            " is at once."
        ),
        options=(Number("max", "largest", 0, np.inf, "top of the scale of gains"),),
        uses=("hits",),
        closed_form=never,
        of_largest=lambda o: isinstance(o["max"], str),
        source="Chapelle, Metzler, Zhang and Grinspan, 2009, CIKM, doi:10.1145/1645953.1646033",
    ),
    Definition(
        "rbp",
        rbp,
        "(1 − p) Σ h(r)·p^(r − 1)",
        "rank-biased precision, for a reader who goes on to the next item with probability p",
        plain=(
            "How much of interest a reader comes across who gives up somewhere down the list; "
            "what stands at the top counts most."
        ),
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
    ),
    Definition(
        "mean_rank",
        mean_rank,
        "(1/n) Σ rank of each relevant item",
        "mean rank of the relevant items, those not listed at the mean of the remaining ranks",
        plain="At which rank an item of interest stands on average; 1 is the top.",
        cutoff="none",
        lower=1.0,
        upper=np.inf,
        uses=("hits", "candidates"),
        higher_is_better=False,
        averages_ties=always,
    ),
    Definition(
        "percentile_rank",
        percentile_rank,
        "Σ g·(rank − 1)/(C − 1) / Σ g",
        "how far down the relevant items are: 0 first, 1 last of the C candidates",
        plain=(
            "How far down the ranking items of interest stand: 0 is the top, 1 the bottom, 0.5 "
            "chance."
        ),
        options=(Choice("gain", ("linear", "binary"), "weigh items by g, or equally"), AVERAGE),
        cutoff="none",
        uses=("hits", "candidates", "total_gain"),
        source="Hu, Koren and Volinsky, 2008, ICDM, doi:10.1109/ICDM.2008.22",
        higher_is_better=False,
        averages_ties=always,
    ),
)
