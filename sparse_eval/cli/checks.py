"""Checks of numbers that commands are given, before they read data for minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.arguments import check_fraction, check_number, check_whole

if TYPE_CHECKING:
    from .options import ALS, Splitting


def check_als(als: ALS) -> None:
    """Raise `InvalidDataError` if a hyperparameter is out of its range."""
    check_whole("factors", als.factors, 1)
    check_whole("iterations", als.iterations, 1)
    check_number("alpha", als.alpha, 0, open_end=True)
    check_number("regularization", als.regularization, 0)


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
