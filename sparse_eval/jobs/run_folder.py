"""The folder of a cross-validation: a manifest, and a folder for the evaluation of each run.

``cross_validation.json`` holds ``settings``, all that determines the numbers: the data, models,
seeds, metrics and convention, and the versions of the libraries; ``folds``, a digest of the parts
of each and their sizes, added when it is begun; and ``finished``, whether all runs are there. The
evaluation of a run is saved by `Evaluation.save`, in a folder called ``MODEL-fold-F-seed-S``, and
its ``about`` says which run, of which fold, it is. It is complete when its ``summary.json`` is
there, which is moved to its place last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from ..core.files import read_json, write_json
from ..errors import InvalidDataError, InvalidFileError
from ..results.runs import Fold, Run
from ..results.saving import SUMMARY
from .csv_log import check_origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ..core.types import JSONValue

MANIFEST, _KEYS = "cross_validation.json", ("settings", "folds", "finished")

_FOREIGN = "is not what cross_validate wrote, and is left as it is; choose another folder"
_REMEDY = "choose another folder for this one, or delete that one"

#: Longest name of a model as part of a folder's, which file systems allow 255 bytes for.
_MAX_NAME = 180


class RunFolder:
    """The folder of a cross-validation.

    Parameters
    ----------
    path : Path
        A folder that exists.
    settings : dict
        What determines the numbers, ready for JSON.

    Raises
    ------
    InvalidFileError
        If the folder belongs to another cross-validation. It is left as it is.
    """

    def __init__(self, path: Path, settings: Mapping[str, JSONValue]) -> None:
        self._path, self._settings = path, dict(settings)
        self.folds: list[Fold] = []
        self._finished = False
        manifest = path / MANIFEST
        if manifest.exists():
            content = read_json(manifest, _KEYS, _FOREIGN)
            found = cast("dict[str, JSONValue]", content["settings"])
            if "versions" not in found:
                raise InvalidFileError(_FOREIGN, manifest)
            found = dict.fromkeys(settings) | found
            check_origin(manifest, found, settings, "is of another cross-validation", _REMEDY)
            self.folds = [Fold(**fold) for fold in cast("list[dict[str, Any]]", content["folds"])]
            self._finished = content["finished"] is True
        else:
            for summary in path.glob(f"*-fold-*/{SUMMARY}"):
                raise InvalidFileError(
                    f"is there, but no {MANIFEST} that says what it is of; it is left as it is, "
                    "choose another folder",
                    summary,
                )
            self._write()

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of a finished cross-validation."""
        manifest = path / MANIFEST
        content = read_json(manifest, _KEYS, _FOREIGN)
        if content["finished"] is not True:
            raise InvalidFileError(
                "is of a cross-validation that is not finished; call cross_validate again with "
                "the same data and this folder, and it continues",
                manifest,
            )
        return cls(path, cast("dict[str, JSONValue]", content["settings"]))

    def begin(self, number: int, fold: Fold) -> None:
        """Note a fold, or raise `InvalidFileError` if another one has its number."""
        if number <= len(self.folds):
            found = self.folds[number - 1]
            check_origin(
                self._path / MANIFEST,
                {f"fold {number} {key}": value for key, value in found._asdict().items()},
                {f"fold {number} {key}": value for key, value in fold._asdict().items()},
                "is of other data or splits",
                _REMEDY,
            )
            return
        if self._finished:
            raise self._other_folds(f"more than {len(self.folds)}")
        self.folds.append(fold)
        self._write()

    def finish(self, n_folds: int) -> None:
        """Note that all runs are there."""
        if n_folds != len(self.folds):
            raise self._other_folds(str(n_folds))
        if not self._finished:
            self._finished = True
            self._write()

    def path(self, run: Run) -> Path:
        """Return the folder of a run."""
        return self._path / f"{folder_name(run.model)}-fold-{run.fold}-seed-{run.seed}"

    def has(self, run: Run) -> bool:
        """Return whether a run is there."""
        return (self.path(run) / SUMMARY).exists()

    def about(self, run: Run) -> dict[str, Any]:
        """Return what is to be remembered of a run, by which it is known again."""
        fold = self.folds[run.fold - 1]
        return {
            **run._asdict(),
            "train": fold.train,
            "validation": fold.validation,
            **({} if fold.candidates is None else {"candidates": fold.candidates}),
            "parameters": cast("dict[str, Any]", self._settings["models"])[run.model],
        }

    def check(self, run: Run, about: Mapping[str, Any]) -> None:
        """Raise `InvalidFileError` if the evaluation in the folder of a run is another one."""
        expected = self.about(run)
        path = self.path(run) / SUMMARY
        if not about.keys() >= expected.keys():
            raise InvalidFileError(_FOREIGN, path)
        check_origin(path, about, expected, "is of another run", _REMEDY)

    def runs(self) -> Iterator[Run]:
        """Yield all runs, by fold, then by model, then by seed."""
        models, seeds = cast("Any", self._settings["models"]), cast("Any", self._settings["seeds"])
        for fold in range(1, len(self.folds) + 1):
            yield from runs_of_fold(fold, models, seeds)

    def _other_folds(self, n_folds: str) -> InvalidFileError:
        return InvalidFileError(
            f"is of {len(self.folds)} folds, and here are {n_folds}. It is left as it is; "
            f"{_REMEDY}",
            self._path / MANIFEST,
        )

    def _write(self) -> None:
        write_json(
            self._path / MANIFEST,
            {
                "settings": self._settings,
                "folds": [fold._asdict() for fold in self.folds],
                "finished": self._finished,
            },
        )


def runs_of_fold(fold: int, models: Iterable[str], seeds: Sequence[int]) -> Iterator[Run]:
    """Yield the runs of a fold, by model, then by seed.

    Fold 1 has the seeds that are given, and each other fold seeds of its own, as many further on as
    the given ones span: models of one seed start alike, and would be lucky together on all folds.
    """
    step = max(seeds) - min(seeds) + 1
    for model in models:
        for seed in seeds:
            yield Run(model, fold, seed + (fold - 1) * step)


def folder_name(model: str) -> str:
    """Return a name of a model as part of a folder's, the same for no other.

    Raises
    ------
    InvalidDataError
        If it is too long.
    """
    name = quote(model, safe=" +,=()")
    if not 0 < len(name) <= _MAX_NAME:
        raise InvalidDataError(
            f"models: the name {model[:60]!r} of {len(model):,} characters cannot be part of a "
            "file's name; give a shorter one, and not an empty one"
        )
    return name
