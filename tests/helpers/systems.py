"""What only some systems have."""

import os

import pytest


def need_posix():
    """Skip a test of signals, limits or pipes where the system has none."""
    if os.name != "posix":
        pytest.skip("needs signals, limits or pipes of POSIX")
