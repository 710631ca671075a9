"""Which way imports point, what importing costs, and what the package calls itself."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sparse_eval

ROOT = Path(sparse_eval.__file__).parent


def imported(path: Path) -> set[str]:
    """The parts of the package, and the libraries, that a module imports anywhere."""
    found = set()
    inside = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if not node.level:
                found.add(node.module or "")
                continue
            base = inside[: len(inside) - node.level + 1]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {".".join(("sparse_eval", *base, name)) for name in names}
    return found


def test_only_kernels_know_numba() -> None:
    for module in ROOT.rglob("*.py"):
        knows = any(name.split(".")[0] in ("numba", "llvmlite") for name in imported(module))
        # Vectors and fetching ahead cannot be written in Python.
        may = module.parent.name == "kernels" and module.stem in ("jit", "prefetch", "products")
        assert knows == may, module


def test_nothing_reads_pickles_or_runs_text() -> None:
    for module in ROOT.rglob("*.py"):
        names = {n.split(".")[0] for n in imported(module)}
        assert not names & {"pickle", "joblib", "dill", "marshal", "shelve"}, module
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                assert called not in {"exec", "read_pickle", "to_pickle"}, module
                if called == "load" and getattr(node.func, "value", None) is not None:
                    owner = getattr(node.func.value, "id", "")
                    pickles = [k.value for k in node.keywords if k.arg == "allow_pickle"]
                    assert owner != "np" or [p.value for p in pickles] == [False], module


def test_public_names() -> None:
    assert sparse_eval.__all__ == sorted(sparse_eval.__all__)
    for name in sparse_eval.__all__:
        assert getattr(sparse_eval, name).__doc__, name
        assert name in dir(sparse_eval)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sparse_eval.nothing  # noqa: B018


def run(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_import_leaves_heavy_libraries_out() -> None:
    evaluate = (
        "import sys, sparse_eval as se; from scipy.sparse import csr_matrix;"
        "se.evaluate(csr_matrix([[1]]), csr_matrix([[1]]), 'ndcg@1').mean();"
        "print(sorted({'pandas', 'implicit', 'typer', 'matplotlib'} & set(sys.modules)))"
    )
    assert run(evaluate).strip() == "[]"


def test_a_place_without_cache_still_compiles() -> None:
    # The one cache locator named here needs a notebook, so numba finds none, as in a read-only
    # installation of a user without a home.
    code = (
        "import sparse_eval as se; from scipy.sparse import csr_matrix;"
        "print(se.evaluate(csr_matrix([[1]]), csr_matrix([[1]]), 'ndcg@1')['ndcg@1'])"
    )
    found = run(code, NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator")
    assert found.strip() == "1.0"
