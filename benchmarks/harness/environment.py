"""One virtual environment per rival, built from the requirements in `rivals.toml`.

The rivals cannot share one: some need NumPy 1, one needs pandas 2, one brings a fork of
`implicit` under the same name.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from argparse import ArgumentTypeError
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any

from .progress import say

BENCHMARKS = Path(__file__).resolve().parents[1]
REPOSITORY = BENCHMARKS.parent
ENVIRONMENTS = BENCHMARKS / "environments"
SUITES = BENCHMARKS / "suites"

RIVALS: dict[str, dict[str, Any]] = tomllib.loads(
    (BENCHMARKS / "rivals.toml").read_text(encoding="utf-8")
)
REFERENCE = next(iter(RIVALS))
# Its NumPy is pinned, and it needs few other packages. It makes the lists and compares the values.
PINNED = "scipy"

_state: dict[str, bool] = {"running": False}


def use_running_python() -> None:
    """Run everything in the environment of this process; leave out rivals that it lacks."""
    _state["running"] = True


def checkout(text: str) -> str:
    """Return the contestant's name for the package in another checkout, an argument of run.py."""
    folder = Path(text).resolve()
    if not (folder / "sparse_eval" / "__init__.py").exists():
        raise ArgumentTypeError(f"no sparse_eval in {folder}")
    return f"{REFERENCE}@{folder}"


def library(name: str) -> str:
    """Return the rival whose scripts a contestant runs: the name before the @ of a checkout."""
    return name.partition("@")[0]


def contestants(suite: str) -> list[str]:
    """Return the rivals with a script in a suite, the reference first."""
    scripts = SUITES / suite / "rivals"
    return [name for name in RIVALS if name == REFERENCE or (scripts / f"{name}.py").exists()]


def python(name: str) -> Path:
    """Return the Python of one rival's environment, and build the environment if needed.

    A checkout is run by the Python of its `.venv` or, without one, of the reference. Raises
    `RuntimeError` if pip cannot install the rival's requirements.
    """
    if "@" in name:
        own = Path(name.partition("@")[2], ".venv", "bin", "python")
        return own if own.exists() else python(library(name))
    if _state["running"]:
        return Path(sys.executable)
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
    if before := RIVALS[name].get("build_with"):
        calls = [[*pip, *before], *calls]
    how = os.environ | RIVALS[name].get("build", {})
    for call in calls:
        if subprocess.run(call, cwd=REPOSITORY, env=how, stdout=sys.stderr, check=False).returncode:
            raise RuntimeError(f"pip could not install {wanted.splitlines()[0]}")
    building.rename(built)  # at the end, so that an interrupted build does not look complete
    return executable


def command(name: str, *arguments: str | Path) -> list[str | Path]:
    """Return the command that runs Python in a rival's environment."""
    # -P keeps the script's folder off the module path: `import ranx` means the library.
    return [python(name), "-P", *arguments]


def variables(name: str) -> dict[str, str]:
    """Return the environment variables of a contestant's processes.

    The processes store the bytecode of their imports, because pip has compiled the other packages.
    """
    own = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    inherited = {key: value for key, value in os.environ.items() if key not in own}
    if "@" in name:
        return inherited | {"PYTHONPATH": name.partition("@")[2]}
    if _state["running"]:
        return inherited | {"PYTHONPATH": str(REPOSITORY)}
    return inherited


def run(name: str, *arguments: str | Path) -> Any:
    """Run Python in a rival's environment; return its last line of output, parsed as JSON.

    Raises `RuntimeError`, with the last line of the traceback, if this fails.
    """
    done = subprocess.run(
        command(name, *arguments),
        env=variables(name),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError((done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def call(name: str, target: str, *arguments: Any) -> Any:
    """Return the result of MODULE:FUNCTION, called in a new process with these arguments."""
    texts = (json.dumps(argument, default=str) for argument in arguments)
    return run(name, Path(__file__).with_name("call.py"), target, *texts)


def versions() -> dict[str, str]:
    """Return the installed distributions."""
    return {found.name: found.version for found in distributions()}


def describe(name: str) -> dict[str, Any]:
    """Return a rival's title, requirements and installed versions, or the reason for a failure."""
    entry = {key: RIVALS[library(name)][key] for key in ("title", "requirements")}
    if "@" in name:
        entry["title"] += name.removeprefix(library(name))
    try:
        if missing := _missing(name):
            raise RuntimeError(f"{', '.join(missing)} not installed in the running environment")
        return entry | {"versions": call(name, f"{__name__}:versions")}
    except RuntimeError as error:
        say(f"{name}: left out: {error}")
        return entry | {"failed": str(error)}


def _missing(name: str) -> list[str]:
    """Return the requirements that the running environment lacks, in any version, if it is used."""
    if not _state["running"] or library(name) == REFERENCE:
        return []
    missing = []
    for requirement in RIVALS[name]["requirements"]:
        if not requirement.startswith("--"):
            distribution = re.split(r"[^\w.-]", requirement)[0]
            try:
                version(distribution)
            except PackageNotFoundError:
                missing.append(distribution)
    return missing


def _requirements(name: str) -> str:
    """Return the input of pip; an environment is rebuilt if this text has changed."""
    lines = list(RIVALS[name]["requirements"])
    if any(line.startswith("--editable .") for line in lines):
        # The dependencies of the repository may change while its requirement stays the same.
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
        lines += project["project"]["dependencies"]
    return "\n".join(lines) + "\n"
