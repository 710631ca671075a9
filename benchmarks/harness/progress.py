"""Progress goes to stderr: stdout stays free for results."""

import sys
import time

_START = time.monotonic()


def say(message: str) -> None:
    """Print one line, with the seconds since the start."""
    print(f"[{time.monotonic() - _START:6.1f} s] {message}", file=sys.stderr, flush=True)
