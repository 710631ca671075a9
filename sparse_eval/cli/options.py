"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


class Method(StrEnum):
    """How interactions are split."""

    random = "random"
    leave_k_out = "leave-k-out"
    last_n = "last-n"
    temporal = "temporal"


class Test(StrEnum):
    """Paired tests."""

    t = "t"
    wilcoxon = "wilcoxon"
    permutation = "permutation"


class Correction(StrEnum):
    """Corrections for many tests."""

    holm = "holm"
    bh = "bh"
    none = "none"


class Users(StrEnum):
    """Whom evaluations are compared by."""

    same = "same"
    intersection = "intersection"


METRICS = (
    "ndcg@{5,10,20},precision@{5,10,20},recall@{5,10,20},hit_rate@{5,10,20},map@{5,10,20},mrr@20"
)


Metrics = Annotated[
    list[str],
    typer.Option("--metric", "-m", help="What to compute; may be given again. See `metrics`."),
]
Rules = Annotated[
    str | None,
    typer.Option(help="Count as another library does; `metrics --convention all` lists them."),
]
Printed = Annotated[Format, typer.Option("--format", help="How to print the result.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder for summary.json and per_user.csv; made if missing.")
]
InputFormat = Annotated[
    str | None,
    typer.Option(help="adjacency, csv, mind, movielens, npz or parquet.", show_default="guessed"),
]
User = Annotated[str | None, typer.Option(help="CSV and Parquet: the column of users.")]
Item = Annotated[str | None, typer.Option(help="CSV and Parquet: the column of items.")]
Value = Annotated[str | None, typer.Option(help="CSV and Parquet: the column of values.")]
Time = Annotated[str | None, typer.Option(help="CSV and Parquet: the column of times.")]
Header = Annotated[
    bool, typer.Option(help="CSV: whether the first line names the columns.", show_default=True)
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad-lines", help="Leave malformed lines out and say how many.")
]
History = Annotated[bool, typer.Option(help="MIND: take the click history too.")]
SplitMethod = Annotated[
    Method | None, typer.Option(help="How to hold interactions out.", show_default="random")
]
Fraction = Annotated[
    float | None,
    typer.Option(help="random, temporal: share held out, between 0 and 1.", show_default="0.2"),
]
Held = Annotated[
    int | None,
    typer.Option("--n", help="leave-k-out, last-n: held out of each user.", show_default="1"),
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
FactorCount = Annotated[int, typer.Option("--factors", help="ALS: number of latent factors.")]
Alpha = Annotated[float, typer.Option(help="ALS: weight of an interaction.")]
Regularization = Annotated[float, typer.Option(help="ALS: regularization.")]
Iterations = Annotated[int, typer.Option(help="ALS: iterations.")]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Progress bars.", show_default="on a terminal only"
    ),
]
