"""RecTools: the pairs of each fold of its splitter by ranges of time."""

import numpy as np
import pandas as pd
from rectools import Columns
from rectools.dataset import Interactions
from rectools.model_selection import TimeRangeSplitter

MIDNIGHT = "2024-01-30"


def answer(problem):
    users, items, hours = problem.events.T
    times = pd.Timestamp(MIDNIGHT) + pd.to_timedelta(hours, unit="h")
    frame = pd.DataFrame(
        {Columns.User: users, Columns.Item: items, Columns.Weight: 1.0, Columns.Datetime: times}
    )
    n_folds = 3 if problem.k < 6 else 1
    size = f"{problem.k}D" if problem.k % 2 else f"{6 * problem.k}H"
    drop, known = problem.graded, problem.shape[0] % 2 == 0
    splitter = TimeRangeSplitter(size, n_folds, known, known, drop)
    parts = {"train": [], "validation": []}
    start = None
    for train, validation, fold in splitter.split(Interactions(frame)):
        start = start or str(fold["start"])
        for part, chosen in zip(parts.values(), (train, validation), strict=True):
            counts = np.zeros(problem.shape)
            np.add.at(counts, tuple(problem.events[chosen, :2].T), 1)
            part.append(counts.tolist())
    return {
        "values": parts,
        "given": {
            "midnight": MIDNIGHT,
            "at": start,
            "window": size.replace("H", "h"),
            "repeats": "drop" if drop else "keep",
            "known": known,
        },
    }
