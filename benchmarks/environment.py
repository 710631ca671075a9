"""One virtual environment per rival, built from the requirements in `rivals.toml`.

The rivals cannot share one: some need NumPy 1, one needs pandas 2, one brings a fork of
`implicit` under the same name.
"""

import json
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

from progress import say

BENCHMARKS = Path(__file__).resolve().parent
REPOSITORY = BENCHMARKS.parent
ENVIRONMENTS = BENCHMARKS / "environments"

RIVALS: dict[str, dict[str, Any]] = tomllib.loads(
    (BENCHMARKS / "rivals.toml").read_text(encoding="utf-8")
)
REFERENCE = next(iter(RIVALS))
# Who has a script for the suites that time lists, for the one that compares, and for the one
# that ranks.
TIMED, COMPARED, RANKING = (
    [name for name in RIVALS if (BENCHMARKS / scripts / f"{name}.py").exists()]
    for scripts in ("rivals", "agreement", "checkpoint")
)
# Its NumPy is pinned and it needs little else: it makes the lists and compares the values.
PINNED = "notebook"

VERSIONS = """
import json
from importlib.metadata import distributions
print(json.dumps({found.name: found.version for found in distributions()}))
"""


def python(name: str) -> Path:
    """Return the Python of one rival's environment, which is built if it has to be.

    Raises `RuntimeError` when pip cannot install what the rival requires.
    """
    folder = ENVIRONMENTS / name
    executable = folder / "bin" / "python"
    wanted = _requirements(name)
    built = folder / "requirements.txt"
    if built.exists() and built.read_text(encoding="utf-8") == wanted:
        return executable

    say(f"{name}: building its environment")
    venv.create(folder, clear=True, with_pip=True)
    building = folder / "building.txt"
    building.write_text(wanted, encoding="utf-8")
    pip = [executable, "-m", "pip", "install", "--quiet"]
    calls = [[*pip, "--requirement", building]]
    if RIVALS[name].get("bare"):
        first, *others = wanted.splitlines()
        calls = [[*pip, "--no-deps", first], [*pip, *others]]
    for call in calls:
        if subprocess.run(call, cwd=REPOSITORY, stdout=sys.stderr, check=False).returncode:
            raise RuntimeError(f"pip could not install {wanted.splitlines()[0]}")
    building.rename(built)  # only now: an interrupted build must not pass for a finished one
    return executable


def run(name: str, *arguments: str | Path) -> Any:
    """Run Python in a rival's environment; return what its last line of output holds as JSON.

    Raises `RuntimeError`, with the last line of the traceback, when that fails.
    """
    # -P keeps this folder off the module path: rivals must not import our modules for theirs.
    command: list[str | Path] = [python(name), "-P", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def describe(name: str) -> dict[str, Any]:
    """Return a rival's title, requirements and installed versions, or why it has none."""
    entry = {key: RIVALS[name][key] for key in ("title", "requirements")}
    try:
        return entry | {"versions": run(name, "-c", VERSIONS)}
    except RuntimeError as error:
        say(f"{name}: left out: {error}")
        return entry | {"failed": str(error)}


def _requirements(name: str) -> str:
    """Return what pip reads; an environment is rebuilt when this text has changed."""
    lines = list(RIVALS[name]["requirements"])
    if any(line.startswith("--editable .") for line in lines):
        # What the repository depends on changes without its requirement changing.
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
        lines += project["project"]["dependencies"]
    return "\n".join(lines) + "\n"
