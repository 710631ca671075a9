"""Models that score all items of a user: item-item matrices, and any function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.files import replacing_npz
from ..errors import InvalidDataError
from ..inputs.labels import axis_labels

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from ..core.types import AnyArray, CSRMatrix, Integers, Labels, PathLike
    from ..retrieval.scores import ScoreFunction

#: The array of a dense item-item matrix in its file.
ITEM_WEIGHTS = "item_weights"


@dataclass(eq=False, repr=False)
class ItemItemModel:
    """A model that scores items by a user's own: the user's row of train times a square matrix.

    Attributes
    ----------
    weights : ndarray of float32 or float64, or csr_matrix, shape (n_items, n_items)
        Row i holds what having item i adds to the scores. A dense one may be memory-mapped.
    item_ids : pandas.Index or None
        What its rows and columns stand for.
    """

    weights: AnyArray | CSRMatrix
    item_ids: Any = None

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.weights) else "dense"
        return f"ItemItemModel({self.weights.shape[0]:,} items, {kind})"

    def save(self, path: PathLike) -> None:
        """Save the matrix, without ids; `save_model` saves it with them."""
        with replacing_npz(path) as temporary:
            if sparse.issparse(self.weights):
                sparse.save_npz(temporary, self.weights)
            else:
                arrays: dict[str, Any] = {ITEM_WEIGHTS: self.weights}
                np.savez(temporary, **arrays)


class Scorer:
    """A function that scores all items, as a model that knows the ids of its users and items.

    A function by itself is a model, too, of the users and items of the training data. With this
    its users and items have ids, by which they are matched with those of the data.

    Parameters
    ----------
    function : callable
        Given row numbers of users, a 1-D ndarray of int64, it returns their scores of all items: an
        array, or a tensor on the CPU, of shape ``(len(users), n_items)``, of floats of at most 64
        bits or of whole numbers of at most 2^53. The scores of a user must not depend on the other
        users of a call. It is called for some hundred or thousand users at once, never from two
        threads.
    users, items : sequence of hashable, optional
        The ids of its users and items, in the order of its numbers.

    See Also
    --------
    evaluate_model : Evaluate it.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> table = np.array([[0.1, 0.9, 0.5], [0.8, 0.2, 0.3]])
    >>> model = se.Scorer(lambda users: table[users], users=["ann", "bob"], items=["x", "y", "z"])
    >>> clicks = se.Interactions.from_frame([{"user": "bob", "item": "x"}])
    >>> se.recommend(model, clicks, k=2, users=["bob", "ann"])[["user", "item"]].values.tolist()
    [['bob', 'z'], ['bob', 'y'], ['ann', 'y'], ['ann', 'z']]
    """

    def __init__(
        self,
        function: ScoreFunction,
        *,
        users: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> None:
        if not callable(function) or isinstance(function, type):
            raise InvalidDataError(
                f"function is {function!r}; expected a function that takes row numbers of users "
                "and returns their scores of all items"
            )
        self.function = function
        self.user_ids = _labels(users, "users")
        self.item_ids = _labels(items, "items")
        self.n_users = None if self.user_ids is None else len(self.user_ids)
        self.n_items = None if self.item_ids is None else len(self.item_ids)
        #: What the function calls each user, if not the number of the row.
        self.rows: Integers | None = None

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"Scorer({name})"


def _labels(ids: Iterable[Hashable] | None, name: str) -> Labels | None:
    if ids is None:
        return None
    if isinstance(ids, str | bytes) or not hasattr(ids, "__iter__"):
        raise InvalidDataError(f"{name} is {ids!r}; expected the id of each of them")
    labels: Any = ids if hasattr(ids, "__len__") else list(ids)
    return axis_labels(labels, len(labels), name)
