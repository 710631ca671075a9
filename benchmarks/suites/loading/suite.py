"""Suite `loading`: read event files and frames, compared with polars, pyarrow and DuckDB.

Each round starts a new process for each side, in turn.
"""

import math
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from harness import environment
from harness.job import Job, MismatchError
from harness.progress import say
from harness.turns import take_turns

PROBE = Path(__file__).with_name("probe.py")

#: The numbers of events and of rounds, by the end of the name of a case.
SIZES = {"5m": (5_000_000, 7), "50m": (50_000_000, 3)}
TOY = 5_000
FILES = {
    "csv": "events.csv",
    "gz": "events.csv.gz",
    "quoted": "quoted.csv",
    "parquet": "events.parquet",
}
DIVIDED = ("matrix", "random", "temporal", "last_n")
FRAMES = ("polars", "object", "str", "category")


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report. The libraries are installed in our environment.

    Raises `MismatchError` if a library finds different content in a file, or a different value.
    """
    report: dict[str, Any] = {
        "rivals": {name: environment.describe(name) for name in job.references},
        "inputs": {},
        "cases": {},
    }
    for size, (n_events, rounds) in SIZES.items():
        titles = [f"{file}-{size}" for file in FILES]
        if size == "5m":
            titles += [f"{call}-{size}" for call in DIVIDED]
        titles = [title for title in titles if title.startswith(job.case)]
        if not titles or (job.smoke and size != "5m"):  # all toys have the same size
            continue
        folder = job.inputs / "loading" / size
        say(f"writing {size} events")
        events = str(TOY if job.smoke else n_events)
        report["inputs"][size] = environment.run(
            environment.REFERENCE, PROBE, "make", folder, events
        )
        for title in titles:
            what = title.partition("-")[0]
            case = divide if what in DIVIDED else load
            report["cases"][title] = case(job, title, folder, what, min(rounds, job.rounds))
    rivals = {f"frames-{kind}": ("polars", ("frames", ".", kind)) for kind in FRAMES}
    rivals["model-holdout"] = ("plain matrices", ("model", "."))
    for title, (rival, task) in rivals.items():
        if title.startswith(job.case):
            report["cases"][title] = score(job, title, rival, task)
    return report


def load(job: Job, title: str, folder: Path, what: str, rounds: int) -> dict[str, Any]:
    """Measure reading a file and numbering its users and items, with the memory peaks."""
    calls = {name: (name, "sparse_eval") for name in job.references}
    for library in ("polars", "pyarrow", "duckdb"):
        calls[library] = (environment.REFERENCE, library)
    runs: dict[str, list[dict[str, Any]]] = {label: [] for label in calls}

    def seconds(label: str) -> float:
        name, library = calls[label]
        runs[label].append(environment.run(name, PROBE, "load", folder, FILES[what], library))
        return float(runs[label][-1]["seconds"])

    measures = {label: partial(seconds, label) for label in calls}
    entries = take_turns(title, measures, rounds, warm_up=not job.smoke)
    if len({one["found"] for all_runs in runs.values() for one in all_runs}) > 1:
        raise MismatchError(f"{title}: the libraries find different users, items or times")
    for label, entry in entries.items():
        if runs[label]:
            entry["peak_bytes"] = median(one["bytes"] for one in runs[label][-rounds:])
    return {"contestants": entries}


def divide(job: Job, title: str, folder: Path, call: str, rounds: int) -> dict[str, Any]:
    """Measure a split, or the matrix, and NumPy's `argsort` of the same number of pairs."""
    calls = {name: (name, call) for name in job.references}
    calls["numpy.argsort"] = (environment.REFERENCE, "argsort")

    def seconds(name: str, what: str) -> float:
        return float(environment.run(name, PROBE, "divide", folder, what)["seconds"])

    measures = {label: partial(seconds, *one) for label, one in calls.items()}
    return {"contestants": take_turns(title, measures, rounds, warm_up=not job.smoke)}


def score(job: Job, title: str, rival: str, task: tuple[str, ...]) -> dict[str, Any]:
    """Measure an evaluation, and the same numbers from the polars code, or from matrices."""
    calls = {name: (name, "sparse_eval") for name in job.references}
    calls[rival] = (environment.REFERENCE, "polars" if rival == "polars" else "matrices")
    values: list[float] = []

    def seconds(name: str, what: str) -> float:
        found = environment.run(name, PROBE, *task, what)
        values.append(found["value"])
        return float(found["seconds"])

    measures = {label: partial(seconds, *one) for label, one in calls.items()}
    entries = take_turns(title, measures, job.rounds, warm_up=not job.smoke)
    if not all(math.isclose(value, values[0], rel_tol=1e-12) for value in values):
        raise MismatchError(f"{title}: the values are {sorted(set(values))}")
    return {"contestants": entries}
