"""A model's rankings of held-out items, by the cheapest way that its metrics allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..errors import InvalidMetricError, UnsupportedModelError
from ..inputs.rankings import Rankings
from ..results.parts import Retrieval
from ..retrieval.top_k import count_seen, find_lists, find_ranks
from .checkpoints import Factors
from .recommend import recommend_lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..inputs.relevance import Relevance
    from ..metrics.measure import Plan
    from ..retrieval.top_k import TopK

    Via = Literal["held_out_ranks", "top_k", "recommend"]

__all__ = ["choose_way", "rank"]

_WAYS = ("held_out_ranks", "top_k", "recommend")


def choose_way(model: Any, plans: Sequence[Plan], via: Via | None) -> Via:
    """Return the way that was asked for, or else the cheapest.

    Raises
    ------
    UnsupportedModelError
        If the model has no factors and something else than "recommend" was asked for.
    InvalidMetricError
        If a metric is over whole lists and "held_out_ranks" was asked for, or there is no such way.
    """
    if via is not None and via not in _WAYS:
        raise InvalidMetricError(f"via is {via!r}; expected one of {', '.join(_WAYS)}, or None")
    if not hasattr(model, "item_factors"):
        if via not in (None, "recommend"):
            raise UnsupportedModelError(
                f"via={via!r} needs factors, which a {type(model).__name__} has not; leave it out"
            )
        return "recommend"
    if via == "recommend" and isinstance(model, Factors):
        raise UnsupportedModelError('factors alone cannot recommend; leave via="recommend" out')
    of_lists = [str(plan.metric) for plan in plans if plan.definition.over == "lists"]
    if via is None:
        return "top_k" if of_lists else "held_out_ranks"
    if via == "held_out_ranks" and of_lists:
        raise InvalidMetricError(f'{of_lists[0]} needs the lists; give via="top_k"')
    return via


def rank(
    model: Any,
    train: Any,
    relevance: Relevance,
    k: int,
    via: Via,
    num_threads: int | None,
    progress: bool | None,
) -> tuple[Rankings, Retrieval]:
    """Rank the unseen items of every user who has a relevant one.

    Parameters
    ----------
    model : fitted model of implicit
        From `as_model`.
    train : csr_matrix, shape (n_users, n_items)
        What users have seen.
    relevance : Relevance
        No larger than `train`.
    k : int
        List length.
    via : {"held_out_ranks", "top_k", "recommend"}
        From `choose_way`.
    num_threads : int, optional
        Of "held_out_ranks" and "top_k"; implicit has an option of its own.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    rankings : Rankings
        Of the users of `relevance` and the items of `train`.
    retrieval : Retrieval
        How they came about.
    """
    users = np.flatnonzero(relevance.n_relevant)
    shape = (relevance.shape[0], train.shape[1])
    if via == "recommend":
        ids = recommend_lists(model, train, users, k, progress)
        seen = count_seen(relevance, train)
        return Rankings.from_topk(ids, users, shape), Retrieval(via, seen)
    factors = (model.user_factors, model.item_factors)
    options: dict[str, Any] = {"num_threads": num_threads, "progress": progress}
    if via == "top_k":
        lists, left_out, report = find_lists(*factors, k, train, users, **options)
        rankings = Rankings.from_topk(lists.ids, users, shape)
        n_tied = _count_tied(lists, left_out, users, relevance)
        n_seen = count_seen(relevance, train)
    else:
        found, n_seen, n_tied, report = find_ranks(
            *factors, relevance, k, train, overlap="report", **options
        )
        rankings = Rankings(
            shape,
            found.indptr[: shape[0] + 1],
            found.items,
            found.gapped_positions,
            found.lengths[: shape[0]],
        )
    return rankings, Retrieval(via, n_seen, n_tied, report.cold_users, report.cold_items)


def _count_tied(
    lists: TopK, left_out: NDArray[np.float64], users: NDArray[np.int64], relevance: Relevance
) -> int:
    """Count the relevant items in lists whose score another candidate has too."""
    scores = lists.scores
    listed = lists.ids >= 0
    tied = np.zeros(scores.shape, bool)
    equal = (scores[:, 1:] == scores[:, :-1]) & listed[:, 1:]
    tied[:, 1:] |= equal
    tied[:, :-1] |= equal
    tied |= listed & (scores == left_out[:, None])
    rows, columns = np.nonzero(tied)
    relevant = {
        user: relevance.items[relevance.indptr[user] : relevance.indptr[user + 1]][
            relevance.gains[relevance.indptr[user] : relevance.indptr[user + 1]] > 0
        ]
        for user in users[np.unique(rows)].tolist()
    }
    return sum(
        lists.ids[row, column] in relevant[user]
        for row, column, user in zip(rows, columns, users[rows].tolist(), strict=True)
    )
