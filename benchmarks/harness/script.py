"""Load a rival's script; shared by the two scripts that run in rivals' environments."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import IO


def load(path: Path) -> ModuleType:
    """Import a file under a name that is not used by any library."""
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def protect_stdout() -> IO[str]:
    """Return the real stdout, for answers, and redirect the output of libraries to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers
