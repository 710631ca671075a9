"""Checkpoints to sweep over, and what the tests do to them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

N_USERS, N_ITEMS = 250, 60
METRICS = ["ndcg@10", "recall@{5,20}", "novelty@5"]
NAMES = ["ndcg@10", "recall@5", "recall@20", "novelty@5"]


def save(path: Path, factors: int = 4, seed: int = 0, **arrays: Any) -> Path:
    """Save what a model of implicit would."""
    rng = np.random.default_rng([seed, factors])
    parts = {
        "user_factors": rng.standard_normal((N_USERS, factors)).astype(np.float32),
        "item_factors": rng.standard_normal((N_ITEMS, factors)).astype(np.float32),
        "factors": factors,
        "alpha": 40.0,
        "use_cg": True,
        "dtype": "float32",
    }
    np.savez(path, **(parts | arrays))
    return path


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def same_table(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """Return True if two tables are equal, apart from the durations; raise otherwise."""
    pd.testing.assert_frame_equal(
        first.drop(columns="seconds"), second.drop(columns="seconds"), check_exact=True
    )
    return True


def overwrite(path: Path, content: bytes) -> None:
    """Overwrite a file in place, with a time of last change that is a second later."""
    last = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(last, last + 10**9))


def swap(path: Path, content: bytes) -> None:
    """Replace a file by another of the same size and time."""
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    replacement = path.with_suffix(".other")
    replacement.write_bytes(content)
    os.utime(replacement, ns=times)
    replacement.replace(path)


@contextmanager
def changing(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, path: Path, changes: list[Any]
) -> Iterator[None]:
    """Apply the next change to a file each time that a function has read it."""
    read = getattr(owner, name)

    def reads(given: Any, *more: Any) -> Any:
        try:
            return read(given, *more)
        finally:
            if str(getattr(given, "name", given)) in (str(path), path.name) and changes:
                changes.pop(0)()

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, reads)
        yield
    assert changes == []
