"""Five models compared by ranx, in its environment: the same lists, metrics and test as ours.

    python -P ranx.py FOLDER

Its runs and judgements are built before the measurement, and numba compiles on a small part.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from ranx import Qrels, Run, compare
from scipy.sparse import load_npz

SEVERAL = [
    f"{name}@{k}"
    for name in ("ndcg", "precision", "recall", "hit_rate", "mrr", "map")
    for k in (1, 3, 5, 10)
]


def main(folder: Path) -> dict[str, Any]:
    with np.load(folder / "lists.npz", allow_pickle=False) as found:
        lists = {name: found[name] for name in found.files}
    users = lists.pop("users")
    rows = load_npz(folder / "validation.npz")[users]
    relevant = np.split(rows.indices, rows.indptr[1:-1])
    _compare(users[:100], relevant[:100], {name: ids[:100] for name, ids in lists.items()})
    seconds, means = _compare(users, relevant, lists)
    return {"seconds": seconds, "means": means}


def _compare(
    users: np.ndarray, relevant: list[np.ndarray], lists: dict[str, np.ndarray]
) -> tuple[float, dict[str, dict[str, float]]]:
    names = [str(user) for user in users]
    qrels = Qrels(
        {
            name: dict.fromkeys(map(str, items.tolist()), 1)
            for name, items in zip(names, relevant, strict=True)
        }
    )
    runs = [
        Run(
            {
                name: {str(item): float(len(row) - rank) for rank, item in enumerate(row)}
                for name, row in zip(names, ids.tolist(), strict=True)
            },
            name=model,
        )
        for model, ids in lists.items()
    ]
    start = time.perf_counter()
    report = compare(qrels, runs, SEVERAL, stat_test="student")
    seconds = time.perf_counter() - start
    return seconds, {
        model: {name: float(value) for name, value in report.results[model].items()}
        for model in lists
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
