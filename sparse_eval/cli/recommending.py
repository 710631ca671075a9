"""The command recommend: what a model gives each user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.files import make_folder_of, replacing
from ..core.parquet import write_parquet
from ..errors import InvalidDataError, shown
from . import options
from .csv_text import check_safe_csv, csv_text
from .echo import echo
from .loading import check_inputs_are_kept, is_split, load, load_candidates
from .printing import counted, print_table, step, warnings_in_a_line

if TYPE_CHECKING:
    from ..inputs.axes import Axis


def recommend(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            help="A model saved by implicit, an item-item matrix (.npz, .npy), or scores of users "
            "× items (.npy)."
        ),
    ],
    seen: Annotated[
        Path, typer.Argument(help="What users have seen: a folder that `split` wrote, or events.")
    ],
    *,
    loading: options.Loading,
    k: Annotated[int, typer.Option("--k", "-k", help="Items for each user.")] = 10,
    users: Annotated[
        list[str],
        typer.Option(help="Ids of users, separated by commas; repeatable.", show_default="all"),
    ] = [],
    candidates: options.Candidates = None,
    allow_seen: options.AllowSeen = False,
    progress: options.Progress = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A file for the table: .csv, .parquet or .jsonl (JSON lines)."),
    ] = None,
    format: options.Printed = options.Format.table,
    safe_csv: options.SafeCSV = False,
) -> None:
    """Recommend users the items that a model ranks first, without those they have seen."""
    from ..datasets.split import Holdout
    from ..models.retrieving import recommend as recommend_items

    if k < 1:  # `k` is another option of other commands
        raise InvalidDataError(f"-k: expected a whole number of at least 1, found {k}")
    check_safe_csv(safe_csv, format, out)
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
        train = load(seen, loading, options.Filtering()).matrix()
    labels = getattr(train, "users", None)
    words = [word for words in users for word in words.split(",")]
    with step("recommend") as note, warnings_in_a_line():
        table = recommend_items(
            checkpoint,
            train,
            k,
            users=_ids(words, labels) if words else None,
            candidates=load_candidates(candidates, loading),
            filter_seen=not allow_seen,
            progress=progress,
        )
        note(counted(table["user"].nunique(), "user"))
    if out is None:
        print_table(table, format, safe_csv)
        return
    with replacing(out) as temporary:
        if out.suffix == ".parquet":
            write_parquet(table, temporary, index=False)
        elif out.suffix == ".csv":
            temporary.write_text(csv_text(table, safe_csv), encoding="utf-8", newline="")
        else:
            table.to_json(temporary, orient="records", lines=True, force_ascii=False)
    echo(f"left in {shown(out)}: {counted(len(table), 'row')}", err=True)


def _ids(words: list[str], labels: Axis | None) -> list[Any]:
    """Return ids as the data have them: as numbers if all of those are whole numbers."""
    if labels is None or labels.dtype.kind not in "iu":
        return words
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise InvalidDataError(f"--users: the ids are whole numbers; {error}") from None
