"""Metrics: their names, formulas and conventions, and the registry of all metrics."""

from ..inputs.training import Training
from ..kernels.hits import Hits
from . import accuracy, beyond_accuracy, intent_aware, popularity_bias  # noqa: F401 - they register
from .aligned import Lists
from .conventions import CONVENTIONS, STANDARD, Convention, Exceptions, convention_named
from .grammar import Metric, parse, parse_metrics
from .registry import REGISTRY, Choice, Definition, Formula, Number
from .user_statistics import FULL_LIST, Statistics

__all__ = [
    "CONVENTIONS",
    "FULL_LIST",
    "REGISTRY",
    "STANDARD",
    "Choice",
    "Convention",
    "Definition",
    "Exceptions",
    "Formula",
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
