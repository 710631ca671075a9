"""Import sparse_eval, and call `evaluate` and `evaluate_model` first."""

import os
import tempfile
import time
from typing import Any

MODULE = "sparse_eval"


def first_call(path: str) -> dict[str, Any]:
    """Score lists in a file once, from raw arrays; the kernels are on disk already."""
    from pathlib import Path

    from suites.lists.case import read
    from suites.lists.rivals.sparse_eval import whole_call

    lists = read(Path(path))
    start = time.perf_counter()
    whole_call(lists)
    return {"seconds": time.perf_counter() - start}


def cold(task: str = "evaluate", folder: str = "") -> dict[str, Any]:
    """Import the package, and compile its kernels, or score 500 small lists, or a model, too.

    Kernels are in the folder; without it, in an empty one.
    """
    with tempfile.TemporaryDirectory() as empty:
        os.environ["NUMBA_CACHE_DIR"] = folder or empty
        import numpy as np
        from scipy import sparse

        shape = (500, 300)
        rng = np.random.default_rng(0)
        rows = np.repeat(np.arange(500), 10)
        items = np.concatenate([rng.choice(300, 10, replace=False) for _ in range(500)])
        relevant = np.concatenate([rng.choice(300, 5, replace=False) for _ in range(500)])
        positions = sparse.csr_matrix((np.tile(np.arange(1, 11), 500), (rows, items)), shape)
        validation = sparse.csr_matrix(
            (np.ones(2500), (np.repeat(np.arange(500), 5), relevant)), shape
        )
        seen = positions - positions.multiply(validation != 0)
        factors = rng.random((500, 32), np.float32), rng.random((300, 32), np.float32)

        start = time.perf_counter()
        import sparse_eval as se
        from sparse_eval.kernels.cache import compiled_now

        if task == "compile":
            se.compile_kernels(progress=False)
        else:
            se.evaluate(positions, validation, "ndcg@10")
            if task == "evaluate_model":
                se.evaluate_model(factors, seen, validation, "ndcg@10")
        seconds = time.perf_counter() - start
    if folder and task != "compile" and compiled_now:
        raise RuntimeError(f"{len(compiled_now)} kernels have been compiled again")
    return {"seconds": seconds}
