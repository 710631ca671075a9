"""Interactions of users with items: loaded from files, split, or synthetic."""

from ..inputs.cells import UNDATED
from ..inputs.columns import GuessWarning
from ..inputs.lines import SkippedLinesWarning
from .adjacency import load_adjacency
from .interactions import Interactions
from .load import FORMATS, guess_format, load, load_npz, load_parts
from .mind import load_mind
from .movielens import load_movielens
from .synthetic import synthetic
from .tables import load_csv, load_frame, load_parquet

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
