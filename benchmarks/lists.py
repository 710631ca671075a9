"""Suite `lists`: every rival scores the same lists, from its own raw form.

Values are compared before anything is timed; then the rivals take turns, round by round.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import environment
from client import Client
from progress import say
from turns import take_turns

if TYPE_CHECKING:
    from collections.abc import Callable

INPUTS = environment.BENCHMARKS / "inputs"
TOLERANCE = 1e-9
TURN_SECONDS = 0.3


class MismatchError(Exception):
    """Two libraries gave different values, so their times must not be compared."""


class Case(NamedTuple):
    """One contest."""

    name: str
    task: str
    inputs: str = "full"  # "few": for the rivals that hold dense matrices only
    most_rounds: int = 1000  # fewer where a rival needs most of a minute


# "in hand": the library's own objects exist. "whole call": they are made from the library's raw
# form (arrays, frames or dictionaries, whichever it takes) in the timed call.
CASES = (
    Case("ndcg@10, objects in hand", "ndcg@10"),
    Case("ndcg@10, whole call", "ndcg@10, whole call"),
    Case("several metrics", "several metrics"),
    Case("all accuracy metrics", "all accuracy metrics"),
    Case("diversity@10", "diversity@10", most_rounds=3),
    Case("ndcg@10, dense", "ndcg@10", inputs="few"),
)


def run(rivals: list[str], rounds: int) -> dict[str, Any]:
    """Measure all cases; return the report.

    Raises `MismatchError` when two libraries disagree.
    """
    report: dict[str, Any] = {
        "tolerance": TOLERANCE,
        "inputs": write_inputs(),
        "rivals": {name: environment.describe(name) for name in rivals},
        "cases": {},
    }
    for inputs in report["inputs"]:
        with ExitStack() as stack:
            clients = start(inputs, report["rivals"], stack)
            for case in CASES:
                if case.inputs == inputs:
                    report["cases"][case.name] = contest(case, clients, rounds)
    return report


def write_inputs() -> dict[str, Any]:
    """Write the lists; return the size and shape of each file of them."""
    say("writing the inputs")
    return environment.run(environment.PINNED, environment.BENCHMARKS / "make_inputs.py", INPUTS)


def start(inputs: str, rivals: dict[str, Any], stack: ExitStack) -> dict[str, Client]:
    """Start and prepare the workers; the entry of one that fails says why."""
    clients = {}
    for name, entry in rivals.items():
        dense = environment.RIVALS[name].get("dense", False)
        if "failed" in entry or (name != environment.REFERENCE and dense != (inputs == "few")):
            continue
        say(f"{name}: preparing its own form of the {inputs} lists")
        try:
            client = stack.enter_context(Client(name, INPUTS / f"{inputs}.npz"))
            entry[f"prepare_{inputs}_seconds"] = client.prepare()
        except RuntimeError as error:
            say(f"{name}: left out: {error}")
            entry["failed"] = str(error)
            continue
        clients[name] = client
    return clients


def contest(case: Case, clients: dict[str, Client], rounds: int) -> dict[str, Any]:
    """Compare the values of everybody who takes part, then time them in turn."""
    contestants = {name: client for name, client in clients.items() if case.task in client.tasks}
    differences, failed = compare(case, contestants)
    measures: dict[str, Callable[[], float]] = {
        name: partial(warm_seconds, contestants[name], case.task) for name in differences
    }
    rounds = min(rounds, case.most_rounds)
    entries = take_turns(case.name, measures, rounds)
    for label, found in differences.items():
        entries[label]["max_difference"] = max(found.values())
        entries[label]["metrics_compared"] = sorted(found)
    return {"inputs": case.inputs, "rounds": rounds, "contestants": entries | failed}


def warm_seconds(client: Client, task: str) -> float:
    """Return the median of the calls that fit into a turn, after one that is not timed.

    While the others had their turn, the caches were theirs, and threads of a parallel loop go on
    spinning for a while: a call of a few milliseconds would be measured cold if it came alone.
    """
    client.time(task)
    seconds: list[float] = []
    while sum(seconds) < TURN_SECONDS:
        seconds.append(client.time(task))
    return median(seconds)


def compare(
    case: Case, contestants: dict[str, Client]
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, str]]]:
    """Return how far each one's values are from the first one's, by metric; and who failed."""
    say(f"{case.name}: comparing values")
    script = environment.BENCHMARKS / "compare.py"
    differences: dict[str, dict[str, float]] = {}
    failed: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, client in contestants.items():
            values = Path(folder, f"{name}.npz")
            try:
                client.save(case.task, values)
            except RuntimeError as error:
                say(f"{case.name}: {name} failed: {error}")
                failed[name] = {"failed": str(error)}
                continue
            if not differences:
                first, reference = name, values
            differences[name] = environment.run(environment.PINNED, script, reference, values)
            for metric, difference in differences[name].items():
                if difference > TOLERANCE:
                    raise MismatchError(
                        f"{case.name}: {name} and {first} differ by {difference:.3g} "
                        f"in {metric}, more than {TOLERANCE:g}"
                    )
    return differences, failed
