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
    say("running the demo")
    return {"demo": output("demo", *(TOY if job.smoke else ()))}


def output(*arguments: str) -> str:
    """Return the output of the command line in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            environment.command(environment.REFERENCE, "-c", COMMAND, *arguments),
            env=environment.variables(environment.REFERENCE),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} failed: {done.stdout.splitlines()[-1]}")
    return done.stdout.rstrip("\n")


def metrics(*arguments: str) -> str:
    """Return the output of `sparse-eval metrics`, which is the registry."""
    environment.use_running_python()
    return output("metrics", *arguments, "--format", "markdown")


TABLES = {
    "demo": lambda report: f"```text\n{report['demo']}\n```",
    "metrics": lambda _report: metrics(),
    "conventions": lambda _report: metrics("--convention", "all"),
}
