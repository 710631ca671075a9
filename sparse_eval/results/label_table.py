"""Read tables of what is known of users or items: their segments, their titles."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..core.files import as_input
from ..core.frames import ArrowStream, as_pandas, check_header, exports_rows
from ..core.parquet import read_parquet
from ..errors import InvalidDataError, InvalidFileError

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import PathLike

#: What is known of users or items, by their labels: of a table, every column.
LabelTable: TypeAlias = "Mapping[Any, Any] | pd.Series[Any] | pd.DataFrame | ArrowStream | PathLike"


def label_table(
    known: LabelTable, key: Literal["user", "item"], *, argument: str, column: str
) -> pd.DataFrame:
    """Return what is known of users or items as a table that is indexed by their labels.

    Parameters
    ----------
    known : mapping, Series, DataFrame, other table or path
        Of a table with a column that is called as `key`, that column has the labels, otherwise its
        index.
    key : {"user", "item"}
        Whose labels they are.
    argument : str
        What errors call `known`.
    column : str
        The name of the values of a mapping, or of a Series without a name.

    Raises
    ------
    InvalidDataError
        If it is something else, has no column, or two of the same name.
    InvalidFileError
        As from `read_label_table`.
    """
    import pandas as pd

    if isinstance(known, str | Path):
        known = read_label_table(known, key)
    elif exports_rows(known) and not isinstance(known, pd.DataFrame):
        known = as_pandas(known)
    if isinstance(known, pd.DataFrame):
        table = known.set_index(key) if key in known else known
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
    return table


def read_label_table(path: PathLike, key: Literal["user", "item"]) -> pd.DataFrame:
    """Read a table with a column of labels, its cells as text unless it is Parquet.

    Parameters
    ----------
    path : str or Path
        A file .csv or .tsv, either of them also .gz, or .parquet.
    key : {"user", "item"}
        The name of the column of labels.

    Raises
    ------
    InvalidFileError
        If the file is something else, cannot be read, or has no such column.
    """
    import pandas as pd

    from ..inputs.lines import read_text

    path = as_input(path)
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind not in ("csv", "tsv", "parquet"):
        raise InvalidFileError(
            f"is no table of {key}s by its name; expected .csv, .tsv or .parquet", path
        )
    try:
        if kind == "parquet":
            table = read_parquet(path)
        else:  # as text: an item "007" is not 7, and "NA" is a name
            separator = "," if kind == "csv" else "\t"
            text = BytesIO(read_text(path))
            table = pd.read_csv(text, sep=separator, dtype=str, keep_default_na=False)
            check_header(table, path)
    except InvalidFileError:
        raise
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    except ValueError as error:  # as those of pandas' parsers are
        raise InvalidFileError(f"is not a table ({error})", path) from None
    if key not in table:
        found = ", ".join(map(str, table.columns))
        raise InvalidFileError(f"has no column {key!r}, but {found}; name the labels so", path)
    return table
