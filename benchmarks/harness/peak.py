"""The peak of resident memory during some work, above the level at its start."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATUS = Path("/proc/self/status")


@contextmanager
def peak_above_start() -> Iterator[list[int]]:
    """Yield a list, and then append the peak of resident memory above the level at the start."""
    peak: list[int] = []
    # Return freed memory to the system; otherwise, it would be used again without being counted.
    ctypes.CDLL(None).malloc_trim(0)
    start = resident("VmRSS")
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    except OSError:
        with sampled_peak() as sampled:
            yield peak
        highest = max(sampled)
    else:
        yield peak
        highest = resident("VmHWM")
    peak.append(max(0, highest - start))


@contextmanager
def sampled_peak() -> Iterator[list[int]]:
    """Sample resident memory every millisecond, if its peak cannot be reset."""
    samples = [resident("VmRSS")]
    finished = threading.Event()

    def sample() -> None:
        while not finished.wait(0.001):
            samples.append(resident("VmRSS"))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        finished.set()
        thread.join()


def resident(field: str) -> int:
    """Return one of the kernel's figures about this process, in bytes."""
    return kernel_bytes(field, STATUS)


def kernel_bytes(field: str, path: Path) -> int:
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise KeyError(field)
