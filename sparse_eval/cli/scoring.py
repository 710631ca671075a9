"""Commands that score existing models and lists: score, evaluate."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.arguments import check_number
from ..core.files import make_folder
from ..core.formatting import escaped, plain
from ..errors import InvalidDataError
from . import options
from . import table_options as tables
from .csv_text import check_safe_csv
from .echo import echo
from .judging import FailUnder, MaxFailed, fail_if_under, parse_bounds
from .loading import holdout_of, load_candidates, load_parts
from .printing import counted, print_evaluation, print_table, step, warnings_in_a_line
from .recording import (
    HistoryFile,
    NightName,
    PrometheusFile,
    Recording,
    folder_for_evaluations,
)

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import JSONValue
    from ..datasets.split import Holdout
    from ..metrics import Convention
    from ..metrics.protocol import Protocol
    from ..results import Evaluation


def score(
    command: typer.Context,
    checkpoint: Annotated[
        list[str],
        typer.Argument(
            help="Models saved by implicit (.npz), item-item matrices (.npz, .npy), or scores of "
            "users × items (.npy); a folder stands for every .npz in it."
        ),
    ],
    *,
    split: Annotated[
        Path | None, typer.Option(help="A folder that `split` wrote.", rich_help_panel="Data")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Or: the training part.", rich_help_panel="Data")
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="And the validation part.", rich_help_panel="Data")
    ] = None,
    loading: options.Loading,
    candidates: options.Candidates = None,
    metric: options.Metrics = [options.METRICS],
    convention: options.Rules = None,
    allow_seen: options.AllowSeen = False,
    judged_only: options.JudgedOnly = False,
    monitor: Annotated[
        str | None,
        typer.Option(
            help="Several models: the metric that decides which is best.", show_default="the first"
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786, whose workers do the "
            "work; they need to find the checkpoints at the same paths."
        ),
    ] = None,
    progress: options.Progress = None,
    history: HistoryFile = None,
    night: NightName = None,
    prometheus: PrometheusFile = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for summary.json and per_user.csv; of several models, for a folder each "
            "and table.csv, from which an interrupted command resumes. Created if missing."
        ),
    ] = None,
    fail_under: FailUnder = [],
    max_failed: MaxFailed = 0,
    format: options.Printed = options.Format.table,
    safe_csv: options.SafeCSV = False,
) -> None:
    """Score a checkpoint, or several: print a table and mark the best.

    With --fail-under the checkpoint, or the best of several, has to be good enough, even if others
    could not be scored.
    """
    from ..datasets.split import Holdout
    from ..metrics.protocol import Protocol

    check_safe_csv(safe_csv, format)
    metric = check_metrics(metric, convention)
    bounds = parse_bounds(fail_under, metric, convention)
    if "" in checkpoint:  # an unset variable; as a path, it would be the current folder
        raise InvalidDataError("a checkpoint has no name; name a file or a folder")
    paths = [Path(name) for name in checkpoint]
    several = len(paths) > 1 or paths[0].is_dir()
    if several:
        from ..jobs.sweep import list_checkpoints

        paths = list_checkpoints(paths)  # refuses an empty folder before data are read
    elif monitor is not None:
        raise InvalidDataError("--monitor decides which of several checkpoints is best; found one")
    elif max_failed:
        raise InvalidDataError("--max-failed counts failures among several checkpoints; found one")
    if out is not None:
        make_folder(out)
    recording = Recording.begin(history, night, prometheus)
    if split is not None and train is None and validation is None:
        holdout = Holdout.load(split)
    elif split is None and train is not None and validation is not None:
        holdout = holdout_of(*load_parts(train, validation, loading))
    else:
        raise InvalidDataError("give either --split FOLDER, or both --train and --validation")
    among = load_candidates(candidates, loading)
    protocol = Protocol(
        metric, convention=convention, filter_seen=not allow_seen, judged_only=judged_only
    )
    if several:
        options: dict[str, Any] = {"monitor": monitor, "candidates": among}
        options |= {"progress": progress, "client": scheduler}
        table = _sweep(paths, holdout, protocol, out, format, safe_csv, recording, **options)
        n_failed = _fail_if_none_is_scored(table, paths)
        if bounds:
            file, values = _best(table, metric, convention)
            fail_if_under(bounds, values.__getitem__, file)
        if n_failed > max_failed:
            raise typer.Exit(1)
    else:
        lists = out is not None
        ev = score_model(paths[0], holdout, protocol, progress, lists, scheduler, among)
        about = _about(paths[0])
        print_evaluation(command, ev, format, out, checkpoint=about)
        name = escaped(paths[0].stem)
        recording.leave({name: ev}, name, 0, {"file": about["file"], "sha256": about["sha256"]})
        fail_if_under(bounds, ev.__getitem__, checkpoint[0])


def evaluate(
    command: typer.Context,
    lists: Annotated[
        Path,
        typer.Argument(
            help="A table in Parquet or CSV, a TREC run, or a scipy .npz of positions: data = "
            "1-based rank."
        ),
    ],
    validation: Annotated[
        Path, typer.Argument(help="A table, TREC qrels, or a scipy .npz of gains.")
    ],
    *,
    columns: tables.TableColumns,
    metric: options.Metrics = [options.METRICS],
    convention: options.Rules = None,
    ties: tables.TiesOption = None,
    threshold: tables.Threshold = None,
    no_relevant: tables.NoRelevantOption = None,
    without_list: tables.WithoutListOption = None,
    allow_seen: options.AllowSeen = False,
    judged_only: options.JudgedOnly = False,
    train: Annotated[
        Path | None,
        typer.Option(
            help="Training data, for metrics that need it: a file as the validation data are."
        ),
    ] = None,
    item_groups: tables.ItemGroups = None,
    item_vectors: tables.ItemVectors = None,
    propensity: tables.Propensity = None,
    candidates: options.Candidates = None,
    per_user: Annotated[
        bool,
        typer.Option(
            "--per-user", help="Print the values of every user; as csv and json nothing else."
        ),
    ] = False,
    history: HistoryFile = None,
    night: NightName = None,
    prometheus: PrometheusFile = None,
    out: options.Out = None,
    fail_under: FailUnder = [],
    format: options.Printed = options.Format.table,
    safe_csv: options.SafeCSV = False,
) -> None:
    """Score lists against relevance: two tables, a run against qrels, or two matrices."""
    from ..evaluation.evaluate import evaluate as evaluate_lists
    from ..inputs.item_data import ItemData
    from ..inputs.kinds import Kind, kind_of
    from ..metrics import convention_named, parse_metrics
    from ..metrics.protocol import Protocol
    from . import opening

    check_safe_csv(safe_csv, format)
    rules = convention_named(convention)
    parse_metrics(metric, rules.options)  # a name may be misspelt, and files take long to read
    if threshold is not None:
        check_number("threshold", threshold, 0, open_end=True)
    kind = kind_of(lists)
    columns.check(tables=kind.is_table)
    labelled = kind is Kind.RUN or kind.is_table
    for other in (validation, train, candidates):
        if other is None:
            continue
        other_kind = kind_of(other)
        if labelled != (other_kind is Kind.QRELS or other_kind.is_table):
            raise InvalidDataError(
                f"{lists} holds {kind.value} and {other} {other_kind.value}, whose users and items "
                "cannot be matched: only one of them has ids; give files of the same kind"
            )
    order: Any = ties and ties.value
    rankings = opening.open_lists(lists, columns, order, rules.ties)
    tied = getattr(rankings, "last_positions", None) is not None
    averaged = tied and not rankings.relevant_last
    metric = _supported(metric, rules, averaged)
    bounds = parse_bounds(fail_under, metric, convention)
    if out is not None:
        make_folder(out)
    recording = Recording.begin(history, night, prometheus)
    counted_users: dict[str, Any] = {
        "no_relevant": no_relevant and no_relevant.value,
        "without_list": without_list and without_list.value,
    }
    with warnings_in_a_line():
        ev = evaluate_lists(
            rankings,
            opening.open_gains(validation, columns, threshold),
            Protocol(
                metric,
                convention=convention,
                **counted_users,
                filter_seen=not allow_seen,
                judged_only=judged_only,
            ),
            train=None if train is None else opening.open_train(train, columns),
            candidates=candidates and opening.open_train(candidates, columns, values=False),
            items=ItemData(
                groups=item_groups and opening.open_groups(item_groups, columns, kind),
                vectors=item_vectors and opening.open_vectors(item_vectors, columns, kind),
                propensity=propensity and opening.open_propensity(propensity, columns, kind),
            ),
        )
    if per_user:
        print_table(ev.per_user.reset_index(), format, safe_csv)
        if format in (options.Format.table, options.Format.markdown):
            echo()
    if not per_user or format in (options.Format.table, options.Format.markdown) or out is not None:
        print_evaluation(command, ev, format, out)  # csv and json hold one table
    name = escaped(lists.stem)
    recording.leave({name: ev}, name, 0, {"file": escaped(lists)})
    fail_if_under(bounds, ev.__getitem__, str(lists))


def check_metrics(metric: list[str], convention: str | None = None) -> list[str]:
    """Return the metrics to compute, or raise, before hours of training, if one is misspelt."""
    from ..metrics import convention_named
    from ..metrics.protocol import Protocol
    from ..models.evaluate import parse_cut_request

    metric = _supported(metric, convention_named(convention), averaged=False)
    parse_cut_request(Protocol(metric, convention=convention))
    return metric


def _supported(metric: list[str], rules: Convention, averaged: bool) -> list[str]:
    """Return the metrics given, or those of the default that the convention supports."""
    from ..metrics import parse_metrics

    if metric != [options.METRICS]:
        return metric
    metrics = [
        m
        for m in parse_metrics(metric)
        if m.name not in rules.unlike
        and (not averaged or m.definition.averages_ties(rules.arguments(m)))
    ]
    return [m.name if m.name in rules.uncut else str(m) for m in metrics]


def score_model(
    model: Any,
    holdout: Holdout,
    protocol: Protocol,
    progress: bool | None,
    lists: bool,
    scheduler: str | None = None,
    candidates: Any = None,
) -> Evaluation:
    """Recommend and score, in this process or on the workers of a Dask scheduler.

    In this process, add the popularity ranking and, with `lists`, as for an evaluation to be saved,
    keep whole lists where ranks would do, up to the largest cut-off.
    """
    from ..inputs.relevance import Relevance
    from ..models.evaluate import evaluate_request, parse_cut_request
    from ..models.inputs import training_part

    relevance = Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items)
    inputs = {} if candidates is None else {"candidates": candidates}
    request = parse_cut_request(protocol, {"train", *inputs})
    with step("recommend and score") as note, warnings_in_a_line():
        ev = evaluate_request(
            request,
            model,
            training_part(holdout),
            relevance,
            inputs,
            baselines=scheduler is None,
            keep="lists" if lists and scheduler is None else "values",
            client=scheduler,
            progress=progress,
        )
        note(counted(ev.n_users, "user"))
    return ev


def _about(checkpoint: Path) -> dict[str, JSONValue]:
    """Return what identifies a checkpoint: file, SHA-256 and hyperparameters."""
    from ..models.checkpoints import read_checkpoint

    with checkpoint.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    parameters = read_checkpoint(checkpoint).parameters
    about = {name: plain(value) for name, value in parameters.items()}
    return about | {"file": str(checkpoint), "sha256": digest}


def _sweep(
    checkpoints: list[Path],
    holdout: Holdout,
    protocol: Protocol,
    out: Path | None,
    format: options.Format,
    safe_csv: bool,
    recording: Recording,
    **options: Any,
) -> pd.DataFrame:
    """Score several checkpoints, print their table and return it."""
    import pandas as pd

    from ..jobs.sweep import sweep
    from ..jobs.sweep_table import TABLE
    from ..models.inputs import training_part

    inputs = (checkpoints, training_part(holdout), holdout.validation, protocol)
    with folder_for_evaluations(out, recording) as folder:
        with step("score") as note, warnings_in_a_line():
            try:
                table = sweep(*inputs, out=folder, save=folder is not None, **options)
            except KeyboardInterrupt:
                if out is not None and (out / TABLE).exists():
                    _print_sweep(pd.read_csv((out / TABLE).absolute()), format, safe_csv)
                raise
            note(counted(len(table), "checkpoint"))
        _print_sweep(table, format, safe_csv)
        if folder is not None and recording.wanted:
            recording.leave_sweep(table, checkpoints, folder)
    return table


def _fail_if_none_is_scored(table: pd.DataFrame, checkpoints: list[Path]) -> int:
    """Report and return the number of checkpoints that failed; end the command if all did."""
    from ..jobs.sweep_table import text_of

    n_failed = int((table["status"] == "failed").sum())
    if n_failed:
        total = counted(len(table), "checkpoint")
        echo(f"{n_failed:,} of {total} could not be scored", err=True)
        # The table of a resumed sweep has rows of other checkpoints too.
        if n_failed == table["file"].isin(list(map(text_of, checkpoints))).sum():
            raise typer.Exit(1)
    return n_failed


def _print_sweep(table: pd.DataFrame, format: options.Format, safe_csv: bool) -> None:
    """Print a sweep; for people, without provenance and parameters that all checkpoints share."""
    shown = table
    if format in (options.Format.table, options.Format.markdown):
        columns = list(table.columns)
        scores = columns[columns.index("seconds") + 1 : columns.index("sha256")]
        parameters = columns[columns.index("sparse_eval") + 1 :]
        differing = [name for name in parameters if len(table[name].dropna().unique()) > 1]
        errors = ["error"] if (table["status"] == "failed").any() else []
        shown = table[["file", "best", *scores, *differing, "seconds", *errors]].copy()
        shown["best"] = ["*" if best else "" for best in table["best"]]
        shown["seconds"] = [f"{seconds:.1f}" for seconds in table["seconds"]]
    print_table(shown.astype(object).where(shown.notna(), None), format, safe_csv)


def _best(
    table: pd.DataFrame, metric: list[str], convention: str | None
) -> tuple[str, dict[str, float]]:
    """Return the best checkpoint of a sweep, and its metrics by the names that were asked for."""
    from ..metrics import convention_named, parse_metrics

    best = table[table["best"]]
    if best.empty:
        raise InvalidDataError("no checkpoint is the best: --monitor is defined for none of them")
    names = map(str, parse_metrics(metric, convention_named(convention).options))
    first = list(table.columns).index("seconds") + 1  # candidates may be part of their names
    return str(best["file"].iloc[0]), dict(zip(names, best.iloc[0, first:], strict=False))
