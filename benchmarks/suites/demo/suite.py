"""Suite `demo`: the output of the command line, for the README and the page of the metrics."""

import subprocess
import tempfile
from typing import Any

from harness import environment
from harness.job import Job
from harness.progress import say

COMMAND = "import sys; from sparse_eval.cli import main; sys.exit(main())"

TOY = ("--users", "500", "--items", "300", "--factors", "8", "--iterations", "2")


def run(job: Job) -> dict[str, Any]:
    """Run the demo once; return the report. No rival takes part, and there are no rounds."""
    options = TOY if job.smoke else ()
    with tempfile.TemporaryDirectory() as folder:
        say("running the demo")
        done = subprocess.run(
            environment.command(environment.REFERENCE, "-c", COMMAND, "demo", *options),
            env=environment.variables(environment.REFERENCE),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"demo failed: {done.stdout.splitlines()[-1]}")
    return {"demo": done.stdout.rstrip("\n")}
