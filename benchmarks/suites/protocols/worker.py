"""Compute one library's own numbers on the problems, in the library's environment.

    python -P worker.py SCRIPT PROBLEMS VALUES

SCRIPT is the library's script, in the folder `rivals`. It has

    PROTOCOL     the protocol of `probe.py` that must give the same
    SUBJECT      the subject of the comparison, in a few words
    answer       a function of a `Problem` that returns {"values": {our name of a number -> the
                 value of each user (None if the library leaves the user out), or only the mean},
                 "given": {data that the library drew or made itself -> the input of ours for it}};
                 or None if the problem is not suitable. `@k` stands for the cut-off.
    CONVENTION   the convention= that gives the same; by default, ours
    NOT_COMPARED metric -> why it is not compared
    NOTES        how both are made comparable
    TOLERANCE    the largest allowed difference (by default 1e-9)
    IMPRECISE    the reason for a larger TOLERANCE

`-P` keeps this folder off the module path: `import lightfm` means the library.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # at the end: libraries come before our modules
from harness.script import load, protect_stdout

# Waking a second thread takes longer than a problem.
os.environ |= {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def main(script: Path, problems: Path, values: Path) -> None:
    answers = protect_stdout()  # our driver reads the last line
    warnings.simplefilter("ignore")
    read = load(Path(__file__).with_name("problem.py")).read
    library = load(script)
    report = {
        "protocol": library.PROTOCOL,
        "subject": library.SUBJECT,
        "convention": getattr(library, "CONVENTION", None),
        "tolerance": getattr(library, "TOLERANCE", 1e-9),
        "imprecise": getattr(library, "IMPRECISE", None),
        "notes": getattr(library, "NOTES", []),
        "not_compared": getattr(library, "NOT_COMPARED", {}),
        "answers": [library.answer(problem) for problem in read(problems)],
    }
    values.write_text(json.dumps(report, default=_plain), encoding="utf-8")
    answers.write("{}\n")


def _plain(found: Any) -> Any:
    """Return a NumPy number or a sparse matrix as a JSON value."""
    if not hasattr(found, "tocoo"):
        return found.item()
    entries = found.tocoo()
    columns = (entries.row, entries.col, entries.data)
    return {"matrix": [column.tolist() for column in columns], "shape": found.shape}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
