"""Suite `retrieval`: the cost of ranking while a model is trained, in a sweep, and at scale."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import environment
from harness.job import Job, MismatchError
from harness.progress import say
from harness.turns import take_turns

if TYPE_CHECKING:
    from collections.abc import Callable

PROBE = Path(__file__).with_name("probe.py")


class Size(NamedTuple):
    """The size of the trained models, and the number of users and items of the drawn one."""

    n_users: int
    n_items: int
    many: int
    checkpoints: int


# The size of MIND-small, and numbers of users and items whose scores would not fit in memory.
FULL = Size(50_000, 51_277, 1_000_000, 20)
TOY = Size(300, 500, 2_000, 3)

# implicit's evaluation takes ten times as long as the training between two evaluations.
MOST_ROUNDS = 3
WITHOUT = "nobody"
EVALUATORS = ("evaluate_model", "ranking_metrics_at_k")
METRIC = "ndcg@10"
# implicit ranks by scores in single precision, so nearly equal scores may change places.
TOLERANCE = 1e-4


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report. No rival takes part.

    Raises `MismatchError` if implicit's evaluation of a training does not agree with ours.
    """
    size = TOY if job.smoke else FULL
    folder = job.inputs / "retrieval" / f"{size.n_users}x{size.n_items}"
    rounds = min(job.rounds, MOST_ROUNDS)
    say("making the data")
    return {
        "rivals": {environment.REFERENCE: environment.describe(environment.REFERENCE)},
        "inputs": probe("make", folder, size.n_users, size.n_items),
        "training": training(folder, rounds, warm_up=not job.smoke),
        "sweep": sweep(folder, rounds, size.checkpoints, warm_up=not job.smoke),
        "large": large(folder.parent, size.many),
    }


def probe(*arguments: Any) -> dict[str, Any]:
    return environment.run(environment.REFERENCE, PROBE, *map(str, arguments))


def training(folder: Path, rounds: int, *, warm_up: bool) -> dict[str, Any]:
    """Train with an evaluation after every iteration, and without."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (WITHOUT, *EVALUATORS)}

    def seconds(evaluator: str) -> float:
        runs[evaluator].append(probe("train", folder, evaluator))
        return runs[evaluator][-1]["seconds"]

    measures: dict[str, Callable[[], float]] = {name: partial(seconds, name) for name in runs}
    entries = take_turns("training", measures, rounds, reference=WITHOUT, warm_up=warm_up)
    ours, theirs = (runs[name][-1][METRIC] for name in EVALUATORS)
    difference = max(abs(mine - other) for mine, other in zip(ours, theirs, strict=True))
    if difference > TOLERANCE:
        raise MismatchError(f"training: {METRIC} differs by {difference:.3g}, {ours} and {theirs}")
    for name in EVALUATORS:
        entries[name] |= {
            "added_share": entries[name]["ratio"] - 1,
            "evaluation_seconds": [found["evaluation_seconds"] for found in runs[name][-rounds:]],
        }
    return {
        "rounds": rounds,
        "n_evaluations": len(ours),
        "max_difference": difference,
        "contestants": entries,
    }


def sweep(folder: Path, rounds: int, count: int, *, warm_up: bool) -> dict[str, Any]:
    """Score a folder of checkpoints."""
    say(f"saving {count} checkpoints")
    probe("save", folder, count)
    found: list[dict[str, Any]] = []
    for done in range(0 if warm_up else 1, rounds + 1):
        say(f"sweep: round {done} of {rounds}")
        found.append(probe("sweep", folder, count))
    found = found[-rounds:]
    return {
        "rounds": rounds,
        "n_checkpoints": count,
        "median_checkpoint_seconds": median(
            seconds for entry in found for seconds in entry["checkpoint_seconds"]
        ),
        "median_seconds": median(entry["seconds"] for entry in found),
        "median_bytes": median(entry["bytes"] for entry in found),
        "runs": found,
    }


def large(inputs: Path, many: int) -> dict[str, Any]:
    """Rank one held-out item of `many` users among the same number of items, once."""
    folder = inputs / f"drawn-{many}"
    say(f"drawing factors of {many:,} users and as many items")
    drawn = probe("draw", folder, many, many)
    say("ranking one held-out item of each user")
    return {"inputs": drawn, "k": 10} | probe("rank", folder)
