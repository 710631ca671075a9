"""Suite `lists`: every rival scores the same lists, from its native input.

Values are compared before anything is timed. Then the rivals run in alternating rounds.
"""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from harness import environment
from harness.client import Client, start
from harness.format import Row, conditions, exponent, markdown, medians, summed
from harness.job import Job, MismatchError
from harness.progress import say
from harness.turns import compare_workers

SUITE = "lists"
TOLERANCE = 1e-9


class Case(NamedTuple):
    """One case of the comparison."""

    name: str
    task: str
    most_rounds: int = 1000  # fewer if a rival needs most of a minute


#: The cases on the front page.
SHOWN = {
    "ndcg@10, objects in hand": "ndcg@10",
    "several metrics": "several metrics",
    "diversity@10": "diversity@10",
}

# "in hand": the library's own objects exist. "whole call": the timed call makes them from the
# library's native input (arrays, frames or dictionaries).
CASES = (
    Case("ndcg@10, objects in hand", "ndcg@10"),
    Case("ndcg@10, whole call", "ndcg@10, whole call"),
    Case("several metrics", "several metrics"),
    Case("diversity@10", "diversity@10", most_rounds=3),
)


def run(job: Job) -> dict[str, Any]:
    """Measure all cases; return the report.

    Raises `MismatchError` if two libraries disagree.
    """
    report: dict[str, Any] = {
        "tolerance": TOLERANCE,
        "inputs": write_inputs(job),
        "cases": {},
    }
    cases = [case for case in CASES if case.name.startswith(job.case)]
    with ExitStack() as stack:
        clients = start(SUITE, job.rivals, job.inputs / SUITE / "full.npz", stack)
        for case in cases:
            report["cases"][case.name] = contest(job, case, clients)
    return report


def write_inputs(job: Job) -> dict[str, Any]:
    """Write the lists; return the size and shape of each file."""
    say("writing the inputs")
    size = "toy" if job.smoke else "full"
    found: dict[str, Any] = environment.call(
        environment.PINNED, "suites.lists.inputs:write", job.inputs / SUITE, size
    )
    return found


def contest(job: Job, case: Case, clients: dict[str, Client]) -> dict[str, Any]:
    """Compare the values of all contestants, then time them in turn."""
    contestants = {
        name: (client, case.task) for name, client in clients.items() if case.task in client.tasks
    }
    rounds = min(job.rounds, case.most_rounds)
    check = partial(compare, case)
    entries = compare_workers(job, case.name, contestants, check, warm=True, rounds=rounds)
    return {"rounds": rounds, "contestants": entries}


def compare(case: Case, answers: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the largest difference of each contestant's values from the first one's."""
    first = next(iter(answers), "")
    report = {}
    for name, answer in answers.items():
        found: dict[str, float] = environment.call(
            environment.PINNED, "suites.lists.inputs:compare", answers[first], answer
        )
        for metric, difference in found.items():
            if difference > TOLERANCE:
                raise MismatchError(
                    f"{case.name}: {name} and {first} differ by {difference:.3g} in {metric}, more "
                    f"than {TOLERANCE:g}"
                )
        report[name] = {"max_difference": max(found.values()), "metrics_compared": sorted(found)}
    return report


def lists(report: dict[str, Any]) -> str:
    tables, inputs = [], report["inputs"]["full"]
    for name, case in report["cases"].items():
        contestants = case["contestants"]
        head = f"{name}: {inputs['n_lists']:,} lists of {inputs['list_length']}"
        if case["rounds"] != report["rounds"]:
            head += f" ({case['rounds']} rounds)"
        rows = []
        for row, entry in zip(medians(report, contestants), contestants.values(), strict=True):
            n_compared = len(entry.get("metrics_compared", ()))
            rows.append((*row, exponent(entry.get("max_difference")), str(n_compared)))
        columns = (head, "median", "× ours", "largest difference", "metrics")
        tables.append(markdown(columns, rows))
    return "\n\n".join([*tables, conditions(report)])


def summary(report: dict[str, Any]) -> list[Row]:
    """Return the rows of the front page."""
    inputs = report["inputs"]["full"]
    lists = f"{inputs['n_lists']:,} lists of {inputs['list_length']}"
    return [
        summed(report, f"{what} of {lists}", report["cases"][name]) for name, what in SHOWN.items()
    ]


TABLES = {"lists": lists}
SUMMARY = (1, summary)
