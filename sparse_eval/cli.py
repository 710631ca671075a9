"""The command line: ``sparse-eval COMMAND``.

Results go to standard output, what is being done to standard error. Bad input is answered with
one line and exit status 2. What is slow to import is imported inside the commands.
"""

from __future__ import annotations

import json
import math
import re
import sys
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import InvalidDataError, InvalidFileError, SparseEvalError
from .files import make_folder, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from .datasets import Interactions
    from .metrics import Convention, Definition
    from .models.tune import Tuning
    from .results import Evaluation
    from .split import Holdout

__all__ = ["main"]

app = typer.Typer(
    name="sparse-eval",
    help="Evaluate recommenders trained on large implicit-feedback data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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


METRICS = (
    "ndcg@{5,10,20},precision@{5,10,20},recall@{5,10,20},hit_rate@{5,10,20},map@{5,10,20},mrr@20"
)

SYMBOLS = (
    "k: cut-off; r: rank; g, h: gain of the item at a rank, and whether it is relevant (g > 0);\n"
    "n: relevant items of the user; C: items that could be recommended; N: items of the catalogue"
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; `arguments` default to those of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:  # wherever it stands, as with most tools
        words = ["--debug", *(word for word in words if word != "--debug")]
    try:
        app(args=words, prog_name="sparse-eval")
    except (SparseEvalError, OSError, MemoryError) as error:
        if debug:
            traceback.print_exc()
        reason = "not enough memory" if isinstance(error, MemoryError) else str(error)
        typer.echo("error: " + " ".join(reason.splitlines()), err=True)
        raise SystemExit(2) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("sparse_eval"))
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    # Both are dealt with elsewhere: `main` looks for the first, a callback for the second.
    pass


@app.command()
def demo(
    users: Annotated[int, typer.Option(help="Synthetic users.")] = 50_000,
    items: Annotated[int, typer.Option(help="Synthetic items.")] = 51_277,
    factors: FactorCount = 64,
    iterations: Iterations = 15,
    seed: Seed = 0,
    metric: Metrics = [METRICS],  # noqa: B006 - typer copies it
    progress: Progress = None,
    out: Annotated[Path, typer.Option(help="Folder for what it leaves.")] = Path(
        "sparse_eval_demo"
    ),
    format: Printed = Format.table,  # noqa: A002 - the option's name
) -> None:
    """Do the whole way on synthetic clicks: generate, split, train, recommend, score."""
    from . import datasets, split

    _check_metrics(metric)
    make_folder(out)
    with _step("generate clicks") as note:
        interactions = datasets.synthetic(users, items, seed=seed)
        note(repr(interactions))
    with _step("hold out a fifth of each user's") as note:
        holdout = split.random(interactions, fraction=0.2, seed=seed)
        holdout.save(out / "split")
        note(f"{_count(holdout.train)} to train on, {_count(holdout.validation)} held out")
    model = _train(holdout.train, factors, 0.1, 40.0, iterations, seed, progress, out / "model.npz")
    ev = _score(model, holdout, metric, progress)
    _report(ev, format, out)
    typer.echo(f"left in {out}: split/, model.npz, per_user.csv, summary.json", err=True)


@app.command()
def run(
    input: Annotated[Path, typer.Argument(help="Interactions; or the train part of a split.")],  # noqa: A002
    validation: Annotated[
        Path | None, typer.Argument(help="The other part of a ready-made split.")
    ] = None,
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    timestamp: Time = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    method: SplitMethod = None,
    fraction: Fraction = None,
    n: Held = None,
    seed: Seed = 0,
    factors: FactorCount = 64,
    alpha: Alpha = 40.0,
    regularization: Regularization = 0.1,
    iterations: Iterations = 15,
    metric: Metrics = [METRICS],  # noqa: B006
    convention: Rules = None,
    progress: Progress = None,
    out: Out = None,
    format: Printed = Format.table,  # noqa: A002
) -> None:
    """Split, train ALS, recommend and score."""
    metric = _check_metrics(metric, convention)
    if out is not None:
        make_folder(out)
    options = _loader_options(user, item, value, timestamp, header, skip_bad_lines, history)
    if validation is None:
        holdout = _split(_load(input, input_format, options), method, fraction, n, seed)
    elif any(option is not None for option in (method, fraction, n)):
        raise InvalidDataError(
            "--method, --fraction and --n say how to split, but two files are a split already"
        )
    else:
        holdout = _load_split(input, validation, input_format, options)
    if out is not None:
        holdout.save(out / "split")
    checkpoint = None if out is None else out / "model.npz"
    model = _train(
        holdout.train, factors, regularization, alpha, iterations, seed, progress, checkpoint
    )
    _report(_score(model, holdout, metric, progress, convention), format, out)


@app.command()
def split(
    input: Annotated[Path, typer.Argument(help="Interactions.")],  # noqa: A002
    out: Annotated[Path, typer.Option(help="Folder for train.npz, validation.npz, labels.npz.")],
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    timestamp: Time = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    method: SplitMethod = None,
    fraction: Fraction = None,
    n: Held = None,
    seed: Seed = 0,
) -> None:
    """Hold out a part of each user's interactions."""
    options = _loader_options(user, item, value, timestamp, header, skip_bad_lines, history)
    _split(_load(input, input_format, options), method, fraction, n, seed).save(out)
    typer.echo(f"left in {out}: train.npz, validation.npz, labels.npz", err=True)


@app.command()
def train(
    input: Annotated[Path, typer.Argument(help="A folder that `split` wrote, or interactions.")],  # noqa: A002
    out: Annotated[Path, typer.Option(help="The checkpoint to write (.npz).")],
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    factors: FactorCount = 64,
    alpha: Alpha = 40.0,
    regularization: Regularization = 0.1,
    iterations: Iterations = 15,
    seed: Seed = 0,
    progress: Progress = None,
) -> None:
    """Train an ALS model of implicit and save it."""
    if out.suffix != ".npz" or out.is_dir():
        raise InvalidDataError(f"--out is {str(out)!r}; expected a file name that ends in .npz")
    make_folder(out.parent)
    if _is_split(input):
        from .split import Holdout

        matrix = Holdout.load(input).train
    else:
        options = _loader_options(user, item, value, None, header, skip_bad_lines, history)
        matrix = _load(input, input_format, options).matrix()
    _train(matrix, factors, regularization, alpha, iterations, seed, progress, out)


@app.command()
def tune(
    input: Annotated[  # noqa: A002
        Path,
        typer.Argument(
            help="Interactions; a folder that `split` wrote, whose validation part becomes the "
            "test; or the train part of a split."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for search.json, trials.csv, model.npz, summary.json and per_user.csv; "
            "an interrupted command goes on from it."
        ),
    ],
    test: Annotated[
        Path | None, typer.Argument(help="The other part of a ready-made split: the test.")
    ] = None,
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    timestamp: Time = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    method: SplitMethod = None,
    fraction: Fraction = None,
    n: Held = None,
    factors: Annotated[
        str, typer.Option(help="ALS: latent factors: 64, several (32,64,128), or a range (16:256).")
    ] = "64",
    alpha: Annotated[str, typer.Option(help="ALS: weight of an interaction, likewise.")] = "40",
    regularization: Annotated[str, typer.Option(help="ALS: regularization, likewise.")] = "0.1",
    iterations: Annotated[str, typer.Option(help="ALS: most iterations, likewise.")] = "15",
    draws: Annotated[
        int | None,
        typer.Option(
            help="Trials to draw at random, from ranges log-uniformly.",
            show_default="the grid of all values",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(help="End a trial after so many iterations without a better one."),
    ] = None,
    monitor: Annotated[
        str | None,
        typer.Option(
            help="The metric that says which iteration and trial is best.", show_default="the first"
        ),
    ] = None,
    seed: Seed = 0,
    metric: Metrics = ["ndcg@10,recall@10,map@10"],  # noqa: B006
    progress: Progress = None,
    format: Printed = Format.table,  # noqa: A002
) -> None:
    """Search ALS's hyperparameters on a validation part; test the best once on a third part."""
    from .matrices import Relevance
    from .models.tune import Search

    search = Search(
        metric,
        factors=factors,
        alpha=alpha,
        regularization=regularization,
        iterations=iterations,
        draws=draws,
        patience=patience,
        monitor=monitor,
        seed=seed,
    )
    make_folder(out)
    options = _loader_options(user, item, value, timestamp, header, skip_bad_lines, history)
    whole: Holdout
    if test is not None:
        rest, held = _load_parts(input, test, input_format, options)
        whole = _holdout(rest, held)
    elif _is_split(input):
        from .split import Holdout

        whole = Holdout.load(input)
        rest = whole.train
    else:
        interactions = _load(input, input_format, options)
        whole = _split(interactions, method, fraction, n, seed, "hold out the test part")
        rest = _without(interactions, whole.validation)
    part = _split(rest, method, fraction, n, seed, "hold out the validation part")
    truth = Relevance.from_csr(whole.validation, users=whole.users, items=whole.items)
    with _step("tune") as note:
        found = search.run(part.train, part.validation, test=truth, out=out, progress=progress)
        note(f"{len(found.trials):,} trials")
    _print_tuning(found, format)
    failed = int((found.trials["status"] == "failed").sum())
    if failed:
        typer.echo(f"{failed:,} of {len(found.trials):,} trials failed", err=True)
    if found.best is None:
        raise typer.Exit(1)


@app.command()
def score(
    checkpoint: Annotated[
        list[Path],
        typer.Argument(help="Models that implicit saved (.npz); a folder stands for all in it."),
    ],
    split: Annotated[
        Path | None, typer.Option(help="The folder that `split` wrote.", rich_help_panel="Data")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Or: the train part.", rich_help_panel="Data")
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="And the validation part.", rich_help_panel="Data")
    ] = None,
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    metric: Metrics = [METRICS],  # noqa: B006
    convention: Rules = None,
    monitor: Annotated[
        str | None,
        typer.Option(help="Several: the metric that says which is best.", show_default="the first"),
    ] = None,
    watch: Annotated[
        float | None,
        typer.Option(
            help="Follow the folder: look for new and changed models every so many seconds, until "
            "interrupted (Ctrl-C)."
        ),
    ] = None,
    progress: Progress = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for summary.json and per_user.csv; of several models for sweep.csv, from "
            "which an interrupted command goes on. Made if missing."
        ),
    ] = None,
    format: Printed = Format.table,  # noqa: A002
) -> None:
    """Score a checkpoint; of several, or of a folder, make a table and mark the best."""
    from .split import Holdout

    metric = _check_metrics(metric, convention)
    several = watch is not None or len(checkpoint) > 1 or checkpoint[0].is_dir()
    if several and watch is None:
        from .models.sweep import list_checkpoints

        list_checkpoints(checkpoint)  # an empty folder is told before data are read
    elif not several and monitor is not None:
        raise InvalidDataError("--monitor says which of several checkpoints is best; found one")
    if out is not None:
        make_folder(out)
    if split is not None and train is None and validation is None:
        holdout = Holdout.load(split)
    elif split is None and train is not None and validation is not None:
        options = _loader_options(user, item, value, None, header, skip_bad_lines, history)
        holdout = _load_split(train, validation, input_format, options)
    else:
        raise InvalidDataError("give either --split FOLDER, or both --train and --validation")
    if several:
        _sweep(checkpoint, holdout, metric, convention, monitor, watch, progress, out, format)
    else:
        _report(_score(checkpoint[0], holdout, metric, progress, convention), format, out)


@app.command()
def evaluate(
    lists: Annotated[
        Path,
        typer.Argument(
            help="A TREC run, or prediction positions: a scipy .npz, data = 1-based rank."
        ),
    ],
    validation: Annotated[Path, typer.Argument(help="TREC qrels, or gains: a scipy .npz.")],
    metric: Metrics = [METRICS],  # noqa: B006
    convention: Rules = None,
    train: Annotated[
        Path | None,
        typer.Option(help="What users had seen, for metrics that need it: qrels, .npz."),
    ] = None,
    per_user: Annotated[
        bool,
        typer.Option("--per-user", help="Print every user's values; as csv and json nothing else."),
    ] = False,
    out: Out = None,
    format: Printed = Format.table,  # noqa: A002
) -> None:
    """Score lists against relevance: a run against qrels, or two matrices."""
    from .evaluate import evaluate as evaluate_lists
    from .matrices import Rankings, Relevance
    from .metrics import convention_named, parse_metrics
    from .trec import read_qrels, read_run

    rules = convention_named(convention)
    for other in (validation, train):
        if other is not None and _is_matrix(lists) != _is_matrix(other):
            raise InvalidDataError(
                f"{lists} and {other} are a matrix and a TREC file, whose users and items cannot "
                "be told to be the same; give files of a kind"
            )
    averaged = rules.ties == "average" and not _is_matrix(lists)
    metric = _fitting(metric, rules, averaged)
    parse_metrics(metric, rules.options)
    if out is not None:
        make_folder(out)

    def read(path: Path) -> Relevance:
        return _read_matrix(path, Relevance.from_csr) if _is_matrix(path) else read_qrels(path)

    rankings = (
        _read_matrix(lists, Rankings.from_positions)
        if _is_matrix(lists)
        else read_run(lists, ties=rules.ties)
    )
    seen = None if train is None else read(train)
    ev = evaluate_lists(rankings, read(validation), metric, convention=convention, train=seen)
    if per_user:
        _print(ev.per_user.reset_index(), format)
        if format in (Format.table, Format.markdown):
            typer.echo()
        elif out is None:  # one thing to parse is enough
            return
    _report(ev, format, out)


@app.command()
def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric, to show it in detail.")] = None,
    convention: Annotated[
        str | None, typer.Option(help="A convention, to show what differs; `all` lists them.")
    ] = None,
    format: Printed = Format.table,  # noqa: A002
) -> None:
    """List the metrics, show one, or show what another library's convention changes."""
    import pandas as pd

    from .metrics import CONVENTIONS, REGISTRY, convention_named
    from .metrics.registry import definition, load_extensions

    with _warnings_in_a_line():
        load_extensions()
        entry = None if name is None else definition(re.split("[@(]", name)[0])
    if name is not None and convention is not None:
        raise InvalidDataError("give a metric to show, or --convention, not both")
    if convention == "all":
        names = [(rules.name, rules.library) for rules in CONVENTIONS.values()]
        _print(pd.DataFrame(names, columns=["convention", "of"]), format)
    elif convention is not None:
        rules = convention_named(convention)
        rows = rules.differences()
        if not rows:
            raise InvalidDataError(f"{convention!r} is what there is without --convention")
        _print(pd.DataFrame(rows, columns=["what differs", rules.name, "standard"]), format)
    elif entry is None:
        facts = [
            (entry.spelling, entry.text, ", ".join(option.name for option in entry.options),
             entry.description)
            for entry in REGISTRY.values()
        ]  # fmt: skip
        _print(pd.DataFrame(facts, columns=["metric", "formula", "options", "meaning"]), format)
        if format in (Format.table, Format.markdown):
            typer.echo(f"\n{SYMBOLS}")
    else:
        _print(pd.DataFrame(_facts(entry), columns=["fact", "value"]), format)


def _facts(entry: Definition) -> list[tuple[str, str]]:
    cutoffs = {
        "required": "required",
        "optional": "optional: the whole list without",
        "none": "none: it is over whole lists",
    }
    defaults = {option.name: option.default for option in entry.options}
    upper = entry.upper(defaults) if callable(entry.upper) else entry.upper
    reach = f"{entry.lower:g} and above" if upper == math.inf else f"{entry.lower:g} to {upper:g}"
    if callable(entry.upper):
        reach += ", with other options more"
    needs = [*entry.needs, *(f"{need} ({option.name}={value})"
             for option in entry.options for value, need in option.needs.items())]  # fmt: skip
    facts = [
        ("metric", entry.name),
        ("meaning", entry.description),
        ("formula", entry.text),
        ("cut-off", cutoffs[entry.cutoff]),
        ("values", "for each user" if entry.per_user else "one for all users together"),
        ("range", reach),
        ("needs", ", ".join(needs) or "nothing else"),
        ("expectation over tied items", "yes" if entry.averages_ties else "no"),
    ]
    facts += [
        (f"option {option.name}", f"{option.allowed}: {option.description}")
        for option in entry.options
    ]
    return facts + ([("source", entry.source)] if entry.source else [])


def _is_matrix(path: Path) -> bool:
    return path.suffix == ".npz"


@contextmanager
def _step(what: str) -> Iterator[Any]:
    """Say what is being done, and, when it is done, what came of it and how long it took."""
    notes: list[str] = []
    start = perf_counter()
    yield notes.append
    seconds = perf_counter() - start
    typer.echo(f"{what}: {', '.join([*notes, f'{seconds:.1f} s'])}", err=True)


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Show what loaders warn of without the place in our code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        typer.echo(f"warning: {warning.message}", err=True)


def _check_metrics(metric: list[str], convention: str | None = None) -> list[str]:
    """Find a misspelt metric before the hours of training, not after them."""
    from .metrics import convention_named
    from .models.implicit import parse_cut_metrics

    rules = convention_named(convention)
    metric = _fitting(metric, rules, averaged=False)
    parse_cut_metrics(metric, rules)
    return metric


def _fitting(metric: list[str], rules: Convention, averaged: bool) -> list[str]:
    """Return what was asked for; or, of the default, what the convention has."""
    from .metrics import parse_metrics

    if metric != [METRICS]:
        return metric
    metrics = (m for m in parse_metrics(metric) if m.definition.averages_ties or not averaged)
    return [m.name if m.name in rules.uncut else str(m) for m in metrics]


def _loader_options(
    user: str | None,
    item: str | None,
    value: str | None,
    timestamp: str | None,
    header: bool,
    skip_bad_lines: bool,
    history: bool,
) -> dict[str, Any]:
    """Collect what was given; a loader that has no such option says so itself."""
    columns = {"user": user, "item": item, "value": value, "timestamp": timestamp}
    options: dict[str, Any] = {name: column for name, column in columns.items() if column}
    if not header:
        options = {name: _column_number(name, column) for name, column in options.items()}
        options["header"] = False
    if skip_bad_lines:
        options["on_bad_lines"] = "skip"
    if not history:
        options["history"] = False
    return options


def _column_number(name: str, column: str) -> int:
    if not column.isdecimal():
        raise InvalidDataError(
            f"--{name} is {column!r}; with --no-header expected the number of a column, from 0"
        )
    return int(column)


def _load(path: Path, input_format: str | None, options: dict[str, Any]) -> Interactions:
    from . import datasets

    with _step(f"read {path}") as note, _warnings_in_a_line():
        interactions = datasets.load(path, input_format, **options)
        note(repr(interactions))
    return interactions


def _read_matrix(path: Path, make: Callable[[Any], Any]) -> Any:
    """Make something of a matrix in a file; what is wrong with the matrix is put to the file."""
    from .datasets.npz import read_sparse

    try:
        return make(read_sparse(path))
    except InvalidDataError as error:
        raise InvalidFileError(str(error), path) from None


def _is_split(path: Path) -> bool:
    """Say whether it is a folder that `split` wrote."""
    return path.is_dir() and (path / "train.npz").exists()


def _load_split(
    train: Path, validation: Path, input_format: str | None, options: dict[str, Any]
) -> Holdout:
    return _holdout(*_load_parts(train, validation, input_format, options))


def _load_parts(
    train: Path, held: Path, input_format: str | None, options: dict[str, Any]
) -> tuple[Interactions, ...]:
    from . import datasets

    with _step(f"read {train} and {held}") as note, _warnings_in_a_line():
        parts = datasets.load_parts(train, held, format=input_format, **options)
        note(f"{len(parts[0]):,} to train on, {len(parts[1]):,} held out")
    return parts


def _holdout(train: Interactions, held: Interactions) -> Holdout:
    from .split import Holdout

    return Holdout(train.matrix(), held.matrix(), train.users, train.items)


def _without(interactions: Interactions, held: Any) -> Interactions:
    """Return the interactions whose pair is not held out, of the same users and items."""
    import numpy as np

    events = interactions.user_codes.astype(np.int64) * interactions.n_items
    events += interactions.item_codes
    pairs = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr)) * interactions.n_items
    kept = ~np.isin(events, pairs + held.indices)
    times = interactions.timestamps
    return replace(
        interactions,
        user_codes=interactions.user_codes[kept],
        item_codes=interactions.item_codes[kept],
        values=interactions.values[kept],
        timestamps=None if times is None else times[kept],
    )


def _split(
    interactions: Any,
    method: Method | None,
    fraction: float | None,
    n: int | None,
    seed: int,
    purpose: str = "split",
) -> Holdout:
    from . import split

    method = method or Method.random
    by_share = method in (Method.random, Method.temporal)
    if (n if by_share else fraction) is not None:
        given, wanted = ("--n", "--fraction") if by_share else ("--fraction", "--n")
        raise InvalidDataError(f"{given} has no meaning for --method {method.value}; see {wanted}")
    share = 0.2 if fraction is None else fraction
    held = 1 if n is None else n
    with _step(f"{purpose} ({method.value})") as note:
        if method is Method.random:
            holdout = split.random(interactions, fraction=share, seed=seed)
        elif method is Method.leave_k_out:
            holdout = split.leave_k_out(interactions, k=held, seed=seed)
        elif method is Method.last_n:
            holdout = split.last_n(interactions, n=held)
        else:
            holdout = split.temporal(interactions, fraction=share)
        if holdout.validation.nnz == 0:
            raise InvalidDataError(
                f"nothing is held out: too few distinct items for --method {method.value} with "
                "these options"
            )
        note(f"{_count(holdout.train)} to train on, {_count(holdout.validation)} held out")
    return holdout


def _count(matrix: Any) -> str:
    """Say how many distinct pairs there are, and how many of them were only shown."""
    shown = matrix.nnz - int((matrix.data != 0).sum())
    return f"{matrix.nnz:,} pairs" + (f" ({shown:,} shown, not clicked)" if shown else "")


def _train(
    matrix: Any,
    factors: int,
    regularization: float,
    alpha: float,
    iterations: int,
    seed: int,
    progress: bool | None,
    out: Path | None,
) -> Any:
    from .models.implicit import train_als

    with _step("train") as note:
        model = train_als(matrix, factors, regularization, alpha, iterations, seed, progress)
        note(f"ALS, {factors} factors, {iterations} iterations")
    if out is not None:
        with replacing(out) as temporary:
            model.save(str(temporary))
    return model


def _score(
    model: Any,
    holdout: Holdout,
    metric: list[str],
    progress: bool | None,
    convention: str | None = None,
) -> Evaluation:
    from .matrices import Relevance
    from .models.implicit import evaluate_model

    relevance = Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items)
    with _step("recommend and score") as note:
        ev = evaluate_model(
            model, holdout.train, relevance, metric, convention=convention, progress=progress
        )
        note(f"{ev.n_users:,} users")
    return ev


def _sweep(
    checkpoints: list[Path],
    holdout: Holdout,
    metric: list[str],
    convention: str | None,
    monitor: str | None,
    watch: float | None,
    progress: bool | None,
    out: Path | None,
    format: Format,  # noqa: A002
) -> None:
    """Score several checkpoints, print their table, and fail if one of them did."""
    from .models.sweep import sweep

    with _step("score") as note:
        table = sweep(
            checkpoints,
            holdout.train,
            holdout.validation,
            metric,
            out=None if out is None else out / "sweep.csv",
            convention=convention,
            monitor=monitor,
            watch=watch,
            progress=progress,
        )
        note(f"{len(table):,} checkpoints")
    shown = _narrow(table) if format in (Format.table, Format.markdown) else table
    _print(shown.astype(object).where(shown.notna(), None), format)
    failed = table[table["status"] == "failed"]
    if len(failed):
        typer.echo(f"{len(failed):,} of {len(table):,} checkpoints could not be scored", err=True)
        raise typer.Exit(1)


def _narrow(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out what is the same for all checkpoints, or only tells where rows come from."""
    columns = list(table.columns)
    scores = columns[columns.index("seconds") + 1 : columns.index("sha256")]
    parameters = columns[columns.index("sparse_eval") + 1 :]
    differing = [name for name in parameters if len(table[name].dropna().unique()) > 1]
    errors = ["error"] if (table["status"] == "failed").any() else []
    shown = table[["file", "best", *scores, *differing, "seconds", *errors]].copy()
    shown["best"] = ["*" if best else "" for best in table["best"]]
    shown["seconds"] = [f"{seconds:.1f}" for seconds in table["seconds"]]
    return shown


def _report(ev: Evaluation, format: Format, out: Path | None) -> None:  # noqa: A002
    if out is not None:
        ev.to_csv(out / "per_user.csv")
        ev.to_json(out / "summary.json")
    if format is Format.json:
        typer.echo(ev.to_json(), nl=False)
    elif format is Format.csv:
        typer.echo(ev.summary().to_csv(lineterminator="\n"), nl=False)
    else:
        _print(_by_cutoff(ev), format)
        why = "nothing relevant" if ev.convention == "standard" else f"as {ev.convention} does"
        left_out = f", {ev.n_skipped:,} left out ({why})" if ev.n_skipped else ""
        typer.echo(f"\nmeans over {ev.n_users:,} users{left_out}")
        for name, n_users in ev.n_users_of.items():
            if n_users != ev.n_users:
                typer.echo(f"{name}: over {n_users:,} users")


def _by_cutoff(ev: Evaluation) -> pd.DataFrame:
    """Put the cut-offs side by side: one row for each metric."""
    import pandas as pd

    cells: dict[str, dict[int, str]] = {}
    headings: dict[int, str] = {}
    for metric in ev.metrics:
        name = str(metric).partition("@")[0]
        cells.setdefault(name, {})[metric.k] = f"{ev[metric]:.6f}"
        headings[metric.k] = "whole list" if metric.cutoff is None else f"@{metric.cutoff}"
    cutoffs = sorted(headings)
    return pd.DataFrame(
        [[name, *(row.get(k, "") for k in cutoffs)] for name, row in cells.items()],
        columns=["metric", *(headings[k] for k in cutoffs)],
    )


def _print_tuning(found: Tuning, format: Format) -> None:  # noqa: A002
    """Print the trials, and apart from them the test."""
    import pandas as pd

    trials = found.trials
    if format is Format.json:
        rows = _records(trials.astype(object).where(trials.notna(), None))
        content = {"trials": rows, "best": found.best, "test": found.test}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    _print(trials if format is Format.csv else _narrow_trials(trials), format)
    if found.best is None or found.test is None:
        return
    of_best = trials[trials["best"]].iloc[0]
    scores = [
        (name, float(of_best[name]), values["mean"])
        for name, values in found.test["metrics"].items()
    ]
    typer.echo()
    _print(pd.DataFrame(scores, columns=["metric", "validation", "test"]), format)
    if format is not Format.csv:
        chosen = ", ".join(f"{name} {value}" for name, value in found.best.items())
        typer.echo(f"\nbest: trial {of_best['trial']} ({chosen})")
        typer.echo(
            f"test: trained once more, on train and validation; means over "
            f"{found.test['n_users']:,} users, {found.test['n_skipped']:,} left out (nothing "
            "relevant)"
        )


def _narrow_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """Leave out what no failure has to tell, and show numbers as people write them."""
    errors = ["error"] if (trials["status"] == "failed").any() else []
    columns = [name for name in trials.columns if name not in ("status", "error")]
    shown = trials[[*columns, *errors]].copy()
    shown["best"] = ["*" if best else "" for best in trials["best"]]
    for name in ("alpha", "regularization"):
        shown[name] = [f"{value:g}" for value in trials[name]]
    shown["seconds"] = [f"{seconds:.1f}" for seconds in trials["seconds"]]
    return shown.astype(object).where(shown.notna(), "")


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows for JSON, which has no NaN."""
    return [
        {name: None if value != value else value for name, value in row.items()}
        for row in table.to_dict(orient="records")
    ]


def _print(table: pd.DataFrame, format: Format) -> None:  # noqa: A002
    if format is Format.json:
        typer.echo(json.dumps(_records(table), indent=2, ensure_ascii=False, default=str))
    elif format is Format.csv:
        typer.echo(table.to_csv(index=False, lineterminator="\n"), nl=False)
    else:
        from tabulate import tabulate

        cells = [
            [f"{value:.6f}" if isinstance(value, float) else value for value in row]
            for row in table.itertuples(index=False)
        ]
        style = "simple" if format is Format.table else "pipe"
        typer.echo(
            tabulate(cells, headers=list(table.columns), tablefmt=style, disable_numparse=True)
        )
