"""Commands that use existing models and lists: score, evaluate, recommend."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.files import make_folder, make_folder_of, replacing
from ..core.formatting import escaped, plain
from ..core.parquet import write_parquet
from ..errors import InvalidDataError, shown
from ..metrics.request import NoRelevant, WithoutList
from .echo import echo, note
from .interrupts import leaves
from .judging import Gate, GateOfSeveral, fail_if_under, parse_bounds
from .loading import Loading, check_inputs_are_kept, is_split
from .measuring import Candidates, Measuring, score_model
from .opening import Items, Tables
from .options import Evaluating, Output, Progress, Rare, option
from .printing import SafePrinting, counted, step, warnings_in_a_line
from .recording import Recording, Records, folder_for_evaluations

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import JSONValue
    from ..datasets.split import Holdout
    from ..inputs.axes import Axis
    from ..metrics.request import Protocol


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
    printing: SafePrinting,
) -> None:
    """Score a checkpoint, or several: print a table and mark the best.

    Example: sparse-eval score models --split split --out results

    With --fail-under the checkpoint, or the best of several, has to be good enough, even if others
    could not be scored.

    Parameters
    ----------
    checkpoint
        Models saved by implicit (.npz), item-item matrices (.npz, .npy), or scores of users × items
        (.npy); a folder stands for every .npz in it.
    monitor
        Several models: the metric that decides which is best. [the first]
    client
        Address of a Dask scheduler, such as tcp://10.0.0.1:8786, whose workers do the work; they
        need to find the checkpoints at the same paths.
    out
        Folder for summary.json and per_user.csv; of several models, for a folder each and
        table.csv, from which an interrupted command resumes. Created if missing.
    """
    printing.check()
    protocol = measuring.of_models()
    bounds = parse_bounds(gate.fail_under, protocol.metrics, measuring.convention)
    if "" in checkpoint:  # an unset variable; as a path, it would be the current folder
        raise InvalidDataError("a checkpoint has no name; name a file or a folder")
    paths = [Path(name) for name in checkpoint]
    several = len(paths) > 1 or paths[0].is_dir()
    if several:
        from ..jobs.sweep import list_checkpoints

        paths = list_checkpoints(paths)  # raises for an empty folder before data are read
        if execution.memory is not None:
            raise InvalidDataError("--memory is for one checkpoint; score them one by one")
    elif monitor is not None:
        raise InvalidDataError("--monitor decides which of several checkpoints is best; found one")
    elif gate.max_failed:
        raise InvalidDataError("--max-failed counts failures among several checkpoints; found one")
    if out is not None:
        make_folder(out)
    recording = Recording.begin(records)
    holdout = parts.holdout(loading)
    among = loading.matrix(candidates)
    if several:
        options = {"monitor": monitor, "candidates": among, "client": client}
        table = _sweep(
            paths, holdout, protocol, out, printing, recording, progress=execution.bars, **options
        )
        n_failed = _fail_if_none_is_scored(table, paths)
        if bounds:
            file, values = _best(table, protocol)
            fail_if_under(bounds, values.__getitem__, file)
        if n_failed > gate.max_failed:
            raise typer.Exit(1)
    else:
        ev = score_model(
            paths[0], holdout, protocol, execution,
            lists=out is not None, scheduler=client, candidates=among,
        )  # fmt: skip
        about = _about(paths[0])
        printing.evaluation(ev, out, checkpoint=about)
        name = escaped(paths[0].stem)
        recording.leave({name: ev}, name, 0, {"file": about["file"], "sha256": about["sha256"]})
        fail_if_under(bounds, ev.__getitem__, checkpoint[0])


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
    printing: SafePrinting,
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

    printing.check()
    measuring.protocol()  # raises before files are read, which takes long
    tables.check(lists, validation, train, candidates)
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
    recording = Recording.begin(records)
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
    name = escaped(lists.stem)
    recording.leave({name: ev}, name, 0, {"file": escaped(lists)})
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
    printing: SafePrinting,
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

    printing.check(out)
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


def _about(checkpoint: Path) -> dict[str, JSONValue]:
    """Return the file, SHA-256 and hyperparameters of a checkpoint."""
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
    printing: SafePrinting,
    recording: Recording,
    **options: Any,
) -> pd.DataFrame:
    """Score several checkpoints, print their table and return it."""
    import pandas as pd

    from ..jobs.sweep import sweep
    from ..jobs.sweep_table import TABLE

    def left() -> str | None:
        if out is None:
            return "no results are saved; with --out FOLDER, a command can be continued"
        if (out / TABLE).exists():
            return f"results so far are in {out / TABLE}; repeat the command to continue"
        return None

    leaves(left)
    with folder_for_evaluations(out, recording) as folder:
        with step("score") as done, warnings_in_a_line():
            try:
                save = folder is not None
                table = sweep(checkpoints, holdout, protocol, out=folder, save=save, **options)
            except KeyboardInterrupt:
                if out is not None and (out / TABLE).exists():
                    _print_sweep(pd.read_csv((out / TABLE).absolute()), printing)
                raise
            done(counted(len(table), "checkpoint"))
        _print_sweep(table, printing)
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


def _print_sweep(table: pd.DataFrame, printing: SafePrinting) -> None:
    """Print a sweep; for people, without provenance and parameters that all checkpoints share."""
    shown = table
    if printing.for_people:
        columns = list(table.columns)
        scores = columns[columns.index("seconds") + 1 : columns.index("sha256")]
        parameters = columns[columns.index("sparse_eval") + 1 :]
        differing = [name for name in parameters if len(table[name].dropna().unique()) > 1]
        errors = ["error"] if (table["status"] == "failed").any() else []
        shown = table[["file", "best", *scores, *differing, "seconds", *errors]].copy()
        shown["best"] = ["*" if best else "" for best in table["best"]]
        shown["seconds"] = [f"{seconds:.1f}" for seconds in table["seconds"]]
    printing.table(shown.astype(object).where(shown.notna(), None))


def _best(table: pd.DataFrame, protocol: Protocol) -> tuple[str, dict[str, float]]:
    """Return the best checkpoint of a sweep, and its metrics by the names that were asked for."""
    best = table[table["best"]]
    if best.empty:
        raise InvalidDataError("no checkpoint is the best: --monitor is defined for none of them")
    names = map(str, protocol.metrics)
    first = list(table.columns).index("seconds") + 1  # candidates may be part of their names
    return str(best["file"].iloc[0]), dict(zip(names, best.iloc[0, first:], strict=False))


def _ids(words: list[str], labels: Axis | None) -> list[Any]:
    """Return ids as the data have them: as numbers if all of those are whole numbers."""
    if labels is None or labels.dtype.kind not in "iu":
        return words
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise InvalidDataError(f"--users: the ids are whole numbers; {error}") from None
