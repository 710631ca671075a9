"""Evaluate one row of a table."""

from pathlib import Path
from typing import Any

import sparse_eval as se

from .data import READERS
from .models import MODELS


def row(table: str, folder: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the value of each metric of a row of printed.toml."""
    train, held_out, candidates = READERS[table](Path(folder))
    model = MODELS[asked["model"]](train, **asked["options"])
    found = se.evaluate_model(
        model, train, held_out, asked["metrics"], candidates=candidates, progress=False
    )
    n_items = train.shape[1]
    values = {name: as_published(name, found[name], n_items) for name in asked["metrics"]}
    return {"values": values, "n_users": found.n_users}


def as_published(metric: str, value: float, n_items: int) -> float:
    """Return the value of a metric, or, for gini, the diversity that tables have in its place."""
    return 1 - n_items / (n_items + 1) * value if metric.startswith("gini") else value
