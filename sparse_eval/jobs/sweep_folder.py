"""The evaluations that a sweep saves: a folder for each checkpoint, named after its file."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.formatting import escaped
from ..errors import InvalidFileError
from ..results.saving import (
    PER_USER,
    SUMMARY,
    check_beside,
    copy_saved,
    read_summary,
    remove_saved,
    save,
)
from .csv_log import check_origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..core.types import JSONValue, PathLike
    from ..results.saving import Savable
    from .csv_log import Row


class Scored(NamedTuple):
    """The row of a checkpoint, its evaluation if that is to be saved, and its hyperparameters.

    `lacks_ids` is True if the checkpoint has no ids and the data have ids.
    """

    row: Row
    savable: Savable | None = None
    parameters: dict[str, JSONValue] | None = None
    lacks_ids: bool = False


class SavedCheckpoint(NamedTuple):
    """What a saved evaluation remembers of its checkpoint."""

    file: str
    sha256: str
    about: dict[str, Any]


class EvaluationFolder:
    """The folder in which a sweep saves the evaluation of each checkpoint.

    An evaluation is complete when its ``summary.json`` is there, which is moved to its place last.
    Its `about` has the ``checkpoint``, hyperparameters, file and SHA-256, and of which ``sweep``
    it is: digests of the data, and the settings.

    Parameters
    ----------
    path : Path
        A folder that exists.
    origin : dict
        What all evaluations of the sweep are computed from.

    Raises
    ------
    InvalidFileError
        If the folder has evaluations of another sweep. They are left as they are.
    """

    def __init__(self, path: Path, origin: Row) -> None:
        self.path = path
        self._origin = dict(origin)
        self._held: dict[str, SavedCheckpoint] = {}
        for name, held in _read(self.path):
            self._held[name] = held
            check_origin(
                self.path / name / SUMMARY,
                dict.fromkeys((*origin, "candidates"), "none") | held.about["sweep"],
                {"candidates": "none"} | origin,
                "was saved by a sweep with other inputs",
                "choose another folder for this sweep, or delete that one",
            )

    def has(self, sha256: str) -> bool:
        """Return whether there is an evaluation of a checkpoint of that content."""
        return any(held.sha256 == sha256 for held in self._held.values())

    def keep(self, path: Path, sha256: str, scored: Scored, files: Sequence[Path]) -> bool:
        """Save the evaluation of a checkpoint: a new one, or that of another file like it.

        `files` are all checkpoints of the sweep. False if there was one like it, which meanwhile
        has been replaced.
        """
        name = self._name(path, sha256, files)
        target, held = self.path / name, self._held.get(name)
        file = path_of(path)
        if scored.savable is None and held is not None and held[:2] == (file, sha256):
            return True
        alike = next((key for key, one in self._held.items() if one.sha256 == sha256), None)
        if scored.savable is None and alike is None:
            return False
        parameters = scored.parameters
        if parameters is None and alike is not None:
            parameters = self._held[alike].about["checkpoint"]
        about = {
            "checkpoint": {**(parameters or {}), "file": file, "sha256": sha256},
            "sweep": self._origin,
        }
        if target.exists() and (held is None or held.sha256 != sha256):
            remove_saved(target, unfinished=held is not None)
        if scored.savable is not None:
            save(target, scored.savable, "csv", about)
        elif alike is not None:
            copy_saved(self.path / alike, target, about)
        self._held[name] = SavedCheckpoint(file, sha256, about)
        return True

    def drop(self, path: Path) -> None:
        """Remove the evaluation of a checkpoint that can no longer be scored."""
        for name, held in list(self._held.items()):
            if held.file == path_of(path):
                remove_saved(self.path / name)
                with suppress(OSError):  # there are other files
                    (self.path / name).rmdir()
                del self._held[name]

    def _name(self, path: Path, sha256: str, files: Sequence[Path]) -> str:
        """Return the name of a checkpoint's folder: that which it has, or the first one free."""
        listed = set(map(path_of, files))
        for name in _names(path):
            held = self._held.get(name)
            if held is None:
                if _is_free(self.path / name):
                    return name
                continue
            moved = held.sha256 == sha256 and held.file not in listed
            if moved or held.file == path_of(path):
                return name
        raise AssertionError  # names do not end


def saved_evaluations(folder: Path) -> dict[str, Path]:
    """Return the evaluations that a sweep has saved, by the absolute path of the checkpoint."""
    return {held.file: folder / name for name, held in _read(folder) if held.sha256}


def path_of(file: PathLike) -> str:
    """Return the absolute path of a checkpoint as JSON can hold it."""
    return escaped(Path(file).absolute())


def _read(folder: Path) -> Iterator[tuple[str, SavedCheckpoint]]:
    """Yield the evaluations that sweeps have saved in a folder, by the name of their own.

    One that lacks a file, or has another in its place, is of no content, and is scored again.
    """
    for summary in sorted(folder.glob(f"*/{SUMMARY}")):
        try:
            content = read_summary(summary.parent)
        except InvalidFileError:  # of something else, and left as it is
            continue
        about = content["about"]
        if "sweep" not in about or "checkpoint" not in about:
            continue
        sha256 = about["checkpoint"]["sha256"]
        try:
            check_beside(summary.parent, content)
        except InvalidFileError:
            sha256 = ""
        yield summary.parent.name, SavedCheckpoint(about["checkpoint"]["file"], sha256, about)


def _names(path: Path) -> Iterator[str]:
    """Yield names for a folder without end: ``als``, ``models-als``, ``nightly-models-als``."""
    name = path.stem
    yield name
    for parent in path.absolute().parents:
        if parent.name:
            name = f"{parent.name}-{name}"
            yield name
    yield from (f"{name}-{number}" for number in count(2))


def _is_free(folder: Path) -> bool:
    """Return whether nothing is there, or only what a save left that was killed."""
    if not folder.exists():
        return True
    parts = ("totals", PER_USER, ".totals", f".{PER_USER}", f".{Path(SUMMARY).stem}")
    return folder.is_dir() and all(file.name.startswith(parts) for file in folder.iterdir())
