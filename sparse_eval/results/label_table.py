"""Read tables of what is known of users or items: their segments, their titles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..core.files import as_path, need_pyarrow
from ..errors import InvalidFileError

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import PathLike


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
    MissingExtraError
        If it is Parquet and pyarrow is not installed.
    """
    import pandas as pd

    path = Path(as_path(path))
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind not in ("csv", "tsv", "parquet"):
        raise InvalidFileError(
            f"is no table of {key}s by its name; expected .csv, .tsv or .parquet", path
        )
    try:
        if kind == "parquet":
            need_pyarrow()
            table = pd.read_parquet(path)
        else:  # as text: an item "007" is not 7, and "NA" is a name
            separator = "," if kind == "csv" else "\t"
            table = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    except ValueError as error:  # as those of pandas' parsers and of pyarrow are
        raise InvalidFileError(f"is not a table ({error})", path) from None
    if key not in table:
        found = ", ".join(map(str, table.columns))
        raise InvalidFileError(f"has no column {key!r}, but {found}; name the labels so", path)
    return table
