"""Load interactions for commands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InvalidDataError, shown
from .options import Rare, option
from .printing import step, warnings_in_a_line

if TYPE_CHECKING:
    from ..core.types import CSRMatrix
    from ..datasets import Interactions
    from ..datasets.split import Holdout

_BY_NAME = "recognized by its name"


@dataclass(frozen=True)
class Loading:
    r"""How interactions are read.

    Parameters
    ----------
    format
        adjacency, csv, mind, movielens, npz or parquet. [guessed]
    user
        CSV and Parquet: column of users. [recognized by its name]
    item
        CSV and Parquet: column of items. [recognized by its name]
    value
        CSV and Parquet: column of values; "" for none: every event counts 1. [recognized by its
        name]
    event
        CSV and Parquet: column of types of events; needs --keep.
    keep
        A type of events to keep; repeatable.
    sep
        CSV: what separates fields; "\t" is a tab. [guessed]
    encoding
        CSV and adjacency: encoding of the text. [utf-8]
    counts
        Adjacency: whether lines begin with the number of their items, not with a user. [guessed]
    header
        CSV: whether the first line names the columns.
    on_bad_lines
        Skip malformed lines, and report how many.
    history
        MIND: include the click history.
    """

    format: Rare[Annotated[str | None, option("--input-format")]] = None
    user: str | None = None
    item: str | None = None
    value: str | None = None
    event: Rare[str | None] = None
    keep: Rare[list[str] | None] = None
    sep: Rare[str | None] = None
    encoding: Rare[str | None] = None
    counts: Rare[bool | None] = None
    header: Rare[Annotated[bool, option("--header/--no-header")]] = True
    on_bad_lines: Rare[Annotated[bool, option("--skip-bad-lines")]] = False
    history: Rare[Annotated[bool, option("--click-history/--no-history")]] = True

    def options(self, path: Path, timestamp: str | None) -> dict[str, Any]:
        """Return the options that differ from the defaults; a loader raises for those it lacks."""
        from ..datasets import guess_format

        if timestamp == "" and (self.format or guess_format(path)) not in ("csv", "parquet"):
            timestamp = None  # there is no column to leave out
        given = asdict(self) | {"timestamp": timestamp}
        del given["format"]
        options = {name: v for name, v in given.items() if v != getattr(Loading, name, None)}
        for name in ("user", "item", "value", "timestamp", "event"):
            column = options.get(name)
            if column and not self.header:
                if not column.isdecimal():
                    raise InvalidDataError(
                        f"--{name} is {column!r}; with --no-header expected the number of a "
                        "column, from 0"
                    )
                options[name] = int(column)
            elif column == "":
                options[name] = None
        if self.sep is not None:
            options["sep"] = self.sep.replace(r"\t", "\t")
        if self.on_bad_lines:
            options["on_bad_lines"] = "skip"
        return options

    def matrix(self, path: Path) -> CSRMatrix:
        """Read a matrix of interactions."""
        return load(path, self).matrix()

    def parts(
        self, train: Path, held_out: Path, timestamp: str | None = ""
    ) -> tuple[Interactions, Interactions]:
        """Read both parts of a ready-made split, with common users and items."""
        from .. import datasets

        options = self.options(train, timestamp)
        with step(f"read {shown(train)} and {shown(held_out)}") as note, warnings_in_a_line():
            a, b = datasets.load_parts(train, held_out, format=self.format, **options)
            note(f"{len(a):,} to train on, {len(b):,} held out")
            for remark in dict.fromkeys([*a.notes, *b.notes]):
                note(remark)
        return a, b

    def holdout(self, train: Path, held_out: Path, timestamp: str | None = "") -> Holdout:
        """Read a ready-made split."""
        return holdout_of(*self.parts(train, held_out, timestamp))


def holdout_of(train: Interactions, held_out: Interactions) -> Holdout:
    """Return the split with the given parts."""
    from ..datasets.split import Holdout

    return Holdout(train.matrix(), held_out.matrix(), train.users, train.items)


@dataclass(frozen=True)
class Filtering:
    """Which interactions are kept before they are split.

    Parameters
    ----------
    min_value
        Leave out events of a smaller value.
    min_user_interactions
        Leave out users with fewer distinct items; repeated with the next option until all that are
        left have enough (a k-core).
    min_item_interactions
        Leave out items with fewer distinct users.
    """

    min_value: Rare[float | None] = None
    min_user_interactions: Rare[int | None] = None
    min_item_interactions: Rare[int | None] = None

    def given(self) -> dict[str, Any]:
        """Return the conditions by name."""
        return {name: least for name, least in asdict(self).items() if least is not None}

    def refuse(self) -> None:
        """Raise if options to leave interactions out are given for a ready-made split."""
        for name in self.given():
            raise InvalidDataError(
                f"--{name.replace('_', '-')} applies before interactions are split, but the input "
                "is a split already; split again with it"
            )


def load(
    path: Path, loading: Loading, filtering: Filtering | None = None, timestamp: str | None = ""
) -> Interactions:
    """Read interactions, by default without times, and keep those that are wanted."""
    from .. import datasets

    options = loading.options(path, timestamp)
    with step(f"read {shown(path)}") as note, warnings_in_a_line():
        interactions = datasets.load(path, format=loading.format, **options)
        if filtering is not None and filtering.given():
            interactions = interactions.filter(**filtering.given())
        note(repr(interactions))
    return interactions


def is_split(path: Path) -> bool:
    """Return whether a path is a folder that `split` wrote."""
    return path.is_dir() and (path / "train.npz").exists()


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
