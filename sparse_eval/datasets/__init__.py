"""Interactions of users with items: loaded from files, split, or synthetic."""

from ..inputs.lines import GuessWarning, SkippedLinesWarning
from .adjacency import load_adjacency
from .delimited import load_csv
from .interactions import Interactions
from .load import FORMATS, guess_format, load, load_parts
from .mind import load_mind
from .movielens import load_movielens
from .npz import load_npz
from .synthetic import synthetic
from .tables import load_frame, load_parquet
from .times import UNDATED

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
