"""Kernels on disk: read where nothing can be written, compiled again when a source changes."""

import errno
import importlib
import os
import pkgutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from unittest import mock

import llvmlite
import numba
import numpy as np
import pytest
from raising import raises, warns

import sparse_eval as se
from sparse_eval import kernels
from sparse_eval.cli import compile as compiling
from sparse_eval.errors import SparseEvalError
from sparse_eval.kernels import cache
from sparse_eval.kernels.jit import is_ready, kernel
from sparse_eval.kernels.rows import order_by_position

if numba.config.DISABLE_JIT:
    pytest.skip("nothing is compiled", allow_module_level=True)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    cache._warn_of_no_place.cache_clear()
    return tmp_path


def twice(values, out):
    for i in range(len(values)):
        out[i] = 2 * values[i]


def call(function):
    out = np.empty(3)
    function(np.arange(3.0), out)
    assert out.tolist() == [0.0, 2.0, 4.0]
    return function


def n_hits(function):
    return sum(function.stats.cache_hits.values())


def fail_with(error):
    return mock.Mock(side_effect=error)


def test_a_kernel_is_read_from_disk_which_may_be_read_only(folder, monkeypatch):
    assert not is_ready(kernel(twice))
    assert n_hits(call(kernel(twice))) == 0
    assert len(list(folder.rglob("*.nbc"))) == 1
    assert is_ready(kernel(twice))
    for name in ("mkdir", "touch", "write_bytes"):
        monkeypatch.setattr(Path, name, fail_with(PermissionError("read-only")))
    assert n_hits(call(kernel(twice))) == 1


@pytest.mark.parametrize(
    ("module", "name", "changed"),
    [
        (cache, "_digest", lambda: "of other sources"),
        (numba, "__version__", "0"),
        (llvmlite, "__version__", "0"),
    ],
)
def test_another_source_or_compiler_compiles_again(module, name, changed, monkeypatch):
    call(kernel(twice))
    cache._digest.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(module, name, changed)
        function = kernel(twice)
        assert not is_ready(function)
        assert n_hits(call(function)) == 0
        assert n_hits(call(kernel(twice))) == 1
    cache._digest.cache_clear()


@pytest.mark.parametrize("kept", [0, 20, 2000, -1])
def test_a_damaged_file_is_written_again(kept, folder):
    """It is cut off, as by a full disk or lost power, or a bit of it is flipped."""
    call(kernel(twice))
    (path,) = folder.rglob("*.nbc")
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 1
    path.write_bytes(content[:kept] if kept >= 0 else damaged)
    assert n_hits(call(kernel(twice))) == 0
    assert path.read_bytes()[:32] == sha256(path.read_bytes()[32:]).digest()
    assert n_hits(call(kernel(twice))) == 1


def test_a_file_of_other_types_is_not_taken(folder):
    """Each has a name of its own, so that processes that write at once cannot mix them up."""
    call(kernel(twice))
    (of_floats,) = folder.rglob("*.nbc")
    whole, out = np.arange(3), np.empty(3, np.int64)
    kernel(twice)(whole, out)
    (of_integers,) = set(folder.rglob("*.nbc")) - {of_floats}
    of_integers.write_bytes(of_floats.read_bytes())
    function = kernel(twice)
    function(whole, out)
    assert (n_hits(function), out.tolist()) == (0, [0, 2, 4])


def test_files_of_other_versions_are_removed(folder, monkeypatch):
    call(kernel(twice))
    (path,) = folder.rglob("*.nbc")
    base = path.name.removesuffix(".nbc").rsplit(".", 2)[0]  # without source and processor
    other, old = path.with_name("other." + path.name), path.with_name(f"{base}.nbi")
    other.write_bytes(b"")
    old.write_bytes(b"")
    monkeypatch.setattr(cache, "_digest", lambda: "of other sources")
    call(kernel(twice))
    assert other.exists()
    assert not path.exists()
    assert not old.exists()
    assert len(list(folder.rglob("*.nbc"))) == 2


def test_a_full_disk_and_no_folder_are_said(monkeypatch):
    monkeypatch.setattr(compiling, "_calls", lambda: [lambda: call(kernel(twice))])
    no_folder = mock.patch.object(compiling, "writable_folder", return_value=None)
    with no_folder, raises(SparseEvalError):
        se.compile_kernels(progress=False)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(Path, "write_bytes", fail_with(full))
    with warns():
        call(kernel(twice))
    call(kernel(twice))  # a second warning would be an error
    with raises(SparseEvalError):
        se.compile_kernels(progress=False)


#: What a process that finds all kernels on disk does: it prints how many it has compiled itself.
CALLS = """
import numpy as np, sparse_eval as se
from sparse_eval.kernels.cache import compiled_now
holdout = se.split.random(se.datasets.synthetic(80, 50, n_interactions=900, seed=1), seed=0)
train, held = holdout.train, holdout.validation
rng = np.random.default_rng(0)
factors = rng.random((80, 8)).astype(np.float32), rng.random((50, 8)).astype(np.float32)
metrics = ["ndcg@10", "map@5", "recall@20", "coverage@10", "novelty@10", "diversity@10"]
print(se.evaluate_model(factors, train, held, metrics))
print(se.evaluate_model(factors, train, held, ["ndcg@10", "hit_rate@3"]))
lists = se.Rankings.from_topk(se.top_k(factors, k=10, train=train).ids)
print(se.evaluate(lists, se.Relevance.from_csr(held), ["ndcg@10", "auc", "mrr"]))
full = se.ranks(factors, held, train=train)
print(se.evaluate(full, held, ["auc", "mean_rank"], train=train).summary())
print(se.evaluate(se.recommend(factors, train, k=3), held, "ndcg@3"))
print("compiled", *compiled_now)
"""


@pytest.mark.long
@pytest.mark.slow
def test_after_compiling_ahead_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR", ""))
    done = se.compile_kernels(progress=False)
    assert done.folder.is_dir()
    assert done.processor
    members = {}
    for module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."):
        members |= vars(importlib.import_module(module.name))
    compiled = {
        name: member
        for name, member in members.items()
        if isinstance(getattr(member, "_cache", None), cache.KernelCache)
    }
    assert order_by_position.__name__ in compiled
    assert [name for name, one in compiled.items() if not is_ready(one)] == []
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALLS], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "compiled"
    assert se.compile_kernels(progress=False).n_compiled == 0
