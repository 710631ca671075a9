"""The rankings of a model's unseen items, in the cheapest way that the metrics allow."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..core.csr import as_int32, find_entries, take_rows
from ..core.files import as_input
from ..errors import InvalidFileError, UnsupportedModelError
from ..evaluation.sources import Block, in_block
from ..inputs.candidates import judged_candidates
from ..inputs.npy import release, slice_rows
from ..inputs.paths import open_truth
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from ..inputs.side_data import as_training
from ..inputs.training import excluded_items
from ..metrics.eligible import eligible_items
from ..results.parts import Retrieval
from ..retrieval.top_k import count_seen, find_lists, find_ranks
from .accepted import as_model
from .inputs import open_train
from .matching import within
from .recommender import recommend_lists

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.types import CSRMatrix, Floats, Integers, PathLike
    from ..evaluation.sources import Rows
    from ..inputs.candidates import Candidates
    from ..inputs.side_data import SideData
    from ..metrics.eligible import Eligible
    from ..metrics.request import Request
    from ..retrieval.top_k import TopK
    from .model import Model


#: How many samples of a file are hashed to recognize it, and the bytes in each.
_SAMPLES, _SAMPLE_SIZE = 64, 1 << 16


@dataclass(frozen=True)
class FileReference:
    """A model or matrix on disk that each worker opens, instead of receiving a copy.

    Attributes
    ----------
    path : Path
        A checkpoint, a folder of two arrays of factors, or a matrix.
    digest : str
        Of the sizes and of samples of the files, by which a worker recognizes them.
    is_model : bool
        Whether it is a model, rather than training data or held-out items.
    """

    path: Path
    digest: str
    is_model: bool = False

    @classmethod
    def of(cls, path: PathLike, *, is_model: bool = False) -> FileReference:
        """Make a reference to files that this process can read."""
        absolute = as_input(path).absolute()
        return cls(absolute, _digest(absolute), is_model)

    def open(self) -> Any:
        """Return the model or matrix, or raise `InvalidFileError` if the files are others."""
        return _open_reference(self)

    def rows(self, first: int, last: int) -> Any:
        """Return the rows of some users of the matrix, or what the model knows of them."""
        opened = self.open()
        side = opened.known(0) if self.is_model else opened
        rows: Any = side if self.is_model else slice_rows(side, first, last)
        rows = np.array(side[first:last]) if self.is_model else rows.copy()
        release(side)
        return rows


@lru_cache(maxsize=4)
def _open_reference(reference: FileReference) -> Any:
    path = reference.path
    if not path.exists():
        raise InvalidFileError("does not exist where this worker runs", path)
    if _digest(path) != reference.digest:
        raise InvalidFileError(
            "is something else where this worker runs; give all workers the same", path
        )
    return as_model(path, check=False) if reference.is_model else open_truth(path)


def _digest(path: Path) -> str:
    """Hash the sizes and samples of files; reading all of a large file would take too long."""
    digest = hashlib.sha256()
    for file in sorted(path.glob("*.npy")) if path.is_dir() else [path]:
        size = file.stat().st_size
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as stream:
            for sample in range(_SAMPLES):
                stream.seek(sample * size // _SAMPLES)
                digest.update(stream.read(_SAMPLE_SIZE))
    return digest.hexdigest()


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
    model : Model
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
    if model.exact:
        if request.of_whole_rankings:
            return "full_ranks"
        over_lists = lists or any(not plan.is_swept for plan in request.plans)
        return "top_k" if over_lists else "held_out_ranks"
    if among or request.judged_only:
        raise UnsupportedModelError(need_exact("candidates=" if among else "judged_only=True"))
    if request.of_whole_rankings:
        raise UnsupportedModelError(
            f"{request.of_whole_rankings[0]} has no cut-off, and the lists that a "
            f"{model.name} recommends have one; ask for metrics with a cut-off, such as "
            "'ndcg@10', or give scores of all items, or a model with factors without Recommender"
        )
    return "recommend"


def list_length(request: Request, via: Via, n_items: int) -> int:
    """Return the length of the lists that a way makes: what the metrics need, or everything."""
    if via == "full_ranks" or request.corrected is not None:  # of the candidates, who are few
        return n_items
    return min(max(metric.cutoff or 0 for metric in request.metrics), n_items)


@dataclass(frozen=True)
class RankingLoader:
    """Rank the unseen items of some users.

    Attributes
    ----------
    request : Request
    model : Model without users, or FileReference
    via : {"held_out_ranks", "full_ranks", "top_k", "recommend"}
        From `choose_way`.
    k : int
        From `list_length`.
    side_data : SideData
        Of all users; `training` only if metrics need that of all users.
    num_threads : int or None
        Of all ways but "recommend"; implicit has an option of its own.
    progress : bool or None
        Show a progress bar for each block.
    n_unknown : tuple of int or None
        Users and items that the model does not know, of all blocks; reported with the first. None
        if nothing is to be reported, as of a baseline.
    """

    request: Request
    model: Any
    via: Via
    k: int
    side_data: SideData
    num_threads: int | None
    progress: bool | None
    n_unknown: tuple[int, int] | None

    def __call__(self, task: Rows) -> Block:
        """Return the block of a task."""
        with in_block(task.first):
            return self._block(task)

    def _block(self, task: Rows) -> Block:
        model = self.model.open() if isinstance(self.model, FileReference) else self.model
        known, train, held, *own = (
            side.rows(task.first, task.last) if isinstance(side, FileReference) else side
            for side in task.sides.values()
        )
        train = open_train(train).csr
        relevance = held if isinstance(held, Relevance) else Relevance.from_csr(held)
        side_data = self.side_data.of_users(task.first, task.last)
        if own:
            side_data = replace(side_data, candidates=own[0])
        if side_data.training is None:  # the users' own rows are enough
            training = as_training(train, *train.shape).of_own_users()
            side_data = replace(side_data, training=training)
        rankings, made = self._rank(
            model.of(known), len(known), train, relevance, side_data.candidates
        )
        retrieval = None if self.n_unknown is None else made
        if self.n_unknown is not None and task.first == 0:
            n_users, n_items = self.n_unknown
            retrieval = made._replace(n_unknown_users=n_users, n_unknown_items=n_items)
        rankings = rankings.part(0, relevance.shape[0])
        rankings = replace(rankings, users=relevance.users, items_index=relevance.items_index)
        return Block(task.first, rankings, relevance, side_data, retrieval, knows_judged=True)

    def _rank(
        self,
        model: Model,
        n_users: int,
        train: CSRMatrix,
        relevance: Relevance,
        candidates: Candidates | None,
    ) -> tuple[Rankings, Retrieval]:
        """Rank the unseen items of every user whose list matters, see `Request.listed_users`.

        The first `n_users` users are known to the model. What the data have beyond these and the
        items of the model is ranked nowhere.
        """
        request, via = self.request, self.via
        n_items = model.shape[1]
        users = request.listed_users(relevance)  # who may have items that it does not know
        users = users[users < n_users]
        train, relevance = within(train, n_users, n_items), relevance.within(n_users, n_items)
        if request.judged_only:
            candidates = judged_candidates(relevance).part(0, train.shape[0])
        elif candidates is not None:
            candidates = candidates.within(n_users, n_items)
        shape = (relevance.shape[0], n_items)
        excluded = excluded_items(train, request.seen)
        if via == "recommend":
            ids = recommend_lists(model.trained, train, users, self.k, self.progress, request.seen)
            n_seen = count_seen(relevance, excluded)
            return Rankings.from_topk(ids, user_rows=users, shape=shape), Retrieval(via, n_seen)
        ranker = model.ranker(
            train,
            excluded,
            candidates=candidates,
            num_threads=self.num_threads,
            progress=self.progress,
        )
        hits = relevance
        if request.ranks_stored_zeros:  # of listed users also the ranks of items with a gain of 0
            is_listed = 1.0 * np.isin(np.arange(relevance.shape[0]), users)
            gains = np.repeat(is_listed, np.diff(relevance.indptr))
            hits = replace(relevance, gains=gains, binary=False)
        if via == "top_k":
            lists, left_out, report = find_lists(ranker, self.k, users)
            rankings = Rankings.from_topk(lists.ids, user_rows=users, shape=shape)
            n_tied = _count_tied(lists, left_out, users, hits)
            n_seen = count_seen(relevance, excluded)
        else:
            most = None if via == "full_ranks" else self.k
            ranks, n_seen, n_tied, report = find_ranks(ranker, hits, most, "report")
            if request.ranks_stored_zeros:
                n_seen = count_seen(relevance, excluded)
            lengths = ranks.lengths[: shape[0]].copy()
            others = users[relevance.n_relevant[users] == 0]  # who get a list without a hit
            lengths[others] = np.minimum(self.k, _eligible(excluded, candidates, others).counts)
            rankings = Rankings(
                shape,
                ranks.indptr[: shape[0] + 1],
                ranks.items,
                ranks.gapped_positions,
                lengths,
            )
        if request.judged_only:
            # `evaluate` removes unjudged items from given lists, and a user still has a list if
            # all its items are removed. The same has to hold for a model, which ranks only judged
            # items.
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
