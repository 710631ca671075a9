"""Suite `scale`: beyond memory and beyond one machine, and what more users would cost.

python benchmarks/scale.py --users 20000       a short look; writes nothing
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from statistics import median
from typing import Any

import environment
from lists import INPUTS
from progress import say

FOLDER = INPUTS / "scale"
PROBE = environment.BENCHMARKS / "scale_probe.py"
SPARK = environment.BENCHMARKS / "scale_spark.py"

#: Users that costs are fitted on, and the number that they are checked on.
FITTED = (100_000, 1_000_000, 10_000_000)
CHECKED = 3_000_000

#: Users of the runs with workers, and of those with Spark.
WORKED = 1_000_000

#: Bytes that an evaluation may take: the whole process has less than 2 GB.
BUDGET = 1_600_000_000

MOST_ROUNDS = 3


def run(rivals: list[str], rounds: int, users: int = WORKED) -> dict[str, Any]:
    """Measure fresh processes; return the report."""
    rounds = min(rounds, MOST_ROUNDS)
    scaled = [n * users // WORKED for n in FITTED]
    report: dict[str, Any] = {
        "rivals": {environment.REFERENCE: environment.describe(environment.REFERENCE)},
        "budget": BUDGET,
        "kinds": {
            kind: costs(kind, scaled, CHECKED * users // WORKED, rounds)
            for kind in ("tables", "users")
        },
    }
    folder = inputs("users", users)["folder"]
    say("workers of Dask")
    report["workers"] = probe("workers", folder, 2)
    say("every metric, with workers and without")
    report["bits"] = probe("bits", folder)
    say("a worker is killed")
    report["killed"] = probe("killed", folder)
    if "spark" in rivals:
        report["rivals"]["spark"] = environment.describe("spark")
        if shutil.which("java") is None:
            report["spark"] = {"failed": "there is no Java"}
        else:
            say("Spark")
            tables = inputs("tables", users)["folder"]
            report["spark"] = environment.run("spark", SPARK, tables)
    return report


def probe(*arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = environment.run(environment.REFERENCE, PROBE, *map(str, arguments))
    return found


def inputs(kind: str, n_users: int) -> dict[str, Any]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    if kind == "tables":
        folder = FOLDER / f"tables-{n_users}"
        return {"folder": folder} | probe("tables", folder, n_users)
    folder = FOLDER / f"model-{n_users}"
    return {"folder": folder} | probe("model", folder, FOLDER / "drawn", n_users)


def costs(kind: str, sizes: list[int], checked: int, rounds: int) -> dict[str, Any]:
    """Measure some numbers of users, fit what they cost, and check that on another number."""
    cases = [case(kind, n, rounds) for n in (*sizes, checked)]
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


def case(kind: str, n_users: int, rounds: int) -> dict[str, Any]:
    say(f"{kind}: {n_users:,} users")
    made = inputs(kind, n_users)
    runs = [probe(f"evaluate_{kind}", made["folder"], BUDGET) for _ in range(rounds)]
    return {
        "n_users": n_users,
        "input_bytes": made["bytes"],
        "seconds": median(one["seconds"] for one in runs),
        "peak_bytes": max(one["bytes"] for one in runs),
        "bytes_before": runs[0]["bytes_before"],
        "runs": [one["seconds"] for one in runs],
    }


def fit(cases: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the seconds of an evaluation and of a user, by least squares of relative errors."""
    rows = [(1 / one["seconds"], one["n_users"] / one["seconds"]) for one in cases]
    a = sum(x * x for x, _ in rows)
    b = sum(x * y for x, y in rows)
    c = sum(y * y for _, y in rows)
    d, e = sum(x for x, _ in rows), sum(y for _, y in rows)
    determinant = a * c - b * b
    return (c * d - b * e) / determinant, (a * e - b * d) / determinant


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=20_000, help="instead of a million")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    json.dump(run([], arguments.rounds, arguments.users), sys.stdout, indent=2)


if __name__ == "__main__":
    main()
