"""`Recommender`: a model of `implicit` that makes its own lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .identifiers import ITEM_IDS, USER_IDS

if TYPE_CHECKING:
    from ..inputs.axes import Axis


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

    @property
    def n_users(self) -> int:
        """The number of users of the fitted model."""
        return len(self.model.user_factors)

    @property
    def n_items(self) -> int:
        """The number of items of the fitted model."""
        return len(self.model.item_factors)

    @property
    def user_ids(self) -> Axis | None:
        """The ids of the users, or None if the model has none."""
        return getattr(self.model, USER_IDS, None)

    @property
    def item_ids(self) -> Axis | None:
        """The ids of the items, or None if the model has none."""
        return getattr(self.model, ITEM_IDS, None)
