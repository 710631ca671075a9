"""`recommend`: what each user gets, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import check_flag, check_whole
from ..core.removed import removed
from ..datasets.split.holdout import Holdout
from ..errors import UnsupportedModelError
from ..retrieval.top_k import find_lists
from .accepted import as_model
from .chosen_users import rows_of_users
from .fold_in import with_new_users
from .inputs import NewUsers, name_of, open_train, training_part
from .matching import within
from .ranking import need_exact
from .recommender import own_scores, recommend_lists
from .retrieving import open_ranker, open_sides

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import pandas as pd
    from numpy.typing import ArrayLike

    from ..core.types import AnyArray
    from ..inputs.axes import Axis
    from ..inputs.training import SeenItems
    from .accepted import ModelLike
    from .inputs import CandidatesLike, TrainLike


@removed("user_rows", seen="filter_seen=False to recommend what users have seen too")
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
    """Recommend users the items that a model ranks first among those that they have not seen.

    Parameters
    ----------
    model : fitted model of implicit, path, pair of factors, matrix, function, or Scorer
        As in `evaluate_model`.
    train : sparse matrix, Interactions, frame, Relevance, path or Holdout
        What users have seen, as in `evaluate_model`; of a `Holdout` the train part, with the users
        of a split by users folded in.
    k : int
        Items for each user, at least 1; fewer where a user has seen almost all.
    users : sequence of hashable, optional
        The ids of the users, or row numbers if neither the model nor `train` has ids; by default
        all whom the model knows.
    candidates : Candidates, sparse matrix, Interactions, frame, path, mapping or array, optional
        What each user can be recommended, as in `evaluate_model`.
    filter_seen : bool
        Whether what users have seen is left out.
    num_threads : int, optional
        By default one for each core that this process may use, as in `evaluate`. The result does
        not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    pandas.DataFrame
        A row for each recommended item, in the order of the users and ranks: ``user`` and ``item``
        (ids, or row and column numbers where there are none), ``rank`` from 1, and ``score``.
        `evaluate` takes it as it is. Lists are exact, and of equal scores the lower item number
        comes first; of a neighbour model of implicit, or a `Recommender`, they are those of its own
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
    opened = as_model(model)
    part = training_part(train) if isinstance(train, Holdout) else train
    if isinstance(part, NewUsers):
        opened, part = with_new_users(opened, part, num_threads), part.seen
    names = name_of("train", train), "validation"
    opened, sides = open_sides(opened, open_train(part), None, candidates, names)
    rows = rows_of_users(users, sides.users, sides.n_known, "the model knows")
    n_items = opened.shape[1]
    if sides.candidates is not None:
        sides = sides._replace(candidates=sides.candidates.within(n_items))
    k = min(k, n_items)
    if opened.exact:
        options: dict[str, Any] = {"num_threads": num_threads, "progress": progress}
        ranker = open_ranker(opened, sides, True, filter_seen=filter_seen, **options)
        lists, scores = find_lists(ranker, k, rows)[0]
    elif sides.candidates is not None:
        raise UnsupportedModelError(need_exact("candidates="))
    else:
        known = within(sides.train, (sides.n_known, n_items))
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
    return codes.astype(np.int64) if labels is None else labels.repeat(codes)
