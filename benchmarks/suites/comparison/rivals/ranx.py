"""Five models compared by ranx, in its environment: the same lists, metrics and test as ours.

Its runs and judgements are built before the measurement, and numba compiles on a small part.
"""

import time
from pathlib import Path

import numpy as np
from ranx import Qrels, Run, compare
from scipy.sparse import load_npz
from suites.lists.case import SEVERAL, Lists, dictionaries


def compare_several(folder):
    with np.load(Path(folder, "lists.npz"), allow_pickle=False) as found:
        lists = {name: found[name] for name in found.files}
    users = lists.pop("users")
    relevant = load_npz(Path(folder, "validation.npz"))
    timed(users[:100], relevant, {name: ids[:100] for name, ids in lists.items()})
    return timed(users, relevant, lists)


def timed(users, relevant, lists):
    forms = {name: dictionaries(Lists(ids, users, relevant, None)) for name, ids in lists.items()}
    qrels = Qrels(next(iter(forms.values()))[0])
    runs = [Run(run, name=name) for name, (_, run) in forms.items()]
    start = time.perf_counter()
    report = compare(qrels, runs, SEVERAL, stat_test="student")
    seconds = time.perf_counter() - start
    means = {
        model: {name: float(value) for name, value in report.results[model].items()}
        for model in lists
    }
    return {"seconds": seconds, "values": means}
