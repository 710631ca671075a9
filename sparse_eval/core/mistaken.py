"""Errors about inputs of another kind than expected: what they are, and what takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InvalidDataError

#: Names of columns that a message lists, at most.
_MOST_COLUMNS = 8

#: What becomes of frames of libraries that are computed elsewhere.
_AS_PANDAS = {"dask": "df.compute()", "pyspark": "df.toPandas()"}

#: What makes an input of a frame, and the column that it names beside user and item. Inputs that
#: are not listed are matrices of interactions.
_FROM_FRAME = {
    "ids": ("Rankings.from_frame", "score"),
    "scores": ("Rankings.from_frame", "score"),
    "the position matrix": ("Rankings.from_frame", "score"),
    "the validation matrix": ("Relevance.from_frame", "gain"),
}
_INTERACTIONS = ("Interactions.from_frame", "value")

#: What is expected of matrices.
SPARSE = "a scipy sparse matrix, such as scipy.sparse.csr_matrix(x) of a dense array"


def is_frame(values: object) -> bool:
    """Return whether a value is a frame of pandas, polars, Arrow, Dask, Spark or the like."""
    return hasattr(type(values), "columns")


def describe(values: Any) -> str:
    """Return what a value is, in a few words: its type, and its columns or dtype and shape."""
    if type(values) is np.ndarray:
        return f"an array of {values.dtype} with shape {values.shape}"
    name = type(values).__name__
    kind = f"an {name}" if name[0].lower() in "aeio" else f"a {name}"
    if is_frame(values):
        names = column_names(values)
        more = ", …" if len(names) > _MOST_COLUMNS else ""
        return f"{kind} with the columns {', '.join(names[:_MOST_COLUMNS])}{more}"
    return f"{kind} with shape {values.shape}" if hasattr(values, "tocsr") else kind


def mistaken(values: Any, name: str, expected: str) -> InvalidDataError:
    """Return the error about an input, called `name`, that is something else than `expected`."""
    hint = None
    maker, column = _FROM_FRAME.get(name, _INTERACTIONS)
    ending = ".matrix()" if maker.startswith("Interactions") else ""
    if is_frame(values):
        df = _AS_PANDAS.get(type(values).__module__.partition(".")[0], "df")
        if column == "score" and "rank" in column_names(values):
            column = "rank"
        hint = f"of a frame {maker}({df}, user=…, item=…, {column}=…){ending} makes one"
    elif isinstance(values, Mapping) and values:
        hint = "evaluate() takes lists, or items and their numbers, by user"
    elif name == "the validation matrix" and isinstance(values, list | tuple):
        hint = "items by user are a mapping, {user: [item, …]}, on both sides"
    elif callable(getattr(values, "matrix", None)):
        hint = "give its .matrix()"
    elif name == "ids" and hasattr(values, "tocsr"):
        hint = "Rankings.from_positions(x) takes positions, and Rankings.from_scores(x) scores"
    elif name == "the position matrix" and hasattr(values, "__len__"):
        hint = (
            "Rankings.from_topk(x) takes item ids, best first, and Rankings.from_scores(x) scores"
        )
    message = f"{name} is {describe(values)}; expected {expected}"
    return InvalidDataError(message, argument=name, hint=hint)


def column_names(frame: Any) -> list[str]:
    """Return the names of the columns of a frame, without reading a row."""
    if hasattr(frame, "collect_schema"):  # polars warns of .columns where it has to compute them
        return list(map(str, frame.collect_schema().names()))
    if not hasattr(frame, "columns"):
        return list(map(str, getattr(getattr(frame, "schema", None), "names", ())))
    return list(map(str, getattr(frame, "column_names", frame.columns)))
