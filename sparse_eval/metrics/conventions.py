"""Conventions: presets that reproduce the numbers of other libraries from the same statistics."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..core import elementary
from ..errors import InvalidMetricError
from .registry import definition, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike

    from ..core.types import Floats
    from ..inputs.rankings import Ties
    from .grammar import Metric

#: The largest cut-off whose ideal list can have k items for every user.
MOST_SLOTS = 1_000_000


def discount(ranks: ArrayLike, shift: int) -> Floats:
    """Return 1 / log2(max(rank + shift, 2)) for each rank."""
    return np.asarray(1.0 / elementary.log2(np.maximum(np.asarray(ranks) + shift, 2)))


class Exceptions(NamedTuple):
    """The metrics for which a convention counts different users.

    Attributes
    ----------
    lists_of_all : bool
        Whether metrics of recommended items count every list, including the lists of users without
        relevant items.
    without_list_zero : tuple of str
        Metrics that count 0 for a user without a list although `Convention.without_list` is
        "exclude".
    """

    lists_of_all: bool = False
    without_list_zero: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Convention:
    """The choices that differ between libraries.

    A convention of `CONVENTIONS` pickles by name, others by value.

    Attributes
    ----------
    name : str
        The value of ``convention=``.
    library : str
        The library whose numbers it reproduces.
    options : mapping
        Defaults of options that differ from the standard ones, by metric. If a key is an alias of
        a metric, its value has the options that this alias implies.
    notes : tuple of str
        Differences that no option covers, and behaviour of the library that is not reproduced.
    shift : {1, 0}
        The discount of rank r is 1 / log2(max(r + shift, 2)).
    ideal : {"relevant", "slots", "length", "all"}
        The ideal list: the first min(n, k) of the user's gains in descending order; k items of gain
        1; the first min(n, k, list length) gains; or all n gains for every k.
    no_relevant : {"exclude", "zero", "judged"}
        A user without relevant items is left out, counts 0, or counts 0 if zeros are stored for
        the user in the validation data.
    without_list : {"zero", "exclude"}
        A user with relevant items and no list counts 0, or is left out.
    exceptions : Exceptions
        The metrics for which other users count.
    zeros : {"miss", "hit", "error"}
        An item stored with a zero in the validation data is not relevant. Or it is a hit of gain 1
        in the sums over the list, and never part of n or of the ideal list. Or it raises an error,
        because the library counts it as relevant.
    cuts_gains : bool
        Whether the library truncates gains to whole numbers. A fraction raises an error then: half
        stars would lose their halves, and a weight below 1 its item.
    whole_catalogue : bool
        Whether seen items are candidates too. They are in no list, and in no random list.
    ties : {"item", "item_descending", "average", "pessimistic"}
        The order of equal scores, as in `Rankings.from_scores`, in files, tables and mappings that
        are opened for an evaluation by this convention.
    uncut : mapping of str to {"lists", "candidates"}
        Metrics that the library only computes without a cut-off, and whether it computes them on
        lists as given or on the ranking of all candidates.
    unlike : mapping of str to str
        For metrics of the library that have our name but a different definition, the library's
        definition. They are not reproduced, and raise an error.

    See Also
    --------
    convention_named : Return a convention by name.
    """

    name: str
    library: str
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    shift: Literal[0, 1] = 1
    ideal: Literal["relevant", "slots", "length", "all"] = "relevant"
    no_relevant: Literal["exclude", "zero", "judged"] = "exclude"
    without_list: Literal["exclude", "zero"] = "zero"
    exceptions: Exceptions = field(default_factory=Exceptions)
    zeros: Literal["miss", "hit", "error"] = "miss"
    cuts_gains: bool = False
    whole_catalogue: bool = False
    ties: Ties = "item"
    uncut: Mapping[str, str] = field(default_factory=dict)
    unlike: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, metric: Metric) -> dict[str, str | float]:
        """Return the value of every option of a metric, in the form that its formula takes."""
        options = metric.definition.options
        chosen = {**self.options.get(metric.name, {}), **dict(metric.options)}
        return {o.name: o.value(chosen.get(o.name, o.default)) for o in options}

    def check(self, metric: Metric) -> None:
        """Raise `InvalidMetricError` if the library does not have this form of a metric."""
        if metric.name in self.unlike:
            raise InvalidMetricError(
                f"{self.library} defines {metric.name} differently: {self.unlike[metric.name]}. "
                "This is not reproduced; omit convention= for our definition",
                metric=metric.name,
                argument="convention",
            )
        if metric.cutoff is not None and metric.name in self.uncut:
            raise InvalidMetricError(
                f"{self.library} has no cut-off for {metric.name}; use '{metric.name}', or "
                "omit convention=",
                argument="convention",
            )
        if self.ideal == "slots" and metric.name in ("ndcg", "idcg") and metric.k > MOST_SLOTS:
            raise InvalidMetricError(
                f"{metric} needs a cut-off of at most {MOST_SLOTS} with convention={self.name!r}, "
                "whose ideal list has k items",
                metric=metric,
                argument="convention",
            )

    def differences(self) -> list[tuple[str, str, str]]:
        """Return every difference as printable (subject, here, standard)."""
        rows = []
        for name, options in self.options.items():
            defaults = {option.name: option.default for option in definition(name).options}
            rows += [
                (f"{name}({option})", value, defaults[option]) for option, value in options.items()
            ]
        for attribute, (subject, words) in _RULES.items():
            here, standard = map(attrgetter(attribute), (self, STANDARD))
            if here != standard:
                rows.append((subject, words[here], words[standard]))
        if names := self.exceptions.without_list_zero:
            rows.append(("user without a list still counts 0", ", ".join(names), "for no metric"))
        if self.uncut:
            ranked = " and ".join(sorted(set(self.uncut.values())))
            rows.append(
                ("without cut-off only", f"{', '.join(self.uncut)}: of {ranked}", "no metric")
            )
        rows += [(f"{name}: not reproduced", how, "") for name, how in self.unlike.items()]
        return rows + [("note", note, "") for note in self.notes]

    def __reduce__(self) -> tuple[Callable[..., Convention], tuple[object, ...]]:
        if CONVENTIONS.get(self.name) is self:
            return convention_named, (self.name,)
        return Convention, tuple(getattr(self, each.name) for each in fields(self))


#: The subject of each rule, by attribute, and its values in words.
_RULES: dict[str, tuple[str, Mapping[Any, str]]] = {
    "shift": ("discount", {1: "1 / log2(r + 1)", 0: "1 / log2(max(r, 2))"}),
    "ideal": (
        "ideal list",
        {
            "relevant": "min(n, k) items",
            "slots": "k items of gain 1",
            "length": "min(n, k, list length) items",
            "all": "all n items",
        },
    ),
    "no_relevant": (
        "user without relevant items",
        {
            "exclude": "left out",
            "zero": "counts 0",
            "judged": "counts 0 if zeros are stored for it",
        },
    ),
    "without_list": ("user without a list", {"exclude": "left out", "zero": "counts 0"}),
    "exceptions.lists_of_all": (
        "metrics of lists (coverage, novelty, …)",
        {True: "over all users with a list", False: "over the evaluated users"},
    ),
    "zeros": (
        "item stored with a zero",
        {
            "hit": "a hit of gain 1 in the list's sums",
            "error": "an error, as the library counts it as relevant",
            "miss": "not relevant",
        },
    ),
    "cuts_gains": (
        "gains that are fractions",
        {
            True: "an error, as the library truncates them to whole numbers",
            False: "count as they are",
        },
    ),
    "whole_catalogue": ("candidates", {True: "all items", False: "items not seen in train"}),
    "ties": (
        "equal scores in files, tables and mappings",
        {
            "item": "lower id first",
            "item_descending": "higher id first",
            "average": "expectation over their orders",
            "pessimistic": "relevant items last",
        },
    ),
}


def convention_named(name: str | None) -> Convention:
    """Return a convention by name, the standard one for None.

    Raises `InvalidMetricError` if there is no such convention; the message names the nearest ones.
    """
    if name is None:
        return STANDARD
    if not isinstance(name, str) or name.lower() not in CONVENTIONS:
        word = name.lower() if isinstance(name, str) else repr(name)
        raise InvalidMetricError(f"there is no convention {name!r}; {nearest(word, CONVENTIONS)}")
    return CONVENTIONS[name.lower()]


STANDARD = Convention("standard", "sparse_eval")

_BINARY_GAIN = {name: {"gain": "binary"} for name in ("dcg", "idcg", "ndcg")}

_MAP_MIN = {"map": {"normalizer": "min"}}

CONVENTIONS: dict[str, Convention] = {
    convention.name: convention
    for convention in (
        STANDARD,
        Convention(
            "trec_eval",
            "trec_eval (pytrec_eval, ir_measures)",
            options={"iprec_at_recall": {"rounding": "trec9"}, "rbp": {"p": "0.9"}},
            no_relevant="judged",
            without_list="exclude",
            ties="item_descending",
            uncut=dict.fromkeys(("bpref", "infap", "iprec_at_recall", "mrr"), "lists"),
            cuts_gains=True,
            notes=(
                "-c is without_list='zero', -J judged_only=True, -M N Rankings.head(N)",
                "-l N is threshold=N, which takes smaller gains out of ndcg too, as -l does not",
                "ir_measures counts a user who is not in the run as 0, as trec_eval -c does",
                "trec_eval 10 has iprec_at_recall(rounding=nearest), and is the first with rbp",
                "of graded judgements its rbp scales gains by memory that nothing was written to",
                "RR@k, ERR@k and nDCG(dcg='exp-log2')@k of ir_measures come from other programs",
            ),
        ),
        Convention(
            "rankereval",
            "rankereval 0.2.0",
            options=_MAP_MIN,
            zeros="error",
            unlike={
                "hit_rate": "of users with one relevant item only",
                "mean_rank": "an item that is not in the list has the rank 0",
            },
            notes=(
                "with BinaryLabels its NDCG and DCG are gain=binary",
                "its DCG is to base e but for log_base='2', which this one is to",
                "its relevance_scaling='power' is g² − 1, not the 2^g − 1 of gain=exp",
                "its mean is NaN if a user has no relevant item, but for nan_handling='drop'",
            ),
        ),
        Convention(
            "implicit",
            "implicit 0.7.3, ranking_metrics_at_k",
            options=_BINARY_GAIN
            | _MAP_MIN
            | {"precision": {"denominator": "min", "average": "micro"}},
            zeros="error",
            whole_catalogue=True,
            notes=("a list of fewer than k items is filled with misses in its auc, not here",),
        ),
        Convention(
            "ranx",
            "ranx",
            options={"rbp": {"gain": "raw"}},
            no_relevant="judged",
            notes=(
                "make_comparable=True leaves out users who are not in its qrels",
                "no_relevant='zero' counts them",
            ),
        ),
        Convention(
            "rectools",
            "RecTools",
            options=_BINARY_GAIN | {"serendipity": {"form": "rank"}},
            zeros="error",
            ideal="slots",
            exceptions=Exceptions(lists_of_all=True),
            notes=("NDCG(divide_by_achievable=True) is the standard ndcg(gain=binary)",),
        ),
        Convention(
            "recbole",
            "RecBole 1.2.1",
            options=_BINARY_GAIN | _MAP_MIN | {"aplt": {"tail": "0.1"}},
            zeros="error",
            uncut=dict.fromkeys(("auc",), "candidates"),
            unlike={
                "auc": "over the pairs of all users together",
                "coverage": "its padding counts as an item of the catalogue",
                "entropy": "in nats, divided by the number of different items recommended",
                "gini": "its padding counts as an item of the catalogue",
            },
            notes=("its averagepopularity counts interactions, not users",),
        ),
        Convention(
            "lightfm",
            "LightFM 1.17, lightfm.evaluation",
            zeros="error",
            uncut=dict.fromkeys(("auc", "mrr"), "candidates"),
            notes=(
                "an item has the worst rank of all that have its score, be they relevant or not",
                "it computes in float32",
            ),
        ),
        Convention(
            "cornac",
            "cornac 3.0.1",
            options=_BINARY_GAIN,
            uncut=dict.fromkeys(("auc", "map", "mrr"), "candidates"),
            notes=(
                "relevant to it are ratings of 1 and more: give that as threshold=",
                "an irrelevant item with the score of a relevant one is above it in auc and map",
                "its NCRR is arhr divided by that of the ideal list",
            ),
        ),
        Convention(
            "recometrics",
            "recometrics 0.1.6",
            zeros="error",
            uncut=dict.fromkeys(("auc",), "candidates"),
            notes=(
                "its TP@K is recall(denominator=min), and its TAP@K map(normalizer=min)",
                "its PR_AUC is map without a cut-off",
                "equal scores are in a random order",
                "its P@K, TP@K, R@K and Hit@K leave out a user with at most k candidates",
                "all but its NDCG@K leave out a user whose candidates are all relevant",
            ),
        ),
        Convention(
            "napkinxc",
            "napkinXC 0.7.2",
            zeros="error",
            options=_BINARY_GAIN,
            no_relevant="zero",
            unlike={
                "coverage": "the share of what is relevant to anyone that is found by anyone",
                "f1": "over all that is predicted, or, at k, a mean over items",
            },
            notes=(
                "its abandonment_at_k is hit_rate",
                "N of its propensities counts users without an item in train too",
            ),
        ),
        Convention(
            "pyxclib",
            "pyxclib 0.97",
            options=_BINARY_GAIN,
            no_relevant="zero",
            unlike={"auc": "of the pairs within the first k items of the list"},
            notes=(
                "it takes binary relevance only",
                "Metrics(remove_invalid=True) leaves out users without relevant items",
                "N of its propensities counts users without an item in train too",
                "its ndcg and psndcg are float32",
            ),
        ),
        Convention(
            "evidently",
            "Evidently 0.7.23",
            options={"novelty": {"unknown": "skip"}, "precision": {"denominator": "length"}},
            exceptions=Exceptions(lists_of_all=True),
            unlike={
                "diversity": "of distances between the features of items",
                "f1": "of the mean precision and the mean recall",
                "gini": "over the recommended items alone",
                "serendipity": "of distances between the features of items",
            },
            notes=(
                "relevant to it are only items that its table ranks",
                "its map and mar take rows in the order of ranks, and no user with fewer than k",
                "its coverage is of the items in train",
                "an item that nobody has in train is left out of its popularity",
                "no_feedback_users=True is no_relevant='zero'",
            ),
        ),
        Convention(
            "elliot",
            "Elliot 0.3.1",
            options={name: {"gain": "exp"} for name in ("dcg", "idcg", "ndcg")},
            without_list="exclude",
            unlike={
                "auc": "over the pairs of all users together, and of N − n + 1 irrelevant items",
                "coverage": "the number of items",
                "gauc": "a mean over users, and of N − n + 1 irrelevant items",
                "gini": "1 − the Gini index, which is divided by N − 1",
                "map": "the mean of the precisions at the ranks from 1 to k",
                "mar": "the mean of the recalls at the ranks from 1 to k",
                "user_coverage": "the number of users",
            },
            notes=(
                "its gains are 2^(g − relevance_threshold + 1) − 1: those of gain=exp for 1",
                "by default relevance_threshold is 0, and a pair stored with a zero relevant",
                "its nDCGRendle2020 is ndcg(gain=binary), its SEntropy entropy",
            ),
        ),
        Convention(
            "tensorflow-recommenders",
            "TensorFlow Recommenders 0.7.7, FactorizedTopK",
            options={"recall": {"average": "micro"}},
            whole_catalogue=True,
            zeros="error",
            notes=(
                "its top_k_categorical_accuracy is recall",
                "what users have seen is recommended again: give filter_seen=False",
                "without ids an item is found if fewer than k candidates have a higher score",
                "it computes in float32",
            ),
        ),
        Convention(
            "lightgcn",
            "LightGCN's code",
            options=_BINARY_GAIN,
            zeros="error",
            notes=(
                "its map is of the code for TensorFlow: that for PyTorch has none",
                "MRRatK_r of the code for PyTorch is not the reciprocal rank",
            ),
        ),
        Convention(
            "lenskit",
            "LensKit 2025.8",
            options=_BINARY_GAIN
            | {
                "map": {"normalizer": "length"},
                "precision": {"denominator": "length"},
                "recall": {"denominator": "min"},
                "rbp": {"p": "0.85"},
            },
            zeros="error",
            shift=0,
            no_relevant="zero",
            exceptions=Exceptions(lists_of_all=True),
            unlike={"popularity": "of ranks by popularity"},
            notes=(
                "a user without relevant items is NaN to it, and counts 0 in its summaries",
                "a user without an output is left out by it, one with an empty output counts 0",
            ),
        ),
        Convention(
            "recommenders",
            "recommenders, python_evaluation",
            options=_BINARY_GAIN | {"serendipity": {"form": "cosine"}},
            zeros="error",
            without_list="exclude",
            exceptions=Exceptions(lists_of_all=True, without_list_zero=("ndcg",)),
            notes=(
                "its map_at_k is map(normalizer=min)",
                "its catalog_coverage is of the items in train",
            ),
            unlike={
                "novelty": "of interactions, not users, and a mean over recommendations",
                "r_precision": "a mean over users with a hit in the first n ranks",
            },
        ),
        Convention(
            "recpack",
            "recpack",
            options=_BINARY_GAIN,
            notes=("it takes binary relevance only",),
            unlike={
                "diversity": "of Jaccard distances",
                "percentile_rank": "of ranks over N, with another one for what is not listed",
            },
        ),
        Convention(
            "replay",
            "RePlay",
            options=_BINARY_GAIN
            | _MAP_MIN
            | {
                "auc": {"among": "list"},
                "novelty": {"form": "unseen", "denominator": "k"},
                "surprisal": {"form": "relative"},
            },
            zeros="error",
            exceptions=Exceptions(lists_of_all=True),
            notes=(
                "its Surprisal is surprisal, which is novelty(form=relative)",
                "its Novelty leaves out users who are not in train; 1 for one without a list",
            ),
        ),
        Convention(
            "irspack",
            "irspack",
            options=_BINARY_GAIN
            | {"precision": {"denominator": "length"}, "entropy": {"unit": "nats"}},
            ideal="length",
            without_list="exclude",
            zeros="error",
        ),
        Convention(
            "spark",
            "Spark 4.3.0, RankingMetrics",
            options=_BINARY_GAIN | _MAP_MIN,
            no_relevant="zero",
            zeros="error",
            notes=(
                "with relevance values its ndcgAt is ndcg(gain=exp)",
                "relevance values are not read from Python: its ndcgAt is binary there",
            ),
        ),
        Convention("sklearn", "scikit-learn, ndcg_score", no_relevant="zero", ties="average"),
        Convention(
            "torchmetrics",
            "torchmetrics",
            options={"map": {"normalizer": "hits"}},
            no_relevant="zero",
            ties="average",
            uncut=dict.fromkeys(("auc",), "candidates"),
            notes=("only its ndcg averages ties", "it computes in float32"),
        ),
        Convention(
            "recsys2019",
            "Ferrari Dacrema, Cremonesi and Jannach's evaluator (2019)",
            options={name: {"gain": "exp"} for name in ("dcg", "idcg", "ndcg")}
            | {"precision": {"denominator": "length"}, "map": {"normalizer": "length"}},
            ideal="all",
            zeros="error",
            unlike={
                "auc": "of the pairs within the list, and 1 if all of it is relevant",
                "diversity": "of a given matrix of distances",
                "f1": "of the mean precision and the mean recall",
                "gini": "1 − N / (N + 1) times the Gini index",
                "hit_rate": "the number of hits",
                "novelty": "of interactions, not users, summed over the list and divided by N",
                "popularity": "relative to the most popular item",
                "user_coverage": "of all users, not of the evaluated ones",
            },
            notes=(
                "its SHANNON_ENTROPY is entropy, its COVERAGE_ITEM coverage",
                "of full lists its PRECISION_RECALL_MIN_DEN is recall(denominator=min)",
                "of full lists its DIVERSITY_MEAN_INTER_LIST is personalization",
                "its DIVERSITY_GINI of 2019 is over the recommended items only",
                "equal scores have no order, and its sums are float32",
            ),
        ),
        Convention(
            "mind-notebook",
            "a notebook on MIND that scores an ALS model",
            options=_BINARY_GAIN,
            without_list="exclude",
            zeros="hit",
            notes=("ndcg can exceed 1",),
        ),
    )
}
