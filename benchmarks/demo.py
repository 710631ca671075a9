"""Suite `demo`: what the command line prints, for the README."""

import subprocess
import tempfile
from typing import Any

import environment
from progress import say


def run(rivals: list[str], rounds: int) -> dict[str, Any]:
    """Run the demo once; return the report. No rival takes part, and there are no rounds."""
    del rivals, rounds
    command = environment.python(environment.REFERENCE).with_name("sparse-eval")
    with tempfile.TemporaryDirectory() as folder:
        say("running the demo")
        demo = _run([command, "demo"], folder)
        metrics = _run([command, "metrics", "--format", "markdown"], folder)
    return {"demo": demo, "metrics": metrics}


def _run(command: list[Any], folder: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[1]} failed: {done.stdout.splitlines()[-1]}")
    return done.stdout.rstrip("\n")
