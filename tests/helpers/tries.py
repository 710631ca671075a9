"""Tries of a fuzzer: numbered, each with random numbers of its own, until the time is over."""

import time
from random import Random


class Tries:
    """What a fuzzer iterates over: generators of random numbers, one for each try.

    What a try does depends on the seed and its number alone, so that a longer run begins as a
    shorter one does, and one try can be repeated.
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
