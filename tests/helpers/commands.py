"""Run ``sparse-eval`` in tests, in this process or one of its own, and interrupt it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from systems import need_posix

#: Options of a quick training.
SMALL = ("--factors", "4", "--iterations", "2")


def start_command(*words, stdout=subprocess.PIPE, **environment):
    script = Path(sys.executable).with_name("sparse-eval")
    return subprocess.Popen(
        [script, *map(str, words)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def wait_for(condition, process):
    """Wait until the condition holds while the process is running."""
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.01)


def press_ctrl_c(process, condition, number=signal.SIGINT):
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
