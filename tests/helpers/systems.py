"""What only some systems have."""

from __future__ import annotations

import os

import pytest


def need_posix() -> None:
    """Skip a test of signals, limits or pipes where the system has none."""
    if os.name != "posix":
        pytest.skip("needs signals, limits or pipes of POSIX")
