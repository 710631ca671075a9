"""Compiling the kernels ahead, for an image or a cache of continuous integration."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.progress import progress_bar
from ..datasets.split import random
from ..datasets.synthetic import synthetic
from ..errors import SparseEvalError
from ..evaluation.evaluate import evaluate
from ..inputs.candidates import as_candidates
from ..inputs.item_data import ItemData
from ..inputs.rankings import Rankings, repeated_item
from ..inputs.relevance import Relevance
from ..kernels.cache import compiled_now, not_kept, processor, writable_folder
from ..metrics.registry import REGISTRY
from ..metrics.request import Protocol
from ..retrieval.ranker import Options
from ..retrieval.search import Search, SearchSettings
from .options import Running, counted
from .terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..core.types import AnyArray
    from ..results import Evaluation


class CompiledKernels(NamedTuple):
    """The result of `compile_kernels`.

    Attributes
    ----------
    folder : pathlib.Path
        Where compiled kernels are kept.
    processor : str
        The processor that they are compiled for, by LLVM's name.
    n_compiled : int
        The number of kernels compiled now; those that were there already are not compiled again.
    """

    folder: Path
    processor: str
    n_compiled: int


def compile_kernels(*, progress: bool | None = None) -> CompiledKernels:
    """Compile every kernel ahead, so that no later process has to.

    A kernel is compiled at its first call for the present processor and kept on disk. The folder is
    that in the environment variable ``NUMBA_CACHE_DIR``, else the package's, else the user's cache
    folder. Later processes read it from there; they need no permission to write, and another user
    may own the folder. An image for several kinds of processors sets ``NUMBA_CPU_NAME=generic``
    while it is built and where it runs.

    Parameters
    ----------
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    CompiledKernels
        The folder, the processor, and the number of kernels compiled now.

    Raises
    ------
    SparseEvalError
        If no folder can be written, or there is no room for them all.

    Examples
    --------
    >>> import sparse_eval as se
    >>> se.compile_kernels()  # doctest: +SKIP
    CompiledKernels(folder=PosixPath('…/sparse_eval/kernels/__pycache__'), processor='znver5',
    n_compiled=97)
    """
    folder = writable_folder()
    if folder is None:
        raise SparseEvalError(
            "there is no writable folder for compiled kernels; set the environment variable "
            "NUMBA_CACHE_DIR"
        )
    before, n_lost = len(compiled_now), len(not_kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about data that nobody looks at
        calls = list(_calls())
        for call in progress_bar(progress, calls, desc="compile", unit=" calls"):
            call()
            if len(not_kept) > n_lost:
                raise SparseEvalError(
                    f"compiled kernels cannot be kept ({not_kept[-1]}); make room there, or set "
                    "the environment variable NUMBA_CACHE_DIR to another folder"
                )
    return CompiledKernels(folder, processor(), len(compiled_now) - before)


def _calls() -> Iterator[Callable[[], object]]:
    """Yield calls that need every kernel, for all types of arrays that it is compiled for."""
    from implicit.nearest_neighbours import CosineRecommender

    from ..models.evaluate_model import evaluate_model
    from ..models.recommend import ranks

    holdout = random(synthetic(60, 40, n_interactions=600, seed=0), seed=0)
    train, validation = holdout.train.csr, holdout.validation.csr
    graded = validation.copy()
    graded.data = 1.0 + np.arange(graded.nnz) % 3
    rng = np.random.default_rng(0)
    scores = np.round(rng.random((60, 40)), 1)
    names = {
        name: f"{name}@10" if "@" in entry.spelling else name for name, entry in REGISTRY.items()
    }
    groups = np.arange(40) % 3

    lists = Rankings.from_scores(scores, k=30)
    positions = lists.to_positions()
    gapped = positions.copy()
    gapped.data[gapped.data == 3] = 0
    gapped.eliminate_zeros()
    for index in (np.int32, np.int64):
        table = np.argsort(-scores, axis=1)[:, :20].astype(index)
        yield partial(Rankings.from_topk, table)
        for matrix in (positions, gapped):
            yield partial(_evaluate_indexed, matrix, graded, index)
    tied = Rankings.from_scores(scores, k=30, ties="average")
    for relevance in (validation, graded):
        yield partial(
            _print_all, evaluate, lists, relevance, [*names.values()], train=train,
            item_data=ItemData(groups=groups),
        )  # fmt: skip
        for among in (as_candidates(validation), np.arange(30)):
            yield partial(
                _print_all, evaluate, lists, relevance, ["ndcg@10", "err@10", "serendipity@10"],
                train=train, candidates=among,
            )  # fmt: skip
        yield partial(_print_all, evaluate, Rankings.from_positions(gapped), relevance, ["ndcg@10"])
        protocol = Protocol("ndcg@10", judged_only=True)
        yield partial(_print_all, evaluate, lists, relevance, protocol)
        yield partial(evaluate, tied, relevance, ["ndcg@10", "auc"])
        yield partial(evaluate, lists, relevance, ["ndcg@10"], convention="mind-notebook")
        yield partial(_print_all, evaluate, positions, relevance, ["ndcg@10"], memory=1 << 24)
    yield partial(Rankings.from_popularity, train, k=10)
    yield partial(repeated_item, lists.indptr, lists.items)

    for dtype in (np.float32, np.float64):
        factors = rng.standard_normal((60, 8)).astype(dtype), rng.random((40, 8)).astype(dtype)
        factors[0][0] = 0.0
        factors[0][1] = 1e-30 if dtype == np.float32 else 1e-280
        for metrics in (["ndcg@10"], ["ndcg@10", "coverage@10"]):
            yield partial(evaluate_model, factors, train, validation, metrics)
        for k in (None, 10):
            yield partial(ranks, factors, validation, k, train=train)
        candidates = as_candidates(validation)
        for metrics in (["ndcg@10"], ["ndcg@10", "coverage@10"]):
            yield partial(
                _print_all, evaluate_model, factors, train, validation, metrics,
                candidates=candidates,
            )  # fmt: skip
        yield partial(_search_near_centres, *factors, train, Relevance.from_csr(validation))
    for dtype in (np.float32, np.float64):
        weights = rng.random((40, 40)).astype(dtype)
        for item_item in (weights, sparse.csr_matrix(weights)):
            yield partial(evaluate_model, item_item, train, validation, ["ndcg@10"])
            yield partial(evaluate_model, item_item, train, validation, ["coverage@10"])
    model = CosineRecommender(K=5, num_threads=1)
    model.fit(train, show_progress=False)
    yield partial(evaluate_model, model, train, validation, ["ndcg@10"])


def _print_all(evaluating: Callable[..., Evaluation], *arguments: Any, **options: Any) -> None:
    evaluation = evaluating(*arguments, **options)
    str(evaluation)
    evaluation.summary()


def _evaluate_indexed(
    positions: sparse.csr_matrix, relevance: sparse.csr_matrix, dtype: type[np.integer]
) -> None:
    """Evaluate matrices whose indices have a dtype."""
    sides = positions.copy(), relevance.copy()
    for side in sides:
        side.indices, side.indptr = side.indices.astype(dtype), side.indptr.astype(dtype)
    evaluate(sides[0], sides[1], ["ndcg@10"])


def _search_near_centres(
    users: AnyArray, items: AnyArray, seen: sparse.csr_matrix, held_out: Relevance
) -> None:
    search = _InGroups(users, items, Options(seen))
    search.lists(10, np.arange(len(users)))
    search.ranks(held_out, 10)


class _InGroups(Search):
    """A search in groups, even among few items."""

    settings = SearchSettings(
        small_catalogue=0, easy_items=0, easy_for_ranks=0, easy_for_few=0,
        worth_compiling=0, worth_keeping=0,
    )  # fmt: skip


def compile_ahead(execution: Running) -> None:
    """Compile every kernel ahead: for an image, or the cache of continuous integration.

    Example: NUMBA_CACHE_DIR=kernels sparse-eval compile

    Kernels are kept in the folder NUMBA_CACHE_DIR, if it is set. Otherwise they are in the
    package's folder, or in the user's if that is read-only. Later processes only read them.
    """
    folder, processor, n_compiled = compile_kernels()
    echo(f"compiled {counted(n_compiled, 'kernel')} for {processor}; all are in {folder}")
