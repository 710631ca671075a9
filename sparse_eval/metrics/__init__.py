"""Metrics: their names, formulas and conventions, and the registry of them all."""

from ..inputs.training import Training
from . import (
    accuracy,
    beyond_accuracy,
    intents,
    interpolated,
    judged,
    novelty,
    popularity_bias,
    propensity,
    sets,
)
from .conventions import CONVENTIONS, STANDARD, Convention, convention_named
from .grammar import Metric, parse, parse_metrics
from .lists import Lists
from .registry import REGISTRY, Choice, Definition, Number, register
from .statistics import FULL_LIST, Hits, Statistics

__all__ = [
    "CONVENTIONS",
    "FULL_LIST",
    "REGISTRY",
    "STANDARD",
    "Choice",
    "Convention",
    "Definition",
    "Hits",
    "Lists",
    "Metric",
    "Number",
    "Statistics",
    "Training",
    "convention_named",
    "parse",
    "parse_metrics",
]

for _entry in (
    *accuracy.METRICS,
    *propensity.METRICS,
    *judged.METRICS,
    *interpolated.METRICS,
    *sets.METRICS,
    *beyond_accuracy.METRICS,
    *novelty.METRICS,
    *intents.METRICS,
    *popularity_bias.METRICS,
):
    register(_entry)
