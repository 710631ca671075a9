"""Tables of recommendations and of relevant items that are read when they are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast, get_args

from ..errors import InvalidDataError
from .columns import USUAL, Columns
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
    """A table with a row for each item of a user.

    Attributes
    ----------
    table : str, Path or frame
        A file, folder or pattern of tables, or a frame (anything with ``__arrow_c_stream__`` is
        one).
    given : mapping of str to hashable
        The column of each role; None for no column, or `USUAL`.
    """

    table: PathLike | FrameLike | ArrowStream
    given: Mapping[str, Hashable]

    content: ClassVar[str]
    call: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.table, str | Path) and engine_of(self.table) is None:
            raise InvalidDataError(
                f"a {type(self.table).__name__} cannot be scanned; expected the path of a table, "
                "or a frame of pandas, polars, Arrow, DuckDB, Dask or Spark"
            )

    def choose(self, table: Table) -> Columns:
        """Return the columns to read, or raise an error as `choose_columns` does."""
        hint = f"; name the columns with {self.call}"
        return table.choose(self.given, content=f"{self.content}: ", hint=hint)


class RankingsScan(_Scan):
    """A table with a row for each recommended item; made by `Rankings.scan`."""

    content = "the recommendations"
    call = "Rankings.scan(…, user=…, item=…, rank=…)"


class RelevanceScan(_Scan):
    """A table with a row for each relevant item; made by `Relevance.scan`."""

    content = "the relevant items"
    call = "Relevance.scan(…, user=…, item=…, gain=…)"


def named(user: Hashable, item: Hashable, **values: Hashable) -> dict[str, Hashable]:
    """Return the column of each role; a default of users and items is `USUAL`."""
    given = {"user": user, "item": item, **values}
    for role in ("user", "item"):
        given[role] = USUAL if isinstance(name := given[role], str) and name == role else name
    return given


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
