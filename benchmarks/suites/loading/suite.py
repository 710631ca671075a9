"""Suite `loading`: read event files and frames, compared with polars, pyarrow and DuckDB.

Each round starts a new process for each side, in turn.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

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
DIVIDED = ("matrix", "random", "temporal", "last_n")
#: The names of others, and the last arguments of their calls.
Others: TypeAlias = Mapping[str, str]
LIBRARIES: Others = {name: name for name in ("polars", "pyarrow", "duckdb")}
FRAMES: Others = {"polars": "polars"}
ARGSORT, MATRICES = {"numpy.argsort": "argsort"}, {"plain matrices": "matrices"}


SCORED = {
    "frames-polars": "frames of polars",
    "frames-object": "frames of pandas, object",
    "frames-str": "frames of pandas, str",
    "frames-category": "frames of pandas, category",
    "model-holdout": "`evaluate_model` on a holdout",
}
#: How far values may be apart, which are below 1.
TOLERANCE = 1e-12


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report. The libraries are installed in our environment.

    Raises `MismatchError` if a library finds different content in a file, or a different value.
    """
    report: dict[str, Any] = {"inputs": {}, "cases": {}}

    def contest(title: str, ours: Sequence[Any], others: Others, rounds: int | None = None) -> None:
        """Measure our call and those of others, which differ in the last argument."""
        function, *arguments, last = ours
        lasts = {name: (name, last) for name in job.references}
        lasts |= {label: (environment.REFERENCE, other) for label, other in others.items()}
        sides = {
            label: (name, f"{PROBE}:{function}", *arguments, argument)
            for label, (name, argument) in lasts.items()
        }
        entries, _ = compare_processes(job, title, sides, rounds=rounds, tolerance=TOLERANCE)
        report["cases"][title] = {"contestants": entries}

    for events, (n_events, rounds) in SIZES.items():
        titles = [f"{what}-{events}" for what in (*FILES, *(DIVIDED if events == "5m" else ()))]
        titles = [title for title in titles if title.startswith(job.case)]
        if not titles or (job.smoke and events != "5m"):  # all toys have the same size
            continue
        folder = job.inputs / "loading" / events
        say(f"writing {events} events")
        report["inputs"][events] = job.call(f"{PROBE}:make", folder, TOY if job.smoke else n_events)
        for title in titles:
            what = title.partition("-")[0]
            if what in FILES:
                contest(title, ("load", folder, FILES[what][0], OURS), LIBRARIES, rounds)
            else:
                contest(title, ("divide", folder, what), ARGSORT, rounds)
    for title in SCORED:
        what, _, kind = title.partition("-")
        if title.startswith(job.case) and what == "frames":
            contest(title, ("frames", kind, OURS), FRAMES)
        elif title.startswith(job.case):
            contest(title, ("model", OURS), MATRICES)
    return report


EVENTS = {"5m": "five million events", "50m": "fifty million events"}


def loading(report: dict[str, Any]) -> str:
    loaded, divided, scored = [], [], []
    for case, found in report["cases"].items():
        what, _, events = case.partition("-")
        for key, entry in found["contestants"].items():
            title = label(report, key)
            if what in FILES:
                head = f"{EVENTS[events]}, {FILES[what][1]}: {title}"
                peak = size(entry["peak_bytes"]) if "peak_bytes" in entry else ""
                loaded.append((head, *timed(entry), peak))
            elif case in SCORED:
                scored.append((f"{SCORED[case]}: {title}", *timed(entry)))
            else:
                divided.append((f"{what}: {title}", *timed(entry)))
    tables = [
        markdown(("loaded", "median", "× ours", "peak of memory"), loaded),
        markdown((f"{EVENTS['5m']}, divided", "median", "× ours"), divided),
        markdown(("scored", "median", "× ours"), scored),
    ]
    return "\n\n".join([*tables, conditions(report)])


TABLES = {"loading": loading}
