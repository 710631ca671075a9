"""The study of a search: Optuna's, in memory or in a journal that one process at a time writes."""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import InvalidFileError, OutputError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from optuna.trial import FrozenTrial, Trial

#: Optuna's journal.
STUDY = "study.jsonl"

_FOREIGN = "is not the study of a search, or was damaged; choose another folder, or delete it"

#: What a journal begins with: all that there is of one where the disk was full at once.
_BEGINNING = b'{"op_code":0,'

#: What Optuna raises where a journal holds something else.
_DAMAGE = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Study:
    """The study of a search, in the folder of a ledger or in memory.

    Raises `InvalidFileError` if the study cannot be read. Only one process may use the folder.
    """

    def __init__(self, folder: Path | None, direction: Any, pruner: Any) -> None:
        self.path = None if folder is None else folder / STUDY
        with self.written():
            try:
                self.study = _open(self.path, direction, pruner)
            except _DAMAGE as error:
                raise InvalidFileError(_FOREIGN, self.path) from error

    @contextmanager
    def written(self) -> Iterator[None]:
        """Raise `OutputError` if the study cannot be written."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{shown(self.path)}: cannot be written: {reason}") from error

    def finished(self) -> list[FrozenTrial]:
        """Return the finished trials."""
        return [trial for trial in self._trials() if trial.state.is_finished()]

    def start_trials(
        self,
        n_trials: int,
        space: dict[str, Any],
        grid: list[dict[str, float]],
        sampler: Callable[[int], Any],
    ) -> Iterator[Trial]:
        """Yield trials to run until so many are finished.

        They have the parameters of the grid, then what the sampler suggests that `sampler` returns
        for a number of trials that are finished.
        """
        from optuna.trial import TrialState

        with self.written():
            for lost in self.study.get_trials(states=(TrialState.RUNNING,)):
                self.study.tell(lost.number, state=TrialState.FAIL)
        while (n_finished := len(self.finished())) < n_trials:
            with self.written():
                self.study.sampler = sampler(n_finished)
                known = [trial.system_attrs.get("fixed_params") for trial in self._trials()]
                for parameters in grid:
                    if parameters not in known:  # in the order of the grid, also what was lost
                        self.study.enqueue_trial(parameters)
                        break
                trial = self.study.ask(space)
            yield trial

    def _trials(self) -> list[FrozenTrial]:
        """Return the trials without those that were lost: one that failed has a reason."""
        return [
            trial
            for trial in self.study.get_trials(deepcopy=False)
            if trial.state.name != "FAIL" or "error" in trial.user_attrs
        ]


class _NoLock:
    """The lock of a journal that no other process writes, as Optuna calls it."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _open(path: Path | None, direction: Any, pruner: Any) -> Any:
    """Return the study in memory or in a journal, which may hold no other."""
    import optuna
    from optuna.storages import InMemoryStorage, JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage: Any = InMemoryStorage()
    if path is not None:
        path.touch()
        _check(path)
        unlocked: Any = _NoLock()
        storage = JournalStorage(JournalFileBackend(str(path), unlocked))
    given = {"study_name": "tune", "storage": storage, "pruner": pruner}
    if path is not None and path.stat().st_size:
        return optuna.load_study(**given)
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))  # that a study was made need not be said
    try:
        return optuna.create_study(direction=direction, **given)
    finally:
        logger.setLevel(level)


def _check(path: Path) -> None:
    """Raise unless a file is a journal, and end it where a full disk cut its last line off."""
    *lines, rest = path.read_bytes().split(b"\n")
    is_foreign = not lines and rest[: len(_BEGINNING)] != _BEGINNING[: len(rest)]
    if is_foreign or not all("op_code" in json.loads(line) for line in lines):
        raise ValueError(_FOREIGN)
    if rest:
        os.truncate(path, path.stat().st_size - len(rest))
