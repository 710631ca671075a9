"""Suite `comparison`: five models compared and reported, and compared by ranx.

Each round starts a new process for each side, in turn.
"""

from pathlib import Path
from statistics import median
from typing import Any

from harness import environment
from harness.job import Job
from harness.progress import say

HERE = Path(__file__).parent
PROBE = HERE / "probe.py"

#: The largest allowed difference of means.
TOLERANCE = 1e-9


def run(job: Job) -> dict[str, Any]:
    """Measure; return the report. Raises `RuntimeError` if a rival's means differ from ours."""
    folder, rounds = job.inputs / "comparison", job.rounds
    report: dict[str, Any] = {"rivals": job.describe()}
    taking_part = [name for name, entry in report["rivals"].items() if "failed" not in entry]
    say("making the lists of five models")
    size = ("300", "200") if job.smoke else ("50000", "51277")
    report["inputs"] = environment.run(environment.REFERENCE, PROBE, "make", folder, *size)
    ours: list[dict[str, Any]] = []
    several: dict[str, list[dict[str, Any]]] = {name: [] for name in taking_part}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        ours.append(environment.run(environment.REFERENCE, PROBE, "all", folder))
        for name in taking_part:
            script = HERE / "rivals" / f"{name}.py"
            call = (script, folder) if script.exists() else (PROBE, "several", folder)
            several[name].append(environment.run(name, *call))
    check(several)
    report |= {key: ours[0][key] for key in ("n_metrics", "n_differences", "page_bytes")}
    report["seconds"] = {
        what: median(found["seconds"][what] for found in ours) for what in ours[0]["seconds"]
    }
    medians = {name: median(one["seconds"] for one in found) for name, found in several.items()}
    report["n_several"] = len(next(iter(several[environment.REFERENCE][0]["means"].values())))
    report["several"] = {
        name: {
            "seconds": [one["seconds"] for one in several[name]],
            "median_seconds": seconds,
            "ratio": seconds / medians[environment.REFERENCE],
        }
        for name, seconds in medians.items()
    }
    return report


def check(several: dict[str, list[dict[str, Any]]]) -> None:
    """Raise `RuntimeError` unless all have the same means."""
    ours = several[environment.REFERENCE][0]["means"]
    for name, found in several.items():
        for model, means in found[0]["means"].items():
            for metric, mean in means.items():
                if not abs(mean - ours[model][metric]) <= TOLERANCE:
                    raise RuntimeError(
                        f"{metric} of {model}: {ours[model][metric]!r}, that of {name} is {mean!r}"
                    )
