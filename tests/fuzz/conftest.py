"""Fuzzers make a number of tries, or go on for a time, and say how to repeat what failed."""

import time
from random import Random

import pytest


class Tries:
    """Generators of random numbers, one for each try.

    A try depends on the seed and its number only, so that a longer run begins as a shorter one
    does, and one try can be repeated.
    """

    def __init__(self, n, seed, first, seconds):
        self.n, self.seed, self.first, self.seconds = n, seed, first, seconds
        self.number = first

    def __iter__(self):
        start = time.monotonic()
        while True:
            yield Random(f"{self.seed}/{self.number}")  # noqa: S311 - no secret
            if self.seconds is None:
                is_over = self.number - self.first + 1 == self.n
            else:
                is_over = time.monotonic() > start + self.seconds
            if is_over:
                return
            self.number += 1

    def __str__(self):
        return (
            f"{self.number - self.first + 1:,} tries; the last one again: --fuzz-seed {self.seed} "
            f"--fuzz-first {self.number} --fuzz-seconds 0"
        )


@pytest.fixture
def tries(request):
    """Return the tries of a fuzzer: as many as its module says, or for the time that is given."""
    option = request.config.getoption
    options = (option(f"--fuzz-{name}") for name in ("seed", "first", "seconds"))
    tries = Tries(request.module.N_TRIES, *options)
    yield tries
    print(tries)  # noqa: T201 - shown of a fuzzer that failed, and of all of them by -rA
