"""Interactions of users with items: loaded from files, split, or synthetic."""

from ..core.messages import no_attribute
from ..inputs.column_values import UNDATED
from ..inputs.columns import GuessWarning
from ..inputs.formats import SkippedLinesWarning
from .interactions import Interactions
from .load import load
from .public import load_adjacency, load_mind, load_movielens
from .synthetic import synthetic

__all__ = [
    "UNDATED",
    "GuessWarning",
    "Interactions",
    "SkippedLinesWarning",
    "load",
    "load_adjacency",
    "load_mind",
    "load_movielens",
    "synthetic",
]

#: The calls that replace former names.
_INSTEAD = {
    "FORMATS": "se.datasets.load(path, format=…), whose documentation lists the formats",
    "guess_format": "se.datasets.load(path), which raises an error if the name shows no format",
    "load_csv": "se.datasets.load(path, format='csv')",
    "load_frame": "se.Interactions.from_frame(df)",
    "load_npz": "se.datasets.load(path, format='npz')",
    "load_parquet": "se.datasets.load(path, format='parquet')",
    "movielens": "se.datasets.load_movielens(path)",
    "load_parts": "se.Holdout.from_frames(train, validation)",
}


def __getattr__(name: str) -> object:
    raise no_attribute(f"module {__name__!r}", name, _INSTEAD)
