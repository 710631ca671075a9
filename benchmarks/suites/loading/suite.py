"""Suite `loading`: read event files and frames, compared with polars, pyarrow and DuckDB.

Each round starts a new process for each side, in turn.
"""

from collections.abc import Sequence
from typing import Any

from harness import environment
from harness.format import conditions, label, markdown, size, timed
from harness.job import Job
from harness.progress import say
from harness.turns import compare_processes

PROBE = "suites.loading.probe"
OURS = "sparse_eval"

#: The numbers of events and of rounds, by the end of the name of a case.
SIZES = {"5m": (5_000_000, 7), "50m": (50_000_000, 3)}
TOY = 5_000
#: The files and their formats.
FILES = {
    "csv": ("events.csv", "CSV"),
    "gz": ("events.csv.gz", "CSV.gz"),
    "quoted": ("quoted.csv", "quoted CSV"),
    "parquet": ("events.parquet", "Parquet"),
}
LIBRARIES = ("polars", "pyarrow", "duckdb")
SCORED = {
    "frames-polars": "frames of polars",
    "frames-object": "frames of pandas, object",
    "frames-str": "frames of pandas, str",
    "frames-category": "frames of pandas, category",
}
#: How far values may be apart, which are below 1.
TOLERANCE = 1e-12


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report. The libraries are installed in our environment.

    Raises `MismatchError` if a library finds different content in a file, or a different value.
    """
    report: dict[str, Any] = {"inputs": {}, "cases": {}}

    def contest(
        title: str, call: Sequence[Any], others: Sequence[str], rounds: int | None = None
    ) -> None:
        """Measure our call and the calls of other libraries, whose names are the last argument."""
        sides = {name: (name, *call, OURS) for name in job.references}
        sides |= {other: (environment.REFERENCE, *call, other) for other in others}
        entries, _ = compare_processes(job, title, sides, rounds=rounds, tolerance=TOLERANCE)
        report["cases"][title] = {"contestants": entries}

    for events, (n_events, rounds) in SIZES.items():
        files = {f"{kind}-{events}": file for kind, (file, _) in FILES.items()}
        files = {title: file for title, file in files.items() if title.startswith(job.case)}
        if not files or (job.smoke and events != "5m"):  # all toys have the same size
            continue
        folder = job.inputs / "loading" / events
        say(f"writing {events} events")
        report["inputs"][events] = job.call(f"{PROBE}:make", folder, TOY if job.smoke else n_events)
        for title, file in files.items():
            contest(title, (f"{PROBE}:load", folder, file), LIBRARIES, rounds)
    for title in SCORED:
        if title.startswith(job.case):
            contest(title, (f"{PROBE}:frames", title.partition("-")[2]), ["polars"])
    return report


EVENTS = {"5m": "five million events", "50m": "fifty million events"}


def loading(report: dict[str, Any]) -> str:
    loaded, scored = [], []
    for case, found in report["cases"].items():
        what, _, events = case.partition("-")
        for key, entry in found["contestants"].items():
            title = label(report, key)
            if case in SCORED:
                scored.append((f"{SCORED[case]}: {title}", *timed(entry)))
            else:
                head = f"{EVENTS[events]}, {FILES[what][1]}: {title}"
                peak = size(entry["peak_bytes"]) if "peak_bytes" in entry else ""
                loaded.append((head, *timed(entry), peak))
    tables = [
        markdown(("loaded", "median", "× ours", "peak of memory"), loaded),
        markdown(("scored", "median", "× ours"), scored),
    ]
    return "\n\n".join([*tables, conditions(report)])


TABLES = {"loading": loading}
