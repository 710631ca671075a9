"""Suite `loading`: files of events read beside pandas, and divided beside a sort of their pairs.

Each round starts a new process for each side, in turn.
"""

from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from harness import environment
from harness.job import Job, MismatchError
from harness.progress import say
from harness.turns import take_turns

PROBE = Path(__file__).with_name("probe.py")

#: Events by the end of the name of a case, and how many rounds they are worth.
SIZES = {"5m": (5_000_000, 7), "50m": (50_000_000, 3)}
TOY = 5_000
DIVIDED = ("matrix", "random", "temporal", "last_n")


def run(job: Job) -> dict[str, Any]:
    """Measure fresh processes; return the report. pandas is that of each contestant's environment.

    Raises `MismatchError` if pandas finds something else in a file.
    """
    report: dict[str, Any] = {
        "rivals": {name: environment.describe(name) for name in job.references},
        "inputs": {},
        "cases": {},
    }
    for size, (n_events, rounds) in SIZES.items():
        titles = [f"{suffix}-{size}" for suffix in ("csv", "parquet")]
        if size == "5m":
            titles += [f"{call}-{size}" for call in DIVIDED]
        titles = [title for title in titles if title.startswith(job.case)]
        if not titles or (job.smoke and size != "5m"):  # toys are all of one size
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
    return report


def load(job: Job, title: str, folder: Path, suffix: str, rounds: int) -> dict[str, Any]:
    """Measure reading a file; the entries have the peak of memory, and the size of the result."""
    calls = {name: (name, "sparse_eval") for name in job.references}
    calls["pandas"] = (environment.REFERENCE, "pandas")
    runs: dict[str, list[dict[str, Any]]] = {label: [] for label in calls}

    def seconds(label: str) -> float:
        name, task = calls[label]
        runs[label].append(environment.run(name, PROBE, task, folder, suffix))
        return float(runs[label][-1]["seconds"])

    measures = {label: partial(seconds, label) for label in calls}
    entries = take_turns(title, measures, rounds, warm_up=not job.smoke)
    found = {str(one["found"]) for all_runs in runs.values() for one in all_runs}
    if len(found) > 1:
        raise MismatchError(f"{title}: events, users, items and times are {' and '.join(found)}")
    for label, entry in entries.items():
        if runs[label]:
            entry["peak_bytes"] = median(one["bytes"] for one in runs[label][-rounds:])
    ours = runs[environment.REFERENCE]
    return {"contestants": entries, "result_bytes": ours[-1]["result_bytes"] if ours else None}


def divide(job: Job, title: str, folder: Path, call: str, rounds: int) -> dict[str, Any]:
    """Measure a split, or the matrix, beside NumPy's `argsort` of as many pairs."""
    calls = {name: (name, call) for name in job.references}
    calls["numpy.argsort"] = (environment.REFERENCE, "argsort")

    def seconds(name: str, what: str) -> float:
        return float(environment.run(name, PROBE, "divide", folder, what)["seconds"])

    measures = {label: partial(seconds, *one) for label, one in calls.items()}
    return {"contestants": take_turns(title, measures, rounds, warm_up=not job.smoke)}
