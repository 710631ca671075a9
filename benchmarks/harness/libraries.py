"""Compare our values with libraries' values, each computed in the library's own environment.

A suite that does this has a script for each library in `rivals`; `libraries.toml`, the rules of the
comparison; `worker.py`, whose `answer` gets the numbers of a script in the library's environment;
and `probe.py`, whose `compare` compares them with ours in our environment.
"""

import importlib
import json
import os
import tempfile
import tomllib
import warnings
from pathlib import Path
from typing import Any

from . import environment
from .call import plain
from .job import Job, MismatchError
from .progress import say

#: The rules of a library that libraries.toml may leave out.
RULES = {"convention": None, "tolerance": 1e-9, "imprecise": None, "not_compared": {}}


def answer(suite: str, script: str, problems: str, values: str) -> None:
    """Write a library's numbers and its description, in the library's environment."""
    warnings.simplefilter("ignore")
    # Waking a second thread takes longer than a problem.
    os.environ |= {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    library = importlib.import_module(script)  # before NumPy, which then starts one thread
    declared = (environment.SUITES / suite / "libraries.toml").read_text(encoding="utf-8")
    rules = RULES | tomllib.loads(declared)[script.rpartition(".")[2]]
    worker = importlib.import_module(f"suites.{suite}.worker")
    read = json.loads(Path(problems).read_text(encoding="utf-8"))
    report = rules | worker.answer(library, rules, read)
    Path(values).write_text(json.dumps(report, default=plain), encoding="utf-8")


def compare_all(job: Job, suite: str, problems: list[Any], one: str, many: str) -> dict[str, Any]:
    """Compare all libraries of a suite; return its report.

    In the results of a probe, `many` is the key of the values by name, and "furthest_" + `one` is
    the problem with the largest difference.

    Raises `MismatchError` if a library differs by more than its script allows.
    """
    libraries: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "problems.json")
        path.write_text(json.dumps(problems), encoding="utf-8")
        for name in job.taking_part:
            if name in job.references:
                continue
            say(f"{name}: comparing values")
            values = Path(folder, f"{name}.json")
            script = f"suites.{suite}.rivals.{name}"
            environment.call(name, f"{__name__}:answer", suite, script, path, values)
            libraries[name] = job.call(f"suites.{suite}.probe:compare", path, values)
    wrong = [
        f"{name}: {value} by {entry['max_difference']:.3g}, in {one} {entry[f'furthest_{one}']}"
        for name, found in libraries.items()
        for value, entry in found[many].items()
        if entry["max_difference"] > found["tolerance"]
    ]
    if wrong:
        raise MismatchError("\n  ".join(["values differ", *wrong]))
    return {"libraries": libraries}
