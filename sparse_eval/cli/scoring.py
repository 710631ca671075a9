"""The commands that score what is there already: score, evaluate."""

from __future__ import annotations

import hashlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.files import make_folder
from ..core.formatting import plain
from ..errors import InvalidDataError
from .data import is_matrix, load_split, loader_options, read_matrix
from .options import (
    METRICS,
    Format,
    Header,
    History,
    InputFormat,
    Item,
    Metrics,
    Out,
    Printed,
    Progress,
    Rules,
    SkipBad,
    User,
    Value,
)
from .printing import counted, print_evaluation, print_table, step, warnings_in_a_line

if TYPE_CHECKING:
    import pandas as pd

    from ..datasets.split import Holdout
    from ..inputs.relevance import Relevance
    from ..metrics import Convention
    from ..results import Evaluation

__all__ = ["check_metrics", "evaluate", "score", "score_model"]


def score(
    command: typer.Context,
    checkpoint: Annotated[
        list[str],
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
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="The address of a Dask scheduler, such as tcp://10.0.0.1:8786, whose workers do "
            "the work; checkpoints have to be where they are for them too."
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
    from ..datasets.split import Holdout

    metric = check_metrics(metric, convention)
    if "" in checkpoint:  # as of a variable that is not set; as a path, it would be this folder
        raise InvalidDataError("a checkpoint has no name; name a file or a folder")
    paths = [Path(name) for name in checkpoint]
    several = watch is not None or len(paths) > 1 or paths[0].is_dir()
    if several and watch is None:
        from ..models.sweep import list_checkpoints

        list_checkpoints(paths)  # an empty folder is told before data are read
    elif not several and monitor is not None:
        raise InvalidDataError("--monitor says which of several checkpoints is best; found one")
    if scheduler is not None and watch is not None:
        raise InvalidDataError("--watch follows a folder from here; leave out --scheduler")
    if out is not None:
        make_folder(out)
    if split is not None and train is None and validation is None:
        holdout = Holdout.load(split)
    elif split is None and train is not None and validation is not None:
        options = loader_options(user, item, value, None, header, skip_bad_lines, history)
        holdout = load_split(train, validation, input_format, options)
    else:
        raise InvalidDataError("give either --split FOLDER, or both --train and --validation")
    if several:
        options = {"watch": watch} if scheduler is None else {"client": scheduler}
        options |= {"monitor": monitor, "convention": convention, "progress": progress}
        _sweep(paths, holdout, metric, out, format, options)
    else:
        ev = (
            score_model(paths[0], holdout, metric, progress, convention, lists=out is not None)
            if scheduler is None
            else _score_elsewhere(paths[0], holdout, metric, progress, convention, scheduler)
        )
        print_evaluation(command, ev, format, out, checkpoint=_about(paths[0]))


def evaluate(
    command: typer.Context,
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
    from ..evaluation.evaluate import evaluate as evaluate_lists
    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..inputs.trec import read_qrels, read_run
    from ..metrics import convention_named, parse_metrics

    rules = convention_named(convention)
    for other in (validation, train):
        if other is not None and is_matrix(lists) != is_matrix(other):
            raise InvalidDataError(
                f"{lists} and {other} are a matrix and a TREC file, whose users and items cannot "
                "be told to be the same; give files of a kind"
            )
    averaged = rules.ties == "average" and not is_matrix(lists)
    metric = fitting(metric, rules, averaged)
    parse_metrics(metric, rules.options)
    if out is not None:
        make_folder(out)

    def read(path: Path) -> Relevance:
        return read_matrix(path, Relevance.from_csr) if is_matrix(path) else read_qrels(path)

    rankings = (
        read_matrix(lists, Rankings.from_positions)
        if is_matrix(lists)
        else read_run(lists, ties=rules.ties)
    )
    seen = None if train is None else read(train)
    ev = evaluate_lists(rankings, read(validation), metric, convention=convention, train=seen)
    if per_user:
        print_table(ev.per_user.reset_index(), format)
        if format in (Format.table, Format.markdown):
            typer.echo()
        elif out is None:  # one thing to parse is enough
            return
    print_evaluation(command, ev, format, out)


def check_metrics(metric: list[str], convention: str | None = None) -> list[str]:
    """Find a misspelt metric before the hours of training, not after them."""
    from ..metrics import convention_named

    rules = convention_named(convention)
    metric = fitting(metric, rules, averaged=False)
    parse_cut_request(metric, convention)
    return metric


def fitting(metric: list[str], rules: Convention, averaged: bool) -> list[str]:
    """Return what was asked for; or, of the default, what the convention has."""
    from ..metrics import parse_metrics

    if metric != [METRICS]:
        return metric
    metrics = (m for m in parse_metrics(metric) if m.definition.averages_ties or not averaged)
    return [m.name if m.name in rules.uncut else str(m) for m in metrics]


def score_model(
    model: Any,
    holdout: Holdout,
    metric: list[str],
    progress: bool | None,
    convention: str | None = None,
    lists: bool = False,
) -> Evaluation:
    """Recommend and score, and say so.

    To be saved, with the whole `lists`, where ranks would be enough, and the popularity ranking.
    """
    from ..inputs.relevance import Relevance
    from ..models.evaluate import evaluate_model
    from ..models.recommend import as_model

    relevance = Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items)
    with step("recommend and score") as note, warnings_in_a_line():
        model = as_model(model)
        ev = evaluate_model(
            model,
            holdout.train,
            relevance,
            metric,
            convention=convention,
            baselines=lists,
            via="top_k" if lists and hasattr(model, "item_factors") else None,
            progress=progress,
        )
        note(counted(ev.n_users, "user"))
    return ev


def _about(checkpoint: Path) -> dict[str, Any]:
    """Say which checkpoint it is: its file, a digest, its hyperparameters."""
    from ..models.checkpoints import read_checkpoint

    with checkpoint.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    parameters = read_checkpoint(checkpoint).parameters
    known = {name: plain(value) for name, value in parameters.items()}
    return known | {"file": str(checkpoint), "sha256": digest}


def _score_elsewhere(
    checkpoint: Path,
    holdout: Holdout,
    metric: list[str],
    progress: bool | None,
    convention: str | None,
    scheduler: str,
) -> Evaluation:
    """Have the workers of a Dask cluster recommend and score, and say so."""
    from ..evaluation.dask import evaluate_model
    from ..inputs.relevance import Relevance

    relevance = Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items)
    with step("recommend and score") as note, warnings_in_a_line():
        ev = evaluate_model(
            checkpoint,
            holdout.train,
            relevance,
            metric,
            client=scheduler,
            convention=convention,
            progress=progress,
        )
        note(counted(ev.n_users, "user"))
    return ev


def _sweep(
    checkpoints: list[Path],
    holdout: Holdout,
    metric: list[str],
    out: Path | None,
    format: Format,  # noqa: A002
    options: dict[str, Any],
) -> None:
    """Score several checkpoints, print their table, and fail if one of them did."""
    where = "evaluation.dask" if "client" in options else "models.sweep"
    sweep = import_module(f"sparse_eval.{where}").sweep

    with step("score") as note, warnings_in_a_line():
        table = sweep(
            checkpoints,
            holdout.train,
            holdout.validation,
            metric,
            out=None if out is None else out / "sweep.csv",
            **options,
        )
        note(counted(len(table), "checkpoint"))
    shown = _narrow(table) if format in (Format.table, Format.markdown) else table
    print_table(shown.astype(object).where(shown.notna(), None), format)
    failed = table[table["status"] == "failed"]
    if len(failed):
        of_all = counted(len(table), "checkpoint")
        typer.echo(f"{len(failed):,} of {of_all} could not be scored", err=True)
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
