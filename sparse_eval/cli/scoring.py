"""Commands that use existing models and lists: score, evaluate, recommend."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.files import make_folder, make_folder_of, replacing
from ..core.formatting import escaped, plain, records
from ..core.hashing import digest_file
from ..core.parquet import write_parquet
from ..errors import InvalidDataError, shown
from ..metrics.request import NoRelevant, WithoutList
from .loading import Loading, check_inputs_are_kept, is_split
from .measuring import Candidates, Measuring, score_model
from .nightly import Gate, GateOfSeveral, Records, fail_if_under, parse_bounds
from .opening import Items, Tables
from .options import Evaluating, Output, Progress, Rare, option
from .printing import Printing, counted, step, warnings_in_a_line
from .terminal import echo, leaves, note

if TYPE_CHECKING:
    import pandas as pd

    from ..datasets.split import Holdout
    from ..inputs.axes import Axis


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

    split: Path | None = None
    train: Path | None = None
    validation: Path | None = None

    def holdout(self, loading: Loading) -> Holdout:
        """Read the data."""
        from ..datasets.split import Holdout

        if self.split is not None and self.train is None and self.validation is None:
            return Holdout.load(self.split)
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
    records: Records,
    out: Output[Path | None] = None,
    gate: GateOfSeveral,
    printing: Printing,
) -> None:
    """Score a checkpoint, or several: print a table and mark the best.

    Example: sparse-eval score models --split split --out results

    With --fail-under the checkpoint, or the best of several, has to be good enough, even if others
    could not be scored.

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
        Folder for summary.json and per_user.csv; of several models, for a folder each and
        table.csv, from which an interrupted command resumes. Created if missing.
    """
    import pandas as pd

    from ..jobs.ledger import TABLE
    from ..jobs.sweep import list_checkpoints, sweep
    from ..models.checkpoints import read_checkpoint

    protocol = measuring.of_models()
    bounds = parse_bounds(gate.fail_under, protocol.metrics, measuring.convention)
    paths = list_checkpoints(checkpoint)  # raises for an empty folder before data are read
    several = paths != [Path(checkpoint[0])]
    if several and execution.memory is not None:
        raise InvalidDataError("--memory is for one checkpoint; score them one by one")
    if out is not None:
        make_folder(out)
    holdout = parts.holdout(loading)
    among = loading.matrix(candidates)
    if not several:
        ev = score_model(
            paths[0], holdout, protocol, execution,
            lists=out is not None, scheduler=client, candidates=among,
        )  # fmt: skip
        about: dict[str, Any] = {"file": str(paths[0]), "sha256": digest_file(paths[0])}
        parameters = read_checkpoint(paths[0]).parameters
        found = {name: plain(value) for name, value in parameters.items()}
        printing.evaluation(ev, out, checkpoint=found | about)
        records.leave({escaped(paths[0].stem): ev}, escaped(paths[0].stem), about)
        fail_if_under(bounds, ev.__getitem__, checkpoint[0])
        return

    def left() -> str | None:
        if out is None:
            return "no results are saved; with --out FOLDER, a command can be continued"
        if (out / TABLE).exists():
            return f"results so far are in {out / TABLE}; repeat the command to continue"
        return None

    leaves(left)
    with records.folder(out) as folder:
        with step("score") as done, warnings_in_a_line():
            try:
                table = sweep(
                    paths, holdout, protocol, out=folder, save=folder is not None,
                    monitor=monitor, candidates=among, client=client, progress=execution.bars,
                )  # fmt: skip
            except KeyboardInterrupt:
                if out is not None and (out / TABLE).exists():
                    _print_sweep(pd.read_csv((out / TABLE).absolute()), printing)
                raise
            done(counted(len(table), "checkpoint"))
        _print_sweep(table, printing)
        best = next(iter(table.loc[table["best"], "file"]), None)
        if folder is not None and records.wanted:
            records.leave_sweep(folder, paths, best)
    n_failed = int((table["status"] == "failed").sum())
    if n_failed:
        echo(f"{n_failed:,} of {counted(len(table), 'checkpoint')} could not be scored", err=True)
    if n_failed == len(paths):  # the table of a resumed sweep may have rows of others
        raise typer.Exit(1)
    if bounds and best is None:
        raise InvalidDataError("no checkpoint is the best: --monitor is defined for none of them")
    if bounds:
        first = list(table.columns).index("seconds") + 1  # candidates may be part of their names
        values = table[table["best"]].iloc[0, first:]
        names = map(str, protocol.metrics)
        fail_if_under(bounds, dict(zip(names, values, strict=False)).__getitem__, str(best))
    if n_failed > gate.max_failed:
        raise typer.Exit(1)


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
    per_user: bool = False,
    execution: Evaluating,
    records: Records,
    out: Output[Path | None] = None,
    gate: Gate,
    printing: Printing,
) -> None:
    """Score lists against relevance: two tables, a run against qrels, or two matrices.

    Example: sparse-eval evaluate lists.parquet clicks.parquet --metric ndcg@10

    Parameters
    ----------
    lists
        A table in Parquet or CSV, a TREC run, or a scipy .npz of positions: data = 1-based rank.
    validation
        A table, TREC qrels, or a scipy .npz of gains.
    no_relevant
        Users without relevant items: leave them out of every mean, count them 0, or count them 0 if
        they have judged zeros. [as the convention does]
    without_list
        Users with relevant items and no list: leave them out of every mean, or count them 0, as
        trec_eval's -c does. [as the convention does]
    train
        Training data, for metrics that need it: a file of the same kind as the validation data.
    per_user
        Print the values of every user; as csv and json nothing else.
    out
        Folder for summary.json and per_user.csv; created if missing.
    """
    from ..evaluation.evaluate import evaluate as evaluate_lists
    from ..metrics import convention_named

    measuring.protocol()  # raises before files are read, which takes long
    rankings = tables.lists(lists, convention_named(measuring.convention).ties)
    tied = getattr(rankings, "last_positions", None) is not None
    protocol = measuring.protocol(
        averaged=tied and not rankings.relevant_last,
        no_relevant=no_relevant,
        without_list=without_list,
    )
    bounds = parse_bounds(gate.fail_under, protocol.metrics, measuring.convention)
    if out is not None:
        make_folder(out)
    with warnings_in_a_line():
        ev = evaluate_lists(
            rankings,
            tables.gains(validation),
            protocol,
            train=tables.train(train),
            candidates=tables.train(candidates, values=False),
            items=items.open(tables, lists),
            memory=execution.memory,
            progress=execution.bars,
        )
    if per_user:
        printing.table(ev.per_user.reset_index())
        if printing.for_people:
            echo()
    if not per_user or printing.for_people or out is not None:
        printing.evaluation(ev, out)  # csv and json hold one table
    records.leave({escaped(lists.stem): ev}, escaped(lists.stem), {"file": escaped(lists)})
    fail_if_under(bounds, ev.__getitem__, str(lists))


def recommend(
    checkpoint: Path,
    seen: Path,
    *,
    loading: Loading,
    k: Annotated[int, option("--k", "-k")] = 10,
    users: list[str] | None = None,
    candidates: Candidates = None,
    allow_seen: bool = False,
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
    allow_seen
        What users have seen may be recommended again.
    out
        A file for the table: .csv, .parquet or .jsonl (JSON lines).
    """
    from ..datasets.split import Holdout
    from ..models.retrieving import recommend as recommend_items

    if out is not None:
        if out.suffix not in (".csv", ".parquet", ".jsonl"):
            raise InvalidDataError(f"--out is {str(out)!r}; expected .csv, .parquet or .jsonl")
        check_inputs_are_kept([checkpoint, seen, candidates], [out])
        make_folder_of(out)
    train: Any  # a matrix that knows its users and items, or a split by users
    if is_split(seen):
        holdout = Holdout.load(seen)
        train = holdout.train if holdout.fold_in is None else holdout
    else:
        train = loading.matrix(seen)
    labels = getattr(train, "users", None)
    words = [word for words in users or [] for word in words.split(",")]
    with step("recommend") as done, warnings_in_a_line():
        table = recommend_items(
            checkpoint,
            train,
            k,
            users=_ids(words, labels) if words else None,
            candidates=loading.matrix(candidates),
            filter_seen=not allow_seen,
            progress=execution.bars,
        )
        done(counted(table["user"].nunique(), "user"))
    if out is None:
        printing.table(table)
        return
    with replacing(out) as temporary:
        if out.suffix == ".parquet":
            write_parquet(table, temporary, index=False)
        elif out.suffix == ".csv":
            temporary.write_text(printing.csv(table), encoding="utf-8", newline="")
        else:
            table.to_json(temporary, orient="records", lines=True, force_ascii=False)
    note(f"left in {shown(out)}: {counted(len(table), 'row')}")


def _print_sweep(table: pd.DataFrame, printing: Printing) -> None:
    """Print a sweep; for people, without provenance and parameters that all checkpoints share.

    As JSON, each checkpoint has its metrics like a single one.
    """
    columns = list(table.columns)
    scores = columns[columns.index("seconds") + 1 : columns.index("sha256")]
    shown, rows = table, records(table.drop(columns=scores))
    for row, values in zip(rows, records(table[scores]), strict=True):
        row["metrics"] = {name: {"mean": value} for name, value in values.items()}
    if printing.for_people:
        parameters = columns[columns.index("sparse_eval") + 1 :]
        differing = [name for name in parameters if len(table[name].dropna().unique()) > 1]
        errors = ["error"] if (table["status"] == "failed").any() else []
        shown = table[["file", "best", *scores, *differing, "seconds", *errors]].copy()
        shown["best"] = ["*" if best else "" for best in table["best"]]
        shown["seconds"] = [f"{seconds:.1f}" for seconds in table["seconds"]]
    printing.table(shown.astype(object).where(shown.notna(), None), rows)


def _ids(words: list[str], labels: Axis | None) -> list[Any]:
    """Return ids as the data have them: as numbers if all of those are whole numbers."""
    if labels is None or labels.dtype.kind not in "iu":
        return words
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise InvalidDataError(f"--users: the ids are whole numbers; {error}") from None
