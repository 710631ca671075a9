"""One rival, kept ready in its own environment: answers requests, one JSON line each.

    python -P worker.py SCRIPTS RIVAL INPUTS

SCRIPTS is the folder of the rival's script: `rivals`, whose INPUTS are lists, or `checkpoint`,
whose INPUTS are a trained model and its data.

A request names what to do, the answer holds the result:

    {"do": "prepare"}                        {"seconds": 1.5}
    {"do": "time", "task": T}                {"seconds": 0.1}
    {"do": "save", "task": T, "path": P}     {"bytes": 1000000}

The first line, unasked for, says which tasks the rival has: {"tasks": [...]}. The bytes are the
call's peak of resident memory above that at its start. A failure ends the process; the last line
of its traceback, on stderr, is the reason.

`-P` keeps this folder off the module path, so that `import ranx` means the library and not
the rival's script.
"""

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

sys.path.append(str(Path(__file__).parent))  # last: a rival's library comes before our modules
import checkpoint_case
from peak import peak_above_start

Values = dict[str, npt.NDArray[np.float64]]


class Lists(NamedTuple):
    """What every rival is given. Row r of `ids` is the list of the user `users[r]`."""

    ids: npt.NDArray[np.int32]
    users: npt.NDArray[np.int64]
    validation: csr_matrix
    train: csr_matrix


class Task(NamedTuple):
    """`call(inputs, raw)` is timed; `values(inputs, raw, result)` turns its result into arrays.

    Of lists, the arrays are named after our metrics; they hold one number per list, or only the
    mean where the library gives no more. Of a checkpoint, `checkpoint_check.py` says what they are.
    """

    call: Callable[[Any, Any], Any]
    values: Callable[[Any, Any, Any], Values]


def main(scripts: str, name: str, path: Path) -> None:
    answers = _protect_stdout()

    def answer(**fields: Any) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    rival = _load(scripts, name)
    tasks = {task: Task(*functions) for task, functions in rival.TASKS.items()}
    inputs = READERS[scripts](path)
    raw = None
    answer(tasks=list(tasks))

    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        if request["do"] == "prepare":
            raw = rival.prepare(inputs)
            answer(seconds=time.perf_counter() - start)
            continue
        task = tasks[request["task"]]
        if request["do"] == "time":
            start = time.perf_counter()
            task.call(inputs, raw)
            answer(seconds=time.perf_counter() - start)
            continue
        with peak_above_start() as peak:
            result = task.call(inputs, raw)
        np.savez(request["path"], **task.values(inputs, raw, result))
        answer(bytes=peak[0])


def _protect_stdout() -> Any:
    """Keep the real stdout for answers; whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _load(scripts: str, name: str) -> ModuleType:
    path = Path(__file__).with_name(scripts) / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"rival_{name}", path)
    rival = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rival)
    return rival


def _read_lists(path: Path) -> Lists:
    with np.load(path, allow_pickle=False) as saved:
        parts = (saved["data"], saved["indices"], saved["indptr"])
        validation = csr_matrix(parts, shape=tuple(saved["shape"]))
        columns, bounds = saved["train_indices"], saved["train_indptr"]
        parts = (np.ones(len(columns)), columns, bounds)
        train = csr_matrix(parts, shape=validation.shape)
        return Lists(saved["ids"], saved["users"], validation, train)


READERS: dict[str, Callable[[Path], Any]] = {
    "rivals": _read_lists,
    "checkpoint": checkpoint_case.read,
}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
