"""Suite `checkpoint`: rank every test user's unseen items, from a trained model's factors.

All contestants get the same factors in single precision, and all answers are compared with the
exact ranking before anything is timed. Then the contestants run in alternating rounds.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import environment
from harness.client import Client
from harness.data import find
from harness.job import Job, MismatchError
from harness.progress import say
from harness.turns import take_turns, turn_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

SUITE = "checkpoint"
HERE = Path(__file__).parent
GOWALLA = (("train.txt",), ("test.txt",))
OURS = f"{environment.REFERENCE}, top_k"

# The threads of the previous contestant keep spinning for a while.
PAUSE_SECONDS = 0.2

# Contestants whose first call takes longer are timed in one round only.
LONG_SECONDS = 30.0


class Case(NamedTuple):
    """One case of the comparison."""

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
TOYS = (Case("toy, ALS 16", "toy-als16", 10),)


def run(job: Job) -> dict[str, Any]:
    """Measure the cases; return the report.

    Raises `MismatchError` if an answer is not right.
    """
    folder = job.inputs / SUITE
    cases = tuple(case for case in (TOYS if job.smoke else CASES) if case.name.startswith(job.case))
    skipped = {}
    gowalla = folder
    if not job.smoke:
        try:
            gowalla = find("gowalla", GOWALLA, job.data)
        except FileNotFoundError as error:
            skipped = {case.name: str(error) for case in cases if case.model.startswith("gowalla")}
            say(f"{len(skipped)} cases left out: {error}")
    cases = tuple(case for case in cases if case.name not in skipped)
    report: dict[str, Any] = {
        "inputs": write_inputs(folder, gowalla, cases),
        "threads": len(os.sched_getaffinity(0)),
        "rivals": job.describe(),
        "skipped": skipped,
        "cases": {},
    }
    for case in cases:
        inputs = report["inputs"][case.model]
        path = folder / f"{case.name}.json"
        path.write_text(
            json.dumps(
                {
                    "model": case.model,
                    "data": inputs["data"],
                    "k": case.k,
                    "threads": report["threads"],
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
                "contestants": contest(job, case, path, contestants),
            }
    return report


def write_inputs(folder: Path, gowalla: Path, cases: tuple[Case, ...]) -> dict[str, Any]:
    """Train the models that do not exist yet; return the size of each model."""
    say("training the models, or finding them")
    models = dict.fromkeys(case.model for case in cases)
    return environment.run(environment.REFERENCE, HERE / "inputs.py", folder, gowalla, *models)


def start(
    case: Case, path: Path, rivals: dict[str, Any], stack: ExitStack
) -> dict[str, tuple[Client, str]]:
    """Start and prepare the workers; return the contestants by library and call."""
    contestants = {}
    for name, entry in rivals.items():
        if "failed" in entry:
            continue
        say(f"{case.name}: {name}: loading the factors")
        try:
            client = stack.enter_context(Client(SUITE, name, path))
            client.prepare()
        except RuntimeError as error:
            say(f"{name}: left out: {error}")
            entry["failed"] = str(error)
            continue
        contestants |= {f"{name}, {task}": (client, task) for task in client.tasks}
    return contestants


def contest(
    job: Job, case: Case, path: Path, contestants: dict[str, tuple[Client, str]]
) -> dict[str, Any]:
    """Check the answers of all contestants, then time them in turn."""
    found, long = check(case, path, contestants)
    measures: dict[str, Callable[[], float]] = {
        label: partial(turn_seconds, *contestants[label], job.turn_seconds, pause=PAUSE_SECONDS)
        for label, entry in found.items()
        if "failed" not in entry
    }
    entries = take_turns(
        case.name, measures, job.rounds, reference=OURS, once=long, warm_up=not job.smoke
    )
    return {label: found[label] | entries.get(label, {}) for label in contestants}


def check(
    case: Case, path: Path, contestants: dict[str, tuple[Client, str]]
) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Return the comparison and the memory peak of each contestant, or why it failed.

    The second result has the contestants whose calls took long.
    """
    found: dict[str, dict[str, Any]] = {}
    long = set()
    answers: dict[str, Path] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (label, (client, task)) in enumerate(contestants.items()):
            say(f"{case.name}: {label}: its first call")
            answer = Path(folder, f"{number}.npz")
            start = time.perf_counter()
            try:
                found[label] = {"peak_bytes": client.save(task, answer)}
            except RuntimeError as error:
                say(f"{case.name}: {label} failed: {error}")
                found[label] = {"failed": str(error)}
                continue
            answers[label] = answer
            if time.perf_counter() - start > LONG_SECONDS:
                long.add(label)
        if OURS not in answers:
            raise RuntimeError(f"{case.name}: {OURS} failed, and there is nothing to compare with")
        say(f"{case.name}: comparing")
        checked = environment.run(environment.PINNED, HERE / "check.py", path, *answers.values())
    for label, entry in zip(answers, checked, strict=True):
        if "wrong" in entry:
            raise MismatchError(f"{case.name}: {label} is wrong: {entry['wrong']}")
        found[label] |= entry
    return found, long
