"""Metrics: their names, their registry, their formulas. NumPy only."""

from . import accuracy as _accuracy  # noqa: F401 - fills the registry
from .grammar import Metric, parse, parse_metrics
from .registry import REGISTRY, Definition, Option
from .statistics import FULL_LIST, Statistics

__all__ = [
    "FULL_LIST",
    "REGISTRY",
    "Definition",
    "Metric",
    "Option",
    "Statistics",
    "parse",
    "parse_metrics",
]
