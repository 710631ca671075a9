"""Suite `published`: published tables, and our results on the same data.

Models have a closed form, or are ALS; metrics, rankings and candidates come from the package. Each
row is evaluated in its own process.
"""

import tomllib
from pathlib import Path
from typing import Any

from harness.files import find
from harness.job import Job, MismatchError
from harness.peak import kernel_bytes
from harness.progress import say
from harness.report import read

from .tables import TABLES

__all__ = ["TABLES", "run"]

HERE = Path(__file__).parent

#: The tables and their rows, as published.
PRINTED: dict[str, dict[str, Any]] = tomllib.loads(
    (HERE / "printed.toml").read_text(encoding="utf-8")
)

#: The largest difference from the published figure without a note that explains it: a number for
#: figures up to 1, and a share of larger ones.
TOLERANCE = 0.0005

#: The options for toy data.
TOYS = {"factors": 8, "iterations": 2}


def run(job: Job) -> dict[str, Any]:
    """Evaluate the rows whose data are available; return the report. There are no rounds.

    With ``--case NAME``, only the tables whose names begin with NAME are evaluated again, and the
    other tables come from the previous results.

    Raises `MismatchError` if a row differs from the published figures by more than it may.
    """
    folder = job.inputs / "toys" if job.smoke else job.data
    if job.smoke:
        say("writing toy data")
        job.call("suites.published.data:write_toys", folder)
    tables: dict[str, Any] = read("published")["tables"] if job.case else {}
    for name, table in PRINTED.items():
        if not name.startswith(job.case):
            continue
        found = tables[name] = {key: table[key] for key in table if key not in ("files", "rows")}
        found["rows"], found["left_out"] = [], {}
        try:
            place = find(name, table["files"], folder)
        except FileNotFoundError as error:
            say(f"{name}: left out: {error}")
            found["left_out"] = {row["title"]: str(error) for row in table["rows"]}
            continue
        for row in table["rows"]:
            if why := too_large(row, job):
                say(f"{name}: {row['title']}: left out: {why}")
                found["left_out"][row["title"]] = why
                continue
            found["rows"].append(evaluate(name, table, row, place, job))
    if not job.smoke and (wrong := list(unexplained(tables))):
        raise MismatchError("\n  ".join(["figures differ, and no note says why", *wrong]))
    return {"tolerance": TOLERANCE, "tables": tables}


def too_large(row: dict[str, Any], job: Job) -> str:
    """Return why there is not enough memory for a row, or an empty text."""
    needed = row.get("memory_bytes", 0)
    if job.smoke or needed <= (free := kernel_bytes("MemAvailable", Path("/proc/meminfo"))):
        return ""
    return f"it takes {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"


def evaluate(
    name: str, table: dict[str, Any], row: dict[str, Any], place: Path, job: Job
) -> dict[str, Any]:
    """Return a row with our results, and their differences from the published figures."""
    if "model" not in row:
        return row
    say(f"{name}: {row['title']}")
    options = dict(row.get("options", {}))
    if job.smoke:
        options |= {name: least for name, least in TOYS.items() if name in options}
    asked = {"model": row["model"], "options": options, "metrics": table["metrics"]}
    found = job.call("suites.published.probe:row", name, place, asked)
    pairs = zip(found["values"].items(), row["printed"], strict=True)
    differences = {metric: value - float(printed) for (metric, value), printed in pairs if printed}
    return row | found | {"differences": differences}


def unexplained(tables: dict[str, Any]) -> list[str]:
    """Return the figures that differ too much from the published ones, in rows without a note."""
    return [
        f"{name}: {row['title']}: {metric} by {difference:+.6f}"
        for name, table in tables.items()
        for row in table["rows"]
        for metric, difference in row.get("differences", {}).items()
        if abs(difference) > TOLERANCE * max(1, row["values"][metric]) and "note" not in row
    ]
