"""The metrics as their definitions read, one user at a time, in plain and slow Python.

Shares no code with the package: what both get wrong in the same way would go unseen. A user has
`ranked`, the 1-based position of each listed item; `gains`, the gain of each validation item,
explicit zeros included; and a `Context`, which most metrics do not need. The three are a case.
"""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import combinations, groupby, permutations, product


@dataclass(frozen=True, kw_only=True)
class Context:
    """What some metrics need to know beside one user's list and gains."""

    n_items: int  # of the catalogue
    seen: AbstractSet[int] = frozenset()  # items stored in train for this user
    largest_gain: float = math.nan  # of the whole validation data
    list_length: int | None = None  # None: the list ends with its last stored item
    among: AbstractSet[int] | None = None  # the user's candidates; None: the whole catalogue


#: The options of every metric; the first value of each is the default.
OPTIONS = {
    "cg": {},
    **{name: {"gain": ["linear", "exp", "binary"]} for name in ("dcg", "idcg", "ndcg")},
    "precision": {"denominator": ["k", "length", "min"]},
    "recall": {"denominator": ["relevant", "min"]},
    "hit_rate": {},
    "f1": {"beta": ["1", "0.5", "2"]},
    "jaccard": {},
    "mrr": {},
    "arhr": {"gain": ["binary", "linear"]},
    "map": {"normalizer": ["relevant", "min", "hits", "none", "length"]},
    "mar": {"normalizer": ["relevant", "min", "hits", "none", "length"]},
    "r_precision": {"denominator": ["relevant", "min"]},
    "fcp": {},
    "auc": {"among": ["candidates", "list"]},
    "err": {"max": ["largest", "4", "5.5"]},
    "rbp": {"p": ["0.8", "0.5"], "gain": ["binary", "linear", "raw"]},
    "mean_rank": {},
    "percentile_rank": {"gain": ["linear", "binary"]},
}

#: Every metric and option that has a value per user, as (name, options).
METRICS = [
    (name, dict(zip(options, values, strict=True)))
    for name, options in OPTIONS.items()
    for values in product(*options.values())
]

#: Those that can also be averaged as one fraction over all users.
MICRO = [
    (name, options | {"average": "micro"})
    for name, options in METRICS
    if name in ("precision", "recall", "percentile_rank")
]

NEEDS_CUTOFF = {"precision", "f1"}
NO_CUTOFF = {"mean_rank", "percentile_rank"}


def spelling(name, options, k):
    inside = ",".join(f"{option}={value}" for option, value in options.items())
    return name + (f"({inside})" if inside else "") + (f"@{k}" if k is not None else "")


def value(name, options, k, ranked, gains, context=None):
    """One metric of one user; NaN without a relevant item."""
    assert options.get("average", "macro") == "macro", "a micro average has no value per user"
    options = {option: values[0] for option, values in OPTIONS[name].items()} | options
    relevant = _relevant(gains)
    n = len(relevant)
    if n == 0:
        return math.nan
    depth = math.inf if k is None else k
    length = min(depth, _list_length(ranked, context))
    shown = sorted((position, item) for item, position in ranked.items() if position <= depth)
    hits = [(rank, relevant[item]) for rank, item in shown if item in relevant]

    if name == "cg":
        return sum(gain for _, gain in hits)
    if name == "dcg":
        return _dcg(hits, options["gain"])
    if name == "idcg":
        return _idcg(relevant, depth, options["gain"])
    if name == "ndcg":
        return _dcg(hits, options["gain"]) / _idcg(relevant, depth, options["gain"])
    if name in ("precision", "recall", "percentile_rank"):
        above, below = _fraction(name, options, k, ranked, gains, context)
        return above / below if below else 0.0
    if name == "jaccard":
        return len(hits) / (length + n - len(hits))
    if name == "hit_rate":
        return 1.0 if hits else 0.0
    if name == "f1":
        if not hits:
            return 0.0
        precision, recall = len(hits) / depth, len(hits) / n
        beta = float(options["beta"])
        return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    if name == "mrr":
        return 1 / hits[0][0] if hits else 0.0
    if name == "arhr":
        return sum((gain if options["gain"] == "linear" else 1) / rank for rank, gain in hits)
    if name in ("map", "mar"):
        so_far = enumerate(hits, 1)  # the i-th hit has i hits down to its rank
        total = sum(i / rank if name == "map" else i / n for i, (rank, _) in so_far)
        divisor = {
            "relevant": n,
            "min": min(n, depth),
            "hits": len(hits),
            "none": 1,
            "length": min(n, length),
        }[options["normalizer"]]
        return total / divisor if divisor else 0.0
    if name == "r_precision":
        first = min(n, depth)
        found = sum(1 for rank, _ in hits if rank <= first)
        return found / (n if options["denominator"] == "relevant" else first)
    if name == "fcp":
        return _fcp([gain for _, gain in _slots(ranked, relevant, length)])
    if name == "auc":
        if options["among"] == "list":
            return _auc_of_list([gain > 0 for _, gain in _slots(ranked, relevant, length)])
        return _auc(ranked, relevant, length, _known(context))
    if name == "err":
        top = options["max"]
        largest = _known(context).largest_gain if top == "largest" else float(top)
        return _err([gain for _, gain in _slots(ranked, relevant, length)], largest)
    if name == "rbp":
        p = float(options["p"])
        total = 0.0
        for rank, gain in hits:
            largest = _known(context).largest_gain
            worth = {"binary": 1.0, "linear": gain / largest, "raw": gain}[options["gain"]]
            total += worth * p ** (rank - 1)
        return (1 - p) * total
    if name == "mean_rank":
        ranks = [_expected_rank(item, ranked, relevant, _known(context)) for item in relevant]
        return sum(ranks) / n
    raise AssertionError(name)


def micro(name, options, k, cases):
    """Sum of numerators / sum of denominators over the users that have a relevant item."""
    options = {option: values[0] for option, values in OPTIONS[name].items()} | options
    fractions = [
        _fraction(name, options, k, ranked, gains, context)
        for ranked, gains, context in cases
        if _relevant(gains)
    ]
    if not fractions:
        return math.nan
    below = math.fsum(denominator for _, denominator in fractions)
    return math.fsum(numerator for numerator, _ in fractions) / below if below else 0.0


def gauc(weight, k, cases):
    """Mean of the users' auc, weighted by their candidates or relevant items; NaN without any."""
    total = weights = 0.0
    for ranked, gains, context in cases:
        found = value("auc", {}, k, ranked, gains, context)
        if not math.isnan(found):
            relevant = _relevant(gains)
            n_candidates = len(_candidates(ranked, relevant, _known(context)))
            w = len(relevant) if weight == "relevant" else n_candidates
            total, weights = total + w * found, weights + w
    return total / weights if weights else math.nan


def expected_over_ties(name, options, k, scores, gains):
    """The mean of a metric over every order that the scores allow."""
    by_score = sorted(range(len(scores)), key=lambda item: -scores[item])
    groups = [list(group) for _, group in groupby(by_score, key=lambda item: scores[item])]
    values = []
    for orders in product(*(permutations(group) for group in groups)):
        items = [item for order in orders for item in order]
        values.append(value(name, options, k, _ranks(items), gains))
    return math.fsum(values) / len(values)


def expected_at_random(name, options, k, candidates, gains, context=None):
    """The mean of a metric over every order of all of a user's candidates.

    Each of those lists holds every candidate, whatever length `context` names. Orders that leave
    fcp undefined do not count; where all do, so is the mean.
    """
    candidates = list(candidates)
    if context is not None:
        context = replace(context, list_length=len(candidates))
    values = [
        value(name, options, k, _ranks(order), gains, context) for order in permutations(candidates)
    ]
    if name == "fcp":
        values = [x for x in values if not math.isnan(x)]
    return math.fsum(values) / len(values) if values else math.nan


def precision_recall_curve(k, cases):
    """Mean precision and mean recall at rank 1, 2, ..., k, over the users evaluated."""
    evaluated = [(ranked, gains) for ranked, gains, _ in cases if _relevant(gains)]
    return [
        (
            mean_of_defined(value("precision", {}, rank, *user) for user in evaluated),
            mean_of_defined(value("recall", {}, rank, *user) for user in evaluated),
        )
        for rank in range(1, k + 1)
    ]


def interpolated_average_precision(k, ranked, gains):
    """At each recall j/n, the largest precision of any rank up to k that has it; their mean."""
    relevant = _relevant(gains)
    n = len(relevant)
    if n == 0:
        return math.nan
    total = 0.0
    for j in range(1, n + 1):
        best = 0.0
        for rank in range(1, k + 1):
            found = sum(1 for item in relevant if item in ranked and ranked[item] <= rank)
            if found >= j:  # recall found/n >= j/n
                best = max(best, found / rank)
        total += best
    return total / n


def mean_of_defined(values):
    """The mean of what is not NaN; NaN when nothing is left."""
    defined = [x for x in values if not math.isnan(x)]
    return math.fsum(defined) / len(defined) if defined else math.nan


# ---- Accuracy: the parts


def _relevant(gains):
    return {item: gain for item, gain in gains.items() if gain > 0}


def _ranks(items):
    return {item: rank for rank, item in enumerate(items, 1)}


def _known(context):
    assert context is not None, "this metric needs a context"
    return context


def _list_length(ranked, context):
    last = max(ranked.values(), default=0)
    if context is None or context.list_length is None:
        return last
    assert context.list_length >= last, "an item stands behind the end of its list"
    return context.list_length


def _slots(ranked, relevant, length):
    """(rank, gain) of each position of the list; a miss has gain 0, and so has a gap."""
    item_at = {position: item for item, position in ranked.items()}
    return [
        (rank, relevant.get(item_at[rank], 0.0) if rank in item_at else 0.0)
        for rank in range(1, int(length) + 1)
    ]


def _fraction(name, options, k, ranked, gains, context):
    """Numerator and denominator of a metric that can be averaged either way."""
    relevant = _relevant(gains)
    n = len(relevant)
    if name == "percentile_rank":
        assert k is None
        n_others = len(_candidates(ranked, relevant, _known(context))) - 1
        above = below = 0.0
        for item, gain in relevant.items():
            rank = _expected_rank(item, ranked, relevant, _known(context))
            weight = gain if options["gain"] == "linear" else 1.0
            above += weight * ((rank - 1) / n_others if n_others else 0.0)
            below += weight
        return above, below

    depth = math.inf if k is None else k
    hits = sum(1 for item in relevant if item in ranked and ranked[item] <= depth)
    denominator = {
        "k": depth,
        "length": min(depth, _list_length(ranked, context)),
        "min": min(n, depth),
        "relevant": n,
    }[options["denominator"]]
    return hits, denominator


def _gain(gain, kind):
    return {"linear": gain, "exp": 2**gain - 1, "binary": 1.0}[kind]


def _dcg(hits, kind):
    return sum(_gain(gain, kind) / math.log(rank + 1, 2) for rank, gain in hits)


def _idcg(relevant, depth, kind):
    best = sorted(relevant.values(), reverse=True)
    return _dcg([(rank, gain) for rank, gain in enumerate(best, 1) if rank <= depth], kind)


def _fcp(gains_in_order):
    concordant = discordant = 0
    for earlier, later in combinations(gains_in_order, 2):
        concordant += earlier > later
        discordant += earlier < later
    pairs = concordant + discordant
    return concordant / pairs if pairs else math.nan


def _candidates(ranked, relevant, context):
    """What the user can get less what it has in train; and what is relevant or recommended."""
    among = range(context.n_items) if context.among is None else context.among
    return {item for item in among if item not in context.seen} | {*relevant, *ranked}


def _auc(ranked, relevant, length, context):
    """How often a relevant item comes before an irrelevant one, the rest in random order behind.

    A gap stands for one of the irrelevant candidates that the list does not name. Should there be
    more gaps than such candidates, every gap counts and nothing irrelevant is behind the list.
    """
    n_irrelevant = len(_candidates(ranked, relevant, context)) - len(relevant)
    if n_irrelevant == 0:
        return math.nan
    misses = [rank for rank, gain in _slots(ranked, relevant, length) if gain == 0]
    n_behind = max(0, n_irrelevant - len(misses))
    right = pairs = 0.0
    for item in relevant:
        listed = item in ranked and ranked[item] <= length
        for miss in misses:
            right += 1.0 if listed and ranked[item] < miss else 0.0
            pairs += 1
        for _ in range(n_behind):
            right += 1.0 if listed else 0.5
            pairs += 1
    return right / pairs


def _auc_of_list(is_hit):
    """As RePlay's RocAuc: 0 without a hit, and 1 without a miss."""
    pairs = [(a, b) for a, b in combinations(is_hit, 2) if a != b]
    if not pairs:
        return 1.0 if any(is_hit) else 0.0
    return sum(1 for earlier, _ in pairs if earlier) / len(pairs)


def _err(gains_in_order, largest):
    total, still_looking = 0.0, 1.0
    for rank, gain in enumerate(gains_in_order, 1):
        satisfied = (2**gain - 1) / 2**largest
        total += still_looking * satisfied / rank
        still_looking *= 1 - satisfied
    return total


def _expected_rank(item, ranked, relevant, context):
    if item in ranked:
        return ranked[item]
    # a random one of the places behind the list: list length + 1, ..., number of candidates
    return (_list_length(ranked, context) + 1 + len(_candidates(ranked, relevant, context))) / 2


# ---- Lists and the catalogue
#
# All take: every user's list (items, best first, possibly empty), gains and training items, the
# size of the catalogue and the cut-off (None: whole lists). Users without a relevant item are
# left out.

Lists = Sequence[Sequence[int]]
Train = Sequence[AbstractSet[int]]

ONE_NUMBER_LIST_METRICS = ("coverage", "user_coverage", "gini", "entropy", "personalization")


def coverage(lists, relevance, train, n_items, k):
    return len({item for items in _evaluated(lists, relevance, k) for item in items}) / n_items


def user_coverage(lists, relevance, train, n_items, k):
    evaluated = _evaluated(lists, relevance, k)
    return sum(1 for items in evaluated if items) / len(evaluated) if evaluated else math.nan


def gini(lists, relevance, train, n_items, k):
    counts = _counts(lists, relevance, n_items, k)
    if sum(counts) == 0:
        return math.nan
    differences = sum(abs(a - b) for a in counts for b in counts)
    return differences / (2 * n_items * sum(counts))


def entropy(lists, relevance, train, n_items, k):
    """In bits."""
    counts = _counts(lists, relevance, n_items, k)
    if sum(counts) == 0:
        return math.nan
    shares = [count / sum(counts) for count in counts if count]
    return math.fsum(share * math.log2(1 / share) for share in shares)


def personalization(lists, relevance, train, n_items, k):
    """NaN when fewer than two evaluated users have a list."""
    shown = [set(items) for items in _evaluated(lists, relevance, k) if items]
    overlaps = [len(mine & yours) / k for mine, yours in combinations(shown, 2)]
    return 1 - math.fsum(overlaps) / len(overlaps) if overlaps else math.nan


def _evaluated(lists, relevance, k):
    """The lists, cut, of the users that have a relevant item."""
    return [items[:k] for items, gains in zip(lists, relevance, strict=True) if _relevant(gains)]


def _counts(lists, relevance, n_items, k):
    """How often each item of the catalogue is recommended."""
    evaluated = _evaluated(lists, relevance, k)
    return [sum(1 for items in evaluated if item in items) for item in range(n_items)]
