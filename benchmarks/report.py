"""Results as JSON: what was measured, on which machine, when."""

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")


def write(suite: str, rounds: int, report: dict[str, Any]) -> Path:
    """Write results/SUITE.json; a reader sees the old file or the new one, never half of it."""
    header = {
        "suite": suite,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": rounds,
        "machine": machine(),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{suite}.json"
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(header | report, indent=2) + "\n", encoding="utf-8")
    unfinished.replace(path)
    return path


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
