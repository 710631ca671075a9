"""Reading the files of a ready-made split, so that they speak of the same users and items."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from .labels import sort_labels
from .load import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .interactions import Interactions

__all__ = ["load_parts"]


def load_parts(
    *paths: str | Path,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> tuple[Interactions, ...]:
    r"""Read several files with one encoding of users and items.

    Parameters
    ----------
    *paths : str or Path
        For example a training and a validation file.
    format : str, optional
        A name of `FORMATS`; default: what `guess_format` says of each.
    **options
        Passed to the loader of the format.

    Returns
    -------
    tuple of Interactions
        One per file, all of one shape. Where ids are whole numbers in one file and text in
        another, they are text in all. Files without labels (``.npz``) are matched by row and
        column, the smaller ones padded.

    Raises
    ------
    SparseEvalError
        As `load`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train, test = Path(folder) / "train.csv", Path(folder) / "test.csv"
    ...     _ = train.write_text("user,item\n1,7\n2,5\n"), test.write_text("user,item\n1,x\n")
    ...     load_parts(train, test)
    (Interactions(2 users × 3 items, 2 events), Interactions(2 users × 3 items, 1 events))
    """
    parts = [load(path, format, **options) for path in paths]
    users = _union([part.users for part in parts])
    items = _union([part.items for part in parts])
    return tuple(
        replace(
            part,
            user_codes=_places(part.users, users)[part.user_codes],
            item_codes=_places(part.items, items)[part.item_codes],
            users=users,
            items=items,
        )
        for part in parts
    )


def _union(indexes: Sequence[pd.Index[Any]]) -> pd.Index[Any]:
    if all(isinstance(index, pd.RangeIndex) for index in indexes):
        return max(indexes, key=len)
    if len({pd.api.types.is_integer_dtype(index.dtype) for index in indexes}) > 1:
        indexes = [_as_text(index) for index in indexes]
    labels = indexes[0]
    for index in indexes[1:]:
        labels = labels.append(index[~index.isin(labels)])
    return sort_labels(labels)[0]


def _places(labels: pd.Index[Any], union: pd.Index[Any]) -> Any:
    if pd.api.types.is_integer_dtype(labels.dtype) != pd.api.types.is_integer_dtype(union.dtype):
        labels = _as_text(labels)
    return union.get_indexer(labels).astype("int32")


def _as_text(labels: pd.Index[Any]) -> pd.Index[Any]:
    return pd.Index([str(label) for label in labels])
