"""Suite `memory`: the peak while scoring every user against every item of a trained model."""

from typing import Any

from harness import environment
from harness.format import Row, amount, conditions, label, markdown, size
from harness.job import Job
from harness.progress import say
from harness.turns import compare_processes

PROBE = "suites.memory.probe"
BYTES_PER_SCORE = 4  # single precision, as the factors are stored


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report. No rival takes part."""
    say("training a model to score")
    users, items = (500, 300) if job.smoke else (50_000, 51_277)
    folder = job.inputs / "memory" / f"{users}x{items}"
    shape = job.call(f"{PROBE}:make", folder, users, items)
    calls = {name: (name, f"{PROBE}:score", folder) for name in job.references}
    entries, _ = compare_processes(job, "memory", calls, unit="bytes")
    n_bytes = BYTES_PER_SCORE * shape["n_users"] * shape["n_items"]
    return {
        "inputs": shape,
        "cases": {"evaluate_model": {"contestants": entries}},
        "dense_scores": {"bytes": n_bytes},  # not measured
    }


def memory(report: dict[str, Any]) -> str:
    inputs = report["inputs"]
    head = f"{inputs['n_users']:,} users × {inputs['n_items']:,} items"
    entries = report["cases"]["evaluate_model"]["contestants"]
    rows = [(f"{label(report, key)}, `evaluate_model`", amount(entries[key])) for key in entries]
    dense = size(report["dense_scores"]["bytes"])
    rows.append(("all scores as a dense matrix (arithmetic)", dense))
    return f"{markdown((head, 'peak above the inputs'), rows)}\n\n{conditions(report)}"


def summary(report: dict[str, Any]) -> list[Row]:
    """Return the row of the front page."""
    dense = size(report["dense_scores"]["bytes"])
    peak = report["cases"]["evaluate_model"]["contestants"][environment.REFERENCE]
    inputs = report["inputs"]
    what = f"memory for {inputs['n_users']:,} users × {inputs['n_items']:,} items"
    return [(what, amount(peak), f"a dense matrix of scores: {dense}")]


TABLES = {"memory": memory}
SUMMARY = (4, summary)
