"""Conventions, for tests that go through every way: those that count alike are tested once.

Others of the same rules differ in the options of metrics alone, which tests of formulas have; the
ways are gone through with them in ``scripts/test --full``.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from scipy.sparse import csr_matrix

from sparse_eval.metrics.conventions import CONVENTIONS, Convention

#: What says nothing about how users and items are counted.
_BESIDE = ("name", "library", "options", "notes", "unlike")


def rules_of(convention: Convention) -> tuple[object, ...]:
    return tuple(
        getattr(convention, each.name) for each in fields(convention) if each.name not in _BESIDE
    )


_FIRST = {rules_of(convention): name for name, convention in reversed(CONVENTIONS.items())}


def accepted(stored: csr_matrix, convention: str | None) -> csr_matrix:
    """Return gains that a convention accepts: 1 for each stored zero if zeros are an error."""
    copy = stored.copy()
    if CONVENTIONS[convention or "standard"].refuses_zeros:
        copy.data[copy.data == 0] = 1
    return copy


def each_convention(*more: object) -> list[Any]:
    """Return a parameter for each convention, followed by the same others."""
    return [
        pytest.param(
            name, *more, marks=() if _FIRST[rules_of(convention)] == name else pytest.mark.long
        )
        for name, convention in CONVENTIONS.items()
    ]
