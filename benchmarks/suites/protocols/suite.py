"""Suite `protocols`: libraries give the numbers that we give when they evaluate a model."""

from typing import Any

from harness.format import exponent, label, markdown
from harness.job import Job
from harness.libraries import compare_all

from . import problems as small


def run(job: Job) -> dict[str, Any]:
    """Compare all libraries; return the report. Nothing is timed, and there are no rounds.

    Raises `MismatchError` if a library differs.
    """
    n_problems = small.N_PROBLEMS // 40 if job.smoke else small.N_PROBLEMS
    inputs = {"n_problems": n_problems, "seed": small.SEED}
    return {"inputs": inputs} | compare_all(
        job, "protocols", small.make(n_problems), "problem", "numbers"
    )


def protocols(report: dict[str, Any]) -> str:
    """Return a table with a row for each library, and its footnotes."""
    body, notes = [], []
    for name, found in report["libraries"].items():
        own = [*found["notes"]]
        own += [
            f"`{metric}` is not compared: {why}" for metric, why in found["not_compared"].items()
        ]
        if found["imprecise"]:
            own.append(f"to {found['tolerance']:g}: {found['imprecise']}")
        numbers = range(len(notes) + 1, len(notes) + len(own) + 1)
        notes += [f"{number}. {note}" for number, note in zip(numbers, own, strict=True)]
        marks = f"<sup>{', '.join(map(str, numbers))}</sup>" if own else ""
        largest = max(entry["max_difference"] for entry in found["numbers"].values())
        equal = ", ".join(found["numbers"])
        row = (found["subject"], equal, str(found["n_problems"]), exponent(largest))
        body.append((label(report, name) + marks, *row))
    columns = ("", "what is compared", "equal", "problems", "largest difference")
    return "\n\n".join([markdown(columns, body), "\n".join(notes)])


TABLES = {"protocols": protocols}
