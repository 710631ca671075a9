"""`Recommender`: a model of `implicit` that makes its own lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False, repr=False)
class Recommender:
    """A model of implicit whose own ``recommend`` makes the lists.

    Without a `Recommender`, a model with factors is ranked exactly, with the lower id first among
    equal scores. The model's own lists differ in the rounding of scores and in the order of equal
    scores (implicit puts the higher id first). Metrics of such lists need a cut-off, and candidates
    cannot be given.

    Parameters
    ----------
    model : fitted model of implicit, or path of a checkpoint
        A GPU model is converted with ``to_cpu``.

    See Also
    --------
    evaluate_model : Evaluate it.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> model = se.train_als(holdout.train, factors=8)
    >>> se.evaluate_model(se.Recommender(model), holdout, "ndcg@10").retrieval.via
    'recommend'
    """

    model: Any

    def __repr__(self) -> str:
        return f"Recommender({type(self.model).__name__})"


def own_model(model: Any) -> Any:
    """Return the model in a `Recommender`, and any other model as it is."""
    return model.model if isinstance(model, Recommender) else model
