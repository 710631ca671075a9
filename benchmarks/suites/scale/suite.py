"""Suite `scale`: beyond memory and beyond one machine, and the cost of more users."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

from harness import environment
from harness.job import Job
from harness.progress import say
from harness.turns import compare_processes

from .tables import TABLES

__all__ = ["TABLES", "run"]

PROBE = "suites.scale.probe"


class Size(NamedTuple):
    """The numbers of users for fitting the costs, and for checking them.

    `worked` is the number of users in runs with workers and with Spark, and `drawn` in the data of
    models, with its number of items.
    """

    fitted: tuple[int, ...]
    checked: int
    worked: int
    drawn: int
    n_items: int


FULL = Size((100_000, 1_000_000, 10_000_000), 3_000_000, 1_000_000, 1_000_000, 51_000)
TOY = Size((100, 2_000), 500, 2_000, 2_000, 500)

#: The bytes that an evaluation may use; the whole process stays below 2 GB.
BUDGET = 1_600_000_000

MOST_ROUNDS = 3
#: How far the means of two checkouts may be apart.
TOLERANCE = 1e-12


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report."""
    size = TOY if job.smoke else FULL
    rounds = min(job.rounds, MOST_ROUNDS)
    drawn = job.inputs / "scale" / "drawn"
    job.call(f"{PROBE}:base", drawn, size.drawn, size.n_items)
    report: dict[str, Any] = {
        "budget": BUDGET,
        "kinds": {kind: costs(job, kind, size) for kind in ("tables", "users")},
    }
    model, _ = inputs(job, "users", size.worked)
    say("workers of Dask")
    report["workers"] = job.call(f"{PROBE}:workers", model, 2, rounds)
    if "spark" in job.contestants:
        report["spark"] = spark(job, size)
    return report


def spark(job: Job, size: Size) -> dict[str, Any]:
    """Measure Spark, or return why it is left out."""
    entry = job.rivals["spark"]
    if job.smoke:
        entry["failed"] = "a session takes too long for a toy"
    elif shutil.which("java") is None:
        entry["failed"] = "there is no Java"
    if "failed" in entry:
        return {"failed": entry["failed"]}
    say("Spark")
    tables, _ = inputs(job, "tables", size.worked)
    found: dict[str, Any] = environment.call("spark", "suites.scale.rivals.spark:measure", tables)
    return found


def inputs(job: Job, kind: str, n_users: int) -> tuple[Path, int]:
    """Make the data of some users; return their folder and its bytes."""
    what = {"tables": "tables", "users": "model"}[kind]
    folder = job.inputs / "scale" / f"{what}-{n_users}"
    return folder, job.call(f"{PROBE}:{what}", folder, n_users)["bytes"]


def costs(job: Job, kind: str, size: Size) -> dict[str, Any]:
    """Measure some numbers of users, fit their costs, and check the fit on another number."""
    cases = [case(job, kind, n) for n in (*size.fitted, size.checked)]
    fixed, each = fit(cases[:-1])
    last = cases[-1]
    predicted = fixed + each * last["n_users"]
    return {
        "cases": cases,
        "fixed_seconds": fixed,
        "seconds_per_million": each * 1e6,
        "bytes_per_user": cases[-2]["input_bytes"] / cases[-2]["n_users"],
        "peak_bytes": max(one["peak_bytes"] for one in cases),
        "checked": {"n_users": last["n_users"], "error": predicted / last["seconds"] - 1},
    }


def case(job: Job, kind: str, n_users: int) -> dict[str, Any]:
    folder, n_bytes = inputs(job, kind, n_users)
    call = (f"{PROBE}:evaluate_{kind}", folder, BUDGET)
    calls = {name: (name, *call) for name in job.references}
    title = f"{kind}: {n_users:,} users"
    options = {"rounds": MOST_ROUNDS, "warm_up": False, "tolerance": TOLERANCE}
    entries, found = compare_processes(job, title, calls, **options)
    for name, entry in entries.items():
        entry["peak_bytes"] = max((one["bytes"] for one in found[name]), default=0)
    ours = entries[environment.REFERENCE]
    entry = {
        "n_users": n_users,
        "input_bytes": n_bytes,
        "seconds": ours["median_seconds"],
        "peak_bytes": ours["peak_bytes"],
        "runs": ours["seconds"],
    }
    return entry | ({"contestants": entries} if len(entries) > 1 else {})


def fit(cases: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the fixed seconds and the seconds per user, by least squares of relative errors."""
    rows = [(1 / one["seconds"], one["n_users"] / one["seconds"]) for one in cases]
    a = sum(x * x for x, _ in rows)
    b = sum(x * y for x, y in rows)
    c = sum(y * y for _, y in rows)
    d, e = sum(x for x, _ in rows), sum(y for _, y in rows)
    determinant = a * c - b * b
    return (c * d - b * e) / determinant, (a * e - b * d) / determinant
