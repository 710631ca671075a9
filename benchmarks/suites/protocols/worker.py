"""Compute one library's own numbers on the problems, in the library's environment.

The library's script, in the folder `rivals`, has

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
"""

import json
from pathlib import Path

from harness.call import plain
from harness.libraries import load


def answer(script: str, problems: str, values: str) -> None:
    library, report = load(script)  # before NumPy, which then starts one thread
    from .problem import read

    report |= {
        "protocol": library.PROTOCOL,
        "subject": library.SUBJECT,
        "notes": getattr(library, "NOTES", []),
        "answers": [library.answer(problem) for problem in read(problems)],
    }
    Path(values).write_text(json.dumps(report, default=plain), encoding="utf-8")
