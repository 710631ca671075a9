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
    return {"values": {name: found[name] for name in asked["metrics"]}, "n_users": found.n_users}
