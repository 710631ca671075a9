"""Models that score all items of a user: functions, matrices of scores, item-item weights."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.arrays import as_array, describe, is_array, is_frame
from ..core.atomic_files import replacing_npz
from ..core.csr import plain_matrix
from ..core.threads import thread_count
from ..errors import InvalidDataError, UnsupportedModelError
from ..inputs.axes import Axis
from ..inputs.labelled import labels_of, own_labels
from ..inputs.npy import release
from ..retrieval.score_search import (
    CELLS_OF_THREAD,
    FunctionScores,
    ItemScores,
    ScoreSearch,
    check_weights,
    users_per_call,
)
from .model import PER_SEARCH, Model

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import pandas as pd

    from ..core.types import AnyArray, CSRMatrix, Integers, PathLike, SparseInput
    from ..retrieval.ranker import Options, Ranker
    from ..retrieval.score_search import ScoreFunction

#: The array of a dense item-item matrix in its file.
ITEM_WEIGHTS = "item_weights"

#: The array of scores of users × items in its file.
SCORES = "scores"


@dataclass(eq=False, repr=False)
class ItemItemModel(Model):
    """A model whose scores are the user's row of train times a square matrix of items.

    Attributes
    ----------
    weights : ndarray of float32 or float64, or csr_matrix, shape (n_items, n_items)
        Row i is added to the scores of users who have item i. A dense one may be memory-mapped.
    item_ids : Axis or None
        The ids of its rows and columns.
    may_be_scores : bool
        Whether the matrix was given without `Scorer`: if there are as many users as items, it may
        hold scores of users × items.
    trained_on : str or None
        The `TrainedOn` text of its training data, if known.
    """

    weights: AnyArray | CSRMatrix
    item_ids: Any = None
    may_be_scores: bool = False
    trained_on: str | None = None

    @property
    def shape(self) -> tuple[None, int]:
        """None, as it takes any users, and the number of items."""
        return None, int(self.weights.shape[0])

    def bound(self, train: Any) -> ItemItemModel:
        """Return the model, or raise if its matrix could be scores of the users of `train`."""
        by_id = any(axis is not None and axis.by_id for axis in labels_of(train))
        shape = None if train is None else train.shape
        if self.may_be_scores and not by_id and shape == self.weights.shape:
            n_users, n_items = shape
            raise InvalidDataError(
                f"the matrix has shape {shape}, and there are {n_users} users and {n_items} items, "
                "so it could be scores of users × items or item-item weights. Pass "
                "se.Scorer(matrix) or se.Scorer(item_item=matrix), or a file that se.save_model "
                "wrote for one of them"
            )
        return self

    def ranker(self, train: CSRMatrix | None, options: Options) -> Ranker:
        """Return a ranker of items for users, by their rows of `train`."""
        if train is None:
            raise InvalidDataError(
                "an item-item model scores items by the items that users have seen. Pass these as "
                "train=; for scores of users × items, use se.Scorer(matrix)"
            )
        return ScoreSearch(ItemScores(train, self.weights), options)

    @property
    def memory(self) -> int:
        """The bytes that ranking takes for any number of users, without the model."""
        return PER_SEARCH + 8 * max(CELLS_OF_THREAD, self.shape[1]) * thread_count(None)

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


class ScoreRows:
    """A function that returns the rows of a matrix of scores, which may be memory-mapped."""

    def __init__(self, matrix: AnyArray) -> None:
        self.matrix = matrix

    def __call__(self, users: Integers) -> AnyArray:
        """Return the scores of some users."""
        rows: AnyArray = self.matrix[users]
        release(self.matrix)
        return rows


class Scorer(Model):
    """A model from scores of users × items, a function that returns them, or item-item weights.

    With ids, users and items are matched with the data by id. Without ids, they have the rows and
    columns of the training data. A function is a model without a `Scorer` too, and so is a matrix
    if its shape shows its meaning.

    Parameters
    ----------
    scores : callable, array, tensor or pandas.DataFrame, optional
        The scores of all items for each user, shape (n_users, n_items), of floats of at most 64
        bits or of whole numbers of at most 2^53. They may be memory-mapped. A frame has the ids of
        users as its index and the ids of items as its columns.

        Or a function of row numbers of users, a 1-D ndarray of int64, which returns their scores:
        an array, or a tensor on the CPU, of shape ``(len(users), n_items)``. The scores of a user
        must not depend on the other users of a call. It is called for some hundred or thousand
        users at once, never from two threads.
    item_item : array, tensor, sparse matrix or pandas.DataFrame, shape (n_items, n_items), optional
        Item-item weights (EASE, SLIM) instead of `scores`: row i holds the contribution of item i
        to the scores of all items.
    users, items : sequence of hashable, optional
        The ids of its users and items, in the order of its rows and columns.

    Raises
    ------
    InvalidDataError
        If neither or both of `scores` and `item_item` are given, or have the wrong type or shape.
        If the number of ids differs from the number of rows or columns.

    See Also
    --------
    evaluate_model : Evaluate it.
    save_model : Save it, unless it is a function.

    Notes
    -----
    A sparse matrix of scores is not accepted: a missing entry could be a score of 0, or an item
    that is not to be recommended. For the former, give
    ``se.Scorer(lambda users: matrix[users].toarray())``; for the latter, evaluate
    ``se.Rankings.from_scores(matrix, train=train)``.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> table = np.array([[0.1, 0.9, 0.5], [0.8, 0.2, 0.3]])
    >>> model = se.Scorer(table, users=["ann", "bob"], items=["x", "y", "z"])
    >>> clicks = se.Interactions.from_frame([{"user": "bob", "item": "x"}])
    >>> se.recommend(model, clicks, k=2, users=["bob", "ann"])[["user", "item"]].values.tolist()
    [['bob', 'z'], ['bob', 'y'], ['ann', 'y'], ['ann', 'z']]
    """

    def __init__(
        self,
        scores: ScoreFunction | AnyArray | pd.DataFrame | None = None,
        *,
        item_item: AnyArray | pd.DataFrame | SparseInput | None = None,
        users: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> None:
        if (scores is None) == (item_item is None):
            raise InvalidDataError(
                "a Scorer needs either scores (a matrix of users × items, or a function) or "
                "item_item= (item-item weights); pass one of them"
            )
        #: The function that returns the scores of some users; None for item-item weights.
        self.function: Any = None
        #: The number that the function gets for each user, if not the row number.
        self.rows: Integers | None = None
        #: The size of each axis, None if only the training data show it.
        self.n_users: int | None = None
        self.n_items: int | None = None
        self.item_item: Any = None
        given: Any = scores if item_item is None else item_item
        rows, columns = labels_of(given)
        if is_frame(given) and hasattr(given, "index") and hasattr(given, "to_numpy"):  # of pandas
            if item_item is not None and not given.index.equals(given.columns):
                raise InvalidDataError(
                    "the index and the columns of the item-item weights differ; expected the "
                    "same items in the same order, as in frame.loc[frame.columns]"
                )
            rows, columns = (
                own_labels(Axis.of(labels, name))  # None if they count from 0
                for labels, name in ((given.index, "users"), (given.columns, "items"))
            )
            given = given.to_numpy()
        if item_item is not None:
            if users is not None:
                raise InvalidDataError(
                    "item-item weights have no users; omit users=, or pass scores"
                )
            self.item_item = check_weights(given)
            self.n_items = self.item_item.shape[0]
            rows = None
        elif callable(given) and not isinstance(given, type):
            self.function = given
        else:
            self.function = ScoreRows(check_scores(given))
            self.n_users, self.n_items = self.function.matrix.shape
        users = rows if users is None else users
        items = columns if items is None else items
        self.user_ids = None if users is None else Axis.of(users, "users", self.n_users)
        self.item_ids = None if items is None else Axis.of(items, "items", self.n_items)
        if self.user_ids is not None:
            self.n_users = len(self.user_ids)
        if self.item_ids is not None:
            self.n_items = len(self.item_ids)

    @property
    def matrix(self) -> AnyArray | None:
        """The scores, None if a function returns them or there are none."""
        return self.function.matrix if isinstance(self.function, ScoreRows) else None

    @property
    def shape(self) -> tuple[int | None, int]:
        """The number of users and of items; of users None if only the training data show it."""
        return self.n_users, 0 if self.n_items is None else self.n_items

    @property
    def takes_any_user(self) -> bool:
        """False: the items that users have seen do not count."""
        return False

    @property
    def needs_ids(self) -> bool:
        """False for a function: by definition it uses the row and column numbers of train."""
        return self.matrix is not None

    def known(self, n_users: int) -> AnyArray:
        """Return the number that the function gets for each user."""
        return np.arange(self.n_users or 0) if self.rows is None else self.rows

    def of(self, known: Any) -> Scorer:
        """Return the model of other users, without ids, given their numbers for the function."""
        some = copy(self)
        some.n_users, some.rows = None if known is None else len(known), known
        some.user_ids = some.item_ids = None
        return some

    def bound(self, train: Any) -> Scorer:
        """Return the model with the users and items of `train`, unless it has its own."""
        if None not in (self.n_users, self.n_items):
            return self
        if train is None:
            raise InvalidDataError(
                "the numbers of users and items of the function are unknown. Pass the seen items "
                "as a matrix, or se.Scorer(function, users=…, items=…)"
            )
        bound = copy(self)
        bound.n_users, bound.n_items = (
            size if own is None else own
            for own, size in zip((self.n_users, self.n_items), train.shape, strict=True)
        )
        return bound

    def ranker(self, train: CSRMatrix | None, options: Options) -> Ranker:
        """Return a ranker of items for its users; `train` does not count."""
        scores = FunctionScores(self.function, self.known(0), self.shape[1])
        return ScoreSearch(scores, options)

    @property
    def step(self) -> int:  # type: ignore[override]
        """The number of users in a call of the function; blocks begin at multiples of it."""
        return users_per_call(self.shape[1])

    @property
    def memory(self) -> int:
        """The bytes that ranking takes: the scores of a call of the function, and twice as many."""
        return PER_SEARCH + 3 * 8 * self.shape[1] * self.step

    @property
    def unfolded(self) -> str:
        """Why no factors of new users can be found."""
        return (
            "new users cannot be folded into a function, which gets their row numbers. If it "
            "scores them itself, from holdout.fold_in, pass train=holdout.seen and "
            "holdout.validation instead of the holdout"
        )

    def save(self, path: PathLike) -> None:
        """Save a matrix, without ids; `save_model` saves it with them."""
        if self.item_item is not None:
            ItemItemModel(self.item_item).save(path)
            return
        if self.matrix is None:
            raise UnsupportedModelError("a Scorer that wraps a function cannot be saved")
        arrays: dict[str, Any] = {SCORES: self.matrix}
        with replacing_npz(path) as temporary:
            np.savez(temporary, **arrays)

    def __repr__(self) -> str:
        if self.item_item is not None:
            return "Scorer(item_item)"
        if self.matrix is not None:
            n_users, n_items = self.matrix.shape
            return f"Scorer({n_users:,} users × {n_items:,} items)"
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"Scorer({name})"


def check_scores(given: Any) -> AnyArray:
    """Return a matrix of scores as an array without reading it: it may be memory-mapped.

    Raises `InvalidDataError` if it is sparse, or not a matrix of scores.
    """
    expected = (
        "scores of users × items (an array or tensor of numbers), or a function that takes row "
        "numbers of users and returns their scores of all items"
    )
    if sparse.issparse(plain_matrix(given)):
        raise InvalidDataError(
            f"scores is {describe(given)}, and a missing entry could be a score of 0 or an item "
            "not to recommend. For scores of 0, pass se.Scorer(lambda users: "
            "matrix[users].toarray()); otherwise evaluate se.Rankings.from_scores(matrix, "
            "train=train). For item-item weights, use se.Scorer(item_item=matrix)"
        )
    if not is_array(given):
        raise InvalidDataError(f"scores is {describe(given)}; expected {expected}")
    matrix = as_array(given, "scores", expected)
    if matrix.ndim != 2 or matrix.dtype.kind not in "iuf" or matrix.dtype.itemsize > 8:
        raise InvalidDataError(f"scores is {describe(matrix)}; expected {expected}")
    return matrix
