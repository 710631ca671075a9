"""Conventions, for tests that go through every way."""

from __future__ import annotations

from scipy.sparse import csr_matrix

from sparse_eval.metrics import CONVENTIONS


def accepted(stored: csr_matrix, convention: str | None) -> csr_matrix:
    """Return gains that a convention accepts: 1 for each stored zero if zeros are an error."""
    copy = stored.copy()
    if CONVENTIONS[convention or "standard"].refuses_zeros:
        copy.data[copy.data == 0] = 1
    return copy


def each_convention() -> list[str]:
    """Return the names of all conventions."""
    return list(CONVENTIONS)
