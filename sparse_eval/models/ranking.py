"""Rank a model's unseen items in the cheapest way that the metrics allow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..core.csr import find_entries, without_entries
from ..errors import UnsupportedModelError
from ..evaluation.array_source import FileReference
from ..inputs.alignment import within
from ..inputs.candidates import judged_candidates, mark_seen
from ..inputs.npy import release
from ..inputs.rankings import Rankings
from ..results.counts import Retrieval
from ..retrieval.ranker import Options
from .opening import as_model
from .own_lists import recommend_lists

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, Floats, Integers
    from ..inputs.data import Data, SideData
    from ..inputs.relevance import Relevance
    from ..metrics.request import Request
    from ..retrieval.ranker import TopK
    from .model import Model

#: A way to rankings: ranks of relevant items up to a cut-off, all of their ranks, or lists, ours or
#: the model's own.
Via: TypeAlias = Literal["held_out_ranks", "full_ranks", "top_k", "recommend"]


def need_exact(option: str) -> str:
    """Return the error message for an option that a model's own `recommend` does not support."""
    return (
        f"Recommender uses the model's own recommend(), which does not support {option}. Omit "
        f"{option}, or pass the model without Recommender"
    )


def choose_way(model: Model, request: Request, *, among: bool, lists: bool) -> Via:
    """Return the cheapest way to rankings that the metrics allow.

    Raises `UnsupportedModelError` if a metric or candidates need scores of all items, which the
    model does not have.

    Parameters
    ----------
    among : bool
        Whether candidates are given.
    lists : bool
        Whether lists are requested, even if the metrics do not need them.
    """
    if model.exact:
        if request.of_whole_rankings:
            return "full_ranks"
        return "top_k" if lists or request.over_lists else "held_out_ranks"
    if among or request.judged_only:
        raise UnsupportedModelError(need_exact("candidates=" if among else "judged_only=True"))
    if request.of_whole_rankings:
        raise UnsupportedModelError(
            f"{request.of_whole_rankings[0]} has no cut-off, but a {model.name} recommends lists "
            "of limited length. Use metrics with a cut-off, such as 'ndcg@10', or pass scores of "
            "all items, or a model with factors without Recommender"
        )
    return "recommend"


@dataclass(frozen=True)
class ModelReference(FileReference):
    """A checkpoint, or a folder of two arrays of factors, that each worker opens."""

    def read(self) -> Model:
        """Open the model."""
        return as_model(self.path, check=False)

    def rows(self, first: int, last: int) -> Any:
        """Return a copy of what the model has for each of some users."""
        known = self.open().known(0)
        rows = np.array(known[first:last])
        release(known)
        return rows


@dataclass(frozen=True)
class ModelRanking:
    """Rank the unseen items of a model's users; a `Ranking` of `sparse_eval.evaluation`.

    Attributes
    ----------
    request : Request
    model : Model
        Without users.
    via : {"held_out_ranks", "full_ranks", "top_k", "recommend"}
        From `choose_way`.
    num_threads : int or None
        For all ways but "recommend", because implicit has its own option.
    progress : bool or None
        Show a progress bar for each block.
    n_unknown : tuple of int or None
        Users and items that the model does not know, of all blocks; reported with the first. None
        if nothing is to be reported, as for a baseline.
    reference : ModelReference, optional
        Where workers read the model.
    """

    request: Request
    model: Any
    via: Via
    num_threads: int | None
    progress: bool | None
    n_unknown: tuple[int, int, int] | None
    reference: ModelReference | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Support pickling without a model that is read from a file."""
        return self.__dict__ | ({} if self.reference is None else {"model": None})

    @property
    def step(self) -> int:
        """Blocks begin at multiples of this number of users, so that they change no bit."""
        return int(self.model.step)

    @property
    def memory(self) -> int:
        """The bytes that it takes for any number of users."""
        return int(self.model.memory)

    @property
    def entries_per_user(self) -> int:
        """The memory that it takes for each user, in entries of the user's rows."""
        listed = self._list_length(self.model) if self.via == "top_k" else 0
        return listed + int(self.model.entries_per_user)

    def _list_length(self, model: Model) -> int:
        """Return the length of the lists: as the metrics need, or all items."""
        n_items = model.shape[1]
        return n_items if self.via == "full_ranks" else min(self.request.largest_cutoff, n_items)

    def rank(self, block: Data, side_data: SideData) -> tuple[Rankings, Retrieval | None]:
        """Rank the unseen items of every user whose list matters, see `Request.listed_users`.

        Users and items that the model does not know are not ranked.
        """
        known: Any = block.known
        train, relevance = block.train, block.relevance
        whole: Model = self.model if self.reference is None else self.reference.open()
        model, n_users, n_items = whole.of(known), len(known), whole.shape[1]
        request, via, k = self.request, self.via, self._list_length(whole)
        users = request.listed_users(relevance)  # who may have items that it does not know
        users = users[users < n_users]
        seen, held = train, relevance
        if not train.shape == relevance.shape == (n_users, n_items):
            seen, held = within(train, n_users, n_items), relevance.within(n_users, n_items)
        candidates = side_data.candidates
        if request.judged_only:
            candidates = judged_candidates(held).part(0, seen.shape[0])
        elif candidates is not None:
            candidates = candidates.within(n_users, n_items)
        excluded = seen if request.seen == "exclude" else without_entries(seen)
        if via == "recommend":
            ids = recommend_lists(model.trained, seen, users, k, self.progress, request.seen)
            rankings = Rankings.from_topk(ids, user_rows=users, shape=held.shape)
            made = Retrieval(via, _count_seen(held, excluded))
        else:
            options = Options(excluded, candidates, None, self.num_threads, self.progress)
            ranker = model.ranker(seen, options)
            hits = held
            ranks_zeros = request.ranks_stored_zeros
            if ranks_zeros:  # of listed users also the ranks of items with a gain of 0
                is_listed = 1.0 * np.isin(np.arange(held.shape[0]), users)
                gains = np.repeat(is_listed, np.diff(held.indptr))
                hits = replace(held, gains=gains, binary=False)
            if via == "top_k":
                lists, left_out = ranker.lists(k, users)
                rankings = Rankings.from_topk(lists.ids, user_rows=users, shape=held.shape)
                n_tied = _count_tied(lists, left_out, users, hits)
            else:
                most = None if via == "full_ranks" else k
                rankings, n_seen, n_tied = ranker.ranks(hits, most, users)
            if via == "top_k" or ranks_zeros:
                n_seen = _count_seen(held, excluded)
            if request.judged_only:
                # `evaluate` removes unjudged items from given lists, and a user still has a list
                # if all its items are removed. The same has to hold for a model, which ranks only
                # judged items.
                lengths = rankings.lengths.copy()
                has_unseen = np.diff(excluded.indptr)[users] < n_items
                lengths[users] = np.maximum(lengths[users], has_unseen)
                rankings = replace(rankings, lengths=lengths)
            made = Retrieval(via, n_seen, n_tied, ranker.cold_users, ranker.cold_items)
        if self.n_unknown is not None and block.first == 0:
            names = ("n_unknown_users", "n_unknown_items", "n_unknown_pairs")
            counts: dict[str, Any] = dict(zip(names, self.n_unknown, strict=True))
            made = made._replace(**counts)
        if rankings.shape[0] != relevance.shape[0]:
            rankings = rankings.part(0, relevance.shape[0])
        labels = {"users": relevance.users, "items_index": relevance.items_index}
        return replace(rankings, **labels), None if self.n_unknown is None else made


def _count_seen(relevance: Relevance, seen: CSRMatrix) -> int:
    """Return the number of relevant items that their users have seen; `seen` is canonical."""
    was_seen = mark_seen(relevance.indptr, relevance.items, seen.indptr, seen.indices)
    return int(np.count_nonzero(was_seen & (relevance.gains > 0)))


def _count_tied(lists: TopK, left_out: Floats, users: Integers, relevance: Relevance) -> int:
    """Count the relevant items in lists that tie with another candidate."""
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
