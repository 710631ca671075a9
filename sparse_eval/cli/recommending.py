"""The command recommend: what a model gives each user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..core.files import make_folder_of, replacing
from ..core.parquet import write_parquet
from ..errors import InvalidDataError, shown
from .echo import note
from .loading import Loading, check_inputs_are_kept, is_split
from .measuring import Candidates, load_candidates
from .options import Output, Progress, option
from .printing import SafePrinting, counted, step, warnings_in_a_line

if TYPE_CHECKING:
    from ..inputs.axes import Axis


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
    from ..models.recommendations import recommend as recommend_items

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
            candidates=load_candidates(candidates, loading),
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


def _ids(words: list[str], labels: Axis | None) -> list[Any]:
    """Return ids as the data have them: as numbers if all of those are whole numbers."""
    if labels is None or labels.dtype.kind not in "iu":
        return words
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise InvalidDataError(f"--users: the ids are whole numbers; {error}") from None
