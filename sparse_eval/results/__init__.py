"""What `evaluate` returns, and what several of them are together."""

from .evaluation import Evaluation
from .merged import MergedEvaluation, part_of, reduce_block

__all__ = ["Evaluation", "MergedEvaluation", "part_of", "reduce_block"]
