"""Suite `startup`: fresh processes. How long an import takes, and the first score after it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import environment
from client import Client
from lists import INPUTS, write_inputs
from turns import take_turns

if TYPE_CHECKING:
    from collections.abc import Callable

# Importing sparse_eval leaves these alone: each of them takes longer than all of it.
HEAVY = {"implicit", "pandas", "typer"}

IMPORT = """
import importlib, json, sys, time
start = time.perf_counter()
importlib.import_module(sys.argv[1])
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "modules": list(sys.modules)}))
"""

# Who makes a first call, and which. Ours starts from raw arrays; ranx has its objects already.
FIRST_CALLS = {"sparse_eval": "ndcg@10, whole call", "ranx": "ndcg@10"}


def run(rivals: list[str], rounds: int) -> dict[str, Any]:
    """Measure imports and first calls; return the report."""
    described = {name: environment.describe(name) for name in rivals}
    working = [name for name in rivals if "failed" not in described[name]]
    imports: dict[str, Callable[[], float]] = {
        name: partial(import_seconds, name, module)
        for name in working
        if (module := environment.RIVALS[name].get("imports"))
    }
    first_calls: dict[str, Callable[[], float]] = {
        name: partial(first_call_seconds, name, task)
        for name, task in FIRST_CALLS.items()
        if name in working
    }
    return {
        "inputs": write_inputs()["few"],
        "rivals": described,
        "heavy_modules_imported": heavy_modules_imported(),
        "cases": {
            "import": {"contestants": take_turns("import", imports, rounds)},
            "first call": {"contestants": take_turns("first call", first_calls, rounds)},
        },
    }


def import_seconds(rival: str, module: str) -> float:
    return environment.run(rival, "-c", IMPORT, module)["seconds"]


def heavy_modules_imported() -> list[str]:
    """Return which of the heavy modules importing the reference brings in: none, it should be."""
    module = environment.RIVALS[environment.REFERENCE]["imports"]
    modules = environment.run(environment.REFERENCE, "-c", IMPORT, module)["modules"]
    return sorted(HEAVY & set(modules))


def first_call_seconds(rival: str, task: str) -> float:
    """Score once in a new process; the libraries are imported and the lists loaded before."""
    with Client(rival, INPUTS / "few.npz") as client:
        if rival != environment.REFERENCE:
            client.prepare()
        return client.time(task)
