"""The metrics as their definitions read, one user at a time, in plain and slow Python.

Shares no code with the package: what both get wrong in the same way would go unseen. A user has
`ranked`, the 1-based position of each listed item; `gains`, the gain of each validation item,
explicit zeros included; and a `Context`, which most metrics do not need. The three are a case.
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations, groupby, permutations, product
from statistics import fmean


@dataclass(frozen=True, kw_only=True)
class Context:
    """What some metrics need to know beside one user's list and gains."""

    n_items: int  # of the catalogue
    seen: set = frozenset()  # items stored in train for this user
    largest_gain: float = math.nan  # of the whole validation data
    list_length: int | None = None  # None: the list ends with its last stored item
    among: set | None = None  # the user's candidates; None: the whole catalogue


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


def spelled(rows, cutoffs=(1, 2, 5, 20, None)):
    """Return (spelling, name, options, cut-off) at every cut-off that the metric can have."""
    return [
        (spelling(name, options, k), name, options, k)
        for name, options in rows
        for k in cutoffs
        if name not in (NEEDS_CUTOFF if k is None else NO_CUTOFF)
    ]


def value(name, options, k, ranked, gains, context=None):
    """One metric of one user; NaN without a relevant item."""
    options = _with_defaults(name, options)
    relevant = _relevant(gains)
    n = len(relevant)
    if n == 0:
        return math.nan
    depth = math.inf if k is None else k
    slots = _slots(ranked, relevant, min(depth, _list_length(ranked, context)))
    hits = [(rank, gain) for rank, gain in enumerate(slots, 1) if gain]

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
        return len(hits) / (len(slots) + n - len(hits))
    if name == "hit_rate":
        return 1.0 if hits else 0.0
    if name == "f1":
        if not hits:
            return 0.0
        precision, recall, beta = len(hits) / depth, len(hits) / n, float(options["beta"])
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
            "length": min(n, len(slots)),
        }[options["normalizer"]]
        return total / divisor if divisor else 0.0
    if name == "r_precision":
        first = min(n, depth)
        found = sum(1 for rank, _ in hits if rank <= first)
        return found / (n if options["denominator"] == "relevant" else first)
    if name == "fcp":
        return _fcp(slots)
    if name == "auc":
        if options["among"] == "list":
            return _auc_of_list([gain > 0 for gain in slots])
        return _auc(slots, ranked, relevant, context)
    if name == "err":
        top = options["max"]
        return _err(slots, context.largest_gain if top == "largest" else float(top))
    if name == "rbp":
        p, kind = float(options["p"]), options["gain"]
        largest = context.largest_gain if kind == "linear" else 1.0
        worths = [(rank, 1.0 if kind == "binary" else gain / largest) for rank, gain in hits]
        return (1 - p) * sum(worth * p ** (rank - 1) for rank, worth in worths)
    if name == "mean_rank":
        return sum(_expected_rank(item, ranked, relevant, context) for item in relevant) / n
    raise AssertionError(name)


def micro(name, options, k, cases):
    """Sum of numerators / sum of denominators over the users that have a relevant item."""
    options = _with_defaults(name, options)
    fractions = [_fraction(name, options, k, *case) for case in cases if _relevant(case[1])]
    if not fractions:
        return math.nan
    above, below = map(math.fsum, zip(*fractions, strict=True))
    return above / below if below else 0.0


def gauc(weight, k, cases):
    """Mean of the users' auc, weighted by their candidates or relevant items; NaN without any."""
    total = weights = 0.0
    for ranked, gains, context in cases:
        found = value("auc", {}, k, ranked, gains, context)
        if not math.isnan(found):
            relevant = _relevant(gains)
            w = len(relevant if weight == "relevant" else _candidates(ranked, relevant, context))
            total, weights = total + w * found, weights + w
    return total / weights if weights else math.nan


def orders(scores):
    """The positions of items in every order that their scores allow."""
    by_score = sorted(range(len(scores)), key=lambda item: -scores[item])
    groups = [list(group) for _, group in groupby(by_score, key=lambda item: scores[item])]
    return [
        _ranks(item for order in of_groups for item in order)
        for of_groups in product(*(permutations(group) for group in groups))
    ]


def expected_at_random(name, options, k, gains, context, length=None):
    """The mean of a metric over every list of a user's candidates that the user has not seen.

    A list holds `length` of them, by default all, whatever length `context` names. Lists that leave
    fcp undefined do not count; where all do, so is the mean.
    """
    among = range(context.n_items) if context.among is None else context.among
    eligible = [item for item in among if item not in context.seen]
    length = len(eligible) if length is None else min(length, len(eligible))
    context = replace(context, list_length=length)
    return mean_of_defined(
        value(name, options, k, _ranks(order), gains, context)
        for order in permutations(eligible, length)
    )


def precision_recall_curve(k, cases):
    """Mean precision and mean recall at rank 1, 2, ..., k, over users with a relevant item."""
    return [
        [fmean(value(name, {}, rank, *case) for case in cases) for name in ("precision", "recall")]
        for rank in range(1, k + 1)
    ]


def interpolated_average_precision(k, ranked, gains):
    """At each recall j/n, the largest precision of any rank up to k that has it; their mean."""
    relevant = _relevant(gains)
    found = [
        sum(ranked.get(item, math.inf) <= rank for item in relevant) for rank in range(1, k + 1)
    ]
    return fmean(
        max((hits / rank for rank, hits in enumerate(found, 1) if hits >= j), default=0.0)
        for j in range(1, len(relevant) + 1)
    )


def mean_of_defined(values):
    """The mean of what is not NaN; NaN when nothing is left."""
    defined = [x for x in values if not math.isnan(x)]
    return math.fsum(defined) / len(defined) if defined else math.nan


# ---- Accuracy: the parts


def _with_defaults(name, options):
    return {option: values[0] for option, values in OPTIONS[name].items()} | options


def _relevant(gains):
    return {item: gain for item, gain in gains.items() if gain > 0}


def _ranks(items):
    return {item: rank for rank, item in enumerate(items, 1)}


def _list_length(ranked, context):
    given = context and context.list_length
    return max(ranked.values(), default=0) if given is None else given


def _slots(ranked, relevant, length):
    """The gain at each position of the list; a miss has gain 0, and so has a gap."""
    gain_at = {position: relevant.get(item, 0.0) for item, position in ranked.items()}
    return [gain_at.get(rank, 0.0) for rank in range(1, length + 1)]


def _fraction(name, options, k, ranked, gains, context):
    """Numerator and denominator of a metric that can be averaged either way."""
    relevant = _relevant(gains)
    n = len(relevant)
    if name == "percentile_rank":
        n_others = max(len(_candidates(ranked, relevant, context)) - 1, 1)
        above = below = 0.0
        for item, gain in relevant.items():
            weight = gain if options["gain"] == "linear" else 1.0
            above += weight * (_expected_rank(item, ranked, relevant, context) - 1) / n_others
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


def _dcg(hits, kind):
    worth = {"linear": lambda g: g, "exp": lambda g: 2**g - 1, "binary": lambda g: 1.0}[kind]
    return sum(worth(gain) / math.log(rank + 1, 2) for rank, gain in hits)


def _idcg(relevant, depth, kind):
    best = sorted(relevant.values(), reverse=True)
    return _dcg([(rank, gain) for rank, gain in enumerate(best, 1) if rank <= depth], kind)


def _fcp(slots):
    pairs = [(earlier, later) for earlier, later in combinations(slots, 2) if earlier != later]
    return sum(earlier > later for earlier, later in pairs) / len(pairs) if pairs else math.nan


def _candidates(ranked, relevant, context):
    """What the user can get less what it has in train; and what is relevant or recommended."""
    among = range(context.n_items) if context.among is None else context.among
    return {item for item in among if item not in context.seen} | {*relevant, *ranked}


def _auc(slots, ranked, relevant, context):
    """How often a relevant item comes before an irrelevant one, the rest in random order behind.

    A gap stands for one of the irrelevant candidates that the list does not name. Should there be
    more gaps than such candidates, every gap counts and nothing irrelevant is behind the list.
    """
    n_irrelevant = len(_candidates(ranked, relevant, context)) - len(relevant)
    if n_irrelevant == 0:
        return math.nan
    misses = [rank for rank, gain in enumerate(slots, 1) if gain == 0]
    n_behind = max(0, n_irrelevant - len(misses))
    right = 0.0
    for item in relevant:
        if item in ranked and ranked[item] <= len(slots):
            right += sum(ranked[item] < miss for miss in misses) + n_behind
        else:
            right += n_behind / 2
    return right / (len(relevant) * (len(misses) + n_behind))


def _auc_of_list(is_hit):
    """As RePlay's RocAuc: 0 without a hit, and 1 without a miss."""
    pairs = [(a, b) for a, b in combinations(is_hit, 2) if a != b]
    if not pairs:
        return 1.0 if any(is_hit) else 0.0
    return sum(1 for earlier, _ in pairs if earlier) / len(pairs)


def _err(slots, largest):
    total, still_looking = 0.0, 1.0
    for rank, gain in enumerate(slots, 1):
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

ONE_NUMBER_LIST_METRICS = ("coverage", "user_coverage", "gini", "entropy", "personalization")


def coverage(lists, relevance, train, n_items, k):
    return len({item for items in _evaluated(lists, relevance, k) for item in items}) / n_items


def user_coverage(lists, relevance, train, n_items, k):
    evaluated = _evaluated(lists, relevance, k)
    return sum(1 for items in evaluated if items) / len(evaluated)


def gini(lists, relevance, train, n_items, k):
    return gini_of(_counts(lists, relevance, n_items, k))


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


def users_of_items(train, n_items):
    """The number of users who have each item in their training data."""
    return [sum(1 for items in train if item in items) for item in range(n_items)]


def gini_of(counts):
    """Half the mean difference of two counts, relative to their mean; NaN if all are 0."""
    differences = math.fsum(abs(a - b) for a, b in product(counts, repeat=2))
    whole = math.fsum(counts)
    return differences / (2 * len(counts) * whole) if whole else math.nan


def _evaluated(lists, relevance, k):
    """The lists, cut, of the users that have a relevant item."""
    return [items[:k] for items, gains in zip(lists, relevance, strict=True) if _relevant(gains)]


def _counts(lists, relevance, n_items, k):
    """How often each item of the catalogue is recommended."""
    evaluated = _evaluated(lists, relevance, k)
    return [sum(1 for items in evaluated if item in items) for item in range(n_items)]
