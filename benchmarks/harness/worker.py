"""Run one rival in its own environment, and answer requests, each with a line of JSON.

    python -P worker.py SUITE RIVAL INPUTS

The suite's `case.py` has `read`, which reads the inputs of all rivals from the file INPUTS. The
rival's script, `rivals/RIVAL.py`, has `prepare(inputs)`. This makes the library's native input, and
returns {task: (call, values)}: `call()` is timed, and `values(result)` converts its result to
arrays, which `case.py` describes.

The first line has the seconds of `prepare` and the names of the tasks. Requests and answers:

    {"do": "time", "task": T}                {"seconds": 0.1}
    {"do": "save", "task": T, "path": P}     {"bytes": 1000000}

The bytes are the call's peak of resident memory above the level at its start. A failure ends the
process; the last line of its traceback, on stderr, is the reason.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))  # last: a rival's library comes before our modules
from harness.call import find, protect_stdout
from harness.peak import peak_above_start


def main(suite: str, rival: str, path: str) -> None:
    answers = protect_stdout()

    def answer(**fields: Any) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    prepare = find(f"suites.{suite}.rivals.{rival}:prepare")
    inputs = find(f"suites.{suite}.case:read")(Path(path))
    start = time.perf_counter()
    tasks = prepare(inputs)
    answer(seconds=time.perf_counter() - start, tasks=list(tasks))
    for line in sys.stdin:
        request = json.loads(line)
        call, values = tasks[request["task"]]
        if request["do"] == "time":
            start = time.perf_counter()
            call()
            answer(seconds=time.perf_counter() - start)
            continue
        with peak_above_start() as peak:
            result = call()
        np.savez(request["path"], **values(result))
        answer(bytes=peak[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
