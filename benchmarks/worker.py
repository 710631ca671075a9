"""One rival, kept ready in its own environment: answers requests, one JSON line each.

    python -P worker.py RIVAL INPUTS

A request names what to do, the answer holds the result:

    {"do": "prepare"}                        {"seconds": 1.5}
    {"do": "time", "task": T}                {"seconds": 0.1}
    {"do": "save", "task": T, "path": P}     {}

The first line, unasked for, says which tasks the rival has: {"tasks": [...]}. A failure ends the
process; the last line of its traceback, on stderr, is the reason.

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

Values = dict[str, npt.NDArray[np.float64]]


class Lists(NamedTuple):
    """What every rival is given. Row r of `ids` is the list of the user `users[r]`."""

    ids: npt.NDArray[np.int32]
    users: npt.NDArray[np.int64]
    validation: csr_matrix
    train: csr_matrix


class Task(NamedTuple):
    """`call(lists, raw)` is timed; `values(lists, raw, result)` turns its result into arrays.

    The arrays are named after our metrics; they hold one number per list, or only the mean
    where the library gives no more.
    """

    call: Callable[[Lists, Any], Any]
    values: Callable[[Lists, Any, Any], Values]


def main(name: str, inputs: Path) -> None:
    answers = _protect_stdout()

    def answer(**fields: Any) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    rival = _load(name)
    tasks = {task: Task(*functions) for task, functions in rival.TASKS.items()}
    lists = _read(inputs)
    raw = None
    answer(tasks=list(tasks))

    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        if request["do"] == "prepare":
            raw = rival.prepare(lists)
            answer(seconds=time.perf_counter() - start)
            continue
        task = tasks[request["task"]]
        start = time.perf_counter()
        result = task.call(lists, raw)
        seconds = time.perf_counter() - start
        if request["do"] == "time":
            answer(seconds=seconds)
        else:
            np.savez(request["path"], **task.values(lists, raw, result))
            answer()


def _protect_stdout() -> Any:
    """Keep the real stdout for answers; whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _load(name: str) -> ModuleType:
    path = Path(__file__).with_name("rivals") / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"rival_{name}", path)
    rival = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rival)
    return rival


def _read(path: Path) -> Lists:
    with np.load(path, allow_pickle=False) as saved:
        parts = (saved["data"], saved["indices"], saved["indptr"])
        validation = csr_matrix(parts, shape=tuple(saved["shape"]))
        columns, bounds = saved["train_indices"], saved["train_indptr"]
        parts = (np.ones(len(columns)), columns, bounds)
        train = csr_matrix(parts, shape=validation.shape)
        return Lists(saved["ids"], saved["users"], validation, train)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
