"""Evaluate recommenders trained on large implicit-feedback data.

A prediction-position matrix and a validation matrix go in, one row of numbers per user comes out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .comparison import Comparison, compare
from .errors import SparseEvalError
from .evaluate import evaluate
from .matrices import Rankings, Relevance
from .metrics import Metric
from .metrics.extension import register_metric
from .results import Evaluation

if TYPE_CHECKING:
    from . import datasets, scale, split, trec
    from .models.callback import EvaluationCallback
    from .models.implicit import evaluate_model, train_als
    from .models.sweep import sweep
    from .models.tune import tune
    from .report import plots, write_report
    from .retrieve import full_ranks, held_out_ranks, top_k
    from .saved import SavedEvaluation, load_evaluation

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
    "scale",
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
_LAZY = {
    "datasets": "sparse_eval.datasets",
    "scale": "sparse_eval.scale",
    "split": "sparse_eval.split",
    "trec": "sparse_eval.trec",
    "EvaluationCallback": "sparse_eval.models.callback",
    "evaluate_model": "sparse_eval.models.implicit",
    "full_ranks": "sparse_eval.retrieve",
    "held_out_ranks": "sparse_eval.retrieve",
    "SavedEvaluation": "sparse_eval.saved",
    "load_evaluation": "sparse_eval.saved",
    "plots": "sparse_eval.report",
    "sweep": "sparse_eval.models.sweep",
    "top_k": "sparse_eval.retrieve",
    "train_als": "sparse_eval.models.implicit",
    "tune": "sparse_eval.models.tune",
    "write_report": "sparse_eval.report",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'sparse_eval' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    return module if module.__name__ == f"sparse_eval.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
