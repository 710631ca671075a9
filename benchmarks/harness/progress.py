"""Progress goes to stderr: stdout stays free for results."""

import sys
import time

_START = time.monotonic()


def say(message: str) -> None:
    """Write one line, with the seconds since the start, at once: suites may run in threads."""
    sys.stderr.write(f"[{time.monotonic() - _START:6.1f} s] {message}\n")
    sys.stderr.flush()
