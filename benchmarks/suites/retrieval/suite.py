"""Suite `retrieval`: the cost of ranking while a model is trained, and at scale."""

from pathlib import Path
from typing import Any

from harness import environment
from harness.format import conditions, duration, markdown, percent, size
from harness.job import Job
from harness.progress import say
from harness.turns import compare_processes

PROBE = "suites.retrieval.probe"


# implicit's evaluation takes ten times as long as the training between two evaluations.
MOST_ROUNDS = 3
WITHOUT = "nobody"
EVALUATORS = ("evaluate_model", "ranking_metrics_at_k")
# implicit ranks by scores in single precision, so nearly equal scores may change places.
TOLERANCE = 1e-4


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report. No rival takes part.

    Raises `MismatchError` if implicit's evaluation of a training does not agree with ours.
    """
    # The size of MIND-small, and users and items whose scores would not fit in memory.
    n_users, n_items, many = (300, 500, 2_000) if job.smoke else (50_000, 51_277, 1_000_000)
    folder = job.inputs / "retrieval" / f"{n_users}x{n_items}"
    say("making the data")
    return {
        "inputs": job.call(f"{PROBE}:make", folder, n_users, n_items),
        "training": training(job, folder),
        "large": large(job, folder.parent, many),
    }


def training(job: Job, folder: Path) -> dict[str, Any]:
    """Train with an evaluation after every iteration, and without."""
    names = (*EVALUATORS, WITHOUT)
    calls = {name: (environment.REFERENCE, f"{PROBE}:train", folder, name) for name in names}
    options = {"rounds": MOST_ROUNDS, "reference": WITHOUT, "tolerance": TOLERANCE}
    entries, runs = compare_processes(job, "training", calls, **options)
    for name in EVALUATORS:
        entries[name] |= {
            "added_share": entries[name]["ratio"] - 1,
            "evaluation_seconds": [found["evaluation_seconds"] for found in runs[name]],
        }
    return {
        "rounds": len(runs[WITHOUT]),
        "n_evaluations": len(runs[EVALUATORS[0]][0]["evaluation_seconds"]),
        "max_difference": max(entry["max_difference"] for entry in entries.values()),
        "contestants": {name: entries[name] for name in (WITHOUT, *EVALUATORS)},
    }


def large(job: Job, inputs: Path, many: int) -> dict[str, Any]:
    """Rank one held-out item of `many` users among the same number of items, once."""
    folder = inputs / f"drawn-{many}"
    say(f"drawing factors of {many:,} users and as many items")
    drawn = job.call(f"{PROBE}:draw", folder, many, many)
    say("ranking one held-out item of each user")
    return {"inputs": drawn, "k": 10} | job.call(f"{PROBE}:rank", folder)


def retrieval(report: dict[str, Any]) -> str:
    """Return the cost of ranking in both jobs."""
    inputs, training, large = report["inputs"], report["training"], report["large"]
    model = f"{inputs['n_users']:,} users × {inputs['n_items']:,} items"
    rows = []
    for name, entry in training["contestants"].items():
        title, more = f"training ALS, {inputs['n_factors']} factors, {model}", ""
        if name != WITHOUT:
            title = f"the same with `{name}` after each of {training['n_evaluations']} iterations"
            more = f"{percent(entry['added_share'], 0)} more"
        rows.append((title, duration(entry["median_seconds"]), more))
    drawn = large["inputs"]
    title = f"held-out ranks of {drawn['n_users']:,} users among {drawn['n_items']:,} items"
    more = f"{size(large['bytes'])} above the inputs"
    rows.append((title, duration(large["seconds"]), more))
    return f"{markdown(('', 'time', ''), rows)}\n\n{conditions(report)}"


TABLES = {"retrieval": retrieval}
