"""Private and undocumented parts of other libraries: that they are as the package needs them.

A failure names the part and its use. No part is used without a test here.
"""

import ast
import pickle
import re
import subprocess
import sys
import tempfile
from functools import wraps
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import typer
from callback_cases import make
from numba import config, njit
from threadpoolctl import threadpool_limits
from typer.core import TyperCommand
from typer.main import get_command

import sparse_eval as se
from sparse_eval.jobs.train import _DERIVED
from sparse_eval.kernels.cache import KernelCache

ROOT = Path(se.__file__).parent

compiled = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")

#: The parts that tests of this module cover.
TESTED = set()


def covers(*parts):
    """Mark a test of parts of a library; its docstring, with their use, is added to a failure."""
    TESTED.update(parts)

    def mark(test):
        @wraps(test)
        def noted(*arguments, **options):
            try:
                test(*arguments, **options)
            except Exception as error:
                error.add_note(f"{', '.join(parts)}: {test.__doc__}")
                raise

        return noted

    return mark


def double(values, out):
    for i in range(len(values)):
        out[i] = 2 * values[i]


KEPT_KERNELS = """
import sys
import sparse_eval as se
from sparse_eval.kernels.cache import compiled_now
clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
holdout = se.split.random(clicks, seed=0)
model = se.baselines.popularity(holdout.train)
print(dict(se.evaluate_model(model, holdout, ["ndcg@10", "auc", "rbp@10"])))
print(compiled_now, "numba.np.arraymath" in sys.modules)
"""


@compiled
@covers("numba.core.runtime.nrt")
@pytest.mark.long
def test_numba_loads_a_kept_kernel_without_what_it_compiles(tmp_path, monkeypatch):
    """kernels/cache.py initializes only the counts of references of a kernel that allocates."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    call = [sys.executable, "-c", KEPT_KERNELS]
    first, second = (
        subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(2)
    )
    assert first[1].startswith("['")
    assert first[1].endswith("True")
    assert second == [first[0], "[] False"]


@covers("typer.main")
def test_typer_makes_a_command_of_its_one_function():
    """cli/commands.py makes each command when it is called."""
    app = typer.Typer(add_completion=False)
    app.command("greet")(lambda: typer.echo("hello"))
    command = get_command(app)
    assert isinstance(command, TyperCommand)
    assert command.name == "greet"


@compiled
@covers("_nrt", "no_cfunc_wrapper", "no_cpython_wrapper")
def test_numba_leaves_out_reference_counts_and_wrappers():
    """kernels/jit.py compiles without them, in half of the time."""
    values, out = np.arange(3.0), np.empty(3)
    plain = njit(double)
    lean = njit(_nrt=False, no_cfunc_wrapper=True)(double)
    inner = njit(_nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=True)(double)
    njit(lambda values, out: inner(values, out))(values, out)
    assert out.tolist() == [0.0, 2.0, 4.0]
    for function in (plain, lean):
        function(values, out)
    found = {
        part: [part in "".join(one.inspect_llvm().values()) for one in (plain, lean, inner)]
        for part in ("@cfunc.", "@_ZN7cpython")
    }
    assert found == {"@cfunc.": [True, False, False], "@_ZN7cpython": [True, True, False]}
    allocating = lambda n: np.empty(n).size  # noqa: E731
    assert njit(allocating)(3) == 3
    with pytest.raises(Exception, match="empty|NRT"):
        njit(_nrt=False)(allocating)(3)


@compiled
@covers("_cache", "_reduce", "_rebuild", "numba.core.compiler")
def test_numba_asks_another_cache_and_its_results_can_be_pickled():
    """kernels/jit.py gives each kernel a cache of kernels/cache.py; numba only takes its own."""
    kept = {}

    class Cache:
        cache_path = "a folder"

        def load_overload(self, signature, context):
            context.refresh()
            key = repr((signature, context.codegen().magic_tuple()))
            if key in kept:
                from numba.core.compiler import CompileResult

                return CompileResult._rebuild(context, *pickle.loads(kept[key]))  # noqa: S301
            return None

        def save_overload(self, signature, compiled):
            key = repr((signature, compiled.codegen.magic_tuple()))
            kept[key] = pickle.dumps(compiled._reduce())

    assert {"cache_path", "load_overload", "save_overload"} <= vars(KernelCache).keys()
    hits = []
    for _ in range(2):
        function, out = njit(double), np.empty(3)
        function._cache = Cache()
        function(np.arange(3.0), out)
        assert out.tolist() == [0.0, 2.0, 4.0]
        assert function.stats.cache_path == "a folder"
        hits.append(sum(function.stats.cache_hits.values()))
    assert hits == [0, 1]
    assert len(kept) == 1


@compiled
@covers("Dispatcher.compile")
def test_numba_compiles_by_a_method_that_can_be_replaced():
    """kernels/jit.py replaces it for each kernel, to compile where no signal arrives."""
    function, signatures = njit(double), []
    compile_it = function.compile
    function.compile = lambda signature: signatures.append(signature) or compile_it(signature)
    function(np.arange(3.0), np.empty(3))
    function(np.arange(3.0), np.empty(3))
    assert len(signatures) == len(function.overloads) == 1


@pytest.mark.long
@compiled
@covers("numba's own cache")
def test_numba_own_cache_would_not_do(tmp_path, monkeypatch):
    """kernels/cache.py is another cache for these reasons. If numba has none of them, delete it."""
    from numba.core.caching import IndexDataCacheFile

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", lambda **_: (_ for _ in ()).throw(OSError))
        with pytest.raises(RuntimeError):  # it cannot be written, even if all is there
            njit(cache=True)(double)

    first, second = (IndexDataCacheFile(tmp_path, "of_two_processes", "0") for _ in range(2))
    load = first._load_index
    first._load_index = lambda: (load(), second.save("of the second", 2))[0]
    first.save("of the first", 1)
    assert second.load("of the second") is None

    part, user = tmp_path / "part.py", tmp_path / "user.py"
    part.write_text("from numba import njit\n@njit\ndef number():\n    return 1\n")
    user.write_text(
        "from numba import njit\nfrom part import number\n"
        "@njit(cache=True)\ndef call():\n    return number()\nprint(call())\n"
    )

    def run():
        return subprocess.run([sys.executable, user], capture_output=True, text=True)

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert run().stdout == "1\n"
    part.write_text(part.read_text().replace("1", "200"))
    assert run().stdout == "1\n"  # of the part that was
    (kept,) = tmp_path.rglob("user.call*.nbc")
    kept.write_bytes(kept.read_bytes()[:-100])
    assert run().returncode == 1  # it is not compiled again


@pytest.fixture
def holdout():
    with threadpool_limits(1, "blas"):  # implicit warns if there are more
        clicks = se.datasets.synthetic(n_users=60, n_items=40, n_interactions=1200, seed=3)
        yield se.split.random(clicks, fraction=0.3, seed=0)


@covers(*_DERIVED)
def test_implicit_keeps_what_it_derives_from_factors(holdout):
    """jobs/train.py clears these attributes when it replaces the factors of a model."""
    model, rows = make("als"), holdout.train.csr
    model.fit(rows, show_progress=False)
    model.similar_items(0), model.similar_users(0)
    model.recalculate_user(0, rows[:1]), model.recalculate_item(0, rows.T.tocsr()[:1])
    of_processor = [name for name in _DERIVED if not name.endswith("_host")]
    assert [name for name in of_processor if getattr(model, name, None) is None] == []
    for name in of_processor:
        setattr(model, name, None)
    model.item_factors = -model.item_factors[::-1]
    expected = np.linalg.norm(model.item_factors, axis=1)
    model.similar_items(0)
    np.testing.assert_array_equal(model._item_norms, expected)
    (folder,) = find_spec("implicit").submodule_search_locations
    of_gpu = "".join(path.read_text("utf-8") for path in Path(folder, "gpu").glob("*.py"))
    assert [name for name in _DERIVED if f"self.{name} = " not in of_gpu] == []


@covers("implicit.nearest_neighbours", "implicit.utils")
def test_implicit_scores_neighbours_by_an_object_of_their_similarities(holdout):
    """models/checkpoints.py makes it for a file; jobs/train.py ignores the warning of `fit`."""
    from implicit.nearest_neighbours import (
        CosineRecommender,
        ItemItemRecommender,
        NearestNeighboursScorer,
    )
    from implicit.utils import ParameterWarning

    rows, fitted = holdout.train.csr.astype(np.float64), CosineRecommender(5)
    with pytest.warns(ParameterWarning):  # about a matrix that it makes itself
        fitted.fit(rows, show_progress=False)
    made = ItemItemRecommender()
    made.similarity, made.scorer = fitted.similarity, NearestNeighboursScorer(fitted.similarity)
    for one, other in zip(made.recommend(3, rows[3]), fitted.recommend(3, rows[3]), strict=True):
        np.testing.assert_array_equal(one, other)


@covers("implicit.recommender_base")
def test_implicit_raises_an_error_of_its_own_if_a_fit_diverges(holdout):
    """jobs/train.py raises an error in its place."""
    from implicit.recommender_base import ModelFitError

    train = holdout.train.csr * np.float32(np.nan)
    with pytest.raises(ModelFitError):
        make("als").fit(train, show_progress=False)


@covers("Optuna's journal")
def test_optuna_writes_into_an_incomplete_line_of_its_journal(tmp_path):
    """jobs/tune.py raises an error if the last line is incomplete. If Optuna does, delete that."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    path = tmp_path / "study.jsonl"

    def opened():
        lock = JournalFileOpenLock(str(path), grace_period=3)
        storage = JournalStorage(JournalFileBackend(str(path), lock))
        return optuna.create_study(study_name="x", storage=storage, load_if_exists=True)

    study = opened()
    study.add_trial(optuna.trial.create_trial(value=1.0))
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.jsonl"]  # no lock stays
    content = path.read_bytes()
    assert content.endswith(b"\n")
    path.write_bytes(content[:-3])
    opened()  # writes after the end
    with pytest.raises(ValueError, match="."):
        opened()


@covers("pyspark.sql.pandas.types")
def test_spark_knows_the_types_of_arrow():
    """evaluation/spark.py compares the types of tables by them."""
    pytest.importorskip("pyspark")
    import pyarrow as pa
    from pyspark.sql import types
    from pyspark.sql.pandas.types import to_arrow_type

    assert to_arrow_type(types.LongType()) == pa.int64()
    assert to_arrow_type(types.StringType()) == pa.string()


#: Modules that their libraries do not document; a name that begins with _ makes any private.
UNDOCUMENTED = re.compile(
    r"numba\.(core|misc|np)|pandas\.(core|io)|optuna\.storages\._|typer\.main|"
    r"pyspark\.sql\.pandas|implicit\.(utils|recommender_base|nearest_neighbours)|"
    r"(.*\.)?_\w+"
)

#: Parts of Python, and the public names of named tuples.
PUBLIC = {"_getframe", "_asdict", "_fields", "_make", "_replace"}


def names_of(tree):
    """Yield the names that a module defines, other than by an import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if ast.unparse(node.value) in ("self", "cls"):
                yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def private_parts(tree, own):
    """Yield each use of a name that begins with _ and that the package does not define."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.keyword):
            names = [node.arg or ""]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]  # as for getattr
        elif isinstance(node, ast.Import):
            yield from ((one.name, node) for one in node.names if UNDOCUMENTED.match(one.name))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [one.name for one in node.names]
            if node.module != "__future__" and UNDOCUMENTED.match(node.module):
                yield node.module, node
        for name in names:
            if re.fullmatch(r"_[a-zA-Z]\w*(?<!_)", name) and name not in own | PUBLIC:
                yield name, node


def test_every_kind_of_use_is_found():
    code = """
import pandas.core.frame
from scipy._lib import parts
frame._meta
call(_fast=True)
getattr(executor, "_max_workers")
pair._replace(own._known)
"""
    found = {name for name, _ in private_parts(ast.parse(code), {"_known"})}
    assert found == {"pandas.core.frame", "scipy._lib", "_meta", "_fast", "_max_workers"}


@pytest.mark.long
def test_no_other_private_part_is_used():
    trees = {path: ast.parse(path.read_text("utf-8")) for path in ROOT.rglob("*.py")}
    own = {name for tree in trees.values() for name in names_of(tree)}
    found = {}
    for path, tree in trees.items():
        for name, node in private_parts(tree, own):
            found.setdefault(name, f"sparse_eval/{path.relative_to(ROOT)}:{node.lineno}")
    others = {name: place for name, place in found.items() if name not in TESTED}
    assert others == {}, "call a public part instead, or add a test to this module"
    named_otherwise = {"no_cfunc_wrapper", "no_cpython_wrapper", "Dispatcher.compile"}
    named_otherwise |= {"numba's own cache", "Optuna's journal"}
    assert TESTED - found.keys() == named_otherwise, "no longer used: delete their tests"
