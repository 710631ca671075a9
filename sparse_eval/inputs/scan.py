"""Tables of recommendations and of relevant items that are read when they are evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args

from ..core.frames import as_pandas, check_header, exports_rows
from ..core.parquet import read_parquet
from ..errors import InvalidDataError, InvalidFileError
from .kinds import Kind, kind_of, separator_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from ..core.frames import ArrowStream
    from ..core.types import PathLike

Engine = Literal["pandas", "polars", "pyarrow", "dask", "pyspark", "arrow"]


class FrameLike(Protocol):
    """A frame of pandas, polars, Arrow, Dask or Spark."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""


@dataclass(frozen=True)
class _Scan:
    """A table with a row for each item of a user, and its columns with the ids."""

    table: PathLike | FrameLike | ArrowStream
    user: str = "user"
    item: str = "item"

    def __post_init__(self) -> None:
        if not isinstance(self.table, str | Path) and engine_of(self.table) is None:
            raise InvalidDataError(
                f"a {type(self.table).__name__} cannot be scanned; expected the path of a table in "
                "Parquet or CSV, or a frame of pandas, polars, Arrow, DuckDB, Dask or Spark"
            )


@dataclass(frozen=True)
class RankingsScan(_Scan):
    """A table with a row for each recommended item; made by `Rankings.scan`.

    Attributes
    ----------
    table : str, Path or frame
        A Parquet or CSV file, a folder of Parquet files, or a frame (anything with
        ``__arrow_c_stream__`` is one).
    user, item : str
        The columns with the ids.
    rank, score : str or None
        The column that orders each list. With neither, "rank" if the table has it, or else
        "score".
    """

    rank: str | None = None
    score: str | None = None

    def columns(self, names: Sequence[str]) -> tuple[list[str], bool]:
        """Return the columns to read of those that the table has, and whether they hold ranks.

        Raises
        ------
        InvalidDataError
            If a column is missing, named twice, or the order is ambiguous.
        """
        given = [name for name in (self.rank, self.score) if name is not None]
        if len(given) == 2:
            raise InvalidDataError("give one of rank= and score=, the column to order by")
        ranked = self.rank is not None
        if not given:
            given = [name for name in ("rank", "score") if name in names][:1]
            ranked = given == ["rank"]
        if not given:
            raise InvalidDataError(
                "the recommendations have none of the columns 'rank' and 'score', among "
                f"{', '.join(names)}; name one: Rankings.scan(…, rank=…), or score="
            )
        columns = [*_id_columns(self, names), *given]
        _check_columns(columns, names, "the recommendations")
        return columns, ranked

    def to_pandas(self) -> pd.DataFrame:
        """Return the table in memory, its columns called "user", "item", and "rank" or "score"."""
        frame = read_table(self.table, (self.user, self.item))
        columns, ranked = self.columns(list(map(str, frame.columns)))
        return _renamed(frame, columns, ["user", "item", "rank" if ranked else "score"])


@dataclass(frozen=True)
class RelevanceScan(_Scan):
    """A table with a row for each relevant item; made by `Relevance.scan`.

    Attributes
    ----------
    table : str, Path or frame
        A Parquet or CSV file, a folder of Parquet files, or a frame (anything with
        ``__arrow_c_stream__`` is one).
    user, item : str
        The columns with the ids.
    gain : str or None
        The column with the gains. By default "gain" or "value" if the table has it; otherwise
        every row counts 1.
    """

    gain: str | None = None

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns to read of those that the table has.

        Raises
        ------
        InvalidDataError
            If a column is missing or named twice.
        """
        gain = self.gain
        if gain is None:
            from ..datasets.columns import gain_column

            gain = gain_column(names)
        columns = _id_columns(self, names) + ([] if gain is None else [gain])
        _check_columns(columns, names, "the relevant items")
        return columns

    def to_pandas(self) -> pd.DataFrame:
        """Return the table in memory, its columns called "user", "item" and, if any, "gain"."""
        frame = read_table(self.table, (self.user, self.item))
        columns = self.columns(list(map(str, frame.columns)))
        return _renamed(frame, columns, ["user", "item", "gain"][: len(columns)])


def _id_columns(ids: RankingsScan | RelevanceScan, names: Sequence[str]) -> list[str]:
    """Return the columns of users and items: those named, or else with a usual name."""
    from ..datasets.columns import id_column

    return [id_column(ids.user, "user", names), id_column(ids.item, "item", names)]


def engine_of(table: object) -> Engine | None:
    """Return the library that a frame belongs to, "arrow" for any other, None if it is no frame."""
    # Of the type: the columns of a lazy frame of polars take a computation.
    if hasattr(type(table), "columns"):
        library = type(table).__module__.partition(".")[0].removesuffix("_expr")  # of Dask
        if library in get_args(Engine):
            return cast("Engine", library)
    return "arrow" if exports_rows(table) else None


def _check_columns(columns: list[str], names: Sequence[str], where: str) -> None:
    if len(set(columns)) < len(columns):
        raise InvalidDataError(
            f"{where}: columns {', '.join(columns)} are to be read, one of them twice; name "
            "another for each of user, item, and rank, score or gain"
        )
    for column in columns:
        if list(names).count(column) != 1:
            number = "several columns" if column in names else "no column"
            raise InvalidDataError(
                f"{where}: expected one column {column!r}, found {number} of this name among "
                f"{', '.join(names)}; name the columns with scan(…, user=…, item=…)",
                column=column,
            )


def _renamed(frame: pd.DataFrame, columns: list[str], names: list[str]) -> pd.DataFrame:
    positions = list(map(str, frame.columns))
    renamed = frame.iloc[:, [positions.index(column) for column in columns]].copy()
    renamed.columns = names
    return renamed


def read_table(table: Any, ids: tuple[str, str]) -> pd.DataFrame:
    """Return a table as a frame of pandas."""
    if not isinstance(table, str | Path):
        return as_pandas(table)
    path = Path(table)
    kind = kind_of(path)
    if kind is Kind.CSV:
        return _read_csv(path, ids)
    if kind is not Kind.PARQUET:
        raise InvalidFileError(f"holds {kind.value}; expected a table in Parquet or CSV", path)
    try:
        return read_parquet(path)
    except InvalidFileError:
        raise
    except (OSError, ValueError) as error:
        raise InvalidFileError(f"not a readable Parquet file ({error})", path) from None


def _read_csv(path: Path, ids: tuple[str, str]) -> pd.DataFrame:
    """Read a CSV; ids that are all whole numbers, without leading zeros, become int64."""
    import pandas as pd

    from ..datasets.columns import id_column
    from ..datasets.labels import text_labels
    from .lines import read_text

    text = read_text(path)
    header = text.lstrip().partition(b"\n")[0].decode()
    names = [name.strip('"') for name in header.split(separator_of(header) or ",")]
    ids = id_column(ids[0], "user", names), id_column(ids[1], "item", names)
    try:
        frame = pd.read_csv(
            BytesIO(text),
            sep=separator_of(header) or ",",
            dtype=dict.fromkeys(ids, str),
            keep_default_na=False,
        )
    except ValueError as error:  # ragged lines
        raise InvalidFileError(f"is not a readable CSV ({error})", path) from None
    check_header(frame, path)
    for name in dict.fromkeys(ids):
        if name in frame and text_labels(frame[name].unique().tolist()).dtype == "int64":
            frame[name] = frame[name].astype("int64")
    return frame
