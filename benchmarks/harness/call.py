"""Call a function of a module in this process, and print its result as JSON, in the last line.

    python -P call.py MODULE:FUNCTION [ARGUMENT...]      each argument is JSON

`environment.call` runs this with the Python of a contestant. `-P` keeps this folder off the module
path, and our modules come last on it: in a script named `ranx.py`, `import ranx` is the library.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import IO, Any


def main(target: str, *arguments: str) -> None:
    answers = protect_stdout()
    found = find(target)(*map(json.loads, arguments))
    answers.write(json.dumps(found, default=plain) + "\n")


def protect_stdout() -> IO[str]:
    """Return the real stdout, for answers, and redirect the output of libraries to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def find(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def plain(found: Any) -> Any:
    """Return a NumPy array or number as a JSON value, and a sparse matrix as its entries."""
    if not hasattr(found, "tocoo"):
        return found.tolist()
    entries = found.tocoo()
    columns = (entries.row, entries.col, entries.data)
    return {"matrix": [column.tolist() for column in columns], "shape": found.shape}


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    main(*sys.argv[1:])
