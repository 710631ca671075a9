"""Tables of recommendations and of relevant items that are read when they are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast, get_args

from ..errors import InvalidDataError
from .columns import USUAL, Columns, Usual
from .tables import Table, exports_rows

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..core.types import PathLike
    from .tables import ArrowStream

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

    content: ClassVar[str]
    scan: ClassVar[str]
    values: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.table, str | Path) and engine_of(self.table) is None:
            raise InvalidDataError(
                f"a {type(self.table).__name__} cannot be scanned; expected the path of a table, "
                "or a frame of pandas, polars, Arrow, DuckDB, Dask or Spark"
            )

    @property
    def given(self) -> Mapping[str, Hashable]:
        """The column of each role, or `USUAL`."""
        return {"user": usual(self.user, "user"), "item": usual(self.item, "item")}

    def choose(self, table: Table) -> Columns:
        """Return the columns to read, or raise an error as `choose_columns` does."""
        return table.choose(
            self.given,
            content=f"{self.content}: ",
            hint=f"; name the columns with {self.scan}(…, user=…, item=…, {self.values})",
        )


@dataclass(frozen=True)
class RankingsScan(_Scan):
    """A table with a row for each recommended item; made by `Rankings.scan`.

    Attributes
    ----------
    table : str, Path or frame
        A file, folder or pattern of tables, or a frame (anything with ``__arrow_c_stream__`` is
        one).
    user, item : str
        The columns with the ids.
    rank, score : str or None
        The column that orders each list. With neither, one with a usual name, a rank rather than
        a score.
    """

    rank: str | None = None
    score: str | None = None

    content = "the recommendations"
    scan = "Rankings.scan"
    values = "rank=…"

    @property
    def given(self) -> Mapping[str, Hashable]:
        """The column of each role, or `USUAL`."""
        return {**super().given, **order_of(self.rank, self.score)}


@dataclass(frozen=True)
class RelevanceScan(_Scan):
    """A table with a row for each relevant item; made by `Relevance.scan`.

    Attributes
    ----------
    table : str, Path or frame
        As of `RankingsScan`.
    user, item : str
        The columns with the ids.
    gain : str or None
        The column with the gains, by default one with a usual name; with None, or if the table has
        no column of numbers for it, every row counts 1.
    """

    gain: str | Usual | None = USUAL

    content = "the relevant items"
    scan = "Relevance.scan"
    values = "gain=…"

    @property
    def given(self) -> Mapping[str, Hashable]:
        """The column of each role, or `USUAL`."""
        return {**super().given, "gain": self.gain}


def usual(name: Any, role: str) -> Any:
    """Return `USUAL` for a name that is the default."""
    return USUAL if isinstance(name, str) and name == role else name


def order_of(rank: str | None, score: str | None) -> dict[str, Hashable]:
    """Return the columns of ranks and scores, `USUAL` if none is named."""
    if rank is None and score is None:
        return {"rank": USUAL, "score": USUAL}
    return {"rank": rank, "score": score}


def engine_of(table: object) -> Engine | None:
    """Return the library that a frame belongs to, "arrow" for any other, None if it is no frame.

    A list of rows, each of them a dict, is a frame too.
    """
    # Of the type: the columns of a lazy frame of polars take a computation.
    if hasattr(type(table), "columns"):
        library = type(table).__module__.partition(".")[0].removesuffix("_expr")  # of Dask
        if library in get_args(Engine):
            return cast("Engine", library)
    are_rows = isinstance(table, list | tuple) and len(table) and isinstance(table[0], Mapping)
    return "arrow" if are_rows or exports_rows(table) or hasattr(table, "__dataframe__") else None
