"""Parquet files that are cut into pieces, each about other users, for workers who can read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .parquet import Piece, Table, look_around, plan_pieces, settle

if TYPE_CHECKING:
    from ..results.once import Question
    from .arrow import Columns, Known

__all__ = ["Files", "cut_files"]

#: Rows of a piece.
PIECE = 2_000_000


class Files(NamedTuple):
    """Two tables in files.

    Attributes
    ----------
    tables : tuple of Table
    columns : Columns
        Settled.
    known : Known
    pieces : list of Piece or None
        None where rows are in no order of the users.
    """

    tables: tuple[Table, Table]
    columns: Columns
    known: Known
    pieces: list[Piece] | None

    @property
    def schemas(self) -> tuple[Any, Any]:
        """The schemas of both tables."""
        return self.tables[0].schema, self.tables[1].schema


def cut_files(question: Question, recs: str | Path, truth: str | Path, columns: Columns) -> Files:
    """Look at two tables, and cut them if that is possible; raise as `evaluate` does."""
    tables = Table(Path(recs).absolute()), Table(Path(truth).absolute())
    columns = settle(columns, tables)
    groups = [table.groups(columns.user) for table in tables]
    known = look_around(question, tables, columns)
    return Files(tables, columns, known, plan_pieces(groups[0], groups[1], PIECE))
