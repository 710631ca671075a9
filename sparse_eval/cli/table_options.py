"""Options of the command evaluate: the columns of tables, and what its words may be."""

from enum import StrEnum
from typing import Annotated, NamedTuple

import typer

from ..errors import InvalidDataError


class EqualScores(StrEnum):
    """How equal scores are ordered."""

    item = "item"
    item_descending = "item_descending"
    average = "average"


class NoRelevantUsers(StrEnum):
    """What users without relevant items count."""

    exclude = "exclude"
    zero = "zero"
    judged = "judged"


class TableColumns(NamedTuple):
    """The columns of tables, where they are named."""

    user: Annotated[
        str | None, typer.Option(help="Tables: column of users.", show_default="user")
    ] = None
    item: Annotated[
        str | None, typer.Option(help="Tables: column of items.", show_default="item")
    ] = None
    rank: Annotated[
        str | None, typer.Option(help="Tables of lists: column of ranks.", show_default="rank")
    ] = None
    score: Annotated[
        str | None, typer.Option(help="Or the column of scores.", show_default="score")
    ] = None
    gain: Annotated[
        str | None,
        typer.Option(
            help="Tables of relevant items: column of gains.", show_default="gain, or 1 for each"
        ),
    ] = None

    @property
    def ids(self) -> tuple[str, str]:
        """The columns of users and of items."""
        return self.user or "user", self.item or "item"

    def check(self, *, tables: bool) -> None:
        """Raise `InvalidDataError` if columns are named and there are no tables, or one is twice.

        `tables` says whether the lists are in a table.
        """
        named = [f"--{name}" for name, column in self._asdict().items() if column is not None]
        if named and not tables:
            raise InvalidDataError(
                f"{' and '.join(named)} would name columns, and the lists are in no table; leave "
                "it out"
            )
        if self.rank is not None and self.score is not None:
            raise InvalidDataError("give one of --rank and --score, the column to order by")
