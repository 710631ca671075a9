"""Results of `evaluate`: numbers, their uncertainty, and the values and lists behind them."""

from .evaluation import Evaluation

__all__ = ["Evaluation"]
