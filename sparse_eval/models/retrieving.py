"""`top_k`, `held_out_ranks` and `full_ranks` of a model, a checkpoint, or of factors alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from ..core.arguments import check_whole
from ..errors import InvalidDataError, UnsupportedModelError
from ..inputs.candidates import align_candidates
from ..inputs.relevance import Relevance
from ..retrieval import top_k as retrieval
from ..retrieval.products import as_products
from ..retrieval.top_k import find_lists, find_ranks
from .accepted import as_model, catalogue
from .chosen_users import ChosenUsers
from .exact import is_exact, numbered_as, open_ranker, take_users
from .inputs import open_candidates, open_held_out, open_train
from .matching import match_sides, within
from .references import open_model

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import ArrayLike

    from ..core.types import AnyArray
    from ..inputs.candidates import Candidates
    from ..inputs.rankings import Rankings
    from ..retrieval.products import Similarity
    from ..retrieval.ranker import Ranker
    from ..retrieval.top_k import TopK
    from .accepted import ModelLike
    from .exact import ExactModel
    from .inputs import CandidatesLike, TrainLike
    from .matching import Sides

Overlap = Literal["error", "report"]


def top_k(
    user_factors: AnyArray | ModelLike,
    item_factors: AnyArray | None = None,
    k: int = 10,
    *,
    seen: TrainLike | None = None,
    users: Iterable[Hashable] | None = None,
    user_rows: ArrayLike | None = None,
    candidates: CandidatesLike | None = None,
    exclude: ArrayLike | None = None,
    item_biases: ArrayLike | None = None,
    user_biases: ArrayLike | None = None,
    similarity: Similarity = "dot",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> TopK:
    """Find each user's `k` best items, exactly.

    The score of a user and an item is the dot product of their stored factors, accumulated in
    float64 in the order of the factors. Items are ordered by descending score; of equal scores
    the lower id comes first.

    Parameters
    ----------
    user_factors : ndarray of float16, float32 or float64, shape (n_users, f), or model
        Biases are columns of the factors, as in implicit's BPR and LMF. A tensor of another
        library, in memory that the CPU can read, is taken as it is, without a copy. Or, without
        `item_factors`, whatever `evaluate_model` takes as a model, but for neighbour models of
        implicit; an item-item matrix needs `seen`, which it is multiplied with.
    item_factors : ndarray of float16, float32 or float64, shape (n_items, f), optional
        The dtype may differ from that of `user_factors`.
    k : int
        List length, at least 1. No list is longer than the number of candidates.
    seen : scipy sparse matrix or array, shape (n_users, n_items), optional
        Items to leave out of each user's list: every stored entry, explicit zeros included. Of a
        model whatever `evaluate_model` takes as `train`, matched by id where both have ids.
    users : sequence of hashable, shape (n_lists,), optional
        The ids of the users, where the model or `seen` has ids.
    user_rows : array_like of int, shape (n_lists,), optional
        Instead of `users` rows of `user_factors`, in any order; all by default.
    candidates : array_like of int, sparse matrix or mapping, optional
        Rows of `item_factors` to choose from, or the candidates of each user: a matrix with an
        entry for each, of shape (n_users, n_items); of a model whatever `evaluate_model` takes. All
        items by default.
    exclude : array_like of int, optional
        Items to leave out of every list.
    item_biases, user_biases : array_like of float, shape (n_items,) and (n_users,), optional
        Added to the scores, in this order, of factors alone; as in `factor_model`.
    similarity : {"dot", "cosine", "euclidean"}
        What the scores of factors alone are; as in `factor_model`.
    num_threads : int, optional
        The number of threads; by default one for each core that this process may use, as in
        `evaluate`. The result does not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    TopK
        ``ids`` and ``scores``, one row per user, with at most `k` columns.

    Raises
    ------
    InvalidDataError
        If factors are not finite (the row is named), differ in width, are so large that a score
        could overflow, or are tensors that want gradients or are on a GPU; if the shape of `seen`
        is not ``(n_users, n_items)``; if an id is out of range; or if no item is left to choose
        from.

    See Also
    --------
    held_out_ranks : Ranks of held-out items, at a fraction of the cost.

    Notes
    -----
    Items are searched in the order of their norms, and users of similar direction share their
    bounds, so most pairs are never scored; see [1]_ for the idea.

    References
    ----------
    .. [1] C. Teflioudi, R. Gemulla and O. Mykytiuk, "LEMP: Fast Retrieval of Large Entries in a
       Matrix Product", Proceedings of SIGMOD, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> users = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> items = np.array([[0.9, 0.1], [0.2, 0.9], [0.5, 0.5]])
    >>> ids, scores = se.top_k(users, items, k=2)
    >>> ids
    array([[0, 2],
           [1, 2]], dtype=int32)
    >>> se.top_k(users, items, k=2, exclude=[2]).ids
    array([[0, 1],
           [1, 0]], dtype=int32)
    """
    products = _Products(item_biases, user_biases, similarity)
    options: dict[str, Any] = {
        "candidates": candidates,
        "exclude": exclude,
        "num_threads": num_threads,
        "progress": progress,
    }
    if item_factors is not None:
        if users is not None:
            raise InvalidDataError(
                "users are ids, and factors have none; give user_rows=, or a model with ids"
            )
        factors = products.of(user_factors, item_factors)
        options["candidates"] = _of_factors(candidates, factors)
        return retrieval.top_k(*factors, k, seen=seen, user_rows=user_rows, **options)  # type: ignore[arg-type]
    products.refuse()
    model, sides = _open(user_factors, seen, None, candidates)
    rows = ChosenUsers(user_rows if users is None else users).rows(
        sides.users, sides.n_known, "the model knows"
    )
    return find_lists(_ranker(model, sides, seen, options), k, rows)[0]


def held_out_ranks(
    user_factors: AnyArray | ModelLike,
    item_factors: AnyArray | None = None,
    held_out: TrainLike | None = None,
    k: int = 10,
    *,
    seen: TrainLike | None = None,
    candidates: CandidatesLike | None = None,
    exclude: ArrayLike | None = None,
    item_biases: ArrayLike | None = None,
    user_biases: ArrayLike | None = None,
    similarity: Similarity = "dot",
    overlap: Overlap = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the ranks of the held-out items that are among a user's `k` best, exactly.

    Accuracy metrics with a cut-off of at most `k` need no more, and the ranks cost a fraction of
    the lists: most held-out items are out of reach as soon as a few popular items are scored.

    Parameters
    ----------
    user_factors, item_factors, seen, candidates, exclude
        As in `top_k`, and so is the order of the items.
    held_out : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        Every stored entry above 0 is a held-out item. A smaller matrix is padded. Of a model
        whatever `evaluate_model` takes as `validation`, matched by id where both have ids; users
        and items that the model does not know have no rank.
    k : int
        The largest rank to find, at least 1.
    item_biases, user_biases, similarity, num_threads, progress
        As in `top_k`.
    overlap : {"error", "report"}
        What to do about held-out items that their user has seen, which no list can hold: raise an
        error, or warn and leave them without a rank.

    Returns
    -------
    Rankings
        The held-out items among the first `k`, with their positions, and each user's list length.
        Users without held-out items have no list. `evaluate` returns the same values, to the last
        bit, as for the lists of `top_k`.

    Raises
    ------
    InvalidDataError
        As from `top_k`; if `held_out` has more users or items than the factors; or if a held-out
        item was seen and `overlap` is "error".

    Warns
    -----
    UserWarning
        If a held-out item was seen and `overlap` is "report".

    See Also
    --------
    full_ranks : Ranks of all held-out items, for metrics of the whole ranking.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> users = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> items = np.array([[0.9, 0.1], [0.2, 0.9], [0.5, 0.5]])
    >>> held_out = csr_matrix([[0, 0, 1], [1, 0, 0]])
    >>> ranks = se.held_out_ranks(users, items, held_out, k=2)
    >>> ranks.to_positions().toarray()
    array([[0, 0, 2],
           [0, 0, 0]], dtype=int32)
    >>> se.evaluate(ranks, held_out, "recall@2")["recall@2"]
    0.5
    """
    products = _Products(item_biases, user_biases, similarity)
    options = {
        "candidates": candidates,
        "exclude": exclude,
        "num_threads": num_threads,
        "progress": progress,
    }
    k = check_whole("k", k, 1)
    return _ranks(user_factors, item_factors, products, held_out, seen, k, overlap, options)


def full_ranks(
    user_factors: AnyArray | ModelLike,
    item_factors: AnyArray | None = None,
    held_out: TrainLike | None = None,
    *,
    seen: TrainLike | None = None,
    candidates: CandidatesLike | None = None,
    exclude: ArrayLike | None = None,
    item_biases: ArrayLike | None = None,
    user_biases: ArrayLike | None = None,
    similarity: Similarity = "dot",
    overlap: Overlap = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the rank of every held-out item among all unseen candidates, exactly.

    For metrics of the whole ranking: auc, mean_rank, percentile_rank. Scores are computed block by
    block; a matrix of users × items never exists.

    Parameters
    ----------
    user_factors, item_factors, held_out, seen, candidates, exclude
        As in `held_out_ranks`.
    item_biases, user_biases, similarity, overlap, num_threads, progress
        As in `held_out_ranks`.

    Returns
    -------
    Rankings
        Every held-out candidate with its position; the length of a user's list is the number of
        unseen candidates.

    Raises
    ------
    InvalidDataError
        As from `held_out_ranks`.

    Warns
    -----
    UserWarning
        As from `held_out_ranks`.

    See Also
    --------
    held_out_ranks : Ranks up to `k` only, which is faster.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> users = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> items = np.array([[0.9, 0.1], [0.2, 0.9], [0.5, 0.5]])
    >>> held_out = csr_matrix([[0, 0, 1], [1, 0, 0]])
    >>> ranks = se.full_ranks(users, items, held_out)
    >>> se.evaluate(ranks, held_out, ["mean_rank", "auc"]).mean()
    {'mean_rank': 2.5, 'auc': 0.25}
    """
    products = _Products(item_biases, user_biases, similarity)
    options = {
        "candidates": candidates,
        "exclude": exclude,
        "num_threads": num_threads,
        "progress": progress,
    }
    return _ranks(user_factors, item_factors, products, held_out, seen, None, overlap, options)


class _Products(NamedTuple):
    """What makes scores of bare factors."""

    item_biases: Any
    user_biases: Any
    similarity: Similarity

    def of(self, user_factors: Any, item_factors: Any) -> tuple[AnyArray, AnyArray]:
        """Return factors whose products are the scores."""
        return as_products(user_factors, item_factors, **self._asdict())

    def refuse(self) -> None:
        """Raise if something is given, and no factors."""
        for name, value in self._asdict().items():
            if not (value is None or (isinstance(value, str) and value == "dot")):
                raise InvalidDataError(
                    f"{name} is for factors alone; se.factor_model(users, items, {name}=…) makes a "
                    "model of them"
                )


def _ranks(
    user_factors: Any,
    item_factors: Any,
    products: _Products,
    held_out: TrainLike | None,
    seen: TrainLike | None,
    k: int | None,
    overlap: Overlap,
    options: dict[str, Any],
) -> Rankings:
    """Return the ranks of held-out items up to `k`, or of all if it is None."""
    if held_out is None:
        raise InvalidDataError("held_out is missing; give the held-out items, as held_out=")
    if item_factors is not None:
        if getattr(held_out, "encoded", False):
            raise InvalidDataError(
                "held_out names users by id, and factors have none; give a model with ids, or "
                "held_out as a matrix with the rows and columns of the factors"
            )
        factors = products.of(user_factors, item_factors)
        options["candidates"] = _of_factors(options["candidates"], factors)
        options |= {"seen": seen, "overlap": overlap}
        sides: tuple[Any, Any, Any] = *factors, held_out
        if k is None:
            return retrieval.full_ranks(*sides, **options)
        return retrieval.held_out_ranks(*sides, k, **options)
    products.refuse()
    model, matched = _open(user_factors, seen, held_out, options["candidates"])
    some = take_users(model, matched.user_rows)
    relevance = within(matched.relevance, _shape(some, matched))
    ranks, n_overlap, *_ = find_ranks(_ranker(some, matched, seen, options), relevance, k, overlap)
    retrieval.warn_of_overlap(n_overlap)
    users, items = matched.users, matched.items
    n_users, n_items = ranks.shape
    return replace(
        ranks,
        users=None if users is None else users[:n_users],
        items_index=None if items is None else items[:n_items],
    )


def _of_factors(candidates: CandidatesLike | None, factors: tuple[Any, Any]) -> Candidates | None:
    """Return candidates with the rows and columns of factors."""
    if candidates is None:
        return None
    if any(not hasattr(side, "__len__") for side in factors):
        return None  # the search refuses such factors
    shape = (len(factors[0]), len(factors[1]))
    return align_candidates(open_candidates(candidates), shape, None, None, others="the factors")[0]


def _open(
    model: Any,
    seen: TrainLike | None,
    held_out: TrainLike | None,
    candidates: CandidatesLike | None,
) -> tuple[ExactModel, Sides]:
    """Return a model whose rankings are exact, and both parts of a split in its numbering."""
    train: Any = None if seen is None else open_train(seen)
    shape = None if train is None else train.shape
    is_square = isinstance(model, np.ndarray) and model.ndim == 2 and len({*model.shape}) == 1
    if isinstance(model, np.ndarray) and not is_square and model.shape != shape:
        raise InvalidDataError(
            "user_factors is an array, and item_factors is missing; give both, or a model "
            "(se.Scorer(matrix) makes one of scores of users × items)"
        )
    opened = as_model(open_model(model))
    if not is_exact(opened):
        raise UnsupportedModelError(
            f"a {type(opened).__name__} has no factors; recommend and evaluate_model take it"
        )
    opened = numbered_as(opened, train)
    if train is None:
        n_users, n_items = catalogue(opened)
        train = sparse.csr_matrix((n_users or 0, n_items))
    relevance = (
        Relevance.from_csr(sparse.csr_matrix((0, 0)))
        if held_out is None
        else open_held_out(held_out, "held_out")
    )
    chosen = None if candidates is None else open_candidates(candidates)
    return opened, match_sides(opened, train, relevance, ("seen", "held_out"), chosen)


def _ranker(
    model: ExactModel, sides: Sides, seen: TrainLike | None, options: dict[str, Any]
) -> Ranker:
    shape = _shape(model, sides)
    known = None if seen is None else within(sides.train, shape)
    chosen = None if sides.candidates is None else sides.candidates.within(shape[1])
    return open_ranker(model, known, known, **options | {"candidates": chosen})


def _shape(model: ExactModel, sides: Sides) -> tuple[int, int]:
    n_users, n_items = catalogue(model)
    return sides.n_known if n_users is None else n_users, n_items
