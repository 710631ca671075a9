"""Evaluate one row of a table."""

import resource
import time
from pathlib import Path
from typing import Any

import sparse_eval as se

from .data import READERS
from .models import MODELS


def row(table: str, folder: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return each run's value of each metric of a row of printed.toml, and the cost of the row."""
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
            figures.append(as_published(metric, found[metric], train.shape[1]))
    return {
        "values": values,
        "n_users": found.n_users,
        "n_items": train.shape[1],
        "n_train": train.nnz,
        "seconds": time.perf_counter() - start,
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def as_published(metric: str, value: float, n_items: int) -> float:
    """Return the value of a metric, or, for gini, the diversity that tables have in its place."""
    return 1 - n_items / (n_items + 1) * value if metric.startswith("gini") else value
