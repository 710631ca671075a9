"""The public functions `recommend`, `top_k` and `ranks`: lists and ranks of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from ..core.arguments import check_choice, check_flag, check_whole, show_spelling
from ..core.messages import warn
from ..datasets.split.holdout import Holdout
from ..datasets.split.parts import name_of, open_relevance, open_train
from ..errors import InvalidDataError, UnsupportedModelError
from ..inputs.alignment import Place, align_candidates, match_split, rows_of_users, within
from ..inputs.axes import Axis
from ..inputs.candidates import as_candidates, for_all_users, mark_seen
from ..inputs.labelled import LabelledMatrix
from ..retrieval.ranker import Options
from .fold_in import with_new_users
from .ids import known_to, warn_without_ids
from .opening import as_model
from .own_lists import own_scores, recommend_lists
from .ranking import need_exact

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import pandas as pd
    from numpy.typing import ArrayLike

    from ..core.types import AnyArray, CSRMatrix, Items
    from ..datasets.split.parts import CandidatesLike, TrainLike
    from ..inputs.alignment import SplitSides
    from ..inputs.candidates import Candidates
    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..inputs.training import SeenItems
    from ..retrieval.ranker import TopK
    from .model import Model
    from .opening import ModelLike


@show_spelling
def top_k(
    model: ModelLike,
    k: int = 10,
    *,
    train: TrainLike | None = None,
    users: Iterable[Hashable] | ArrayLike | None = None,
    candidates: CandidatesLike | None = None,
    exclude: ArrayLike | pd.Index[Any] | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> TopK:
    """Find each user's `k` best items, exactly.

    For factors, the score of a user and an item is the dot product of the stored factors,
    accumulated in float64 in their order. Other kinds of models compute their own scores. Items are
    ordered by descending score; of equal scores the lower id comes first.

    Parameters
    ----------
    model : fitted model of implicit, path, pair of factors, matrix, function, or Scorer
        As in `evaluate_model`, except for neighbour models of implicit. An item-item matrix needs
        `train`, which it is multiplied with. Factors are float16, float32 or float64, and the two
        sides may differ; `factor_model` adds biases and other similarities.
    k : int
        List length, at least 1. No list is longer than the number of candidates.
    train : sparse matrix, Interactions, frame, Relevance or path, optional
        The items that users have seen, which their lists leave out: every stored entry, explicit
        zeros included. As in `evaluate_model`, and matched by id if both have ids.
    users : sequence of hashable, shape (n_lists,), optional
        The ids of the users, or row numbers if neither the model nor `train` has ids; in any order,
        all by default.
    candidates : Candidates, sparse matrix, Interactions, frame, path, mapping or array, optional
        The items that each user can be recommended, as in `evaluate_model`. All items by default.
    exclude : array_like of str or int, or pandas.Index, optional
        Ids of items to leave out of every list; columns if neither the model nor `train` has ids.
        Ids that the model does not know are in no list anyway.
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
        If factors are not finite (the error names the row), differ in width, are so large that a
        score could overflow, or so small that underflow changes the order of the scores. If `train`
        and the model differ in shape, or cannot be matched by id. If a user or an item does not
        exist, or no item is left to choose from.
    UnsupportedModelError
        If the model is not ranked here, as the neighbour models of implicit.

    See Also
    --------
    ranks : Ranks of held-out items, at a fraction of the cost.
    recommend : The same as a table.

    Notes
    -----
    Items are searched in the order of their norms, and users of similar direction share their
    bounds. So most pairs are never scored; see [1]_ for the idea.

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
    >>> ids, scores = se.top_k((users, items), k=2)
    >>> ids
    array([[0, 2],
           [1, 2]], dtype=int32)
    >>> se.top_k((users, items), k=2, exclude=[2]).ids
    array([[0, 1],
           [1, 0]], dtype=int32)
    """
    k = check_whole("k", k, 1)
    opened, sides, known, among = _open(_exact(model), train, None, candidates)
    rows = rows_of_users(users, sides.users, sides.n_known, "the model knows")
    options = Options(known, among, _columns(exclude, sides, opened), num_threads, progress)
    return opened.ranker(None if train is None else known, options).lists(k, rows)[0]


@show_spelling
def ranks(
    model: ModelLike,
    held_out: TrainLike,
    k: int | None = None,
    *,
    train: TrainLike | None = None,
    candidates: CandidatesLike | None = None,
    exclude: ArrayLike | pd.Index[Any] | None = None,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the rank of every held-out item among all unseen candidates, exactly.

    Metrics of the whole ranking (auc, mean_rank, percentile_rank) need all ranks. Accuracy metrics
    with a cut-off need ranks up to `k`, which cost a fraction of the lists. Most held-out items are
    out of reach as soon as a few popular items are scored. A matrix of users × items never exists.

    Parameters
    ----------
    model, train, candidates, exclude
        As in `top_k`, and so is the order of the items.
    held_out : sparse matrix, Interactions, frame, Relevance or path
        As `validation` in `evaluate_model`: every stored entry above 0 is a held-out item. A
        smaller matrix is padded. Users and items that the model does not know have no rank.
    k : int, optional
        The largest rank to find, at least 1. By default all ranks are found.
    overlap : {"error", "report"}
        How to treat held-out items that their user has seen, which no list can contain: raise an
        error, or warn and leave them without a rank.
    num_threads, progress
        As in `top_k`.

    Returns
    -------
    Rankings
        The held-out items (with `k`, only the ones ranked among the first `k`) with their
        positions, and each user's list length: the number of unseen candidates, at most `k`. Users
        without held-out items have no list. `evaluate` returns the same values, to the last bit, as
        for the lists of `top_k`.

    Raises
    ------
    InvalidDataError
        As from `top_k`. If `held_out` has more users or items than the model, and no ids. If a
        held-out item was seen and `overlap` is "error".
    UnsupportedModelError
        As from `top_k`.

    Warns
    -----
    UserWarning
        If a held-out item was seen and `overlap` is "report".

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> users = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> items = np.array([[0.9, 0.1], [0.2, 0.9], [0.5, 0.5]])
    >>> held_out = csr_matrix([[0, 0, 1], [1, 0, 0]])
    >>> ranks = se.ranks((users, items), held_out)
    >>> se.evaluate(ranks, held_out, ["mean_rank", "auc"]).mean()
    {'mean_rank': 2.5, 'auc': 0.25}
    >>> ranks = se.ranks((users, items), held_out, k=2)
    >>> ranks.to_positions().toarray()
    array([[0, 0, 2],
           [0, 0, 0]], dtype=int32)
    >>> se.evaluate(ranks, held_out, "recall@2")["recall@2"]
    0.5
    """
    if k is not None:
        k = check_whole("k", k, 1)
    check_choice("overlap", overlap, ("error", "report"))
    truth = open_relevance(held_out)
    opened, sides, known, among = _open(_exact(model), train, truth, candidates)
    options = Options(known, among, _columns(exclude, sides, opened), num_threads, progress)
    ranker = opened.ranker(None if train is None else known, options)
    relevance = sides.relevance.within(sides.n_known, opened.shape[1])
    was_seen = mark_seen(relevance.indptr, relevance.items, known.indptr, known.indices)
    overlaps = np.flatnonzero(was_seen & (relevance.gains > 0))
    if len(overlaps) and overlap == "error":
        user = np.searchsorted(relevance.indptr, overlaps[0], side="right") - 1
        raise InvalidDataError(
            f"{len(overlaps)} held-out items were seen by their users, the first by user {user} "
            f"(item {relevance.items[overlaps[0]]}), and no list can contain them. Split again, or "
            'leave them without a rank with overlap="report"',
            user=user,
        )
    if len(overlaps):
        warn(f"{len(overlaps)} held-out items were seen by their users; they have no rank")
    found, *_ = ranker.ranks(relevance, k)
    users, items = sides.users, sides.items
    n_users, n_items = found.shape
    return replace(
        found,
        users=None if users is None else users[:n_users],
        items_index=None if items is None else items[:n_items],
    )


def _exact(model: Any) -> Model:
    """Return a model that this package ranks itself."""
    opened = as_model(model, check=False)
    if not opened.exact:
        raise UnsupportedModelError(
            f"{opened.name} makes its own lists and has no exact ranking here; use recommend or "
            "evaluate_model"
        )
    return opened


def _open(
    model: Model,
    train: TrainLike | None,
    held_out: Relevance | None,
    candidates: CandidatesLike | None,
    names: tuple[str, str] = ("train", "held_out"),
) -> tuple[Model, SplitSides, CSRMatrix, Candidates | None]:
    """Open data and match them with a model; without training data nothing is seen.

    Returns the model for the users that it knows, all data in its order, and the parts of training
    data and candidates that it knows.
    """
    seen = None if train is None else open_train(train, names[0])
    model = model.bound(seen)
    n_users, n_items = model.shape
    if seen is None:
        seen = LabelledMatrix(sparse.csr_matrix((n_users or 0, n_items)))
    among = None if candidates is None else as_candidates(candidates)
    sides = match_split(known_to(model), seen, held_out, names, among)
    if sides.users is not None or sides.items is not None:
        warn_without_ids(model, seen, held_out)
    if sides.user_rows is not None:
        model.check()
        model = model.take(sides.user_rows)
    among = sides.candidates
    if among is not None and sides.items is not None:  # else all are items of the model
        among = among.within(sides.n_known, n_items)
    return model, sides, within(sides.train, sides.n_known, n_items), among


def _columns(exclude: Any, sides: SplitSides, model: Model) -> Items | None:
    """Return the columns of items to leave out, given by number or by id."""
    if exclude is None:
        return None
    given = for_all_users(exclude, "exclude", "a flat array of ids or of columns")
    if sides.items is not None and given.items_index is None and len(given.items):
        if not sides.items.is_integer:
            raise InvalidDataError(
                f"exclude has numbers, but the items have ids such as {sides.items.tolist()[0]!r}; "
                "pass ids",
                argument="exclude",
            )
        given = for_all_users(Axis.of(given.items, "items"), "exclude")
    places = Place(None, None, 0), Place(None, sides.items, model.shape[1])
    columns = align_candidates(given, *places, "the model", "exclude")[0].items
    return columns[columns < model.shape[1]] if given.items_index is not None else columns


@show_spelling
def recommend(
    model: ModelLike,
    train: Holdout | TrainLike,
    k: int = 10,
    *,
    users: Iterable[Hashable] | ArrayLike | None = None,
    candidates: CandidatesLike | None = None,
    filter_seen: bool = True,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Recommend to users the items that a model ranks first among their unseen items.

    Parameters
    ----------
    model : fitted model of implicit, path, pair of factors, matrix, function, or Scorer
        As in `evaluate_model`.
    train : sparse matrix, Interactions, frame, Relevance, path or Holdout
        The items that users have seen, as in `evaluate_model`. For a `Holdout`, its train part,
        with the users of a split by users folded in.
    k : int
        Items for each user, at least 1; fewer if a user has seen almost all.
    users : sequence of hashable, optional
        The ids of the users, or row numbers if neither the model nor `train` has ids; by default
        all users of the model.
    candidates : Candidates, sparse matrix, Interactions, frame, path, mapping or array, optional
        The items that each user can be recommended, as in `evaluate_model`.
    filter_seen : bool
        Whether to leave out the items that users have seen.
    num_threads : int, optional
        By default one for each core that this process may use, as in `evaluate`. The result does
        not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    pandas.DataFrame
        A row for each recommended item, in the order of the users and ranks: ``user`` and ``item``
        (ids, or row and column numbers if there are none), ``rank`` from 1, and ``score``.
        Pass it to `evaluate` unchanged. Lists are exact, and of equal scores the lower item number
        comes first. A neighbour model of implicit, or a `Recommender`, makes its own lists by
        `recommend`.

    Raises
    ------
    InvalidDataError
        If a user is unknown to the model.
    SparseEvalError
        As from `evaluate_model`.

    See Also
    --------
    top_k : The same for factors, as arrays.
    evaluate_model : Evaluate what a model recommends.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> model = se.train_als(clicks, factors=8)
    >>> recs = se.recommend(model, clicks, k=3, users=["U7", "U1"])
    >>> recs[["user", "rank"]].values.tolist()
    [['U7', 1], ['U7', 2], ['U7', 3], ['U1', 1], ['U1', 2], ['U1', 3]]
    """
    import pandas as pd

    k = check_whole("k", k, 1)
    check_flag("filter_seen", filter_seen)
    opened = as_model(model, check=False)
    part: Any = train
    if isinstance(train, Holdout):
        if train.fold_in is not None:
            opened = with_new_users(opened, train, num_threads)
        part = train.seen
    names = name_of("train", train), "validation"
    opened, sides, known, among = _open(opened, part, None, candidates, names)
    rows = rows_of_users(users, sides.users, sides.n_known, "the model knows")
    k = min(k, opened.shape[1])
    if opened.exact:
        seen_items = known if filter_seen else None
        options = Options(seen_items, among, None, num_threads, progress)
        lists, scores = opened.ranker(known, options).lists(k, rows)[0]
    elif among is not None:
        raise UnsupportedModelError(need_exact("candidates="))
    else:
        seen: SeenItems = "exclude" if filter_seen else "allow"
        lists = recommend_lists(opened.trained, known, rows, k, progress, seen)
        scores = own_scores(opened.trained, known, rows, lists)
    listed = lists >= 0
    return pd.DataFrame(
        {
            "user": _names(sides.users, np.repeat(rows, listed.sum(axis=1))),
            "item": _names(sides.items, lists[listed]),
            "rank": np.tile(np.arange(1, lists.shape[1] + 1), len(rows))[listed.ravel()],
            "score": scores[listed],
        }
    )


def _names(labels: Axis | None, codes: AnyArray) -> Any:
    return codes.astype(np.int64) if labels is None else labels.index.take(codes)
