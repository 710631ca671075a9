"""Suite `memory`: the peak while scoring every user against every item of a trained model."""

from typing import Any

import environment
from lists import INPUTS
from progress import say
from turns import take_turns

PROBE = environment.BENCHMARKS / "memory_probe.py"
FOLDER = INPUTS / "memory"
BYTES_PER_SCORE = 4  # single precision, as the factors are stored


def run(rivals: list[str], rounds: int) -> dict[str, Any]:
    """Measure fresh processes; return the report. No rival takes part: `rivals` is not used."""
    del rivals
    say("training a model to score")
    shape = environment.run(environment.REFERENCE, PROBE, "make", FOLDER)
    scores: list[dict[str, float]] = []

    def peak() -> float:
        scores.append(environment.run(environment.REFERENCE, PROBE, "score", FOLDER))
        return scores[-1]["bytes"]

    entries = take_turns("memory", {environment.REFERENCE: peak}, rounds, unit="bytes")
    dense = BYTES_PER_SCORE * shape["n_users"] * shape["n_items"]
    return {
        "inputs": shape,
        "rivals": {environment.REFERENCE: environment.describe(environment.REFERENCE)},
        "cases": {"evaluate_model": {"contestants": entries}},
        "runs": scores[1:],
        "dense_scores": {
            "bytes": dense,
            "how": f"arithmetic: n_users x n_items x {BYTES_PER_SCORE} bytes, not measured",
        },
    }
