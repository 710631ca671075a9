"""Reading and dividing what the commands are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError, InvalidFileError
from .options import Method
from .printing import step, warnings_in_a_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..datasets import Interactions
    from ..datasets.split import Holdout

__all__ = [
    "describe",
    "holdout_of",
    "is_matrix",
    "is_split",
    "load",
    "load_parts",
    "load_split",
    "loader_options",
    "read_matrix",
    "split_by",
]


def loader_options(
    user: str | None,
    item: str | None,
    value: str | None,
    timestamp: str | None,
    header: bool,
    skip_bad_lines: bool,
    history: bool,
) -> dict[str, Any]:
    """Collect what was given; a loader that has no such option says so itself."""
    columns = {"user": user, "item": item, "value": value, "timestamp": timestamp}
    options: dict[str, Any] = {name: column for name, column in columns.items() if column}
    if not header:
        options = {name: _column_number(name, column) for name, column in options.items()}
        options["header"] = False
    if skip_bad_lines:
        options["on_bad_lines"] = "skip"
    if not history:
        options["history"] = False
    return options


def _column_number(name: str, column: str) -> int:
    if not column.isdecimal():
        raise InvalidDataError(
            f"--{name} is {column!r}; with --no-header expected the number of a column, from 0"
        )
    return int(column)


def load(path: Path, input_format: str | None, options: dict[str, Any]) -> Interactions:
    """Read interactions, and say so."""
    from .. import datasets

    with step(f"read {path}") as note, warnings_in_a_line():
        interactions = datasets.load(path, input_format, **options)
        note(repr(interactions))
    return interactions


def is_matrix(path: Path) -> bool:
    """Say whether it is a file of a scipy matrix."""
    return path.suffix == ".npz"


def read_matrix(path: Path, make: Callable[[Any], Any]) -> Any:
    """Make something of a matrix in a file; what is wrong with the matrix is put to the file."""
    from ..datasets.npz import read_sparse

    try:
        return make(read_sparse(path))
    except InvalidDataError as error:
        raise InvalidFileError(str(error), path) from None


def is_split(path: Path) -> bool:
    """Say whether it is a folder that `split` wrote."""
    return path.is_dir() and (path / "train.npz").exists()


def load_split(
    train: Path, validation: Path, input_format: str | None, options: dict[str, Any]
) -> Holdout:
    """Read both parts of a ready-made split."""
    return holdout_of(*load_parts(train, validation, input_format, options))


def load_parts(
    train: Path, held: Path, input_format: str | None, options: dict[str, Any]
) -> tuple[Interactions, ...]:
    """Read both parts of a ready-made split as interactions, of common users and items."""
    from .. import datasets

    with step(f"read {train} and {held}") as note, warnings_in_a_line():
        parts = datasets.load_parts(train, held, format=input_format, **options)
        note(f"{len(parts[0]):,} to train on, {len(parts[1]):,} held out")
    return parts


def holdout_of(train: Interactions, held: Interactions) -> Holdout:
    """Make a split of its parts."""
    from ..datasets.split import Holdout

    return Holdout(train.matrix(), held.matrix(), train.users, train.items)


def split_by(
    interactions: Any,
    method: Method | None,
    fraction: float | None,
    n: int | None,
    seed: int,
    purpose: str = "split",
) -> Holdout:
    """Divide interactions as the options say, and say so; refuse options without a meaning."""
    from ..datasets import split

    method = method or Method.random
    by_share = method in (Method.random, Method.temporal)
    if (n if by_share else fraction) is not None:
        given, wanted = ("--n", "--fraction") if by_share else ("--fraction", "--n")
        raise InvalidDataError(f"{given} has no meaning for --method {method.value}; see {wanted}")
    share = 0.2 if fraction is None else fraction
    held = 1 if n is None else n
    with step(f"{purpose} ({method.value})") as note:
        if method is Method.random:
            holdout = split.random(interactions, fraction=share, seed=seed)
        elif method is Method.leave_k_out:
            holdout = split.leave_k_out(interactions, k=held, seed=seed)
        elif method is Method.last_n:
            holdout = split.last_n(interactions, n=held)
        else:
            holdout = split.temporal(interactions, fraction=share)
        if holdout.validation.nnz == 0:
            raise InvalidDataError(
                f"nothing is held out: too few distinct items for --method {method.value} with "
                "these options"
            )
        note(describe(holdout))
    return holdout


def describe(holdout: Holdout) -> str:
    """Say how many distinct pairs either part has, and how many of them were only shown."""

    def count(matrix: Any) -> str:
        shown = matrix.nnz - int((matrix.data != 0).sum())
        return f"{matrix.nnz:,} pairs" + (f" ({shown:,} shown, not clicked)" if shown else "")

    return f"{count(holdout.train)} to train on, {count(holdout.validation)} held out"
