"""Read tables of what is known of users or items: their segments, their titles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..errors import InvalidDataError
from ..inputs.columns import role_of
from ..inputs.tables import exports_rows, to_pandas

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import PathLike
    from ..inputs.tables import ArrowStream

#: What is known of users or items, by their labels: of a table, every column.
LabelTable: TypeAlias = "Mapping[Any, Any] | pd.Series[Any] | pd.DataFrame | ArrowStream | PathLike"

#: Names by item: of a table, every column is a name.
ItemNames: TypeAlias = LabelTable


def label_table(
    known: LabelTable,
    key: Literal["user", "item"],
    *,
    argument: str,
    column: str,
    as_text: bool = False,
) -> pd.DataFrame:
    """Return what is known of users or items as a table that is indexed by their labels.

    Parameters
    ----------
    known : mapping, Series, DataFrame, other table or path
        Of a table with a column that has a usual name of `key`, that column has the labels,
        otherwise its index.
    key : {"user", "item"}
        Whose labels they are.
    argument : str
        What errors call `known`.
    column : str
        The name of the values of a mapping, or of a Series without a name.
    as_text : bool
        Return the labels as text.

    Raises
    ------
    InvalidDataError
        If it is something else, has no column, two of the same name, or a label twice.
    InvalidFileError
        If a file cannot be read.
    """
    import pandas as pd

    is_file = isinstance(known, str | Path)
    if is_file or (exports_rows(known) and not isinstance(known, pd.DataFrame)):
        known = to_pandas(known, text=is_file)  # text: an item "007" is not 7, and "NA" is a name
    if isinstance(known, pd.DataFrame):
        labels = [key] if key in known else [name for name in known if role_of(name) == key]
        if len(labels) > 1 or (is_file and not labels):
            raise InvalidDataError(
                f"{argument} has the columns {', '.join(map(repr, known))}; call the one with the "
                f"{key}s {key!r}"
            )
        table = known.set_index(labels[0]) if labels else known
    elif isinstance(known, pd.Series):
        table = known.to_frame(column if known.name is None else known.name)
    elif isinstance(known, Mapping):
        # As objects: whole numbers stay whole beside a missing value.
        table = pd.DataFrame({column: pd.Series(list(known.values()), dtype=object)})
        table.index = pd.Index(list(known), tupleize_cols=False)
    else:
        raise InvalidDataError(
            f"{argument} is a {type(known).__name__}; expected {column}s by {key}: a mapping, a "
            f"Series, a table indexed by {key} or with a column {key!r}, or the path of one"
        )
    titles = [str(title) for title in table]
    if not titles:
        raise InvalidDataError(
            f"{argument} has no column beside the {key}; give one with the {column}s"
        )
    if len(set(titles)) < len(titles):
        raise InvalidDataError(f"{argument} has two columns of the same name: {', '.join(titles)}")
    if as_text:
        table = table.set_axis(table.index.map(str))
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()].tolist()[0]
        raise InvalidDataError(f"{key} {twice!r} is in {argument} twice; give each {key} one row")
    return table


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
        If a file cannot be read.
    """
    table = label_table(item_names, "item", argument="item_names", column="name")
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
