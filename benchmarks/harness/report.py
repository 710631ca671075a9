"""Results as JSON, with the machine and the date."""

import json
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .files import replacing

RESULTS = Path(__file__).resolve().parents[1] / "results"


def write(suite: str, rounds: int, report: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write FOLDER/SUITE.json atomically."""
    header = {
        "suite": suite,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": rounds,
        "machine": machine(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{suite}.json"
    with replacing(path) as unfinished:
        unfinished.write_text(
            json.dumps(header | report | header, indent=2) + "\n", encoding="utf-8"
        )
    return path


def read(suite: str) -> dict[str, Any]:
    """Return results/SUITE.json. Raises `FileNotFoundError`."""
    found: dict[str, Any] = json.loads((RESULTS / f"{suite}.json").read_text(encoding="utf-8"))
    return found


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def cores() -> int:
    return len(os.sched_getaffinity(0))


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def summarize(suite: str, found: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each contestant of each case, and for each rival that was left out."""
    for title, entries in _contests(suite, found):
        for name, entry in entries.items():
            if "failed" in entry:
                yield f"{title}: {name}: failed: {entry['failed']}"
                continue
            ratio = entry["ratio"]
            times = "" if ratio is None else f", {ratio:.2f} times the reference"
            yield f"{title}: {name}: {entry['median_seconds']:.4g} seconds{times}"
    for name, entry in found.get("rivals", {}).items():
        if "failed" in entry:
            yield f"{suite}: left out: {name}: {entry['failed']}"


def _contests(title: str, found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every part of a report that has contestants, with its title."""
    if isinstance(found, list):
        found = {str(entry.get("n_users", "")): entry for entry in found if isinstance(entry, dict)}
    if not isinstance(found, dict):
        return
    if "contestants" in found:
        yield title, found["contestants"]
    for name, entry in found.items():
        yield from _contests(title if name == "cases" else f"{title}, {name}", entry)
