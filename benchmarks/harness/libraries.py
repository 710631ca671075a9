"""Compare our values with libraries' values, each computed in the library's own environment.

A suite that does this has a script for each library in `rivals`; `worker.py`, which runs one of
them in the library's environment; and `probe.py`, which compares the values with ours in our
environment.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from . import environment
from .job import Job, MismatchError
from .progress import say


def compare_all(job: Job, suite: Path, problems: list[Any], one: str, many: str) -> dict[str, Any]:
    """Compare all libraries of a suite; return `rivals` and `libraries` of its report.

    In the results of a probe, `many` is the key of the values by name, and "furthest_" + `one` is
    the problem with the largest difference.

    Raises `MismatchError` if a library differs by more than its script allows.
    """
    rivals = {
        name: entry
        for name, entry in job.describe().items()
        if (suite / "rivals" / f"{name}.py").exists()
    }
    libraries: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "problems.json")
        path.write_text(json.dumps(problems), encoding="utf-8")
        for name, entry in rivals.items():
            if "failed" in entry:
                continue
            say(f"{name}: comparing values")
            values = Path(folder, f"{name}.json")
            script = suite / "rivals" / f"{name}.py"
            environment.run(name, suite / "worker.py", script, path, values)
            libraries[name] = environment.run(
                environment.REFERENCE, suite / "probe.py", path, values
            )
    wrong = [
        f"{name}: {value} by {entry['max_difference']:.3g}, in {one} {entry[f'furthest_{one}']}"
        for name, found in libraries.items()
        for value, entry in found[many].items()
        if entry["max_difference"] > found["tolerance"]
    ]
    if wrong:
        raise MismatchError("\n  ".join(["values differ", *wrong]))
    return {"rivals": rivals, "libraries": libraries}
