"""Interactions of users with items: loaded from files, split, or synthetic."""

from ..inputs.cells import UNDATED
from ..inputs.columns import GuessWarning
from ..inputs.tables import SkippedLinesWarning
from .interactions import Interactions
from .load import (
    FORMATS,
    guess_format,
    load,
    load_csv,
    load_frame,
    load_npz,
    load_parquet,
    load_parts,
)
from .public import load_adjacency, load_mind, load_movielens
from .synthetic import synthetic

__all__ = [
    "FORMATS",
    "UNDATED",
    "GuessWarning",
    "Interactions",
    "SkippedLinesWarning",
    "guess_format",
    "load",
    "load_adjacency",
    "load_csv",
    "load_frame",
    "load_mind",
    "load_movielens",
    "load_npz",
    "load_parquet",
    "load_parts",
    "synthetic",
]
