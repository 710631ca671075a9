"""The driver's end of a worker process: start it, send requests, collect its answers."""

import json
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self, cast

from . import environment
from .progress import say


class Client:
    """Starts a rival's worker, which builds the native input, and sends requests to it.

    The rival's script in the folder of the suite defines the measurement. If the worker has ended,
    `RuntimeError` is raised with the last line that it wrote.
    """

    def __init__(self, suite: str, name: str, inputs: Path) -> None:
        worker = Path(__file__).with_name("worker.py")
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - see __exit__
        self._process = subprocess.Popen(
            environment.command(name, worker, suite, environment.library(name), inputs),
            env=environment.variables(name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._requests = cast("IO[str]", self._process.stdin)
        self._answers = cast("IO[str]", self._process.stdout)
        self.tasks: list[str] = []

    def prepare(self) -> float:
        """Wait until the library's native input is built; return the seconds."""
        answer = self._answer()
        self.tasks = answer["tasks"]
        return answer["seconds"]

    def time(self, task: str) -> float:
        """Run one scoring call; return the seconds."""
        return self._ask(do="time", task=task)["seconds"]

    def save(self, task: str, path: Path) -> int:
        """Run one scoring call and write its values to a file; return its peak memory in bytes."""
        return self._ask(do="save", task=task, path=str(path))["bytes"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # a worker ends at the end of its input
        self._log.close()

    def _ask(self, **request: Any) -> dict[str, Any]:
        try:
            self._requests.write(json.dumps(request) + "\n")
            self._requests.flush()
        except BrokenPipeError:
            pass  # the answer is empty, too
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            said = self._log.read().strip().splitlines()
            raise RuntimeError(said[-1] if said else f"exit code {self._process.returncode}")
        return json.loads(line)


def start(suite: str, rivals: dict[str, Any], inputs: Path, stack: ExitStack) -> dict[str, Client]:
    """Start and prepare the workers; the entry of a rival that fails gets the reason."""
    clients = {}
    for name, entry in rivals.items():
        if "failed" in entry:
            continue
        say(f"{name}: preparing its own form of {inputs.stem}")
        try:
            client = stack.enter_context(Client(suite, name, inputs))
            entry[f"prepare_{inputs.stem}_seconds"] = client.prepare()
        except RuntimeError as error:
            say(f"{name}: left out: {error}")
            entry["failed"] = str(error)
            continue
        clients[name] = client
    return clients
