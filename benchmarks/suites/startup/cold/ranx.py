"""The first `evaluate` of a process, including the import, with an empty numba cache."""

from __future__ import annotations

import json
import os
import tempfile
import time

import numpy as np

with tempfile.TemporaryDirectory() as empty:
    os.environ["NUMBA_CACHE_DIR"] = empty
    rng = np.random.default_rng(0)
    lists = {
        f"u{user}": {f"i{item}": float(10 - rank) for rank, item in enumerate(items)}
        for user, items in enumerate(rng.choice(300, 10, replace=False) for _ in range(500))
    }
    truth = {
        f"u{user}": {f"i{item}": 1 for item in rng.choice(300, 5, replace=False)}
        for user in range(500)
    }
    start = time.perf_counter()
    from ranx import Qrels, Run, evaluate

    evaluate(Qrels(truth), Run(lists), "ndcg@10")
    print(json.dumps({"seconds": time.perf_counter() - start}))
