"""The output of the command line: the recorded demo, and the current metrics."""

import subprocess
from typing import Any

from harness import environment

from .suite import COMMAND


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
