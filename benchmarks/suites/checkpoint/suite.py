"""Suite `checkpoint`: rank every test user's unseen items, from a trained model's factors.

All contestants get the same factors in single precision, and all answers are compared with the
exact ranking before anything is timed. Then the contestants run in alternating rounds.
"""

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from harness import environment
from harness.client import start
from harness.files import find
from harness.job import Job, MismatchError
from harness.progress import say
from harness.report import cores
from harness.turns import compare_workers

from .tables import SUMMARY, TABLES

__all__ = ["SUMMARY", "TABLES", "run"]

SUITE = "checkpoint"
GOWALLA = (("train.txt",), ("test.txt",))
OURS = f"{environment.REFERENCE}, top_k"

# The threads of the previous contestant keep spinning for a while.
PAUSE_SECONDS = 0.2


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
    Case("Gowalla, ALS 256, alpha 10, overfitted", "gowalla-als256", 20),
    Case("Gowalla, BPR 64", "gowalla-bpr64", 20),
    Case("synthetic, ALS 64, alpha 40", "synthetic-als64", 10),
    Case("synthetic, random factors of norm 1, 64", "synthetic-unit64", 10),
    Case("Gowalla, ALS 64, alpha 40", "gowalla-als64", 500),
)
TOYS = (Case("toy, ALS 16", "toy-als16", 10),)


def run(job: Job) -> dict[str, Any]:
    """Measure the cases; return the report.

    Raises `MismatchError` if an answer is not right.
    """
    folder = job.inputs / SUITE
    cases = [case for case in (TOYS if job.smoke else CASES) if case.name.startswith(job.case)]
    gowalla, skipped = folder, {}
    try:
        gowalla = folder if job.smoke else find("gowalla", GOWALLA, job.data)
    except FileNotFoundError as error:
        skipped = {case.name: str(error) for case in cases if case.model.startswith("gowalla")}
        say(f"{len(skipped)} cases left out: {error}")
    cases = [case for case in cases if case.name not in skipped]
    say("training the models, or finding them")
    models = list(dict.fromkeys(case.model for case in cases))
    report: dict[str, Any] = {
        "inputs": job.call("suites.checkpoint.inputs:write", folder, gowalla, models),
        "threads": cores(),
        "skipped": skipped,
        "cases": {},
    }
    for case in cases:
        inputs = report["inputs"][case.model]
        path = folder / f"{case.name}.json"
        settings = {"model": case.model, "data": inputs["data"], "k": case.k}
        text = json.dumps(settings | {"threads": report["threads"]})
        path.write_text(text, encoding="utf-8")
        with ExitStack() as stack:
            contestants = {
                f"{name}, {task}": (client, task)
                for name, client in start(SUITE, job.rivals, path, stack).items()
                for task in client.tasks
            }
            verify = partial(check, case, path)
            entries = compare_workers(
                job, case.name, contestants, verify, pause=PAUSE_SECONDS, reference=OURS
            )
        found = {"title": case.title, "model": case.model, "k": case.k, "contestants": entries}
        report["cases"][case.name] = found
    return report


def check(case: Case, path: Path, answers: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the comparison of each contestant with the exact ranking."""
    if OURS not in answers:
        raise RuntimeError(f"{case.name}: {OURS} failed, and there is nothing to compare with")
    found = environment.call(
        environment.PINNED, "suites.checkpoint.check:check", path, *answers.values()
    )
    report = dict(zip(answers, found, strict=True))
    for label, entry in report.items():
        if "wrong" in entry:
            raise MismatchError(f"{case.name}: {label} is wrong: {entry['wrong']}")
    return report
