"""Write progress to stderr, because stdout is for results."""

import sys
import time

_START = time.monotonic()


def say(message: str) -> None:
    """Write a line with the seconds since the start, in one call, as suites may run in threads."""
    sys.stderr.write(f"[{time.monotonic() - _START:6.1f} s] {message}\n")
    sys.stderr.flush()
