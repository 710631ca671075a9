#!/usr/bin/env python
"""Check that the tests detect faults: run the mutations of tests/mutations.toml.

Each mutation replaces a piece of text of the package, in a copy of the repository, and runs the
tests that should fail. Its result is `caught` if a test fails, `survived` if all pass, `timeout` if
they take too long, `error` if they cannot run, and `gone` if the text is no longer in the package.
Mutated kernels run as Python, without the tests marked slow. A mutation that survives also runs
against the stored numbers of tests/net, unless it is in a kernel, and last against the long tests:
only ``scripts/test --full`` detects it then.
Exits with 1 if a mutation with the stored result `caught` is no longer caught.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

# Loaded once; each run of pytest is a fork of this process.
import hypothesis
import implicit
import numba
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import typer.testing

PRELOADED = implicit, np, pd, scipy.stats, typer.testing
ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests/mutations.toml"
COPIED = ("sparse_eval", "tests", "data", "docs", "README.md", "pyproject.toml")
PYTEST = ("-xq", "--assert=plain", "-pno:cacheprovider", "-m")
FAST = "not slow and not long"

#: The exit status of tests of which only a long one fails.
IN_FULL = 100


class Mutation(NamedTuple):
    """A piece of text of a file, its replacement, and the tests that should detect it."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]
    result: str = ""


class Copy:
    """A copy of the repository, in which one mutation at a time is tried."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, folder / name)

    def start(self, mutation: Mutation) -> str | None:
        """Run the tests of a mutation in a new process; return its result if they are not run."""
        self.mutation, self.path = mutation, None
        tests = [path for path in mutation.tests if (self.folder / path).exists()]
        if not tests:
            return "error"
        if mutation.old:
            package = self.folder / "sparse_eval"
            texts = {path: path.read_text() for path in package.rglob("*.py")}
            found = [path for path, text in texts.items() if mutation.old in text]
            if package / mutation.file in found:
                found = [package / mutation.file]
            if len(found) != 1 or texts[found[0]].count(mutation.old) > 1:
                return "gone"
            self.path, self.text, self.stat = found[0], texts[found[0]], found[0].stat()
            self.path.write_text(self.text.replace(mutation.old, mutation.new))
        self.began = time.monotonic()
        self.process = os.fork()
        if not self.process:
            self._test(tests)
        return None

    def _test(self, tests: list[str]) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (self.limit, self.limit))
        os.chdir(self.folder)
        os.dup2(os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        # Files of the unmutated package stay as they were compiled; a mutated one is not kept.
        os.environ |= {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.folder))
        if self.path and self.path.parent.name == "kernels":
            os.environ["NUMBA_DISABLE_JIT"] = "1"
            numba.config.reload_config()
        # A failure of hypothesis is not shrunk; the profile of tests/conftest.py inherits that.
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("unshrunk", phases=phases, max_examples=20)
        hypothesis.settings.load_profile("unshrunk")
        by = self.mutation.result.partition(" by ")[2]  # the test that noticed it last time
        runs = [("not long", [by])] if by else []
        runs += [(FAST, tests)]
        if self.path and "NUMBA_DISABLE_JIT" not in os.environ:
            runs += [("not long", ["tests/net"])]
        if self.path:
            runs += [("long", [by] if by else tests)]
        status = 70
        try:
            for marks, paths in runs:
                status = pytest.main([*PYTEST, marks, *paths])
                if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                    break
            else:
                status = 0
            if status == 1 and marks == "long":
                status = IN_FULL
        except BaseException:  # noqa: BLE001 - this process ends here
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(status)

    def result(self) -> str | None:
        """Return what the tests found, or None if they still run."""
        done, status = os.waitpid(self.process, os.WNOHANG)
        late = time.monotonic() - self.began > 20 * self.limit  # it waits for something
        if not done and not late:
            return None
        self.end()
        if self.path:
            self.path.write_text(self.text)
            os.utime(self.path, ns=(self.stat.st_atime_ns, self.stat.st_mtime_ns))
        if not done:
            os.waitpid(self.process, 0)
            return "timeout"
        status = os.waitstatus_to_exitcode(status)
        if status in (1, IN_FULL):
            output = (self.folder / "output.txt").read_text()
            tests = re.findall(r"^(?:FAILED|ERROR) (\S+?::\w+)", output, re.MULTILINE)
            where = "in --full " if status == IN_FULL else ""
            return f"caught {where}by {tests[-1]}" if tests else "error"
        if status < 0:  # the signal that ended it
            return "timeout"
        return "error" if status else "survived"

    def end(self) -> None:
        """End the tests, and what they started."""
        with suppress(ProcessLookupError):  # nothing is left of it
            os.killpg(self.process, signal.SIGKILL)

    def tell(self, result: str) -> None:
        """Print a result, and what pytest printed if it could not run."""
        seconds = time.monotonic() - self.began
        print(f"{seconds:4.0f} s  {self.mutation.name}: {result}", flush=True)
        if result == "error":
            print((self.folder / "output.txt").read_text()[-2000:], flush=True)


def read() -> list[Mutation]:
    """Return the mutations of the file."""
    groups = tomllib.loads(FILE.read_text())["group"]
    found = [
        Mutation(name, group["file"], tests=group["tests"], **mutation)
        for group in groups
        for name, mutation in group["mutations"].items()
    ]
    names = [mutation.name for mutation in found]
    if twice := {name for name in names if names.count(name) > 1}:
        sys.exit(f"two mutations of the same name in {FILE.name}: {', '.join(sorted(twice))}")
    return found


def run(mutations: list[Mutation], jobs: int, limit: int) -> dict[str, str]:
    """Run mutations, several at a time; return their results by name."""
    results: dict[str, str] = {}
    waiting = list(mutations)
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        idle = [Copy(Path(folder, str(job)), limit) for job in range(min(jobs, len(waiting)))]
        busy: list[Copy] = []
        try:
            while waiting or busy:
                while waiting and idle:
                    copy = idle.pop()
                    result = copy.start(waiting.pop(0))
                    if result:
                        results[copy.mutation.name] = result
                        print(f"   0 s  {copy.mutation.name}: {result}", flush=True)
                    (idle if result else busy).append(copy)
                time.sleep(0.05)
                for copy in busy[:]:
                    if result := copy.result():
                        results[copy.mutation.name] = result
                        copy.tell(result)
                        busy.remove(copy)
                        idle.append(copy)
        finally:
            for copy in busy:
                copy.end()
    return results


def write(results: dict[str, str]) -> None:
    """Store results in the file; each mutation is a line of it."""

    def line(match: re.Match[str]) -> str:
        name, text, before = match.groups()
        result = results.get(name, before)
        stored = f', result = "{result}"' if result else ""
        return f"{name} = {{ {text}{stored} }}"

    pattern = r'^([\w-]+) = \{ (old = .*?)(?:, result = "([^"]+)")? \}$'
    FILE.write_text(re.sub(pattern, line, FILE.read_text(), flags=re.MULTILINE))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="*", help="names of mutations, or files: a glob")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at a time")
    parser.add_argument("--limit", type=int, default=60, help="seconds of a processor for each")
    parser.add_argument("--new", action="store_true", help="only those without a stored result")
    parser.add_argument("--write", action="store_true", help="store the results in the file")
    parser.add_argument("--unchecked", action="store_true", help="skip the run without mutations")
    options = parser.parse_args()
    mutations = [
        each
        for each in read()
        if (fnmatch(each.name, options.only) or fnmatch(each.file, options.only))
        and not (options.new and each.result)
    ]
    if not options.unchecked:
        tests = sorted({path for each in mutations for path in each.tests})
        nothing = Mutation("(no mutation)", "", "", "", tests)
        if run([nothing], 1, 3600)[nothing.name] != "survived":
            sys.exit("the tests fail without a mutation")
    results = run(mutations, options.jobs, options.limit)
    kinds = Counter(result.partition(" ")[0] for result in results.values())
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    if options.write:
        write(results)
        return
    caught = [each.name for each in mutations if each.result.startswith(("caught", "timeout"))]
    if missed := [name for name in caught if results[name] in ("survived", "error")]:
        sys.exit("caught before, and not any more: " + ", ".join(missed))


if __name__ == "__main__":
    main()
