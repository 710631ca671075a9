"""Evaluate recommenders trained on large implicit-feedback data.

A prediction-position matrix and a validation matrix go in, one row of numbers per user comes out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import SparseEvalError
from .evaluation.evaluate import evaluate
from .inputs.rankings import Rankings
from .inputs.relevance import Relevance
from .metrics import Metric
from .metrics.extension import register_metric
from .results import Evaluation
from .results.comparison import Comparison, compare

if TYPE_CHECKING:
    from . import datasets
    from .datasets import split
    from .inputs import trec
    from .models.callback import EvaluationCallback
    from .models.implicit import evaluate_model, train_als
    from .models.sweep import sweep
    from .models.tune import tune
    from .report import plots, write_report
    from .results.saved import SavedEvaluation, load_evaluation
    from .retrieval.top_k import full_ranks, held_out_ranks, top_k

__all__ = [
    "Comparison",
    "Evaluation",
    "EvaluationCallback",
    "Metric",
    "Rankings",
    "Relevance",
    "SavedEvaluation",
    "SparseEvalError",
    "compare",
    "datasets",
    "evaluate",
    "evaluate_model",
    "full_ranks",
    "held_out_ranks",
    "load_evaluation",
    "plots",
    "register_metric",
    "split",
    "sweep",
    "top_k",
    "train_als",
    "trec",
    "tune",
    "write_report",
]

# What needs pandas or implicit is imported when it is first used: a job that only evaluates
# matrices would wait longer for these imports than for its results.
_MODULES = {
    "datasets": "sparse_eval.datasets",
    "plots": "sparse_eval.report.plots",
    "split": "sparse_eval.datasets.split",
    "trec": "sparse_eval.inputs.trec",
}
_ATTRIBUTES = {
    "EvaluationCallback": "sparse_eval.models.callback",
    "SavedEvaluation": "sparse_eval.results.saved",
    "evaluate_model": "sparse_eval.models.implicit",
    "full_ranks": "sparse_eval.retrieval.top_k",
    "held_out_ranks": "sparse_eval.retrieval.top_k",
    "load_evaluation": "sparse_eval.results.saved",
    "sweep": "sparse_eval.models.sweep",
    "top_k": "sparse_eval.retrieval.top_k",
    "train_als": "sparse_eval.models.implicit",
    "tune": "sparse_eval.models.tune",
    "write_report": "sparse_eval.report",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _ATTRIBUTES:
        return getattr(import_module(_ATTRIBUTES[name]), name)
    raise AttributeError(f"module 'sparse_eval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
