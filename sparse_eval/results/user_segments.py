"""Divide users by tables of what is known of them, such as their country or plan."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import InvalidDataError
from ..inputs.axes import Axis
from .label_table import LabelTable, label_table

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import Integers

#: Segments by user: of a table, every column divides the users.
UserSegments: TypeAlias = LabelTable

#: Segments of a column; more are no segments but values such as ages or dates of birth.
MOST_SEGMENTS = 30


class Segmentation(NamedTuple):
    """One way to divide users: the segments' names, and the segment of each user, -1 for none."""

    title: str
    names: list[str]
    codes: Integers

    def note(self) -> str:
        """Return how many users are in no segment, "" if all are in one."""
        without = int((self.codes < 0).sum())
        of_all = f"{without:,} of {len(self.codes):,}"
        return f"{self.title}: {of_all} users have none and are in no segment" if without else ""


def segmentations(by: UserSegments, users: Axis) -> list[Segmentation]:
    """Return the segments of users, a segmentation for each column of a table.

    Parameters
    ----------
    by : mapping, Series, DataFrame, other table or path
        By user. Of a table with a column ``user`` that column names the user, otherwise its index.
        Missing values and empty text are no segment. Users match if they are the same as text.
    users : Axis
        Of the users to divide; others in the table are not looked at.

    Raises
    ------
    InvalidDataError
        If it is something else, has no column or none of the users, names a user twice, or has
        more than 30 segments in a column.
    InvalidFileError
        As from `read_label_table`.
    """
    table = segments_table(by)
    labels = table.index.map(str)
    if labels.has_duplicates:
        twice = labels[labels.duplicated()].tolist()[0]
        raise InvalidDataError(f"by names user {twice!r} twice; give each user one row")
    rows = Axis.unchecked(labels).locate(list(map(str, users)))
    if (rows < 0).all():
        known = f"{labels.tolist()[0]!r}, …" if len(labels) else "nothing"
        raise InvalidDataError(
            f"by has none of the users compared ({users.tolist()[0]!r}, …), but {known}; give "
            "segments by the users' labels, or by row number where they have none"
        )
    return [_segmentation(str(title), column, rows) for title, column in table.items()]


def segments_table(by: UserSegments) -> pd.DataFrame:
    """Return segments by user as a table that is indexed by user, or raise as `segmentations`."""
    return label_table(by, "user", argument="by", column="segment")


def _segmentation(title: str, column: pd.Series[Any], rows: Integers) -> Segmentation:
    """Divide users, whose rows in the column are given, -1 for those who are not in it."""
    import pandas as pd

    values = column.iloc[rows].where(rows >= 0).tolist()
    named: dict[str, Any] = {}
    names: list[str | None] = []
    for value in values:
        name = None if pd.isna(value) or not str(value).strip() else _name(value)
        names.append(name)
        if name is not None:
            named.setdefault(name, value)
    if len(named) > MOST_SEGMENTS:
        raise InvalidDataError(
            f"column {title!r} of by has {len(named):,} segments, such as {next(iter(named))!r}; "
            f"at most {MOST_SEGMENTS} are compared: put values into bands, as pandas.cut does, or "
            "leave the column out"
        )
    order = list(named)
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = column.cat.categories.tolist()
        order.sort(key=lambda name: categories.index(named[name]))
    else:
        with suppress(TypeError):  # values of several types stay in order of appearance
            order = sorted(named, key=named.__getitem__)
    codes = {name: code for code, name in enumerate(order)} | {None: -1}
    return Segmentation(title, order, np.array([codes[name] for name in names], np.int64))


def _name(value: Any) -> str:
    """Return a segment's name; whole numbers are floats in a column that lacks some."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
