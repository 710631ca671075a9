"""Checks of numbers that commands are given, before they read data for minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.arguments import check_fraction, check_whole

if TYPE_CHECKING:
    from .options import Splitting


def check_splitting(splitting: Splitting) -> None:
    """Raise `InvalidDataError` if there is no such share or number to hold out."""
    if splitting.n is not None:
        check_whole("n", splitting.n, 1)
    for name in ("fraction", "fold_in"):
        if getattr(splitting, name) is not None:
            check_fraction(name, getattr(splitting, name))


def check_seed(seed: int) -> None:
    """Raise `InvalidDataError` if a seed is negative."""
    check_whole("seed", seed, 0)
