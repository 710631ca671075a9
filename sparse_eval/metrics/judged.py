"""Metrics that tell items judged to be not relevant from those that nobody has judged.

What validation data store is judged, explicit zeros included. These formulas are over the sweep of
all judged items: there `Statistics.hits` counts them, and their gains are 2 where they are relevant
and 1 where they are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels import judged as kernels
from .averages import GEOMETRIC, logarithms
from .registry import Definition, never

if TYPE_CHECKING:
    from ..core.types import Floats, Integers
    from .statistics import Statistics

#: ε of infap, as trec_eval has it.
_SMOOTHING = 1e-5


def bpref(s: Statistics, average: str) -> Floats | tuple[Floats, Floats]:
    out = np.empty(len(s.hits))
    kernels.sum_preferences(*s.hits_of_list, s.k, s.n_relevant, s.judged_items, out)
    values = out / s.n_relevant
    return logarithms(values, s.n_relevant) if average == "geometric" else values


def infap(s: Statistics) -> Floats:
    out = np.empty(len(s.hits))
    kernels.sum_inferred(*s.hits_of_list, s.k, _SMOOTHING, out)
    return out / s.n_relevant


def judged(s: Statistics) -> tuple[Floats, Integers]:
    return s.hits, s.list_length


METRICS = (
    Definition(
        "bpref",
        bpref,
        "(1/n) Σ h(r)·(1 − min(judged misses above r, n) / min(judged misses, n))",
        "share of the preferences for relevant over other judged items that the list keeps",
        plain=(
            "How rarely an item that was judged to be of no interest stands above one of "
            "interest; items that nobody judged do not count."
        ),
        options=(GEOMETRIC,),
        uses=("judged", "hits"),
        closed_form=never,
        source="Buckley and Voorhees, 2004, SIGIR, doi:10.1145/1008992.1009000",
    ),
    Definition(
        "infap",
        infap,
        "(1/n) Σ h(r)·(1 + judged above r·(hits above r + ε) / (judged above r + 2ε)) / r, "
        "ε = 0.00001",
        "average precision, inferred from judged items as of a sample",
        plain="An estimate of map where only some of the items were judged.",
        uses=("judged", "hits"),
        closed_form=never,
        source="Yilmaz and Aslam, 2006, CIKM, doi:10.1145/1183614.1183633",
    ),
    Definition(
        "judged",
        judged,
        "judged items / list length",
        "share of the list that is judged, relevant or not",
        plain=(
            "The share of the list that somebody has judged: how far the other metrics can be "
            "trusted."
        ),
        uses=("judged",),
        of_everyone=True,
    ),
)
