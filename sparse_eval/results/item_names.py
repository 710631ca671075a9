"""What people call the items: a table of any columns, shown beside the items' labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InvalidDataError
from .label_table import LabelTable, label_table

if TYPE_CHECKING:
    import pandas as pd

#: Names by item: of a table, every column is a name.
ItemNames: TypeAlias = LabelTable


def item_table(item_names: ItemNames) -> pd.DataFrame:
    """Return names of items as a table that is indexed by item.

    Parameters
    ----------
    item_names : mapping, Series, DataFrame, other table or path
        By item. Of a table with a column ``item`` that column names the item, otherwise its index.

    Raises
    ------
    InvalidDataError
        If it is something else, has no column, or names an item twice.
    InvalidFileError
        As from `read_label_table`.
    """
    table = label_table(item_names, "item", argument="item_names", column="name")
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()].tolist()[0]
        raise InvalidDataError(f"item_names names item {twice!r} twice; give each item one row")
    # Whole numbers stay whole beside items without a name.
    return table.rename(columns=str).astype(object)


def with_names(explained: pd.DataFrame, item_names: ItemNames) -> pd.DataFrame:
    """Return the table of `Evaluation.explain` with the names behind each item.

    Raises
    ------
    InvalidDataError
        As from `item_table`; if a column is called as one of the table, or none of the items of
        the table has a name.
    """
    import pandas as pd

    names = item_table(item_names)
    taken = [name for name in names if name in explained]
    if taken:
        raise InvalidDataError(
            f"item_names has a column {taken[0]!r}, as what explain returns; rename it"
        )
    labels = explained["item"].tolist()
    check_known(labels, names)
    found = names.reindex(pd.Index(labels, tupleize_cols=False)).reset_index(drop=True)
    place = list(explained).index("item") + 1
    parts = [explained.iloc[:, :place], found, explained.iloc[:, place:]]
    return pd.concat(parts, axis=1)


def check_known(labels: list[Any], names: pd.DataFrame) -> None:
    """Raise if none of the items has a name, as if one side has numbers and the other text."""
    if labels and not names.index.isin(labels).any():
        known = f"{names.index.tolist()[0]!r}, …" if len(names) else "nothing"
        raise InvalidDataError(
            f"item_names has none of these items ({labels[0]!r}, …), but {known}; give names by "
            "the items' labels, of the same type"
        )
