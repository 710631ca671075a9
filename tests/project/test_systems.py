"""The package takes nothing that Windows lacks."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys

import filelock, implicit, jinja2, matplotlib, numba, pandas, pyarrow
import scipy.stats, threadpoolctl, typer  # these know Windows
try:
    import dask, distributed, optuna
except ImportError:  # only scripts/test --full installs them
    pass

for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "getuid", "mkfifo", "register_at_fork", "sched_getaffinity", "setsid"):
    vars(os).pop(name, None)
for name in ("SIGALRM", "SIGHUP", "SIGKILL", "SIGQUIT", "alarm", "pause", "setitimer"):
    vars(signal).pop(name, None)
os.linesep = "\\r\\n"

import importlib, pkgutil
import sparse_eval

for module in pkgutil.walk_packages(sparse_eval.__path__, "sparse_eval."):
    if not module.name.endswith(("__main__", "evaluation.spark")):
        importlib.import_module(module.name)
from sparse_eval.cli import main

main("demo --users 60 --items 40 --factors 2 --iterations 2 --out demo".split())
"""


@pytest.mark.slow
@pytest.mark.long
def test_commands_run_without_what_only_posix_has(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"\r" not in (tmp_path / "demo" / "summary.json").read_bytes()
