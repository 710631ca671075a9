"""Processes that are killed before they move a file to its place."""

import signal
import subprocess
import sys
from pathlib import Path

from systems import need_posix

_KILLING = """
import os, signal, sys
from pathlib import Path

replace, calls, call = Path.replace, [], int(sys.argv.pop(1))

def killing(self, target):
    calls.append(target)
    if len(calls) == call:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)

Path.replace = killing
"""


def run_killed(code, call, *arguments):
    """Run code with arguments, which is killed before it moves the file of that number."""
    need_posix()
    done = subprocess.run(
        [sys.executable, "-c", _KILLING + code, str(call), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
