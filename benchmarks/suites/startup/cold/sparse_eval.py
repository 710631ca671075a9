"""The first `evaluate` and the first `evaluate_model` of a process, including the import.

The arguments are the task and the folder of the kernels. Without a folder, an empty one is made.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

task, folder = sys.argv[1], (sys.argv[2:] or [""])[0]
with tempfile.TemporaryDirectory() as empty:
    os.environ["NUMBA_CACHE_DIR"] = folder or empty

    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(500), 10)
    items = np.concatenate([rng.choice(300, 10, replace=False) for _ in range(500)])
    relevant = np.concatenate([rng.choice(300, 5, replace=False) for _ in range(500)])
    positions = sparse.csr_matrix((np.tile(np.arange(1, 11), 500), (rows, items)), shape=(500, 300))
    validation = sparse.csr_matrix(
        (np.ones(2500), (np.repeat(np.arange(500), 5), relevant)), shape=(500, 300)
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
    print(json.dumps({"seconds": seconds, "n_compiled": len(compiled_now)}))
