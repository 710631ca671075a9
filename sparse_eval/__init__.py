"""Evaluate recommenders trained on large implicit-feedback data.

A prediction-position matrix and a validation matrix go in, one row of numbers per user comes out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import SparseEvalError
from .evaluate import evaluate
from .matrices import Rankings, Relevance
from .metrics import Metric
from .metrics.extension import register_metric
from .results import Evaluation

if TYPE_CHECKING:
    from . import datasets, split, trec
    from .models.implicit import evaluate_model, train_als

__all__ = [
    "Evaluation",
    "Metric",
    "Rankings",
    "Relevance",
    "SparseEvalError",
    "datasets",
    "evaluate",
    "evaluate_model",
    "register_metric",
    "split",
    "train_als",
    "trec",
]

# What needs pandas or implicit is imported when it is first used: a job that only evaluates
# matrices would wait longer for these imports than for its results.
_LAZY = {
    "datasets": "sparse_eval.datasets",
    "split": "sparse_eval.split",
    "trec": "sparse_eval.trec",
    "evaluate_model": "sparse_eval.models.implicit",
    "train_als": "sparse_eval.models.implicit",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'sparse_eval' has no attribute {name!r}")
    module = import_module(_LAZY[name])
    return module if module.__name__ == f"sparse_eval.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
