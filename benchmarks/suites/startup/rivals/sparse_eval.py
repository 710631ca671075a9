"""Import sparse_eval, call `evaluate` and `evaluate_model` first, and run commands."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODULE = "sparse_eval"


def first_call(path: str) -> dict[str, Any]:
    """Score lists in a file once, from raw arrays; the kernels are on disk already."""
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


def process(*words: str) -> dict[str, Any]:
    """Run a process of Python, from its start to its end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return {"seconds": time.perf_counter() - start}


MODULES = """
import json, sys
from contextlib import redirect_stdout, suppress
from io import StringIO
from sparse_eval.cli import main
with redirect_stdout(StringIO()), suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(list(sys.modules)))
"""


def modules(*words: str) -> list[str]:
    """Run a command, and return the modules that it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", MODULES, *words], check=True, capture_output=True, text=True
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def write_files(folder: str) -> None:
    """Write the inputs of commands: lists and relevance of 500 users, and a checkpoint."""
    import numpy as np
    import pandas as pd

    import sparse_eval as se

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for name, marks in (("numbers", ("", "")), ("texts", ("u", "i"))):
        for side, n_items in (("lists", 10), ("relevant", 5)):
            lines = ["user,item,rank" if side == "lists" else "user,item"]
            for user in range(500):
                for rank, item in enumerate(rng.choice(1000, n_items, replace=False), 1):
                    pair = f"{marks[0]}{user},{marks[1]}{item}"
                    lines.append(f"{pair},{rank}" if side == "lists" else pair)
            text = "\n".join(lines) + "\n"
            (target / f"{name}_{side}.csv").write_text(text, "utf-8")
    users, items = np.repeat(np.arange(500), 20), rng.integers(0, 1000, 10_000)
    clicks = se.Interactions.from_frame(pd.DataFrame({"user": users, "item": items}))
    holdout = se.split.random(clicks, seed=0)
    holdout.save(target / "split")
    se.save_model(se.train_als(holdout.train, factors=16), target / "als.npz")
