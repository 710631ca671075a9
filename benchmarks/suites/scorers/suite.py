"""Suite `scorers`: ranking among candidates, to the last rank, and by item-item matrices."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness import environment
from harness.job import Job, MismatchError
from harness.progress import say
from harness.turns import take_turns

if TYPE_CHECKING:
    from collections.abc import Callable

PROBE = Path(__file__).with_name("probe.py")


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
    size = TOY if job.smoke else FULL
    inputs = job.inputs / "scorers"
    folder = inputs / f"{size.n_users}x{size.n_items}"
    drawn = inputs / f"drawn-{size.n_matrix_items}"
    say("making the data")
    made = probe("make", folder, size.n_users, size.n_items, size.n_candidates)
    say("drawing item-item matrices")
    matrices = probe("draw", drawn, *size[3:])
    turns = partial(compare, folder, job.rounds, warm_up=not job.smoke)
    return {
        "rivals": {environment.REFERENCE: environment.describe(environment.REFERENCE)},
        "rounds": job.rounds,
        "inputs": made,
        "candidates": turns("candidates", AMONG_CANDIDATES),
        "ranks": turns("ranks", RANKS),
        "item_item": {"inputs": matrices}
        | {name: probe("items", drawn, name) for name in MATRICES},
    }


def probe(*arguments: Any) -> dict[str, Any]:
    return environment.run(environment.REFERENCE, PROBE, *map(str, arguments))


def compare(
    folder: Path, rounds: int, command: str, names: tuple[str, ...], *, warm_up: bool
) -> dict[str, dict[str, Any]]:
    """Measure several methods of ranking in turn; the first is the reference."""
    values: dict[str, list[float]] = {}

    def seconds(name: str) -> float:
        found = probe(command, folder, name)
        values[name] = found["values"]
        return found["seconds"]

    measures: dict[str, Callable[[], float]] = {name: partial(seconds, name) for name in names}
    entries = take_turns(command, measures, rounds, reference=names[0], warm_up=warm_up)
    for name, found in values.items():
        difference = abs(found[0] - values[names[0]][0])
        if difference > TOLERANCE:
            raise MismatchError(f"{command}: {name} gives {found}, {names[0]} {values[names[0]]}")
        entries[name] |= {"values": found, "difference": difference}
    return entries
