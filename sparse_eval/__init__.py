"""Evaluate recommenders trained on large implicit-feedback data.

A prediction-position matrix and a validation matrix go in, one row of numbers per user comes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import errors
from .errors import SparseEvalError

if _TYPE_CHECKING:
    from . import datasets, testing
    from .datasets import Interactions, split
    from .datasets.split import Holdout
    from .evaluation.approximate import compare_lists
    from .evaluation.evaluate import evaluate
    from .inputs import trec
    from .inputs.candidates import Candidates
    from .inputs.item_data import ItemData
    from .inputs.rankings import Rankings
    from .inputs.relevance import Relevance
    from .jobs import track
    from .jobs.cross_validate import CrossValidation, cross_validate
    from .jobs.history import History
    from .jobs.sweep import sweep
    from .jobs.train import EvaluationCallback, TrainingStopped, train_als, train_model
    from .jobs.tune import Tuning, tune
    from .metrics import Metric
    from .metrics.registry import register_metric
    from .metrics.request import Protocol
    from .models import baselines
    from .models.checkpoints import save_model
    from .models.compile import compile_kernels
    from .models.evaluate import evaluate_model
    from .models.fold_in import fold_in
    from .models.model import factor_model
    from .models.negatives import read_negatives, sample_negatives
    from .models.recommender import Recommender
    from .models.retrieving import ranks, recommend, top_k
    from .models.scorers import Scorer
    from .report import plots, write_report
    from .results import Evaluation
    from .results.comparison import Comparison, compare
    from .results.overlap import rbo

    __version__: str

__all__ = [
    "Candidates",
    "Comparison",
    "CrossValidation",
    "Evaluation",
    "EvaluationCallback",
    "History",
    "Holdout",
    "Interactions",
    "ItemData",
    "Metric",
    "Protocol",
    "Rankings",
    "Recommender",
    "Relevance",
    "Scorer",
    "SparseEvalError",
    "TrainingStopped",
    "Tuning",
    "baselines",
    "compare",
    "compare_lists",
    "compile_kernels",
    "cross_validate",
    "datasets",
    "errors",
    "evaluate",
    "evaluate_model",
    "factor_model",
    "fold_in",
    "plots",
    "ranks",
    "rbo",
    "read_negatives",
    "recommend",
    "register_metric",
    "sample_negatives",
    "save_model",
    "split",
    "sweep",
    "testing",
    "top_k",
    "track",
    "train_als",
    "train_model",
    "trec",
    "tune",
    "write_report",
]

# Modules are imported when they are first used. A job that only evaluates matrices would wait
# longer for pandas and implicit than for its results. A command handles signals before imports.
_MODULES = {
    "baselines": "models.baselines",
    "datasets": "datasets",
    "metrics": "metrics",
    "plots": "report.plots",
    "split": "datasets.split",
    "testing": "testing",
    "track": "jobs.track",
    "trec": "inputs.trec",
}
_ATTRIBUTES = {
    "Candidates": "inputs.candidates",
    "Comparison": "results.comparison",
    "CrossValidation": "jobs.cross_validate",
    "Evaluation": "results",
    "EvaluationCallback": "jobs.train",
    "History": "jobs.history",
    "Holdout": "datasets.split",
    "Interactions": "datasets.interactions",
    "ItemData": "inputs.item_data",
    "Metric": "metrics",
    "Protocol": "metrics.request",
    "Rankings": "inputs.rankings",
    "Recommender": "models.recommender",
    "Relevance": "inputs.relevance",
    "Scorer": "models.scorers",
    "TrainingStopped": "jobs.train",
    "Tuning": "jobs.tune",
    "compare": "results.comparison",
    "compare_lists": "evaluation.approximate",
    "compile_kernels": "models.compile",
    "cross_validate": "jobs.cross_validate",
    "evaluate": "evaluation.evaluate",
    "evaluate_model": "models.evaluate",
    "factor_model": "models.model",
    "fold_in": "models.fold_in",
    "ranks": "models.retrieving",
    "rbo": "results.overlap",
    "read_negatives": "models.negatives",
    "recommend": "models.retrieving",
    "register_metric": "metrics.registry",
    "sample_negatives": "models.negatives",
    "save_model": "models.checkpoints",
    "sweep": "jobs.sweep",
    "top_k": "models.retrieving",
    "train_als": "jobs.train",
    "train_model": "jobs.train",
    "tune": "jobs.tune",
    "write_report": "report.page",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        from .core.versions import installed_version

        return installed_version()
    from .core.threads import thread_lock

    # Modules that import one another cannot be imported first by several threads at once.
    with thread_lock("import"):
        if name in _MODULES:
            return import_module(f"sparse_eval.{_MODULES[name]}")
        if name in _ATTRIBUTES:
            return getattr(import_module(f"sparse_eval.{_ATTRIBUTES[name]}"), name)
    raise AttributeError(f"module 'sparse_eval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__name__", "__version__"])
