"""What `evaluate` returns: numbers, how sure they are, and what they are made of."""

from .evaluation import Evaluation

__all__ = ["Evaluation"]
