"""Suite `retrieval`: what ranking costs while a model is trained, in a sweep, and at scale.

python benchmarks/retrieval.py --users 300 --items 2000      a short look; writes nothing
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import environment
from lists import INPUTS, MismatchError
from progress import say
from turns import take_turns

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = INPUTS / "retrieval"
PROBE = environment.BENCHMARKS / "retrieval_probe.py"

# The size of MIND-small, and a catalogue and an audience that nobody's scores would fit into.
USERS, ITEMS = 50_000, 51_277
MANY = 1_000_000

# implicit's evaluation takes ten times as long as the training between two of them.
MOST_ROUNDS = 3
CHECKPOINTS = 20
WITHOUT = "nobody"
EVALUATORS = ("evaluate_model", "ranking_metrics_at_k")
METRIC = "ndcg@10"
# implicit ranks by scores in single precision: two that are nearly the same may change places.
TOLERANCE = 1e-4


def run(
    rivals: list[str], rounds: int, size: tuple[int, int] = (USERS, ITEMS), many: int = MANY
) -> dict[str, Any]:
    """Measure fresh processes; return the report. No rival takes part: `rivals` is not used.

    Raises `MismatchError` when implicit's evaluation of a training does not agree with ours.
    """
    del rivals
    folder = FOLDER / f"{size[0]}x{size[1]}"
    say("making the data")
    return {
        "rivals": {environment.REFERENCE: environment.describe(environment.REFERENCE)},
        "inputs": probe("make", folder, *size),
        "training": training(folder, min(rounds, MOST_ROUNDS)),
        "sweep": sweep(folder, min(rounds, MOST_ROUNDS)),
        "large": large(many),
    }


def probe(*arguments: Any) -> dict[str, Any]:
    return environment.run(environment.REFERENCE, PROBE, *map(str, arguments))


def training(folder: Any, rounds: int) -> dict[str, Any]:
    """Train with an evaluation after every iteration, and without."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in (WITHOUT, *EVALUATORS)}

    def seconds(evaluator: str) -> float:
        runs[evaluator].append(probe("train", folder, evaluator))
        return runs[evaluator][-1]["seconds"]

    measures: dict[str, Callable[[], float]] = {name: partial(seconds, name) for name in runs}
    entries = take_turns("training", measures, rounds, reference=WITHOUT)
    ours, theirs = (runs[name][-1][METRIC] for name in EVALUATORS)
    difference = max(abs(mine - other) for mine, other in zip(ours, theirs, strict=True))
    if difference > TOLERANCE:
        raise MismatchError(f"training: {METRIC} differs by {difference:.3g}, {ours} and {theirs}")
    for name in EVALUATORS:
        entries[name] |= {
            "added_share": entries[name]["ratio"] - 1,
            "evaluation_seconds": [found["evaluation_seconds"] for found in runs[name][1:]],
        }
    return {
        "rounds": rounds,
        "n_evaluations": len(ours),
        "max_difference": difference,
        "contestants": entries,
    }


def sweep(folder: Any, rounds: int) -> dict[str, Any]:
    """Score a folder of checkpoints."""
    say(f"saving {CHECKPOINTS} checkpoints")
    probe("save", folder, CHECKPOINTS)
    found: list[dict[str, Any]] = []
    for done in range(rounds + 1):  # the first one is a warm-up
        say(f"sweep: round {done} of {rounds}")
        found.append(probe("sweep", folder, CHECKPOINTS))
    found = found[1:]
    return {
        "rounds": rounds,
        "n_checkpoints": CHECKPOINTS,
        "median_checkpoint_seconds": median(
            seconds for entry in found for seconds in entry["checkpoint_seconds"]
        ),
        "median_seconds": median(entry["seconds"] for entry in found),
        "median_bytes": median(entry["bytes"] for entry in found),
        "runs": found,
    }


def large(many: int) -> dict[str, Any]:
    """Rank one held-out item of every user among as many items, once."""
    folder = FOLDER / f"drawn-{many}"
    say(f"drawing factors of {many:,} users and as many items")
    inputs = probe("draw", folder, many, many)
    say("ranking one held-out item of each user")
    return {"inputs": inputs, "k": 10} | probe("rank", folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--many", type=int, default=5000, help="users and items of the large one")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    size = (arguments.users, arguments.items)
    json.dump(run([], arguments.rounds, size, arguments.many), sys.stdout, indent=2)


if __name__ == "__main__":
    main()
