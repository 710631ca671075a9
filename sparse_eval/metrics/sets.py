"""Measures of lists as sets, whose order does not matter, and counts of their items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .registry import Definition, Number

if TYPE_CHECKING:
    from ..core.types import Floats, Integers
    from .expectation import ExpectedStatistics
    from .statistics import Statistics

    Ratio = tuple[Floats, Floats | Integers]

RIJSBERGEN = "van Rijsbergen, 1979, Information Retrieval, chapter 7"

#: Beyond its bound the square, and with it the metric, would be infinite.
BETA = Number("beta", "1", 0, 1e100, "recall counts β times as much as precision")


def f_measure(s: Statistics, n_listed: Integers | int, beta: float) -> Floats:
    """Return (1 + β²)·pr / (β²·p + r), p = hits / n_listed and r = hits / n; 0 if both are 0."""
    square = beta * beta
    values: Floats = (1 + square) * s.hits / (n_listed + square * s.n_relevant)
    return values


def expected_set_map(s: ExpectedStatistics) -> Ratio:
    return 2 * s.step_sum - s.hits, s.list_length * s.n_relevant  # h² = h(h + 1) − h


def num_nonrel_judged_ret(s: Statistics) -> Floats:
    return 2 * s.hits - s.gain  # of judged items, gains are 2 where they are relevant and else 1


METRICS = (
    Definition(
        "set_precision",
        lambda s: (s.hits, s.list_length),
        "hits / list length",
        "share of the whole list that is relevant",
        plain="Of all items listed, the share that the user was interested in.",
        cutoff="none",
    ),
    Definition(
        "set_relative_precision",
        lambda s: (s.hits, np.minimum(s.list_length, s.n_relevant)),
        "hits / min(n, list length)",
        "precision of the whole list relative to the best of its length",
        plain=(
            "The share of the list that is of interest, relative to what a list of its length "
            "can reach."
        ),
        cutoff="none",
    ),
    Definition(
        "set_f",
        lambda s, beta: f_measure(s, s.list_length, beta),
        "(1 + β²)·hits / (list length + β²·n)",
        "weighted harmonic mean of the whole list's precision and recall",
        plain="One number for precision and recall of the whole list, high only if both are.",
        options=(BETA,),
        cutoff="none",
        source=RIJSBERGEN,
    ),
    Definition(
        "set_map",
        lambda s: (s.hits**2, s.list_length * s.n_relevant),
        "hits² / (list length·n)",
        "precision times recall of the whole list",
        plain="Precision times recall of the whole list, high only if both are.",
        cutoff="none",
        expected=expected_set_map,
    ),
    Definition(
        "utility",
        lambda s: 2 * s.hits - s.list_length,
        "hits − misses",
        "relevant items of the list less the others",
        plain=(
            "How many more items of interest than others the list holds; below 0 if there are "
            "fewer."
        ),
        lower=-np.inf,
        upper=np.inf,
        of_everyone=True,
    ),
    Definition(
        "num_ret",
        lambda s: s.list_length.astype(np.float64),
        "list length",
        "number of listed items",
        plain="How many items were listed.",
        upper=np.inf,
        of_everyone=True,
    ),
    Definition(
        "num_rel",
        lambda s: s.n_relevant.astype(np.float64),
        "n",
        "number of relevant items",
        plain="How many items the user was interested in, listed or not.",
        cutoff="none",
        upper=np.inf,
    ),
    Definition(
        "num_rel_ret",
        lambda s: s.hits,
        "hits",
        "number of relevant items in the list",
        plain="How many items of interest were listed.",
        upper=np.inf,
    ),
    Definition(
        "num_nonrel_judged_ret",
        num_nonrel_judged_ret,
        "judged items − hits",
        "number of items in the list that are judged and not relevant",
        plain="How many listed items were judged to be of no interest.",
        upper=np.inf,
        higher_is_better=False,
        uses=("judged",),
        of_everyone=True,
    ),
)
