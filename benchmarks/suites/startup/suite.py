"""Suite `startup`: the time of an import and of the first score after it, in new processes."""

from functools import partial
from importlib import import_module
from typing import Any

from harness import environment
from harness.format import Row, conditions, markdown, medians, summed, timed
from harness.job import Job
from harness.turns import compare_processes, take_turns
from suites.lists.suite import write_inputs

# Importing sparse_eval does not import these, because each of them takes longer than the package.
HEAVY = {"implicit", "pandas", "typer"}

# The slow packages that a command may import.
PACKAGES = (
    "implicit", "jinja2", "matplotlib", "numba", "optuna", "pandas", "pyarrow", "pyarrow.dataset",
    "pydantic", "scipy.sparse", "scipy.special", "scipy.stats", "tqdm", "typer",
)  # fmt: skip

# What the commands cannot do without; `import sparse_eval` needs none of them.
NEEDED = "import numpy, scipy.sparse, numba, pyarrow"

# For each command: what it cannot do without, and its arguments, with the folder of its files.
COMMANDS = {
    "`--help`": ("import typer", "--help"),
    "`evaluate`, whole-number ids": (
        NEEDED, "evaluate", "{}/numbers_lists.csv", "{}/numbers_relevant.csv", "-m", "ndcg@10",
    ),
    "`evaluate`, text ids": (
        NEEDED, "evaluate", "{}/texts_lists.csv", "{}/texts_relevant.csv", "-m", "ndcg@10",
    ),
    "`score` of a checkpoint": (
        NEEDED, "score", "{}/als.npz", "--split", "{}/split", "-m", "ndcg@10",
    ),
}  # fmt: skip

# The two sides of a command.
ALONE, WHOLE = "imports alone", "command"

IMPORT = """
import importlib, json, sys, time
start = time.perf_counter()
importlib.import_module(sys.argv[1])
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "modules": list(sys.modules)}))
"""


def run(job: Job) -> dict[str, Any]:
    """Measure imports and first calls; return the report."""
    inputs = write_inputs(job)["few"]
    names = job.taking_part
    ours = [name for name in names if name in job.references]

    def compared(title: str, function: str, *arguments: Any, only: list[str] = names) -> Any:
        calls = {
            name: (name, f"{script(name)}:{function}", *arguments)
            for name in only
            if hasattr(import_module(script(name)), function)
        }
        return {"contestants": compare_processes(job, title, calls)[0]}

    imports = {name: partial(imported, name) for name in names}
    cases = {
        "import": {"contestants": take_turns(job, "import", imports)},
        "first call": compared("first call", "first_call", job.inputs / "lists" / "few.npz"),
        "cold": compared("cold", "cold"),
        "cold model": compared("cold model", "cold", "evaluate_model", only=ours),
    }
    ahead = {}
    for name in ours:
        kernels = job.inputs / "kernels" / name.replace("/", "_")
        environment.call(name, f"{script(name)}:cold", "compile", kernels)
        ahead[name] = (name, f"{script(name)}:cold", "evaluate_model", kernels)
    cases["compiled ahead"] = {"contestants": compare_processes(job, "compiled ahead", ahead)[0]}
    modules = set(import_in_new_process(environment.REFERENCE)["modules"])
    return {
        "inputs": inputs,
        "heavy_modules_imported": sorted(HEAVY & modules),
        "cases": cases,
        "commands": commands(job),
    }


def commands(job: Job) -> dict[str, Any]:
    """Run each command in a process of its own, in turn with one that imports what it needs."""
    ours, folder = environment.REFERENCE, str(job.inputs / "commands")
    environment.call(ours, f"{script(ours)}:write_files", folder)
    found = {}
    for title, (needed, *words) in COMMANDS.items():
        words = [word.format(folder) for word in words]
        calls = {
            ALONE: (ours, f"{script(ours)}:process", "-c", needed),
            WHOLE: (ours, f"{script(ours)}:process", "-m", "sparse_eval", *words),
        }
        entries = compare_processes(job, title, calls, reference=ALONE)[0]
        modules = environment.call(ours, f"{script(ours)}:modules", *words)
        found[title] = entries | {"packages": [one for one in PACKAGES if one in modules]}
    return found


def script(name: str) -> str:
    return f"suites.startup.rivals.{environment.library(name)}"


def imported(name: str) -> float:
    return float(import_in_new_process(name)["seconds"])


def import_in_new_process(name: str) -> dict[str, Any]:
    """Import the library; nothing else is imported before it."""
    found: dict[str, Any] = environment.run(name, "-c", IMPORT, import_module(script(name)).MODULE)
    return found


def startup(report: dict[str, Any]) -> str:
    heads = {
        "import": "import",
        "first call": f"first ndcg@10 after it, {report['inputs']['n_lists']:,} lists",
        "cold": "import and first ndcg@10, no kernel compiled yet, 500 lists",
        "cold model": "the same and the first evaluate_model, no kernel compiled yet",
        "compiled ahead": "the same after `sparse-eval compile`",
    }
    tables = [
        markdown((head, "median", "× ours"), medians(report, report["cases"][case]["contestants"]))
        for case, head in heads.items()
        if case in report["cases"]
    ]
    if "commands" in report:
        rows = [
            (title, *timed(case[WHOLE]), ", ".join(case["packages"]))
            for title, case in report["commands"].items()
        ]
        head = ("command, 500 users", "median", "× its imports alone", "packages that it imports")
        tables.append(markdown(head, rows, text=(0, 3)))
    heavy = ", ".join(report["heavy_modules_imported"]) or "none"
    note = f"Of implicit, pandas and typer, `import sparse_eval` imports: {heavy}."
    return "\n\n".join([*tables, f"{note} {conditions(report)}"])


def summary(report: dict[str, Any]) -> list[Row]:
    """Return the row of the front page."""
    return [summed(report, "import", report["cases"]["import"])]


TABLES = {"startup": startup}
SUMMARY = (3, summary)
