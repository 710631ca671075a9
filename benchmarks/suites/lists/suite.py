"""Suite `lists`: every rival scores the same lists, from its native input.

Values are compared before anything is timed. Then the rivals run in alternating rounds.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import environment
from harness.client import Client
from harness.job import Job, MismatchError
from harness.progress import say
from harness.turns import take_turns, turn_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

SUITE = "lists"
HERE = Path(__file__).parent
TOLERANCE = 1e-9


class Case(NamedTuple):
    """One case of the comparison."""

    name: str
    task: str
    inputs: str = "full"  # "few": for rivals that only use dense matrices
    most_rounds: int = 1000  # fewer if a rival needs most of a minute


# "in hand": the library's own objects exist. "whole call": the timed call makes them from the
# library's native input (arrays, frames or dictionaries).
CASES = (
    Case("ndcg@10, objects in hand", "ndcg@10"),
    Case("ndcg@10, whole call", "ndcg@10, whole call"),
    Case("several metrics", "several metrics"),
    Case("all accuracy metrics", "all accuracy metrics"),
    Case("diversity@10", "diversity@10", most_rounds=3),
    Case("ndcg@10, dense", "ndcg@10", inputs="few"),
)


def run(job: Job) -> dict[str, Any]:
    """Measure all cases; return the report.

    Raises `MismatchError` if two libraries disagree.
    """
    report: dict[str, Any] = {
        "tolerance": TOLERANCE,
        "inputs": write_inputs(job),
        "rivals": job.describe(),
        "cases": {},
    }
    cases = [case for case in CASES if case.name.startswith(job.case)]
    for inputs in report["inputs"]:
        with ExitStack() as stack:
            clients = start(job, inputs, report["rivals"], stack)
            for case in cases:
                if case.inputs == inputs:
                    report["cases"][case.name] = contest(job, case, clients)
    return report


def write_inputs(job: Job) -> dict[str, Any]:
    """Write the lists; return the size and shape of each file."""
    say("writing the inputs")
    size = "toy" if job.smoke else "full"
    return environment.run(environment.PINNED, HERE / "inputs.py", job.inputs / SUITE, size)


def start(job: Job, inputs: str, rivals: dict[str, Any], stack: ExitStack) -> dict[str, Client]:
    """Start and prepare the workers; if a worker fails, its entry has the reason."""
    clients = {}
    for name, entry in rivals.items():
        library = environment.library(name)
        dense = environment.RIVALS[library].get("dense", False)
        if "failed" in entry or (library != environment.REFERENCE and dense != (inputs == "few")):
            continue
        say(f"{name}: preparing its own form of the {inputs} lists")
        try:
            client = stack.enter_context(Client(SUITE, name, job.inputs / SUITE / f"{inputs}.npz"))
            entry[f"prepare_{inputs}_seconds"] = client.prepare()
        except RuntimeError as error:
            say(f"{name}: left out: {error}")
            entry["failed"] = str(error)
            continue
        clients[name] = client
    return clients


def contest(job: Job, case: Case, clients: dict[str, Client]) -> dict[str, Any]:
    """Compare the values of all contestants, then time them in turn."""
    contestants = {name: client for name, client in clients.items() if case.task in client.tasks}
    differences, failed = compare(case, contestants)
    measures: dict[str, Callable[[], float]] = {
        name: partial(turn_seconds, contestants[name], case.task, job.turn_seconds, warm=True)
        for name in differences
    }
    rounds = min(job.rounds, case.most_rounds)
    entries = take_turns(case.name, measures, rounds, warm_up=not job.smoke)
    for label, found in differences.items():
        entries[label]["max_difference"] = max(found.values())
        entries[label]["metrics_compared"] = sorted(found)
    return {"inputs": case.inputs, "rounds": rounds, "contestants": entries | failed}


def compare(
    case: Case, contestants: dict[str, Client]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, str]]]:
    """Return the differences of all values from the first contestant's, and the failures."""
    say(f"{case.name}: comparing values")
    differences: dict[str, dict[str, float]] = {}
    failed: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, client) in enumerate(contestants.items()):
            values = Path(folder, f"{number}.npz")
            try:
                client.save(case.task, values)
            except RuntimeError as error:
                say(f"{case.name}: {name} failed: {error}")
                failed[name] = {"failed": str(error)}
                continue
            if not differences:
                first, reference = name, values
            script = HERE / "compare.py"
            differences[name] = environment.run(environment.PINNED, script, reference, values)
            for metric, difference in differences[name].items():
                if difference > TOLERANCE:
                    raise MismatchError(
                        f"{case.name}: {name} and {first} differ by {difference:.3g} "
                        f"in {metric}, more than {TOLERANCE:g}"
                    )
    return differences, failed
