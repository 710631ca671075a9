"""Fuzzers go on until their time is over, and say how to repeat what failed."""

import time
from random import Random

import pytest


class Tries:
    """Generators of random numbers, one for each try, until the time is over.

    A try depends on the seed and its number only, so that a longer run begins as a shorter one
    does, and one try can be repeated.
    """

    def __init__(self, seed, first, seconds):
        self.seed, self.first, self.seconds = seed, first, seconds
        self.number = first

    def __iter__(self):
        end = time.monotonic() + self.seconds
        while True:
            yield Random(f"{self.seed}/{self.number}")  # noqa: S311 - no secret
            if time.monotonic() > end:
                return
            self.number += 1

    def __str__(self):
        return (
            f"{self.number - self.first + 1:,} tries; the last one again: --fuzz-seed {self.seed} "
            f"--fuzz-first {self.number} --fuzz-seconds 0"
        )


@pytest.fixture
def tries(pytestconfig):
    """Return the tries of a fuzzer."""
    names = ("seed", "first", "seconds")
    tries = Tries(*(pytestconfig.getoption(f"--fuzz-{name}") for name in names))
    yield tries
    print(tries)  # noqa: T201 - shown of a fuzzer that failed, and of all of them by -rA
