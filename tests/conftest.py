"""Fixtures and paths that several tests share."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell that runs the tests in the background has Ctrl-C ignored, here and in all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A kernel's first call compiles it, which no deadline should count.
settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")

_SHARED = Path(__file__).parents[2] / "shared" / "data" / "gowalla"


@pytest.fixture
def gowalla() -> Path:
    """Return the folder of the real Gowalla split."""
    if not _SHARED.is_dir():
        pytest.skip("the Gowalla split is not beside the project (../shared/data/gowalla)")
    return _SHARED
