"""Fuzzers go on until their time is over, and say how to repeat what failed."""

import pytest
from tries import Tries


@pytest.fixture
def tries(pytestconfig):
    """Return the tries of a fuzzer."""
    names = ("seed", "first", "seconds")
    tries = Tries(*(pytestconfig.getoption(f"--fuzz-{name}") for name in names))
    yield tries
    print(tries)  # noqa: T201 - shown of a fuzzer that failed, and of all of them by -rA
