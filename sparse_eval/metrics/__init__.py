"""Metrics: their names, their registry, their formulas, their conventions."""

from ..inputs.training import Training
from ..metrics import accuracy as _accuracy  # noqa: F401 - fills the registry
from ..metrics import beyond_accuracy as _catalogue  # noqa: F401
from .conventions import CONVENTIONS, STANDARD, Convention, convention_named
from .grammar import Metric, parse, parse_metrics
from .lists import Lists
from .registry import REGISTRY, Choice, Definition, Number
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
