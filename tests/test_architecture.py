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

#: For each part of the package, the parts that it may import.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "kernels": set(),
    "files": {"errors"},
    "formats": {"errors"},
    "installed": set(),
    "options": {"errors"},
    "parallel": {"options"},
    "moments": {"kernels"},
    "progress": {"errors"},
    "factors": {"errors", "kernels", "parallel"},
    "metrics": {"errors", "kernels"},
    "datasets": {"errors", "files", "formats", "options"},
    "matrices": {"errors", "formats", "kernels", "options", "parallel", "datasets"},
    "search": {"errors", "kernels", "matrices", "parallel", "factors", "progress"},
    "retrieve": {"errors", "kernels", "matrices", "options", "parallel", "factors", "search"},
    "split": {"errors", "files", "options", "datasets"},
    "trec": {"errors", "files", "matrices", "datasets"},
    "align": {"errors", "matrices"},
    "context": {"errors", "matrices", "metrics"},
    "compute": {"errors", "kernels", "matrices", "metrics", "moments", "parallel", "context"},
    "baselines": {"kernels", "matrices", "metrics", "moments", "parallel", "compute"},
    "curves": {"metrics"},
    "intervals": {"errors", "moments", "parallel"},
    "fingerprints": set(),
    "display": set(),
    "comparison": {"display", "errors", "intervals", "progress"},
    "saved": {"display", "errors", "files", "comparison"},
    "segments": {"errors"},
    "parts": {"errors", "fingerprints", "intervals", "moments"},
    "details": {"display", "matrices", "curves"},
    "explain": {"compute"},
    "report": {
        "display",
        "errors",
        "files",
        "metrics",
        "comparison",
        "intervals",
        "results",
        "saved",
        "segments",
    },
    "results": {
        "errors",
        "installed",
        "files",
        "options",
        "matrices",
        "metrics",
        "compute",
        "baselines",
        "comparison",
        "curves",
        "details",
        "display",
        "explain",
        "fingerprints",
        "intervals",
        "moments",
        "parts",
        "saved",
        "segments",
    },
    "once": {"errors", "matrices", "metrics", "context", "compute", "results"},
    "blocks": {
        "align",
        "compute",
        "context",
        "errors",
        "matrices",
        "once",
        "options",
        "parts",
        "progress",
        "results",
    },
    "tables": {
        "blocks",
        "compute",
        "context",
        "errors",
        "fingerprints",
        "matrices",
        "once",
        "parts",
    },
    "parquet": {"blocks", "errors", "once", "parts", "progress", "results", "tables"},
    "evaluate": {
        "align",
        "blocks",
        "context",
        "errors",
        "matrices",
        "metrics",
        "once",
        "parquet",
        "results",
        "tables",
    },
    "wire": {"errors", "moments", "parts"},
    "scale": {
        "blocks",
        "errors",
        "installed",
        "metrics",
        "models",
        "once",
        "parquet",
        "parts",
        "progress",
        "results",
        "tables",
        "wire",
    },
    "models": {
        "errors",
        "installed",
        "files",
        "options",
        "kernels",
        "matrices",
        "metrics",
        "blocks",
        "compute",
        "context",
        "evaluate",
        "once",
        "parts",
        "results",
        "factors",
        "fingerprints",
        "progress",
        "retrieve",
    },
}


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


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_point_one_way(part: str) -> None:
    modules = sorted((ROOT / part).glob("*.py")) or [ROOT / f"{part}.py"]
    for module in modules:
        ours = {name.split(".")[1] for name in imported(module) if name.startswith("sparse_eval.")}
        assert ours <= ALLOWED[part] | {part}, module


def test_every_part_is_held_to_it() -> None:
    parts = {p.stem for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert parts == {*ALLOWED, "__init__", "cli"}


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
