"""Suite `startup`: the time of an import and of the first score after it, in new processes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import environment
from harness.client import Client
from harness.script import load
from harness.turns import take_turns
from suites.lists.suite import SUITE as LISTS
from suites.lists.suite import write_inputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from harness.job import Job

# Importing sparse_eval does not import these, because each of them takes longer than the package.
HEAVY = {"implicit", "pandas", "typer"}

IMPORT = """
import importlib, json, sys, time
start = time.perf_counter()
importlib.import_module(sys.argv[1])
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "modules": list(sys.modules)}))
"""


def run(job: Job) -> dict[str, Any]:
    """Measure imports and first calls; return the report."""
    described = job.describe()
    scripts = {name: script(name) for name in job.contestants if "failed" not in described[name]}
    inputs = write_inputs(job)["few"]
    path = job.inputs / LISTS / "few.npz"
    imports: dict[str, Callable[[], float]] = {
        name: partial(import_seconds, name, rival.MODULE) for name, rival in scripts.items()
    }
    first_calls: dict[str, Callable[[], float]] = {
        name: partial(first_call_seconds, name, path, rival.FIRST_CALL, prepared=rival.PREPARED)
        for name, rival in scripts.items()
        if rival.FIRST_CALL
    }
    turns = partial(take_turns, rounds=job.rounds, warm_up=not job.smoke)
    ours = [name for name in scripts if environment.library(name) == environment.REFERENCE]
    cold = {name: partial(cold_seconds, name, "evaluate") for name in scripts if has_cold(name)}
    cold_models = {name: partial(cold_seconds, name, "evaluate_model") for name in ours}
    kept = job.inputs / "kernels"
    ahead = {
        name: partial(cold_seconds, name, "evaluate_model", compiled_ahead(name, kept))
        for name in ours
    }
    return {
        "inputs": inputs,
        "rivals": described,
        "heavy_modules_imported": heavy_modules_imported(),
        "cases": {
            "import": {"contestants": turns("import", imports)},
            "first call": {"contestants": turns("first call", first_calls)},
            "cold": {"contestants": turns("cold", cold)},
            "cold model": {"contestants": turns("cold model", cold_models)},
            "compiled ahead": {"contestants": turns("compiled ahead", ahead)},
        },
    }


def script(name: str) -> ModuleType:
    return load(Path(__file__).parent / "rivals" / f"{environment.library(name)}.py")


def import_seconds(rival: str, module: str) -> float:
    return environment.run(rival, "-c", IMPORT, module)["seconds"]


def heavy_modules_imported() -> list[str]:
    """Return the heavy modules that importing the reference also imports; there should be none."""
    module = script(environment.REFERENCE).MODULE
    modules = environment.run(environment.REFERENCE, "-c", IMPORT, module)["modules"]
    return sorted(HEAVY & set(modules))


def has_cold(name: str) -> bool:
    return cold_script(name).is_file()


def cold_script(name: str) -> Path:
    return Path(__file__).parent / "cold" / f"{environment.library(name)}.py"


def cold_seconds(rival: str, task: str, kernels: Path | None = None) -> float:
    """Import and score in a new process; its kernels are in a folder or must be compiled.

    Raises `RuntimeError` if kernels are compiled that should be in the folder.
    """
    folder = [] if kernels is None else [str(kernels)]
    result = environment.run(rival, cold_script(rival), task, *folder)
    if kernels is not None and result["n_compiled"]:
        raise RuntimeError(f"{result['n_compiled']} kernels have been compiled again")
    return result["seconds"]


def compiled_ahead(rival: str, folder: Path) -> Path:
    """Compile the kernels of one of our own packages in advance, and return their folder."""
    kernels = folder / rival.replace("/", "_")
    environment.run(rival, cold_script(rival), "compile", kernels)
    return kernels


def first_call_seconds(rival: str, inputs: Path, task: str, *, prepared: bool) -> float:
    """Score once in a new process, after importing the libraries and loading the lists."""
    with Client(LISTS, rival, inputs) as client:
        if prepared:
            client.prepare()
        return client.time(task)
