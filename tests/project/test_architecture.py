"""What modules may import and call, what importing costs, and what the package calls itself."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from raising import raises

import sparse_eval
from sparse_eval.cli import main
from sparse_eval.cli.commands import app

ROOT = Path(sparse_eval.__file__).parent


def imported(path):
    """Return the libraries that a module imports anywhere."""
    return set(re.findall(r"^\s*(?:import|from) (\w+)", path.read_text("utf-8"), re.M))


#: What compiles and keeps kernels; vectors and fetching ahead cannot be written in Python.
WITH_NUMBA = ("cache", "jit", "products", "vectors")


def test_only_kernels_know_numba():
    for module in ROOT.rglob("*.py"):
        may = module.parent.name == "kernels" and module.stem in WITH_NUMBA
        assert bool(imported(module) & {"numba", "llvmlite"}) == may, module


def test_nothing_reads_pickles():
    """Ruff finds calls that read them, and `exec`."""
    for module in ROOT.rglob("*.py"):
        pickles = imported(module) & {"pickle", "joblib", "dill", "marshal", "shelve"}
        # Kept kernels are machine code, which would run whatever it were wrapped in. Answers of
        # Spark come from workers that this process has started.
        may = module in (ROOT / "kernels/cache.py", ROOT / "evaluation/spark.py")
        assert pickles <= ({"pickle"} if may else set()), module
        loads = re.findall(r"\bnp\.load\(.*", module.read_text("utf-8"))
        assert all("allow_pickle=False)" in call for call in loads), module


def test_each_stored_mutation_changes_one_place():
    stored = tomllib.loads((ROOT.parent / "tests/mutations.toml").read_text("utf-8"))
    counts = {
        name: (ROOT / group["file"]).read_text("utf-8").count(mutation["old"])
        for group in stored["group"]
        for name, mutation in group["mutations"].items()
    }
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_public_names():
    assert sparse_eval.__all__ == sorted(sparse_eval.__all__)
    for name in sparse_eval.__all__:
        assert getattr(sparse_eval, name).__doc__, name
    with raises(AttributeError):
        sparse_eval.nothing  # noqa: B018


@pytest.mark.long
def test_dir_offers_the_public_names_and_nothing_else():
    """In a process of its own, where no test has imported a module of the package."""
    code = (
        "import json, sparse_eval as se;"
        "before = dir(se); se.plots, se.trec, se.datasets, se.split, se.tune; after = dir(se);"
        "print(json.dumps([before, after, se.__all__]))"
    )
    before, after, names = json.loads(run(code))
    assert before == after == sorted([*names, "__doc__", "__name__", "__version__"])


def test_errors_are_documented_in_their_tree():
    documented = sparse_eval.errors.__doc__ or ""
    for name in sparse_eval.errors.__all__:
        assert issubclass(getattr(sparse_eval.errors, name), ValueError)
        assert name in documented, name


@pytest.mark.parametrize("name", vars(typer.main.get_command(app))["commands"])
def test_every_command_has_a_short_help(name, capsys):
    for option in ("-h", "--help"):
        with pytest.raises(SystemExit) as stop:
            main([name, option])
        assert not stop.value.code
        printed = capsys.readouterr()
        assert f"Usage: sparse-eval {name} " in printed.out
        assert printed.out.count("\n") <= 50
        assert printed.err == ""


def run(code, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.long
def test_evaluating_matrices_leaves_heavy_libraries_out(tmp_path):
    """Summaries and comparisons load pandas; scipy.stats, the slowest, only some tests do."""
    use = (
        "import sys, numpy as np, sparse_eval as se; from scipy.sparse import csr_matrix;"
        "drawn = np.random.default_rng(0).permuted(np.tile(np.arange(9), (300, 1)), axis=1);"
        "held_out, metrics = csr_matrix(drawn > 5), 'ndcg@3,coverage@3';"
        "ev, other = (se.evaluate(se.Rankings.from_topk(drawn[:, part]), held_out, metrics)"
        " for part in (slice(0, 3), slice(3, 6)));"
        "heavy = {'pandas', 'pyarrow', 'implicit', 'typer', 'matplotlib'};"
        "names = (heavy | {'sparse_eval.retrieval', 'tqdm'}) & set(sys.modules);"
        "print(ev); summary = ev.summary(); ev.save(sys.argv[1]);"
        "assert set(summary['interval']) == {'t', 'jackknife'};"
        "compared = se.compare({'a': ev, 'b': other}).table; assert compared['p'].notna().all();"
        "print(sorted(names | {'scipy.stats', 'scipy.optimize'} & set(sys.modules)))"
    )
    assert run(use, str(tmp_path / "saved")).splitlines()[-1] == "[]"


@pytest.mark.long
def test_loading_a_table_leaves_heavy_libraries_out(tmp_path):
    """Numba takes longer to import than a million rows take to read."""
    (tmp_path / "log.csv").write_text("user,item\n1,2\n1,3\n", "utf-8")
    use = (
        "import sys, sparse_eval as se; print(len(se.datasets.load(sys.argv[1])));"
        "print(sorted({'numba', 'pandas', 'implicit', 'scipy.special'} & set(sys.modules)))"
    )
    assert run(use, str(tmp_path / "log.csv")).split("\n")[:2] == ["2", "[]"]
