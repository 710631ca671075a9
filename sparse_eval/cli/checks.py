"""Checks of what commands are given, before they read data for minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


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
