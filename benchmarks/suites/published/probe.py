"""Evaluate one row of a table."""

from pathlib import Path
from typing import Any

import sparse_eval as se

from .data import READERS
from .models import MODELS


def row(table: str, folder: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return each run's value of each metric of a row of printed.toml."""
    data = READERS[table](Path(folder))
    values: dict[str, list[float]] = {metric: [] for metric in asked["metrics"]}
    for number in range(asked["runs"]):
        train, held_out, candidates = data.renumbered(number)
        model = MODELS[asked["model"]](train, number, **asked["options"])
        found = se.evaluate_model(
            model, train, held_out, asked["metrics"], candidates=candidates, progress=False
        )
        for metric, figures in values.items():
            figures.append(found[metric])
    return {"values": values, "n_users": found.n_users}
