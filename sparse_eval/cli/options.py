"""Options that several commands share, one by one and in groups."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import typer

from ..core.files import as_path
from ..errors import InvalidDataError

#: How a result is printed.
Format = StrEnum("Format", ["table", "json", "jsonl", "csv", "markdown"])


class Method(StrEnum):
    """How interactions are split."""

    random = "random"
    leave_k_out = "leave-k-out"
    last_n = "last-n"
    temporal = "temporal"
    users = "users"


#: Which pairs of a held-out user a model is given.
Order = StrEnum("Order", ["random", "time"])

#: Paired tests.
Test = StrEnum("Test", ["t", "wilcoxon", "permutation"])

#: Corrections for multiple comparisons.
Correction = StrEnum("Correction", ["holm", "bonferroni", "bh", "none"])

#: What to do if evaluations are of different users.
Users = StrEnum("Users", ["intersection", "same"])

METRICS = (
    "ndcg@{5,10,20},precision@{5,10,20},recall@{5,10,20},hit_rate@{5,10,20},map@{5,10,20},mrr@20"
)


Metrics = Annotated[
    list[str],
    typer.Option("--metric", "-m", help="Metrics to compute; repeatable. See `metrics`."),
]
Rules = Annotated[
    str | None,
    typer.Option(help="Follow another library; `metrics --convention all` lists them."),
]
Printed = Annotated[Format, typer.Option("--format", help="How to print the result.")]
SafeCSV = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="CSV for a spreadsheet alone: an apostrophe before text that it would take for a "
        "formula.",
    ),
]
Out = Annotated[
    Path | None, typer.Option(help="Folder for summary.json and per_user.csv; created if missing.")
]
AllowSeen = Annotated[
    bool,
    typer.Option(
        "--allow-seen", help="What users have seen may be recommended again, and is a candidate."
    ),
]
JudgedOnly = Annotated[
    bool,
    typer.Option(
        "--judged-only",
        help="Leave what the validation data do not store, zeros included, out of the lists.",
    ),
]
TestAt = Annotated[
    str | None, typer.Option(help="temporal: where the test part begins, after --at; likewise.")
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Candidates = Annotated[
    Path | None,
    typer.Option(
        help="What each user can be recommended, a row for each user and candidate: a file as the "
        "training data are.",
        show_default="all items",
        rich_help_panel="Data",
    ),
]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show progress bars.",
        show_default="on a terminal; elsewhere a line now and then",
    ),
]


_BY_NAME = "told by its name"


class Loading(NamedTuple):
    """How interactions are read."""

    input_format: Annotated[
        str | None,
        typer.Option(
            help="adjacency, csv, mind, movielens, npz or parquet.", show_default="guessed"
        ),
    ] = None
    user: Annotated[
        str | None, typer.Option(help="CSV and Parquet: column of users.", show_default=_BY_NAME)
    ] = None
    item: Annotated[
        str | None, typer.Option(help="CSV and Parquet: column of items.", show_default=_BY_NAME)
    ] = None
    value: Annotated[
        str | None,
        typer.Option(
            help='CSV and Parquet: column of values; "" for none: every event counts 1.',
            show_default=_BY_NAME,
        ),
    ] = None
    event: Annotated[
        str | None, typer.Option(help="CSV and Parquet: column of types of events; needs --keep.")
    ] = None
    keep: Annotated[
        list[str] | None, typer.Option(help="A type of events to keep; repeatable.")
    ] = None
    sep: Annotated[
        str | None,
        typer.Option(help=r'CSV: what separates fields; "\t" is a tab.', show_default="guessed"),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(help="CSV and adjacency: encoding of the text.", show_default="utf-8"),
    ] = None
    counts: Annotated[
        bool | None,
        typer.Option(
            help="Adjacency: whether lines begin with the number of their items, not with a user.",
            show_default="guessed",
        ),
    ] = None
    header: Annotated[
        bool, typer.Option(help="CSV: whether the first line names the columns.", show_default=True)
    ] = True
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Skip malformed lines, and report how many.")
    ] = False
    click_history: Annotated[
        bool,
        typer.Option("--click-history/--no-history", help="MIND: include the click history."),
    ] = True


class Filtering(NamedTuple):
    """Which interactions are kept before they are split."""

    min_value: Annotated[
        float | None, typer.Option(help="Leave out events of a smaller value.")
    ] = None
    min_user_interactions: Annotated[
        int | None,
        typer.Option(
            help="Leave out users who chose fewer distinct items; repeated with the next option "
            "until all that are left have enough (a k-core)."
        ),
    ] = None
    min_item_interactions: Annotated[
        int | None, typer.Option(help="Leave out items that fewer distinct users chose.")
    ] = None


class Splitting(NamedTuple):
    """How interactions are split."""

    timestamp: Annotated[
        str | None,
        typer.Option(
            help='CSV and Parquet: column of timestamps; "" for none.', show_default=_BY_NAME
        ),
    ] = None
    method: Annotated[
        Method | None,
        typer.Option(
            help="How to hold interactions out.", show_default="random; with --at temporal"
        ),
    ] = None
    fraction: Annotated[
        float | None,
        typer.Option(
            help="random, temporal, users: share to hold out, between 0 and 1.", show_default="0.2"
        ),
    ] = None
    fold_in: Annotated[
        float | None,
        typer.Option(
            help="users: share of a held-out user's items that the model is given.",
            show_default="0.8",
        ),
    ] = None
    order: Annotated[
        Order | None,
        typer.Option(
            help="users: whether it is given random items or the earliest.", show_default="random"
        ),
    ] = None
    n: Annotated[
        int | None,
        typer.Option(
            "--n", help="leave-k-out, last-n: how many to hold out per user.", show_default="1"
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(
            help="temporal: where validation begins, instead of --fraction: a date (2019-11-14, "
            "2019-11-14T09:30+01:00; UTC without a time zone), or a whole number in the unit of "
            "the timestamps."
        ),
    ] = None
    gap: Annotated[
        str | None,
        typer.Option(
            help="temporal: leave out what is so long before a cut: 1D, 12h, or a whole number "
            "in the unit of the timestamps.",
        ),
    ] = None
    keep_repeats: Annotated[
        bool,
        typer.Option(
            "--keep-repeats",
            help="temporal, last-n: hold out what repeats an interaction of the training part too, "
            "for models that may recommend again (--allow-seen).",
        ),
    ] = False
    only_known: Annotated[
        bool,
        typer.Option(
            "--only-known", help="Hold out only users and items that the training part has."
        ),
    ] = False

    @property
    def how(self) -> Method:
        """The method: that which was named, or else temporal if a date is given."""
        return self.method or (Method.random if self.at is None else Method.temporal)

    @property
    def by_time(self) -> bool:
        """Whether the method needs times."""
        return self.how in (Method.last_n, Method.temporal) or self.order is Order.time


def path(word: str | Path) -> Path:
    """Return the path that a word names, which is not the current folder if it is empty.

    Help texts call such words by the name of this function.
    """
    try:
        return as_path(word)
    except InvalidDataError as error:
        raise typer.BadParameter(str(error)) from None


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` as typer needs it.

    The fields of its groups are options of their own, and words that are paths are read by `path`.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        group = parameter.annotation
        if isinstance(group, type) and issubclass(group, tuple):
            groups[name] = group
            parameters += inspect.signature(group).parameters.values()
        else:
            parameters.append(parameter)
    for parameter in parameters:
        match get_args(parameter.annotation):
            case (kind, option) if kind in (Path, Path | None):
                option.parser = path

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field: values.pop(field) for field in group._fields})
        command(**values)

    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    run.__dict__["__signature__"] = inspect.Signature(keyword_only)
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
