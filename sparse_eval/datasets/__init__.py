"""Interactions of users with items: loaders for the usual files, and a synthetic data set."""

from sparse_eval.datasets.adjacency import load_adjacency
from sparse_eval.datasets.guess import FORMATS, guess_format, load
from sparse_eval.datasets.interactions import Interactions
from sparse_eval.datasets.lines import SkippedLinesWarning
from sparse_eval.datasets.mind import load_mind
from sparse_eval.datasets.movielens import load_movielens
from sparse_eval.datasets.npz import load_npz
from sparse_eval.datasets.parts import load_parts
from sparse_eval.datasets.synthetic import synthetic
from sparse_eval.datasets.tables import load_csv, load_frame, load_parquet

__all__ = [
    "FORMATS",
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
