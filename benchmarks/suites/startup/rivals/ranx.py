"""Import ranx, and call it first, with Qrels and Run made before or from small dictionaries."""

import os
import tempfile
import time
from typing import Any

MODULE = "ranx"


def first_call(path: str) -> dict[str, Any]:
    """Score lists in a file once; its objects and the kernels exist already."""
    from pathlib import Path

    from suites.lists.case import read
    from suites.lists.rivals.ranx import prepare

    call, _ = prepare(read(Path(path)))["ndcg@10"]
    start = time.perf_counter()
    call()
    return {"seconds": time.perf_counter() - start}


def cold() -> dict[str, Any]:
    """Import ranx and score 500 small lists, with an empty numba cache."""
    with tempfile.TemporaryDirectory() as empty:
        os.environ["NUMBA_CACHE_DIR"] = empty
        import numpy as np

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
        return {"seconds": time.perf_counter() - start}
