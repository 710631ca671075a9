"""The rankings of a model's unseen items, in the cheapest way that the metrics allow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np

from ..core.csr import as_int32, find_entries
from ..errors import UnsupportedModelError
from ..inputs.judged import judged_candidates
from ..inputs.rankings import Rankings
from ..inputs.training import excluded_items, take_rows
from ..metrics.eligible import eligible_items
from ..results.parts import Retrieval
from ..retrieval.top_k import count_seen, find_lists, find_ranks
from .accepted import catalogue
from .exact import is_exact, open_ranker
from .matching import within
from .recommend import recommend_lists

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, Floats, Integers
    from ..inputs.candidates import Candidates
    from ..inputs.relevance import Relevance
    from ..metrics.eligible import Eligible
    from ..metrics.request import Request
    from ..retrieval.top_k import TopK
    from .accepted import ImplicitModel, Model

#: A way to rankings: ranks of relevant items up to a cut-off, all of their ranks, or lists, ours or
#: the model's own.
Via: TypeAlias = Literal["held_out_ranks", "full_ranks", "top_k", "recommend"]


def need_exact(option: str) -> str:
    """Return what the error says where an option needs a model that is ranked here."""
    return (
        f"{option} needs a model that is ranked here, such as one with factors: a model's own "
        f"recommend() knows no candidates; leave {option} out, or give the model without "
        "Recommender"
    )


def choose_way(model: Model, request: Request, *, among: bool, lists: bool = False) -> Via:
    """Return the cheapest way to rankings that the metrics allow.

    Parameters
    ----------
    model : model from `as_model`
    request : Request
    among : bool
        Whether candidates are given.
    lists : bool
        Whether lists are wanted, whatever the metrics need.

    Raises
    ------
    UnsupportedModelError
        If a metric or candidates need scores of all items, which the model does not have.
    """
    if is_exact(model):
        if request.of_whole_rankings:
            return "full_ranks"
        over_lists = lists or any(not plan.is_swept for plan in request.plans)
        return "top_k" if over_lists else "held_out_ranks"
    if among or request.judged_only:
        raise UnsupportedModelError(need_exact("candidates=" if among else "judged_only=True"))
    if request.of_whole_rankings:
        raise UnsupportedModelError(
            f"{request.of_whole_rankings[0]} has no cut-off, and the lists that a "
            f"{type(model).__name__} recommends have one; ask for metrics with a cut-off, such as "
            "'ndcg@10', or give scores of all items, or a model with factors without Recommender"
        )
    return "recommend"


def list_length(request: Request, via: Via, n_items: int) -> int:
    """Return the length of the lists that a way makes: what the metrics need, or everything."""
    if via == "full_ranks" or request.corrected is not None:  # of the candidates, who are few
        return n_items
    return min(max(metric.cutoff or 0 for metric in request.metrics), n_items)


def rank(
    model: Model,
    train: CSRMatrix,
    relevance: Relevance,
    k: int,
    via: Via,
    request: Request,
    *,
    n_known: int | None = None,
    candidates: Candidates | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> tuple[Rankings, Retrieval]:
    """Rank the unseen items of every user whose list matters, see `Request.listed_users`.

    Parameters
    ----------
    model : model from `as_model`
    train : csr_matrix, shape (n_users, n_items)
        What users have seen.
    relevance : Relevance
        What it and `train` have beyond the model's users and items is ranked nowhere.
    k : int
        List length, from `list_length`.
    via : {"held_out_ranks", "full_ranks", "top_k", "recommend"}
        From `choose_way`.
    request : Request
    n_known : int, optional
        So many of the first users are known to a model that has no users of its own, all of
        `train` by default.
    candidates : Candidates, optional
        With the rows and columns of `train`.
    num_threads : int, optional
        Of all ways but "recommend"; implicit has an option of its own.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    rankings : Rankings
        Of the users of `relevance` and the items of the model, as far as it has them.
    retrieval : Retrieval
        How they were made.
    """
    n_users, n_items = catalogue(model)
    if n_users is None:
        n_users = train.shape[0] if n_known is None else n_known
    users = request.listed_users(relevance)  # who may have items that it does not know
    users = users[users < n_users]
    train, relevance = (within(side, (n_users, n_items)) for side in (train, relevance))
    if request.judged_only:
        candidates = judged_candidates(relevance).padded(train.shape[0])
    elif candidates is not None:
        candidates = candidates.within(n_items)
    shape = (relevance.shape[0], n_items)
    excluded = excluded_items(train, request.seen)
    if via == "recommend":
        ids = recommend_lists(cast("ImplicitModel", model), train, users, k, progress, request.seen)
        return Rankings.from_topk(ids, user_rows=users, shape=shape), Retrieval(
            via, count_seen(relevance, excluded)
        )
    assert is_exact(model)  # noqa: S101 - refused by choose_way
    options = {"candidates": candidates, "num_threads": num_threads, "progress": progress}
    ranker = open_ranker(model, train, excluded, **options)
    hits = relevance
    if request.ranks_stored_zeros:  # of listed users also the ranks of items with a gain of 0
        is_listed = 1.0 * np.isin(np.arange(relevance.shape[0]), users)
        gains = np.repeat(is_listed, np.diff(relevance.indptr))
        hits = replace(relevance, gains=gains, binary=False)
    if via == "top_k":
        lists, left_out, report = find_lists(ranker, k, users)
        rankings = Rankings.from_topk(lists.ids, user_rows=users, shape=shape)
        n_tied = _count_tied(lists, left_out, users, hits)
        n_seen = count_seen(relevance, excluded)
    else:
        most = None if via == "full_ranks" else k
        ranks, n_seen, n_tied, report = find_ranks(ranker, hits, most, "report")
        if request.ranks_stored_zeros:
            n_seen = count_seen(relevance, excluded)
        lengths = ranks.lengths[: shape[0]].copy()
        others = users[relevance.n_relevant[users] == 0]  # who get a list without a hit
        lengths[others] = np.minimum(k, _eligible(excluded, candidates, others).counts)
        rankings = Rankings(
            shape,
            ranks.indptr[: shape[0] + 1],
            ranks.items,
            ranks.gapped_positions,
            lengths,
        )
    if request.judged_only:
        # `evaluate` removes unjudged items from given lists, and a user still has a list if all its
        # items are removed. The same has to hold for a model, which ranks only judged items.
        lengths = rankings.lengths.copy()
        has_unseen = _eligible(excluded, None, users).counts > 0
        lengths[users] = np.maximum(lengths[users], has_unseen)
        rankings = replace(rankings, lengths=lengths)
    return rankings, Retrieval(via, n_seen, n_tied, report.cold_users, report.cold_items)


def _eligible(train: CSRMatrix, candidates: Candidates | None, users: Integers) -> Eligible:
    """Return the unseen candidates of some users, among the items of `train`."""
    seen = take_rows(train.indptr.astype(np.int64, copy=False), users, as_int32(train.indices))
    return eligible_items(train.shape[1], seen, candidates, users)


def _count_tied(lists: TopK, left_out: Floats, users: Integers, relevance: Relevance) -> int:
    """Count the relevant items in lists whose score another candidate has too."""
    scores = lists.scores
    listed = lists.ids >= 0
    tied = np.zeros(scores.shape, bool)
    equal = (scores[:, 1:] == scores[:, :-1]) & listed[:, 1:]
    tied[:, 1:] |= equal
    tied[:, :-1] |= equal
    tied |= listed & (scores == left_out[:, None])
    rows, columns = np.nonzero(tied)
    pairs = users[rows], lists.ids[rows, columns]
    entries = find_entries(*pairs, relevance.indptr, relevance.items, relevance.shape[1])
    return int(np.count_nonzero(np.append(relevance.gains, 0.0)[entries]))
