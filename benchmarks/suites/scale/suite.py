"""Suite `scale`: beyond memory and beyond one machine, and the cost of more users."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import environment
from harness.progress import say

if TYPE_CHECKING:
    from harness.job import Job

PROBE = Path(__file__).with_name("probe.py")
SPARK = Path(__file__).parent / "rivals" / "spark.py"


class Size(NamedTuple):
    """The numbers of users for fitting the costs, and for checking them.

    `worked` is the number of users in runs with workers and with Spark, `compared` in runs in which
    all values are compared, and `drawn` in the data of models, with its number of items.
    """

    fitted: tuple[int, ...]
    checked: int
    worked: int
    compared: int
    drawn: int
    n_items: int


FULL = Size((100_000, 1_000_000, 10_000_000), 3_000_000, 1_000_000, 1_000_000, 1_000_000, 51_000)
TOY = Size((100, 2_000), 500, 2_000, 500, 2_000, 500)

#: The bytes that an evaluation may use; the whole process stays below 2 GB.
BUDGET = 1_600_000_000

MOST_ROUNDS = 3


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report."""
    size = TOY if job.smoke else FULL
    rounds = min(job.rounds, MOST_ROUNDS)
    folder = job.inputs / "scale"
    folder.mkdir(parents=True, exist_ok=True)
    probe("base", folder / "drawn", size.drawn, size.n_items)
    report: dict[str, Any] = {
        "rivals": {name: environment.describe(name) for name in job.references},
        "budget": BUDGET,
        "kinds": {kind: costs(job, kind, size, rounds) for kind in ("tables", "users")},
    }
    model = inputs(folder, "users", size.worked)["folder"]
    say("workers of Dask")
    report["workers"] = probe("workers", model, 2, rounds, *(("ranks",) if job.smoke else ()))
    for name in job.references[1:]:
        say(f"workers of Dask: {name}")
        found = environment.run(name, PROBE, "workers", model, "2", str(rounds))
        report.setdefault("workers_of_checkouts", {})[name] = found
    say("every metric, with workers and without")
    report["bits"] = probe("bits", inputs(folder, "users", size.compared)["folder"])
    say("a worker is killed")
    report["killed"] = probe("killed", model)
    if "spark" in job.contestants:
        report["rivals"]["spark"] = environment.describe("spark")
        if job.smoke:
            report["rivals"]["spark"] |= {"failed": "a session takes too long for a toy"}
        if "failed" in report["rivals"]["spark"]:
            report["spark"] = {"failed": report["rivals"]["spark"]["failed"]}
        elif shutil.which("java") is None:
            report["spark"] = {"failed": "there is no Java"}
        else:
            say("Spark")
            tables = inputs(folder, "tables", size.worked)["folder"]
            report["spark"] = environment.run("spark", SPARK, tables)
    return report


def probe(*arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = environment.run(environment.REFERENCE, PROBE, *map(str, arguments))
    return found


def inputs(parent: Path, kind: str, n_users: int) -> dict[str, Any]:
    what = {"tables": "tables", "users": "model"}[kind]
    folder = parent / f"{what}-{n_users}"
    return {"folder": folder} | probe(what, folder, n_users)


def costs(job: Job, kind: str, size: Size, rounds: int) -> dict[str, Any]:
    """Measure some numbers of users, fit their costs, and check the fit on another number."""
    cases = [case(job, kind, n, rounds) for n in (*size.fitted, size.checked)]
    fixed, each = fit(cases[:-1])
    last = cases[-1]
    predicted = fixed + each * last["n_users"]
    return {
        "cases": cases,
        "fixed_seconds": fixed,
        "seconds_per_million": each * 1e6,
        "bytes_per_user": cases[-2]["input_bytes"] / cases[-2]["n_users"],
        "peak_bytes": max(one["peak_bytes"] for one in cases),
        "checked": {
            "n_users": last["n_users"],
            "predicted_seconds": predicted,
            "measured_seconds": last["seconds"],
            "error": predicted / last["seconds"] - 1,
        },
    }


def case(job: Job, kind: str, n_users: int, rounds: int) -> dict[str, Any]:
    say(f"{kind}: {n_users:,} users")
    made = inputs(job.inputs / "scale", kind, n_users)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in job.references}
    for _ in range(rounds):
        for name, found in runs.items():
            call = (PROBE, f"evaluate_{kind}", made["folder"], str(BUDGET))
            found.append(environment.run(name, *call))
    ours = runs[environment.REFERENCE]
    seconds = {name: median(one["seconds"] for one in found) for name, found in runs.items()}
    entry = {
        "n_users": n_users,
        "input_bytes": made["bytes"],
        "seconds": seconds[environment.REFERENCE],
        "peak_bytes": max(one["bytes"] for one in ours),
        "bytes_before": ours[0]["bytes_before"],
        "runs": [one["seconds"] for one in ours],
    }
    if len(runs) > 1:
        entry["contestants"] = {
            name: {
                "median_seconds": value,
                "ratio": value / seconds[environment.REFERENCE],
                "peak_bytes": max(one["bytes"] for one in runs[name]),
            }
            for name, value in seconds.items()
        }
    return entry


def fit(cases: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the fixed seconds and the seconds per user, by least squares of relative errors."""
    rows = [(1 / one["seconds"], one["n_users"] / one["seconds"]) for one in cases]
    a = sum(x * x for x, _ in rows)
    b = sum(x * y for x, y in rows)
    c = sum(y * y for _, y in rows)
    d, e = sum(x for x, _ in rows), sum(y for _, y in rows)
    determinant = a * c - b * b
    return (c * d - b * e) / determinant, (a * e - b * d) / determinant
