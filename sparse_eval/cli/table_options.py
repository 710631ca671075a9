"""Options of the command evaluate: the columns of tables, and what its words may be."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ..errors import InvalidDataError

#: How equal scores are ordered.
EqualScores = StrEnum("EqualScores", ["item", "item_descending", "average", "pessimistic"])

#: What users without relevant items count.
NoRelevantUsers = StrEnum("NoRelevantUsers", ["exclude", "zero", "judged"])

#: What users with relevant items and no list count.
UsersWithoutList = StrEnum("UsersWithoutList", ["exclude", "zero"])

TiesOption = Annotated[
    EqualScores | None,
    typer.Option(
        help="Order of equal scores: the lower item first, the higher item first, the "
        "expectation over random orders, or relevant items last.",
        show_default="as the convention does",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(help="Gains below it are not relevant.", show_default="any gain above 0 is"),
]
NoRelevantOption = Annotated[
    NoRelevantUsers | None,
    typer.Option(
        help="Users without relevant items: leave them out of every mean, count them 0, or count "
        "those 0 of whom zeros are judged.",
        show_default="as the convention does",
    ),
]
WithoutListOption = Annotated[
    UsersWithoutList | None,
    typer.Option(
        help="Users with relevant items and no list: leave them out of every mean, or count them "
        "0, as trec_eval's -c does.",
        show_default="as the convention does",
    ),
]
ItemGroups = Annotated[
    Path | None,
    typer.Option(
        help="The group of each item: a table with a row for each item and one other column, or "
        "columns of weights; .npy, or .npz of items × groups."
    ),
]
ItemVectors = Annotated[
    Path | None,
    typer.Option(help="A vector for each item: a table with columns of numbers, or .npy."),
]
Propensity = Annotated[
    Path | None,
    typer.Option(
        help="The chance that each item was observed where it is relevant, for weights=ips and "
        "snips: a table with one other column, or .npy."
    ),
]


class TableColumns(NamedTuple):
    """The columns of tables, where they are named."""

    user: Annotated[
        str | None, typer.Option(help="Tables: column of users.", show_default="recognized")
    ] = None
    item: Annotated[
        str | None, typer.Option(help="Tables: column of items.", show_default="recognized")
    ] = None
    rank: Annotated[
        str | None,
        typer.Option(help="Tables of lists: column of ranks.", show_default="recognized"),
    ] = None
    score: Annotated[
        str | None, typer.Option(help="Or the column of scores.", show_default="recognized")
    ] = None
    gain: Annotated[
        str | None,
        typer.Option(
            help='Tables of relevant items: column of gains; "" counts 1 for each row.',
            show_default="recognized",
        ),
    ] = None

    @property
    def ids(self) -> tuple[str, str]:
        """The columns of users and of items."""
        return self.user or "user", self.item or "item"

    def check(self, *, tables: bool) -> None:
        """Raise `InvalidDataError` if columns are named and there are no tables.

        `tables` says whether the lists are in a table.
        """
        named = [f"--{name}" for name, column in self._asdict().items() if column is not None]
        if named and not tables:
            raise InvalidDataError(f"{named[0]} names a column, and the lists are in no table")
