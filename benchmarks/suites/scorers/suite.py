"""Suite `scorers`: ranking among candidates, to the last rank, and by item-item matrices."""

from pathlib import Path
from typing import Any

from harness import environment
from harness.format import Row, conditions, duration, markdown, size, timed
from harness.job import Job
from harness.progress import say
from harness.turns import compare_processes

PROBE = "suites.scorers.probe"


AMONG_CANDIDATES = ("evaluate_model", "implicit", "NumPy")
RANKS = ("held_out_ranks", "full_ranks")
MATRICES = ("dense.npy", "sparse.npz")
# Others rank by scores in single precision, so nearly equal scores may change places.
TOLERANCE = 1e-4


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report.

    Raises `MismatchError` if two methods give different numbers.
    """
    # The sizes of MIND-small and of Gowalla: users, items, and candidates or neighbours.
    model, matrix = (50_000, 51_277, 100), (29_858, 40_981, 100)
    if job.smoke:
        model, matrix = (300, 500, 20), (200, 300, 10)
    folder = job.inputs / "scorers" / f"{model[0]}x{model[1]}"
    drawn = folder.with_name(f"drawn-{matrix[1]}")
    say("making the data")
    made = job.call(f"{PROBE}:make", folder, *model)
    say("drawing item-item matrices")
    item_item = {"inputs": job.call(f"{PROBE}:draw", drawn, *matrix)}
    return {
        "inputs": made,
        "candidates": compare(job, folder, AMONG_CANDIDATES),
        "ranks": compare(job, folder, RANKS),
        "item_item": item_item
        | {name: job.call(f"{PROBE}:items", drawn, name) for name in MATRICES},
    }


def compare(job: Job, folder: Path, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Measure several methods of ranking in turn; the first is the reference."""
    calls = {name: (environment.REFERENCE, f"{PROBE}:rank", folder, name) for name in names}
    entries, found = compare_processes(
        job, f"{names[0]} and others", calls, reference=names[0], tolerance=TOLERANCE
    )
    return {name: entry | {"values": found[name][-1]["values"]} for name, entry in entries.items()}


TITLES = {
    "evaluate_model": "`evaluate_model(…, candidates=…)`",
    "implicit": "implicit, `recommend(user, …, items=…)`, user by user",
    "NumPy": "NumPy, product and `argsort`, user by user",
    "held_out_ranks": "`ranks`, k = 20",
    "full_ranks": "`ranks`, all",
    "dense.npy": "dense, mapped from disk",
    "sparse.npz": "sparse",
}


def scorers(report: dict[str, Any]) -> str:
    """Return the cost of rankings other than short lists of all items."""
    inputs, matrices = report["inputs"], report["item_item"]
    model = f"{inputs['n_users']:,} users × {inputs['n_items']:,} items"
    groups = {
        "candidates": f"{inputs['n_candidates']} candidates of each user",
        "ranks": f"{inputs['n_validation']:,} held-out items",
    }
    rows: list[Row] = []
    for key, title in groups.items():
        rows.append((f"{title}, {model}, {inputs['n_factors']} factors", "", "", ""))
        rows += [(TITLES[name], *timed(entry), "") for name, entry in report[key].items()]
    drawn = matrices["inputs"]
    title = f"item-item matrix, {drawn['n_users']:,} users × {drawn['n_items']:,} items"
    rows.append((title, "", "", ""))
    for name in MATRICES:
        found = matrices[name]
        title = f"{TITLES[name]}, {size(found['matrix_bytes'])}"
        peak = f"{size(found['bytes'])} above the inputs"
        rows.append((title, duration(found["seconds"]), "", peak))
    return f"{markdown(('', 'time', '× the first', 'memory'), rows)}\n\n{conditions(report)}"


TABLES = {"scorers": scorers}
