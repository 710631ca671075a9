"""A study of Optuna, in memory or in a folder that several processes may work on at once.

A process takes a turn, alone, to look at the trials and to start one, and holds another lock, with
others, while a trial is running. Where nobody holds that, a trial that seems to be running was lost
with its process; it is not counted, and is run again.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, Any

from ..core.csv_log import check_origin
from ..core.locks import lock_file
from ..errors import InvalidFileError, OutputError, SparseEvalError, shown
from .search_space import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from optuna.trial import FrozenTrial, Trial

    from ..core.types import JSONValue

#: Optuna's journal, and the files that are locked while a trial is running and while one writes.
STUDY, _RUNNING, _WRITING = "study.jsonl", "study.lock", "journal.lock"

_FOREIGN = "is not the study of a search, or was damaged; choose another folder, or delete it"
_REMEDY = "choose another folder for this search, or delete that one"

#: What a journal begins with: all that there is of one where the disk was full at once.
_BEGINNING = b'{"op_code":0,'

#: What Optuna raises where a journal holds something else.
_DAMAGE = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

#: Seconds between two looks at the trials of other processes.
_PAUSE = 0.2


class JournalLock:
    """What keeps processes from writing the journal at once, as Optuna calls it.

    It ends with the process that holds it; after those of Optuna, the next one waits for 30 s.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None

    def acquire(self) -> bool:
        """Wait for others."""
        file = self._path.open("ab")
        lock_file(file.fileno())
        self._file = file
        return True

    def release(self) -> None:
        """Let others write."""
        self._file.close()


class SharedStudy:
    """The study of a search: its direction, and the settings that determine the values of trials.

    Its trials have values of the `metrics`. Raises `InvalidFileError` if the folder belongs to
    another search, or its study cannot be read.
    """

    def __init__(
        self,
        folder: Path | None,
        direction: Any,
        settings: dict[str, JSONValue],
        pruner: Any,
        metrics: list[str],
    ) -> None:
        self._folder = folder
        self.path = None if folder is None else folder / STUDY
        with self.turn():
            try:
                self.study = _open(self.path, direction, pruner)
                known = self.study.user_attrs.get("search")
                if known is None and not self.study.trials:
                    self.study.set_user_attr("search", known := settings)
                if self.path is not None:
                    found = dict.fromkeys(settings) | known
                    check_origin(self.path, found, settings, "is of another search", _REMEDY)
                for trial in self.finished():
                    _check_trial(trial, metrics)
            except SparseEvalError:
                raise
            except _DAMAGE as error:
                raise InvalidFileError(_FOREIGN, self.path) from error

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock that only one process has, and say so if the study cannot be written."""
        lock = self._lock(STUDY)
        try:
            with self.written():
                yield
        finally:
            _unlock(lock)

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
        """Yield trials to run until so many are finished, those of other processes included.

        They have the parameters of the grid, then what the sampler suggests that `sampler` returns
        for a number of trials that were started before.
        """
        while True:
            trial = None
            with self.turn():
                self._fail_lost()
                trials = self._trials()
                if sum(one.state.is_finished() for one in trials) >= n_trials:
                    return
                n_started = sum(one.state.name != "WAITING" for one in trials)
                if n_started < n_trials:
                    lock = self._lock(_RUNNING, shared=True)
                    self.study.sampler = sampler(n_started)
                    known = [one.system_attrs.get("fixed_params") for one in trials]
                    for parameters in grid:
                        if parameters not in known:  # in the order of the grid, also what was lost
                            self.study.enqueue_trial(parameters)
                            break
                    trial = self.study.ask(space)
            if trial is None:  # others are running the last ones
                sleep(_PAUSE)
                continue
            try:
                yield trial
            finally:
                _unlock(lock)

    def _trials(self) -> list[FrozenTrial]:
        """Return the trials without those that were lost: one that failed has a reason."""
        return [
            trial
            for trial in self.study.get_trials(deepcopy=False)
            if trial.state.name != "FAIL" or "error" in trial.user_attrs
        ]

    def _fail_lost(self) -> None:
        """Fail the trials that seem to be running, if no process is running any."""
        from optuna.trial import TrialState

        lock = self._lock(_RUNNING, wait=False)
        if lock is not None:
            for trial in self.study.get_trials(states=(TrialState.RUNNING,)):
                self.study.tell(trial.number, state=TrialState.FAIL)
            _unlock(lock)

    def _lock(self, name: str, *, shared: bool = False, wait: bool = True) -> int | None:
        """Lock a file until it is closed, if only by the end of the process; None if it is not."""
        if self._folder is None:
            return None
        with self.written():
            file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                lock_file(file, shared=shared, wait=wait)
            except BlockingIOError:
                os.close(file)
                return None
        return file


def _check_trial(trial: FrozenTrial, metrics: list[str]) -> None:
    """Raise ValueError unless a finished trial is what a search makes of one."""
    noted, state = trial.user_attrs, trial.state.name
    numbers = [trial.params.get(name) for name in PARAMETERS] + list(trial.values or [])
    if state != "FAIL":
        values = noted.get("metrics")
        if not isinstance(values, dict) or values.keys() != {*metrics}:
            raise ValueError(values)
        numbers += [noted.get("best_iteration"), *values.values()]
    wrong = [one for one in numbers if isinstance(one, bool) or not isinstance(one, int | float)]
    whole = isinstance(noted.get("best_iteration", 1), int)
    reason = isinstance(noted.get("error", ""), str)
    if wrong or not (whole and reason) or (state == "COMPLETE" and len(trial.values or []) != 1):
        raise ValueError(trial)


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _open(path: Path | None, direction: Any, pruner: Any) -> Any:
    """Return the study in memory or in a journal, which may hold no other."""
    import optuna
    from optuna.storages import InMemoryStorage, JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage: Any = InMemoryStorage()
    if path is not None:
        lock: Any = JournalLock(path.with_name(_WRITING))
        _check(path, lock)
        storage = JournalStorage(JournalFileBackend(str(path), lock))
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


def _check(path: Path, lock: Any) -> None:
    """Raise unless a file is a journal, and end it where a full disk cut its last line off."""
    lock.acquire()
    try:
        *lines, rest = path.read_bytes().split(b"\n")
        is_foreign = not lines and rest[: len(_BEGINNING)] != _BEGINNING[: len(rest)]
        if is_foreign or not all("op_code" in json.loads(line) for line in lines):
            raise ValueError(_FOREIGN)
        if rest:
            os.truncate(path, path.stat().st_size - len(rest))
    finally:
        lock.release()
