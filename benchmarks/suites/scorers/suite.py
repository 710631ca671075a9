"""Suite `scorers`: ranking among candidates, to the last rank, and by item-item matrices."""

from pathlib import Path
from typing import Any, NamedTuple

from harness import environment
from harness.format import conditions, duration, markdown, size, times
from harness.job import Job
from harness.progress import say
from harness.turns import compare_processes

PROBE = "suites.scorers.probe"


class Size(NamedTuple):
    """The sizes of the model, of the item-item matrices and their users, and of their rows."""

    n_users: int
    n_items: int
    n_candidates: int
    n_matrix_users: int
    n_matrix_items: int
    n_neighbours: int


# The sizes of MIND-small and of Gowalla.
FULL = Size(50_000, 51_277, 100, 29_858, 40_981, 100)
TOY = Size(300, 500, 20, 200, 300, 10)

AMONG_CANDIDATES = ("evaluate_model", "implicit", "NumPy")
RANKS = ("held_out_ranks", "full_ranks")
MATRICES = ("dense.npy", "sparse.npz")
# Others rank by scores in single precision, so nearly equal scores may change places.
TOLERANCE = 1e-4


def run(job: Job) -> dict[str, Any]:
    """Measure new processes; return the report.

    Raises `MismatchError` if two methods give different numbers.
    """
    chosen = TOY if job.smoke else FULL
    inputs = job.inputs / "scorers"
    folder = inputs / f"{chosen.n_users}x{chosen.n_items}"
    drawn = inputs / f"drawn-{chosen.n_matrix_items}"
    say("making the data")
    made = job.call(f"{PROBE}:make", folder, chosen.n_users, chosen.n_items, chosen.n_candidates)
    say("drawing item-item matrices")
    matrices = job.call(f"{PROBE}:draw", drawn, *chosen[3:])
    return {
        "rounds": job.rounds,
        "inputs": made,
        "candidates": compare(job, folder, AMONG_CANDIDATES),
        "ranks": compare(job, folder, RANKS),
        "item_item": {"inputs": matrices}
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
    rows: list[tuple[str, ...]] = []
    groups = (
        ("candidates", f"{inputs['n_candidates']} candidates of each user"),
        ("ranks", f"{inputs['n_validation']:,} held-out items"),
    )
    for key, title in groups:
        rows.append((f"{title}, {model}, {inputs['n_factors']} factors", "", "", ""))
        rows += [
            (TITLES[name], duration(entry["median_seconds"]), times(entry["ratio"]), "")
            for name, entry in report[key].items()
        ]
    drawn = matrices["inputs"]
    rows.append(
        (f"item-item matrix, {drawn['n_users']:,} users × {drawn['n_items']:,} items", "", "", "")
    )
    rows += [
        (
            f"{TITLES[name]}, {size(matrices[name]['matrix_bytes'])}",
            duration(matrices[name]["seconds"]),
            "",
            f"{size(matrices[name]['bytes'])} above the inputs",
        )
        for name in ("dense.npy", "sparse.npz")
    ]
    return f"{markdown(('', 'time', '× the first', 'memory'), rows)}\n\n{conditions(report)}"


TABLES = {"scorers": scorers}
