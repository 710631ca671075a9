"""Run one rival in its own environment, and answer requests, each with a line of JSON.

    python -P worker.py SCRIPT INPUTS

SCRIPT is the rival's script, in the folder `rivals` of a suite. The suite's `case.py` has `read`,
which reads the inputs of all rivals from the file INPUTS. The script has `prepare(inputs)`, which
returns the library's native input, and `TASKS`: {name: functions of a `Task`}.

Requests and answers:

    {"do": "prepare"}                        {"seconds": 1.5}
    {"do": "time", "task": T}                {"seconds": 0.1}
    {"do": "save", "task": T, "path": P}     {"bytes": 1000000}

The first line, without a request, lists the tasks of the rival: {"tasks": [...]}. The bytes are the
call's peak of resident memory above the level at its start. A failure ends the process; the last
line of its traceback, on stderr, is the reason.

`-P` keeps this folder off the module path, so that `import ranx` means the library and not the
rival's script.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.append(str(Path(__file__).parents[1]))  # last: a rival's library comes before our modules
from harness.peak import peak_above_start
from harness.script import load, protect_stdout

Values = dict[str, npt.NDArray[Any]]


class Task(NamedTuple):
    """`call(inputs, raw)` is timed; `values(inputs, raw, result)` converts its result to arrays.

    The suite's `case.py` describes the arrays.
    """

    call: Callable[[Any, Any], Any]
    values: Callable[[Any, Any, Any], Values]


def main(script: Path, path: Path) -> None:
    answers = protect_stdout()

    def answer(**fields: Any) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    rival = load(script)
    tasks = {task: Task(*functions) for task, functions in rival.TASKS.items()}
    inputs = load(script.parents[1] / "case.py").read(path)
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
