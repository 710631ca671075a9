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


def demo(report: dict[str, Any]) -> str:
    return f"```text\n{report['demo']}\n```"


def metrics(*arguments: str) -> str:
    """Return the output of `sparse-eval metrics`, which is the registry."""
    environment.use_running_python()
    command = environment.command(
        environment.REFERENCE, "-c", COMMAND, "metrics", *arguments, "--format", "markdown"
    )
    variables = environment.variables(environment.REFERENCE)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


TABLES = {
    "demo": demo,
    "metrics": lambda _report: metrics(),
    "conventions": lambda _report: metrics("--convention", "all"),
}
