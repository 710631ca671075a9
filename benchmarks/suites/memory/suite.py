"""Suite `memory`: the peak while scoring every user against every item of a trained model."""

from functools import partial
from pathlib import Path
from typing import Any

from harness import environment
from harness.job import Job
from harness.progress import say
from harness.turns import take_turns

PROBE = Path(__file__).with_name("probe.py")
BYTES_PER_SCORE = 4  # single precision, as the factors are stored


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report. No rival takes part."""
    folder = job.inputs / "memory"
    say("training a model to score")
    size = ("500", "300") if job.smoke else ("50000", "51277")
    shape = environment.run(environment.REFERENCE, PROBE, "make", folder, *size)
    scores: dict[str, list[dict[str, float]]] = {name: [] for name in job.references}

    def peak(name: str) -> float:
        scores[name].append(environment.run(name, PROBE, "score", folder))
        return scores[name][-1]["bytes"]

    measures = {name: partial(peak, name) for name in scores}
    entries = take_turns("memory", measures, job.rounds, unit="bytes", warm_up=not job.smoke)
    dense = BYTES_PER_SCORE * shape["n_users"] * shape["n_items"]
    return {
        "inputs": shape,
        "rivals": {name: environment.describe(name) for name in scores},
        "cases": {"evaluate_model": {"contestants": entries}},
        "runs": scores[environment.REFERENCE][-job.rounds :],
        "dense_scores": {
            "bytes": dense,
            "how": f"arithmetic: n_users x n_items x {BYTES_PER_SCORE} bytes, not measured",
        },
    }
