"""Suite `checkpoint`: rank every test user's unseen items, from a trained model's factors.

Everybody is given the same factors in single precision, and everybody's answer is compared with
the exact ranking before anything is timed; then they take turns, round by round.

python benchmarks/checkpoint.py --case gowalla-als64 --users 300      a short look; writes nothing
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import environment
from client import Client
from lists import INPUTS, MismatchError
from progress import say
from turns import take_turns

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = INPUTS / "checkpoint"
GOWALLA = environment.REPOSITORY.parent / "shared" / "data" / "gowalla"
OURS = f"{environment.REFERENCE}, top_k"

TURN_SECONDS = 0.3
# Threads of whoever had the last turn go on spinning for a while.
PAUSE_SECONDS = 0.2


class Case(NamedTuple):
    """One contest."""

    title: str
    model: str
    k: int

    @property
    def name(self) -> str:
        return f"{self.model}-k{self.k}"


CASES = (
    Case("Gowalla, ALS 64, alpha 40", "gowalla-als64", 20),
    Case("Gowalla, ALS 128, alpha 10", "gowalla-als128", 20),
    Case("Gowalla, ALS 256, alpha 10, overfitted", "gowalla-als256", 20),
    Case("Gowalla, BPR 64", "gowalla-bpr64", 20),
    Case("synthetic, ALS 64, alpha 40", "synthetic-als64", 10),
    Case("synthetic, random factors of norm 1, 64", "synthetic-unit64", 10),
    Case("Gowalla, ALS 64, alpha 40", "gowalla-als64", 100),
    Case("Gowalla, ALS 64, alpha 40", "gowalla-als64", 500),
)


def run(
    rivals: list[str],
    rounds: int,
    cases: tuple[Case, ...] = CASES,
    most_users: int | None = None,
) -> dict[str, Any]:
    """Measure the cases; return the report.

    Raises `MismatchError` when somebody's answer is not right.
    """
    skipped = {}
    if not (GOWALLA / "train.txt").exists():
        why = "no train.txt and test.txt of Gowalla in ../shared/data/gowalla, beside the project"
        skipped = {case.name: why for case in cases if case.model.startswith("gowalla")}
        say(f"{len(skipped)} cases left out: {why}")
    cases = tuple(case for case in cases if case.name not in skipped)
    report: dict[str, Any] = {
        "inputs": write_inputs(cases),
        "threads": len(os.sched_getaffinity(0)),
        "rivals": {name: environment.describe(name) for name in rivals},
        "skipped": skipped,
        "cases": {},
    }
    for case in cases:
        inputs = report["inputs"][case.model]
        path = FOLDER / f"{case.name}.json"
        path.write_text(
            json.dumps(
                {
                    "model": case.model,
                    "data": inputs["data"],
                    "k": case.k,
                    "threads": report["threads"],
                    "most_users": most_users,
                }
            ),
            encoding="utf-8",
        )
        with ExitStack() as stack:
            contestants = start(case, path, report["rivals"], stack)
            report["cases"][case.name] = {
                "title": case.title,
                "model": case.model,
                "k": case.k,
                "contestants": contest(case, path, contestants, rounds),
            }
    return report


def write_inputs(cases: tuple[Case, ...]) -> dict[str, Any]:
    """Train the models that are not there yet; return the size of each of them."""
    say("training the models, or finding them")
    script = environment.BENCHMARKS / "checkpoint_inputs.py"
    models = dict.fromkeys(case.model for case in cases)
    return environment.run(environment.REFERENCE, script, FOLDER, GOWALLA, *models)


def start(
    case: Case, path: Path, rivals: dict[str, Any], stack: ExitStack
) -> dict[str, tuple[Client, str]]:
    """Start and prepare the workers; return who takes part, by library and what it does."""
    contestants = {}
    for name, entry in rivals.items():
        if "failed" in entry:
            continue
        say(f"{case.name}: {name}: loading the factors")
        try:
            client = stack.enter_context(Client(name, path, scripts="checkpoint"))
            client.prepare()
        except RuntimeError as error:
            say(f"{name}: left out: {error}")
            entry["failed"] = str(error)
            continue
        contestants |= {f"{name}, {task}": (client, task) for task in client.tasks}
    return contestants


def contest(
    case: Case, path: Path, contestants: dict[str, tuple[Client, str]], rounds: int
) -> dict[str, Any]:
    """Check the answers of all who take part, then time them in turn."""
    found = check(case, path, contestants)
    measures: dict[str, Callable[[], float]] = {
        label: partial(turn_seconds, *contestants[label])
        for label, entry in found.items()
        if "failed" not in entry
    }
    entries = take_turns(case.name, measures, rounds, reference=OURS)
    return {label: found[label] | entries.get(label, {}) for label in contestants}


def turn_seconds(client: Client, task: str) -> float:
    """Return the median of the calls that fit into a turn, one at least."""
    time.sleep(PAUSE_SECONDS)
    seconds: list[float] = []
    while sum(seconds) < TURN_SECONDS:
        seconds.append(client.time(task))
    return median(seconds)


def check(
    case: Case, path: Path, contestants: dict[str, tuple[Client, str]]
) -> dict[str, dict[str, Any]]:
    """Return what was compared of each one's answer, and the peak of memory; or why it failed."""
    found: dict[str, dict[str, Any]] = {}
    answers: dict[str, Path] = {}
    with tempfile.TemporaryDirectory() as folder:
        for label, (client, task) in contestants.items():
            say(f"{case.name}: {label}: its first call")
            answer = Path(folder, f"{label}.npz")
            try:
                found[label] = {"peak_bytes": client.save(task, answer)}
            except RuntimeError as error:
                say(f"{case.name}: {label} failed: {error}")
                found[label] = {"failed": str(error)}
                continue
            answers[label] = answer
        if OURS not in answers:
            raise RuntimeError(f"{case.name}: {OURS} failed, and there is nothing to compare with")
        say(f"{case.name}: comparing")
        script = environment.BENCHMARKS / "checkpoint_check.py"
        checked = environment.run(environment.PINNED, script, path, *answers.values())
    for label, entry in zip(answers, checked, strict=True):
        if "wrong" in entry:
            raise MismatchError(f"{case.name}: {label} is wrong: {entry['wrong']}")
        found[label] |= entry
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", help="those whose name begins like this (default: all)")
    parser.add_argument("--users", type=int, help="so many of them, evenly spaced (default: all)")
    parser.add_argument("--only", help="rivals beside ours (default: all)")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else environment.RANKING
    rivals = [name for name in environment.RANKING if name in {environment.REFERENCE, *only}]
    cases = tuple(case for case in CASES if case.name.startswith(arguments.case or ""))
    json.dump(run(rivals, arguments.rounds, cases, arguments.users), sys.stdout, indent=2)


if __name__ == "__main__":
    main()
