"""Simple models to compare with: popularity, random, item neighbours and EASE.

Each keeps the ids of labelled training data and works like any model in `evaluate_model`,
`recommend`, `top_k` and `ranks`. All but the random one can be saved by `save_model`, and so used
in `sweep`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from ..core import elementary
from ..core.arguments import check_number, check_whole
from ..core.csr import sort_pairs, summed_csr
from ..core.hashing import hash_labels, splitmix64
from ..core.threads import one_blas_thread
from ..datasets.split.parts import open_train
from ..errors import InvalidDataError
from ..inputs.column_values import UNDATED
from ..inputs.training import count_users
from .model import Factors
from .scorers import ItemItemModel, Scorer
from .trained_on import TrainedOn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.types import Booleans, CSRMatrix, Floats, Hashes, Integers
    from ..datasets import Interactions
    from ..datasets.split.holdout import Holdout
    from ..datasets.split.parts import TrainLike
    from ..datasets.times import Clock, Duration, Time
    from ..inputs.axes import Axis
    from ..inputs.labelled import LabelledMatrix

__all__ = ["ease", "item_knn", "popularity", "random"]

#: The products of a block of items with all others, at most, if none of them is shared.
_PRODUCTS_AT_ONCE = 1 << 23

#: Rows of a triangle that are mirrored at once.
_ITEMS_MIRRORED = 1024


def popularity(
    train: Holdout | TrainLike,
    *,
    window: Duration | None = None,
    half_life: Duration | None = None,
    interactions: Interactions | None = None,
) -> Factors:
    """Rank items by their number of training users, in the same order for all users.

    Under a split by time, the popularity of the last few days is often the strongest simple
    baseline, because it follows trends [1]_.

    Parameters
    ----------
    train : sparse matrix, Interactions, frame, Relevance, path or Holdout
        As in `evaluate_model`; of a `Holdout` the train part. Explicit zeros do not count.
    window : str, timedelta or int, optional
        Count only users whose last event with the item is at most this long before the end of
        training. Text such as "7D", or, if the times are numbers, a whole number in their unit.
    half_life : str, timedelta or int, optional
        The age at which a user counts half: the time from the last event with the item to the end
        of training. At twice this age the user counts a quarter, and so on.
    interactions : Interactions, optional
        The interactions that were split, with their times. Needed for `window` and `half_life` if
        `train` is a `Holdout`, which has no times. Only events in the train part count. Training
        ends at the cut of a split by time, or where its gap begins, and otherwise with the last of
        these events.

    Returns
    -------
    Factors
        Of one column: 1 for each user, and the number of users of each item, the score.

    Raises
    ------
    InvalidDataError
        If `window` or `half_life` is given without times, or is not a duration. If `interactions`
        and `train` have different users or items. If a split without a cut, such as `split.last_n`,
        divided events of the same pair.

    See Also
    --------
    sparse_eval.evaluate_model : Evaluate it; ``baselines=True`` adds it to another model.

    References
    ----------
    .. [1] Y. Ji, A. Sun, J. Zhang and C. Li, "A re-visit of the popularity baseline in recommender
       systems", SIGIR 2020. doi:10.1145/3397271.3401233

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> ev = se.evaluate_model(se.baselines.popularity(holdout), holdout, "ndcg@10")
    >>> als = se.evaluate_model(se.train_als(holdout.train), holdout, "ndcg@10", baselines=True)
    >>> ev["ndcg@10"] == als.baselines["popularity"]["ndcg@10"]
    True

    Of the last seven days before a cut:

    >>> cut = se.split.temporal(clicks, fraction=0.2)
    >>> recent = se.baselines.popularity(cut, window="7D", interactions=clicks)
    >>> ev = se.evaluate_model(recent, cut, "ndcg@10")
    """
    opened = open_train(train)
    if window is None and half_life is None:
        scores = count_users(opened.csr).astype(np.float64)
    else:
        events = train if interactions is None else interactions
        end = None if interactions is None else opened.before
        scores = _count_recent(opened, events, end, window, half_life)
    n_users = opened.csr.shape[0]
    return Factors(np.ones((n_users, 1)), scores[:, None], opened.users, opened.items)


def _count_recent(
    train: LabelledMatrix,
    events: Any,
    end: Time | None,
    window: Duration | None,
    half_life: Duration | None,
) -> Floats:
    """Count the users of each item, weighted by the time of their last event with it."""
    from ..datasets import Interactions
    from ..datasets.times import Clock

    matrix = train.csr
    option = "half_life" if window is None else "window"
    if not isinstance(events, Interactions) or events.timestamps is None:
        raise InvalidDataError(
            f"{option} needs the times of the events; pass Interactions with timestamps, as "
            "interactions= if train is a Holdout",
            argument=option,
        )
    for axis, own in ((train.users, events.users), (train.items, events.items)):
        if events.shape != matrix.shape or (
            axis is not None and not np.array_equal(axis.hashes, own.hashes)
        ):
            raise InvalidDataError(
                "interactions and train have different users or items; pass the interactions that "
                "were split",
                argument="interactions",
            )
    given = (("window", window), ("half_life", half_life), ("cut", end))
    clock = Clock.of(events.timestamps, events.time_unit, given)
    kept = np.zeros(len(events), bool)
    for part in train.parts or (train,):
        kept |= _events_of(part, events, clock)
    kept &= events.timestamps != UNDATED
    order, items, starts = sort_pairs(events.user_codes[kept], events.item_codes[kept])
    items, times = items[starts], np.maximum.reduceat(events.timestamps[kept][order], starts)
    last = int(times.max(initial=UNDATED)) if end is None else clock.time("cut", end)
    counts = np.ones(len(times))
    if window is not None:
        counts[times < last - clock.duration("window", window, 1)] = 0.0
    if half_life is not None:
        ages = np.subtract(last, times, dtype=np.int64).view(np.uint64)  # may exceed half the range
        counts *= elementary.power(0.5, ages / clock.duration("half_life", half_life, 1))
    return np.asarray(np.bincount(items, counts, matrix.shape[1]), np.float64)


def _events_of(part: LabelledMatrix, events: Any, clock: Clock) -> Booleans:
    """Return a mask of the events of pairs that a part of a split has, up to its end."""
    pairs = part.csr.copy()
    pairs.eliminate_zeros()
    kept: Booleans = events._are_in(pairs)
    if part.before is not None:
        kept &= events.timestamps < clock.time("cut", part.before)
        return kept
    # Without an end, all events of a pair have to be in the part, so that it has their sum.
    rows, columns, values = events.user_codes[kept], events.item_codes[kept], events.values[kept]
    summed = summed_csr(rows, columns, values, pairs.shape)
    if len(values) > summed.nnz and not (values.all() and np.array_equal(summed.data, pairs.data)):
        raise InvalidDataError(
            "interactions has several events of a pair, and a split without a cut does not record "
            "which of them are in train. Split with split.temporal, or pass the training events "
            "themselves as train, as Interactions with timestamps",
            argument="interactions",
        )
    return kept


def random(train: Holdout | TrainLike, *, seed: int = 0) -> Scorer:
    """Rank items in an order that is drawn for each user.

    Parameters
    ----------
    train : sparse matrix, Interactions, frame, Relevance, path or Holdout
        Whose users and items they are, as for `popularity`.
    seed : int
        At least 0. A score depends on nothing but it, the user and the item: their ids, or their
        numbers if there are none.

    Returns
    -------
    Scorer
        With scores that are uniformly distributed in [0, 1).

    See Also
    --------
    sparse_eval.Evaluation.summary : The exact expectation over random lists, next to every metric.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> ev = se.evaluate_model(se.baselines.random(holdout, seed=1), holdout, "hit_rate@10")
    >>> 0.05 < ev["hit_rate@10"] < 0.5
    True
    """
    matrix, users, items, _ = _open(train)
    keys = [
        hash_labels(np.arange(size)) if labels is None else labels.hashes
        for size, labels in zip(matrix.shape, (users, items), strict=True)
    ]
    scorer = Scorer(_RandomScores(check_whole("seed", seed, 0), *keys), users=users, items=items)
    scorer.n_users, scorer.n_items = matrix.shape
    return scorer


@dataclass(frozen=True)
class _RandomScores:
    seed: int
    users: Hashes
    items: Hashes

    def __call__(self, users: Integers) -> Floats:
        seed = np.uint64(self.seed & (2**64 - 1))
        of_users = splitmix64(self.users[users] ^ splitmix64(np.array([seed])))
        hashes = splitmix64(of_users[:, None] ^ splitmix64(self.items))
        return np.asarray((hashes >> np.uint64(11)) * 2.0**-53)


def item_knn(
    train: Holdout | TrainLike, *, neighbors: int = 20, shrinkage: float = 0.0
) -> ItemItemModel:
    """Rank items by their similarity to the user's own: item-based top-N recommendation [1]_.

    The similarity of items i ≠ j is Σ x(u, i)·x(u, j) / (‖x(i)‖·‖x(j)‖ + shrinkage) over users u,
    with the stored values x of `train`. It is their cosine if `shrinkage` is 0. Every item keeps
    its nearest items; of equally near items the lower ids win. A score is the sum over the user's
    items of their value times the similarity.

    Parameters
    ----------
    train : sparse matrix, Interactions, frame, Relevance, path or Holdout
        As for `popularity`.
    neighbors : int
        How many similar items each item keeps, at least 1.
    shrinkage : float
        At least 0; the larger, the less do items of few users count.

    Returns
    -------
    ItemItemModel
        With a sparse matrix.

    See Also
    --------
    ease : Another item-item model, in closed form.

    Notes
    -----
    Some other implementations keep the nearest of the user's items for each scored item instead:
    ``item_knn(…).weights.T`` is that model.

    References
    ----------
    .. [1] M. Deshpande and G. Karypis, "Item-Based Top-N Recommendation Algorithms", ACM
       Transactions on Information Systems 22(1), 2004. https://doi.org/10.1145/963770.963776

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> model = se.baselines.item_knn(clicks, neighbors=5)
    >>> model
    ItemItemModel(100 items, sparse)
    >>> len(se.recommend(model, clicks, k=3, users=["U7"]))
    3
    """
    neighbors = check_whole("neighbors", neighbors, 1)
    shrinkage = check_number("shrinkage", shrinkage, 0)
    matrix, _, items, trained_on = _open(train)
    by_item = matrix.T.tocsr()
    squares = np.bincount(matrix.indices, matrix.data**2, minlength=matrix.shape[1])
    lengths = np.sqrt(squares)
    parts = []
    for first, last in _blocks_of_items(matrix, by_item):
        block = (by_item[first:last] @ matrix).tocoo()
        kept = (block.data != 0) & (block.row + first != block.col)
        rows, columns, products = block.row[kept], block.col[kept], block.data[kept]
        scale = lengths[rows + first] * lengths[columns] + shrinkage
        similar = sparse.coo_matrix((products / scale, (rows, columns)), shape=block.shape)
        parts.append(_nearest(similar.tocsr(), neighbors))
    weights = (
        sparse.vstack(parts, format="csr") if parts else sparse.csr_matrix(matrix.shape[1:] * 2)
    )
    return ItemItemModel(weights, items, trained_on=trained_on)


def ease(train: Holdout | TrainLike, *, regularization: float = 250.0) -> ItemItemModel:
    """Rank items by EASE, linear regression on the user's other items, in closed form [1]_.

    With P the inverse of XᵀX + λI, of the stored values X of `train`, the matrix is −P(i, j) /
    P(j, j), and 0 on its diagonal.

    Parameters
    ----------
    train : sparse matrix, Interactions, frame, Relevance, path or Holdout
        As for `popularity`.
    regularization : float
        λ, above 0: larger for more users.

    Returns
    -------
    ItemItemModel
        With a dense matrix of float64.

    Raises
    ------
    InvalidDataError
        If the matrix has no inverse with this regularization.
    MemoryError
        It takes 8 bytes × n_items², and at first as much as 12 bytes
        more for each pair of items that any user has. Leave out rare items then:
        ``clicks.filter(min_item_interactions=…)``.

    See Also
    --------
    item_knn : Another item-item model, of similarities.

    References
    ----------
    .. [1] H. Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", The World Wide Web
       Conference, 2019. https://doi.org/10.1145/3308558.3313710

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> ev = se.evaluate_model(se.baselines.ease(holdout), holdout, "ndcg@10")
    >>> 0 < ev["ndcg@10"] < 1
    True
    """
    regularization = check_number("regularization", regularization, 0, open_end=True)
    matrix, _, items, trained_on = _open(train)
    n_items = matrix.shape[1]
    # One thread: with more, the last bits would depend on their number.
    with one_blas_thread():
        gram = (matrix.T @ matrix).toarray(order="F")
        np.fill_diagonal(gram, gram.diagonal() + regularization)
        factor, failed = lapack.dpotrf(gram, lower=True, overwrite_a=True)
        inverse, failed_too = lapack.dpotri(factor, lower=True, overwrite_c=True)
    if failed or failed_too:
        raise InvalidDataError(
            f"the matrix of {n_items} items has no inverse with regularization={regularization:g}; "
            "increase it"
        )
    weights = inverse.T  # symmetric, and in C order; but the lower triangle of it is not written
    for first in range(0, n_items, _ITEMS_MIRRORED):
        last = first + _ITEMS_MIRRORED
        weights[last:, first:last] = weights[first:last, last:].T
        block = weights[first:last, first:last]
        block[:] = np.triu(block) + np.triu(block, 1).T
    weights /= -weights.diagonal()
    np.fill_diagonal(weights, 0.0)
    return ItemItemModel(weights, items, trained_on=trained_on)


def _open(train: Holdout | TrainLike) -> tuple[Any, Axis | None, Axis | None, str]:
    """Return training data as a float64 matrix, the ids of users and items, and a digest."""
    opened = open_train(train)
    trained_on = str(TrainedOn.of(opened))
    return opened.csr.astype(np.float64), opened.users, opened.items, trained_on


def _blocks_of_items(matrix: CSRMatrix, by_item: CSRMatrix) -> Iterator[tuple[int, int]]:
    """Cut the items into blocks whose products with all others fit into memory."""
    of_users = np.diff(matrix.indptr)
    of_entries = np.concatenate(([0], np.cumsum(of_users[by_item.indices])))
    costs = of_entries[by_item.indptr]
    first, n_items = 0, by_item.shape[0]
    while first < n_items:
        last = int(np.searchsorted(costs, costs[first] + _PRODUCTS_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), n_items)
        yield first, last
        first = last


def _nearest(matrix: CSRMatrix, most: int) -> sparse.csr_matrix:
    """Return the `most` largest values of each row; of equal values the first columns win."""
    kept = np.ones(len(matrix.data), bool)
    for row in np.flatnonzero(np.diff(matrix.indptr) > most).tolist():
        entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
        values = matrix.data[entries]
        limit = np.partition(values, -most)[-most]
        above = values > limit
        equal = np.flatnonzero(values == limit)
        first = np.argsort(matrix.indices[entries][equal])[: most - np.count_nonzero(above)]
        above[equal[first]] = True
        kept[entries] = above
    indptr = np.concatenate(([0], np.cumsum(kept)))[matrix.indptr]
    nearest = sparse.csr_matrix(
        (matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape
    )
    nearest.sort_indices()
    return nearest
