"""Load interactions for commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidDataError, shown
from .options import Filtering, Loading, Splitting
from .printing import step, warnings_in_a_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ..core.types import CSRMatrix
    from ..datasets import Interactions
    from ..datasets.split import Holdout


def load(
    path: Path, loading: Loading, filtering: Filtering, timestamp: str | None = ""
) -> Interactions:
    """Read interactions, by default without times, and keep those that are wanted."""
    from .. import datasets

    options = _loader_options(path, loading, timestamp)
    conditions = {name: least for name, least in filtering._asdict().items() if least is not None}
    with step(f"read {shown(path)}") as note, warnings_in_a_line():
        interactions = datasets.load(path, format=loading.input_format, **options)
        if conditions:
            interactions = interactions.filter(**conditions)
        note(repr(interactions))
    return interactions


def load_candidates(path: Path | None, loading: Loading) -> CSRMatrix | None:
    """Read what each user can be recommended, as interactions are read."""
    return None if path is None else load(path, loading, Filtering()).matrix()


def load_parts(
    train: Path, held_out: Path, loading: Loading, timestamp: str | None = ""
) -> tuple[Interactions, Interactions]:
    """Read both parts of a ready-made split, with common users and items."""
    from .. import datasets

    options = _loader_options(train, loading, timestamp)
    with step(f"read {shown(train)} and {shown(held_out)}") as note, warnings_in_a_line():
        a, b = datasets.load_parts(train, held_out, format=loading.input_format, **options)
        note(f"{len(a):,} to train on, {len(b):,} held out")
        for remark in dict.fromkeys([*a.notes, *b.notes]):
            note(remark)
    return a, b


def times_for(splitting: Splitting) -> str | None:
    """Return the column of times that a split needs: "" for none, None for one told by its name."""
    if splitting.timestamp is None and not splitting.by_time:
        return ""
    return splitting.timestamp


def refuse_filters(filtering: Filtering) -> None:
    """Raise if options to leave interactions out are given for what is a split already."""
    for name, least in filtering._asdict().items():
        if least is not None:
            raise InvalidDataError(
                f"--{name.replace('_', '-')} applies before interactions are split, but the input "
                "is a split already; split again with it"
            )


def _loader_options(path: Path, loading: Loading, timestamp: str | None) -> dict[str, object]:
    """Return the options that differ from the defaults; a loader refuses those it does not have."""
    from ..datasets import guess_format

    if timestamp == "" and (loading.input_format or guess_format(path)) not in ("csv", "parquet"):
        timestamp = None  # there is no column to leave out
    given = loading._asdict() | {"timestamp": timestamp}
    options: dict[str, object] = {}
    for name in ("user", "item", "value", "timestamp", "event"):
        column = given[name]
        if column and not loading.header and not column.isdecimal():
            raise InvalidDataError(
                f"--{name} is {column!r}; with --no-header expected the number of a column, from 0"
            )
        if column is not None:
            options[name] = (column if loading.header else int(column)) if column else None
    for name in ("keep", "sep", "encoding", "counts"):
        if given[name] not in (None, []):
            options[name] = given[name]
    if loading.sep is not None:
        options["sep"] = loading.sep.replace(r"\t", "\t")
    if not loading.header:
        options["header"] = False
    if loading.skip_bad_lines:
        options["on_bad_lines"] = "skip"
    if not loading.click_history:
        options["history"] = False
    return options


def is_split(path: Path) -> bool:
    """Return whether a path is a folder that `split` wrote."""
    return path.is_dir() and (path / "train.npz").exists()


def holdout_of(train: Interactions, held_out: Interactions) -> Holdout:
    """Return the split with the given parts."""
    from ..datasets.split import Holdout

    return Holdout(train.matrix(), held_out.matrix(), train.users, train.items)


def check_inputs_are_kept(inputs: Iterable[Path | None], outputs: Iterable[Path]) -> None:
    """Raise `InvalidDataError` if a command would write over what it reads.

    A folder that is read stands for the parts of a split in it.
    """
    given = [path for path in inputs if path is not None and path.exists()]
    files = [file for path in given for file in (files_of_split(path) if path.is_dir() else [path])]
    for output in outputs:
        if output.exists() and any(file.exists() and output.samefile(file) for file in files):
            raise InvalidDataError(
                f"{output} is read, and would be replaced; name another place with --out"
            )


def files_of_split(folder: Path) -> list[Path]:
    """Return the files that a split may be saved in."""
    from ..datasets.split.holdout import PARTS

    return [folder / f"{name}.npz" for name in (*PARTS, "labels")]
