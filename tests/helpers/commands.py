"""Run ``sparse-eval`` in tests, in this process or one of its own, and interrupt it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from systems import need_posix

#: A command run in this process: returns its status, standard output and standard error.
Command = Callable[..., tuple[int, str, str]]

#: Options of a quick training.
SMALL = ("--factors", "4", "--iterations", "2")


def start_command(
    *words: object, stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.Popen[str]:
    script = Path(sys.executable).with_name("sparse-eval")
    return subprocess.Popen(
        [script, *map(str, words)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until the condition holds while the process is running."""
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.01)


def press_ctrl_c(
    process: subprocess.Popen[str],
    condition: Callable[[], object],
    number: signal.Signals = signal.SIGINT,
) -> tuple[int, str, str]:
    """Press Ctrl-C once the condition holds; return the status, the output and the messages.

    Another signal may be sent in its place.
    """
    try:
        need_posix()
        wait_for(condition, process)
        process.send_signal(number)
        printed, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    return process.returncode, printed, said
