"""Evaluate one row of a table.

    python -P probe.py toys FOLDER              writes toy data, in a folder for each table
    python -P probe.py row TABLE FOLDER ROW     evaluates a row of printed.toml, given as JSON

Each prints one JSON object.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # at the end: libraries come before our modules
from suites.published.data import READERS, write_toys
from suites.published.models import MODELS

import sparse_eval as se


def toys(folder: str) -> dict[str, Any]:
    write_toys(Path(folder))
    return {}


def row(table: str, folder: str, text: str) -> dict[str, Any]:
    """Return each run's value of each metric, and the cost of the row."""
    asked = json.loads(text)
    data = READERS[table](Path(folder))
    start = time.perf_counter()
    values: dict[str, list[float]] = {metric: [] for metric in asked["metrics"]}
    for number in range(asked["runs"]):
        train, held_out, candidates = data.renumbered(number)
        model = MODELS[asked["model"]](train, number, **asked["options"])
        found = se.evaluate_model(
            model, train, held_out, asked["metrics"], candidates=candidates, progress=False
        )
        for metric, figures in values.items():
            figures.append(found[metric])
    return {
        "values": values,
        "n_users": found.n_users,
        "n_items": train.shape[1],
        "n_train": train.nnz,
        "seconds": time.perf_counter() - start,
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


JOBS = {"toys": toys, "row": row}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
