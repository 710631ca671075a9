"""The peak of resident memory during some work, above the level at its start."""

import ctypes
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
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    yield peak
    peak.append(max(0, resident("VmHWM") - start))


def resident(field: str) -> int:
    """Return one of the kernel's figures about this process, in bytes."""
    return kernel_bytes(field, STATUS)


def kernel_bytes(field: str, path: Path) -> int:
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise KeyError(field)
