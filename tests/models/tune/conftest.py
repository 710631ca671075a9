"""Data and searches that the tests of tuning share."""

from __future__ import annotations

from typing import Any

import pytest
from tune_cases import (
    PARAMETERS,
    search,
    three_parts,
)

import sparse_eval as se
import sparse_eval.models.tune as tuning


@pytest.fixture(scope="module")
def parts() -> tuple[Any, Any]:
    return three_parts()


@pytest.fixture(scope="module")
def whole_search(parts: tuple[Any, Any]) -> tuning.Tuning:
    """Return the result of an uninterrupted search."""
    return search(parts)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect each training: the number of stored training pairs, and the parameters."""
    calls: list[Any] = []

    def counted(train: Any, **options: Any) -> Any:
        calls.append((train.nnz, *(options[name] for name in PARAMETERS)))
        return se.train_als(train, **options)

    monkeypatch.setattr(tuning, "train_als", counted)
    return calls
