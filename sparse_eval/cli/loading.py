"""Load interactions for commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidDataError
from .options import Loading
from .printing import step, warnings_in_a_line

if TYPE_CHECKING:
    from pathlib import Path

    from ..datasets import Interactions
    from ..datasets.split import Holdout

    LoaderOptions = dict[str, str | int | bool]


def load(path: Path, loading: Loading, timestamp: str | None = None) -> Interactions:
    """Read interactions."""
    from .. import datasets

    options = _loader_options(loading, timestamp)
    with step(f"read {path}") as note, warnings_in_a_line():
        interactions = datasets.load(path, format=loading.input_format, **options)
        note(repr(interactions))
    return interactions


def load_parts(
    train: Path, held_out: Path, loading: Loading, timestamp: str | None = None
) -> tuple[Interactions, Interactions]:
    """Read both parts of a ready-made split, with common users and items."""
    from .. import datasets

    options = _loader_options(loading, timestamp)
    with step(f"read {train} and {held_out}") as note, warnings_in_a_line():
        a, b = datasets.load_parts(train, held_out, format=loading.input_format, **options)
        note(f"{len(a):,} to train on, {len(b):,} held out")
    return a, b


def _loader_options(loading: Loading, timestamp: str | None) -> LoaderOptions:
    """Return the options that differ from the defaults; a loader refuses those it does not have."""
    columns = {
        "user": loading.user,
        "item": loading.item,
        "value": loading.value,
        "timestamp": timestamp,
    }
    options: LoaderOptions = {name: column for name, column in columns.items() if column}
    if not loading.header:
        options = {name: _column_number(name, str(column)) for name, column in options.items()}
        options["header"] = False
    if loading.skip_bad_lines:
        options["on_bad_lines"] = "skip"
    if not loading.history:
        options["history"] = False
    return options


def _column_number(name: str, column: str) -> int:
    if not column.isdecimal():
        raise InvalidDataError(
            f"--{name} is {column!r}; with --no-header expected the number of a column, from 0"
        )
    return int(column)


def is_split(path: Path) -> bool:
    """Return whether a path is a folder that `split` wrote."""
    return path.is_dir() and (path / "train.npz").exists()


def holdout_of(train: Interactions, held_out: Interactions) -> Holdout:
    """Return the split with the given parts."""
    from ..datasets.split import Holdout

    return Holdout(train.matrix(), held_out.matrix(), train.users, train.items)
