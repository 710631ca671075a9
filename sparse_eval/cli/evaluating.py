"""Options of metrics, and the commands that score: score, evaluate, recommend."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import typer

from ..core.atomic_files import make_folder, make_folder_of, replacing
from ..core.formatting import escaped, plain, records
from ..core.hashing import digest_file
from ..errors import InvalidDataError, InvalidFileError, shown
from ..metrics.request import NoRelevant, WithoutList
from ..results.intervals import Interval
from ..results.saving import SUMMARY, read_summary
from .loading import Items, Loading, Tables, check_inputs_are_kept, is_split
from .options import (
    AllowSeen,
    Evaluating,
    Metrics,
    Output,
    Printing,
    Progress,
    Rare,
    ResultFolder,
    Row,
    counted,
    csv_text,
    option,
    path,
    step,
    typed,
)
from .prometheus import Gauges
from .terminal import echo, note, tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from ..datasets.split import Holdout
    from ..evaluation.execution import Keep
    from ..inputs.axes import Axis
    from ..metrics.request import Protocol
    from ..results import Evaluation


@dataclass(frozen=True)
class Measuring:
    """The metrics and their rules.

    Parameters
    ----------
    metrics
        Metrics; repeatable. [the usual ones at 5, 10 and 20]
    convention
        Count as another library, as trec_eval.
    judged_only
        Leave items that the validation data do not store, as gain or zero, out of the lists.
    """

    #: The metrics if none are named.
    usual: ClassVar[str] = (
        "ndcg@{5,10,20},precision@{5,10,20},recall@{5,10,20},hit_rate@{5,10,20},map@{5,10,20},"
        "mrr@20"
    )

    metrics: Metrics = None
    convention: str | None = None
    allow_seen: Rare[AllowSeen] = False
    judged_only: Rare[bool] = False

    def protocol(self, *, averaged: bool = False, **rules: Any) -> Protocol:
        """Return the metrics with their rules, or raise if one is misspelt.

        Without names, these are the usual metrics that the convention supports, and with `averaged`
        of these the metrics that are averaged over the orders of equal scores.
        """
        from ..metrics import convention_named, parse_metrics
        from ..metrics.request import Protocol

        convention = convention_named(self.convention)
        usual = [
            m.name if m.name in convention.uncut else str(m)
            for m in parse_metrics(self.usual)
            if m.name not in convention.unlike
            and (not averaged or m.definition.formula.averages_ties(convention.arguments(m)))
        ]
        return Protocol(
            self.metrics or usual,
            convention=self.convention,
            filter_seen=not self.allow_seen,
            judged_only=self.judged_only,
            **rules,
        )

    def of_models(self) -> Protocol:
        """Return the protocol of the lists of models, or raise before hours of training."""
        from ..metrics.request import Request

        protocol = self.protocol()
        Request.parse_ranked(protocol)
        return protocol


Candidates: TypeAlias = Annotated[
    Path | None,
    option(
        help="The candidates of each user, one user and item in each row, in a file of the same "
        "kind as the training data. [all items]",
        hidden=True,
    ),
]


def score_model(
    model: Any,
    holdout: Holdout,
    protocol: Protocol,
    execution: Evaluating,
    *,
    lists: bool,
    scheduler: str | None = None,
    candidates: Any = None,
) -> Evaluation:
    """Recommend and score, in this process or on the workers of a Dask scheduler.

    In this process, also evaluate the popularity ranking. With `lists`, as for an evaluation to be
    saved, keep whole lists up to the largest cut-off, where ranks would do.
    """
    from ..datasets.split.parts import training_part
    from ..evaluation.execution import Execution
    from ..metrics.request import Request
    from ..models.evaluate_model import evaluate_request

    inputs = {} if candidates is None else {"candidates": candidates}
    keeps_lists = lists and scheduler is None and execution.memory is None
    keep: Keep = "lists" if keeps_lists else "values"
    with step("recommend and score") as note:
        ev = evaluate_request(
            Request.parse_ranked(protocol, {"train", *inputs}),
            model,
            training_part(holdout),
            holdout.validation,
            inputs,
            Execution(keep, execution.memory, scheduler, progress=execution.bars),
            baselines=scheduler is None,
        )
        note(counted(ev.n_users, "user"))
    return ev


@dataclass(frozen=True)
class Parts:
    """The data that models are scored on.

    Parameters
    ----------
    split
        A folder that `split` wrote.
    train
        Or: the training part.
    validation
        And the validation part.
    """

    split: Annotated[Path | None, option(parser=path)] = None
    train: Path | None = None
    validation: Path | None = None

    def given(self) -> Parts:
        """Return the options, without options of the environment that typed options replace."""
        by_folder, by_files = typed("split"), typed("train", "validation")
        if by_folder and not by_files:
            return Parts(self.split)
        return replace(self, split=None) if by_files and not by_folder else self

    def name(self) -> str:
        """Return the name of the split: of its folder, or of its validation part."""
        return Path(shown(self.split or self.validation or "")).absolute().name

    def holdout(self, loading: Loading, candidates: Path | None) -> Holdout:
        """Read the data; the options of loading may be for the candidates."""
        if self.split is not None and self.train is None and self.validation is None:
            return loading.saved(self.split, candidates)
        if self.split is None and self.train is not None and self.validation is not None:
            return loading.parts(self.train, self.validation)[1]
        raise InvalidDataError("give either --split FOLDER, or both --train and --validation")


def score(
    checkpoint: list[str],
    *,
    parts: Parts,
    loading: Loading,
    candidates: Candidates = None,
    measuring: Measuring,
    monitor: str | None = None,
    client: Rare[Annotated[str | None, option("--scheduler")]] = None,
    execution: Evaluating,
    gauges: Gauges,
    out: Output[Path | None] = None,
    max_failed: Annotated[int, option(min=0)] = 0,
    printing: Printing,
) -> None:
    """Score a checkpoint, or several: print a table and mark the best.

    Example: sparse-eval score models --split split --out results

    Parameters
    ----------
    checkpoint
        Models saved by implicit (.npz), item-item matrices (.npz, .npy), or scores of users × items
        (.npy); a folder stands for every .npz in it, and "models/als-*.npz" for its matches.
    monitor
        Several models: the metric that decides which is best. [the first]
    client
        Address of a Dask scheduler, such as tcp://10.0.0.1:8786, whose workers do the work; they
        need to find the checkpoints at the same paths.
    out
        Folder for summary.json and per_user.parquet; of several models, for a folder each and
        table.csv, from which an interrupted command resumes.
    max_failed
        Several models: how many may fail to be scored. The exit status is 1 if more of them, or
        all, fail.
    """
    from ..jobs.scoring import parse_monitored
    from ..jobs.sweep import list_checkpoints, saved_evaluations, sweep
    from ..models.checkpoints import read_checkpoint
    from ..results import Evaluation

    parts = parts.given()
    gauges.split = parts.name()
    protocol = measuring.of_models()
    paths = list_checkpoints(checkpoint)  # raises for an empty folder before data are read
    for named in map(Path, checkpoint):
        if named in paths and not named.exists():
            raise InvalidFileError("does not exist; correct the path, or leave it out", named)
    several = paths != [Path(checkpoint[0])]
    if several and execution.memory is not None:
        raise InvalidDataError("--memory is for one checkpoint; leave it out, or score one by one")
    if out is not None:
        make_folder(out)
    holdout = parts.holdout(loading, candidates)
    among = loading.matrix(candidates)
    if not several:
        ev = score_model(
            paths[0], holdout, protocol, execution,
            lists=out is not None, scheduler=client, candidates=among,
        )  # fmt: skip
        about: dict[str, Any] = {"file": str(paths[0]), "sha256": digest_file(paths[0])}
        parameters = read_checkpoint(paths[0]).parameters
        found = {name: plain(value) for name, value in parameters.items()}
        row = about | {"best": True, "status": "ok", "error": ""}
        data = str(parts.split or f"train {parts.train}, validation {parts.validation}")
        printing.evaluation(ev, out, row, data=data, checkpoint=found | about)
        name = escaped(paths[0].stem)
        gauges.leave({name: ev}, name)
        return

    request, monitored = parse_monitored(protocol, monitor, among=among is not None)
    with _folder(out, gauges.prometheus) as kept:
        with step("score") as done:
            table = sweep(
                paths, holdout, protocol, out=kept, save=kept is not None,
                monitor=monitor, candidates=among, client=client, progress=execution.bars,
            )  # fmt: skip
            done(counted(len(paths), "checkpoint"))
        saved = {} if kept is None else saved_evaluations(kept)
        given = table[table["file"].isin([*map(shown, paths)])]  # the folder may have others
        rows = _print_sweep(given, request.names, str(monitored), saved, printing)
        n_failed = _tell_failures(rows)
        files = {row["file"]: row["best"] for row in rows if row["file"] in saved}
        best = next((saved[file].name for file, is_best in files.items() if is_best), None)
        wanted = [saved[file] for file in files] if gauges.prometheus is not None else []
        gauges.leave({one.name: Evaluation.load(one) for one in wanted}, best, n_failed)
    if n_failed == len(rows) or n_failed > max_failed:
        raise typer.Exit(1)


@contextmanager
def _folder(out: Path | None, prometheus: Path | None) -> Iterator[Path | None]:
    """Yield the folder for the evaluations of a sweep, a temporary one if only gauges need it."""
    if out is not None or prometheus is None:
        yield out
    else:
        with TemporaryDirectory(prefix="sparse_eval_") as folder:
            yield Path(folder)


def _tell_failures(rows: Sequence[Row]) -> int:
    """Print why checkpoints could not be scored, and return their number."""
    failed = [row for row in rows if row["status"] == "failed"]
    for row in failed:
        tell(f"warning: {row['file']}: {row['error']}", model=row["file"])
    if failed:
        tell(f"{len(failed):,} of {counted(len(rows), 'checkpoint')} could not be scored", "error")
    return len(failed)


def evaluate(
    lists: Path,
    validation: Path,
    *,
    tables: Tables,
    measuring: Measuring,
    no_relevant: Rare[NoRelevant | None] = None,
    without_list: Rare[WithoutList | None] = None,
    train: Path | None = None,
    items: Items,
    candidates: Candidates = None,
    request: Rare[str | None] = None,
    weight: Rare[str | None] = None,
    average: Rare[Literal["request", "user"]] = "request",
    per_user: bool = False,
    execution: Evaluating,
    gauges: Gauges,
    out: ResultFolder = None,
    printing: Printing,
) -> None:
    """Score lists against relevance: two tables, a run against qrels, or two matrices.

    Example: sparse-eval evaluate lists.parquet clicks.parquet --metric ndcg@10

    Parameters
    ----------
    lists
        A table in Parquet or CSV, a TREC run, or a scipy .npz of positions: data = 1-based rank.
    validation
        A table, TREC qrels, a scipy .npz of gains, or a folder that `split` wrote, whose training
        part is the training data too.
    no_relevant
        Users without relevant items: leave them out of every mean, count them 0, or count them 0 if
        they have judged zeros. [as the convention does]
    without_list
        Users with relevant items and no list: leave them out of every mean, or count them 0, as
        trec_eval's -c does. [as the convention does]
    train
        Training data, for metrics that need it: a file of the same kind as the validation data.
    request
        Column of requests, such as impressions or sessions, in both tables; a user may have
        several. [one list for each user]
    weight
        Column of the requests' weights, in the validation table.
    average
        Average requests, or the means of users.
    per_user
        Print the values of every user; as csv and json nothing else.
    """
    from ..evaluation.evaluate import evaluate as evaluate_lists
    from ..metrics import convention_named

    gauges.split = Path(shown(validation)).absolute().name
    measuring.protocol()  # raises before files are read, which takes long
    if weight is not None and request is None:
        raise InvalidDataError("--weight is of requests; name their column with --request")
    keys = tables if request is None else replace(tables, user=request)
    rankings, averaged = keys.lists(lists, convention_named(measuring.convention).ties)
    protocol = measuring.protocol(
        averaged=averaged,
        no_relevant=no_relevant,
        without_list=without_list,
    )
    if out is not None:
        make_folder(out)
    ev = evaluate_lists(
        rankings,
        tables.gains(validation)
        if request is None
        else tables.requests(validation, request, weight),
        protocol,
        average=average,
        train=tables.train(train or (validation if is_split(validation) else None)),
        candidates=tables.train(candidates, values=False),
        item_data=items.open(tables, lists),
        memory=execution.memory,
        progress=execution.bars,
    )
    ev.mean()  # raises if no user counts
    if per_user:
        printing.table(ev.per_user.reset_index())
        if printing.for_people:
            echo()
    if not per_user or printing.for_people or out is not None:
        data = f"train {train}, " * bool(train) + f"validation {validation}, lists {lists}"
        printing.evaluation(ev, out, data=data)  # csv and json hold one table
    name = escaped(Path(shown(lists)).stem)
    gauges.leave({name: ev}, name)


def recommend(
    checkpoint: Path,
    seen: Path,
    *,
    loading: Loading,
    k: Annotated[int, option("--k", "-k")] = 10,
    users: list[str] | None = None,
    candidates: Candidates = None,
    allow_seen: AllowSeen = False,
    execution: Progress,
    out: Output[Path | None] = None,
    printing: Printing,
) -> None:
    """Recommend users the items that a model ranks first, without those they have seen.

    Example: sparse-eval recommend als.npz split --users 17,42 -k 20

    Parameters
    ----------
    checkpoint
        A model saved by implicit, an item-item matrix (.npz, .npy), or scores of users × items
        (.npy).
    seen
        What users have seen: a folder that `split` wrote, or events.
    k
        Items for each user.
    users
        Ids of users, separated by commas; repeatable. [all]
    out
        A file for the table: .csv, .parquet or .jsonl (JSON lines).
    """
    from ..datasets.split.parts import training_part
    from ..models.recommend import recommend as recommend_items

    if out is not None:
        if out.suffix not in (".csv", ".parquet", ".jsonl"):
            raise InvalidDataError(f"--out is {str(out)!r}; expected .csv, .parquet or .jsonl")
        check_inputs_are_kept([checkpoint, seen, candidates], [out])
        make_folder_of(out)
    train: Any  # a labelled matrix, or a split by users
    if is_split(seen):
        train = training_part(loading.saved(seen, candidates))
    else:
        train = loading.matrix(seen)
    words = [word for words in users or [] for word in words.split(",")]
    with step("recommend") as done:
        table = recommend_items(
            checkpoint,
            train,
            k,
            users=_ids(words, train.users) if words else None,
            candidates=loading.matrix(candidates),
            filter_seen=not allow_seen,
            progress=execution.bars,
        )
        done(counted(table["user"].nunique(), "user"))
    if out is None:
        printing.table(table)
        return
    _write_table(table, out, printing.safe_csv)
    note(f"left in {shown(out)}: {counted(len(table), 'row')}")


def _write_table(table: pd.DataFrame, out: Path, safe_csv: bool) -> None:
    """Write a table in the format of the file's name."""
    with replacing(out) as temporary:
        if out.suffix == ".parquet":
            temporary.write_bytes(table.to_parquet(index=False))
        elif out.suffix == ".csv":
            temporary.write_text(csv_text(table, safe_csv), encoding="utf-8", newline="")
        else:
            table.to_json(temporary, orient="records", lines=True, force_ascii=False)


def _print_sweep(
    table: pd.DataFrame,
    names: Sequence[str],
    monitored: str,
    saved: dict[str, Path],
    printing: Printing,
) -> list[Row]:
    """Print the rows of a sweep, whose evaluations may be saved, and return them for JSON.

    Each has its metrics like a single checkpoint. People see no provenance, and no parameters that
    all checkpoints share; if evaluations are saved, the baselines and the interval of the monitored
    metric too.
    """
    import pandas as pd

    # A column may be called as in "ndcg@10 (judged)".
    columns = {
        name: next(one for one in map(str, table) if one.partition(" (")[0] == name)
        for name in names
    }
    scores = [*columns.values()]
    rows: list[Row] = records(table)
    for row in rows:
        row["metrics"] = {name: {"mean": row.pop(column)} for name, column in columns.items()}
        if row["file"] in saved:
            row["metrics"] = read_summary(saved[row["file"]] / SUMMARY)["metrics"]
    if not printing.for_people:
        printing.table(table, rows)
        return rows
    provenance = ("file", "best", "status", "error", "seconds", "sha256", "sparse_eval")
    hidden = {*provenance, *scores}
    differing = [
        name for name in table if name not in hidden and len(table[name].dropna().unique()) > 1
    ]
    shown = table[["file", "best", *scores, *differing, "seconds"]].astype(object)
    shown["best"] = ["*" if row["best"] else "" for row in rows]
    shown["seconds"] = [f"{row['seconds']:.1f}" for row in rows]
    if metrics := {row["file"]: row["metrics"] for row in rows if row["file"] in saved}:
        ends = {file: one[monitored] for file, one in metrics.items()}
        intervals = {
            file: Interval(one["ci_low"], one["ci_high"], one["interval"]).text()
            for file, one in ends.items()
        }
        place = [*shown].index(columns[monitored]) + 1
        shown.insert(place, "95 % interval", shown["file"].map(intervals))
        *_, last = metrics.values()
        for baseline in ("random", "popularity"):
            means = {columns[name]: one.get(baseline) for name, one in last.items()}
            shown = pd.concat([shown, pd.DataFrame([{"file": baseline} | means], dtype=object)])
    shown = shown.astype(object)  # otherwise missing text would be NaN, and aligned as numbers
    printing.table(shown.where(shown.notna(), None))
    return rows


def _ids(words: list[str], labels: Axis | None) -> list[Any]:
    """Return ids as the data have them: as numbers if all of those are whole numbers."""
    if labels is None or labels.dtype.kind not in "iu":
        return words
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise InvalidDataError(f"--users: the ids are whole numbers; {error}") from None
