"""A model with its training data as a source of users, ranked block by block.

The rankings of unseen items are made in the cheapest way that the metrics allow.
"""

from __future__ import annotations

import hashlib
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..core.csr import find_entries, without_entries
from ..core.files import as_input
from ..datasets.split.holdout import Holdout
from ..errors import InvalidDataError, InvalidFileError, UnsupportedModelError
from ..evaluation.run import evaluate_source, evaluate_whole, users_per_block
from ..evaluation.sources import USERS_PER_BLOCK, Block, RowSource, in_block, largest_gain
from ..inputs.candidates import judged_candidates, mark_seen
from ..inputs.labelled import LabelledMatrix, Place, check_part, labels_of
from ..inputs.npy import release, slice_rows, sliceable_csr
from ..inputs.paths import open_truth, read_truth
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from ..inputs.side_data import SideData, as_training
from ..inputs.training import count_users
from ..results.counts import Retrieval
from ..retrieval.ranker import Options
from .accepted import as_model, warn_of_zeros
from .fold_in import with_new_users
from .identifiers import has_other_data, warn_of_other_data, warn_without_ids
from .inputs import match_sides, name_of, open_relevance, open_train, within
from .model import Factors
from .recommender import recommend_lists

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, Floats, Integers, PathLike
    from ..evaluation.run import Execution
    from ..evaluation.sources import Rows
    from ..metrics.request import Request
    from ..results import Evaluation
    from ..retrieval.ranker import TopK
    from .accepted import ModelLike
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
        A digest of file sizes and samples; a worker compares it with its own files.
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
        """Return the model or matrix, or raise `InvalidFileError` if the files changed."""
        return _open_reference(self)

    def rows(self, first: int, last: int) -> Any:
        """Return the rows of some users of the matrix, or their keys in the model."""
        side = self.open().known(0) if self.is_model else self.open()
        rows: Any = side[first:last] if self.is_model else slice_rows(side, first, last)
        rows = np.array(rows) if self.is_model else rows.copy()
        release(side)
        return rows


@lru_cache(maxsize=4)
def _open_reference(reference: FileReference) -> Any:
    path = reference.path
    if not path.exists():
        raise InvalidFileError(
            "does not exist on this worker. Give all workers access to the same files", path
        )
    if _digest(path) != reference.digest:
        raise InvalidFileError(
            "differs on this worker. Give all workers access to the same files", path
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
    """Return the error message for an option that a model's own `recommend` does not support."""
    return (
        f"Recommender uses the model's own recommend(), which does not support {option}. Omit "
        f"{option}, or pass the model without Recommender"
    )


def choose_way(model: Model, request: Request, *, among: bool, lists: bool) -> Via:
    """Return the cheapest way to rankings that the metrics allow.

    Parameters
    ----------
    model : Model
    request : Request
    among : bool
        Whether candidates are given.
    lists : bool
        Whether lists are requested, even if the metrics do not need them.

    Raises
    ------
    UnsupportedModelError
        If a metric or candidates need scores of all items, which the model does not have.
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


def list_length(request: Request, via: Via, n_items: int) -> int:
    """Return the length of the lists that a way makes: as the metrics need, or all items."""
    return n_items if via == "full_ranks" else min(request.largest_cutoff, n_items)


@dataclass(frozen=True)
class RankingLoader:
    """Rank the unseen items of some users.

    Attributes
    ----------
    request : Request
    model : Model without users, or FileReference
    via : {"held_out_ranks", "full_ranks", "top_k", "recommend"}
        From `choose_way`.
    side_data : SideData
        Of all users; `training` only if metrics need the training data of all users.
    num_threads : int or None
        For all ways but "recommend", because implicit has its own option.
    progress : bool or None
        Show a progress bar for each block.
    n_unknown : tuple of int or None
        Users and items that the model does not know, of all blocks; reported with the first. None
        if nothing is to be reported, as for a baseline.
    is_checked : bool
        Whether training data were checked as a whole.
    """

    request: Request
    model: Any
    via: Via
    side_data: SideData
    num_threads: int | None
    progress: bool | None
    n_unknown: tuple[int, int] | None
    is_checked: bool

    def __call__(self, task: Rows) -> Block:
        """Return the block of a task."""
        with in_block(task.first):
            model = self.model.open() if isinstance(self.model, FileReference) else self.model
            known, train, held, *own = (
                side.rows(task.first, task.last) if isinstance(side, FileReference) else side
                for side in task.sides.values()
            )
            train = train if self.is_checked else open_train(train).csr
            relevance = held if isinstance(held, Relevance) else Relevance.from_csr(held)
            side_data = self.side_data.of_users(task.first, task.last)
            if own:
                side_data = replace(side_data, candidates=own[0])
            if side_data.training is None:  # the users' own rows are enough
                training = as_training(train, *train.shape).of_own_users()
                side_data = replace(side_data, training=training)
            return self.rank(model.of(known), len(known), train, relevance, side_data, task.first)

    def rank(
        self,
        model: Model,
        n_users: int,
        train: CSRMatrix,
        relevance: Relevance,
        side_data: SideData,
        first: int = 0,
    ) -> Block:
        """Rank the unseen items of every user whose list matters, see `Request.listed_users`.

        The first `n_users` users are known to the model. Other users, and items that are not in the
        model, are not ranked. `first` is the number of the first user.
        """
        request, via, n_items = self.request, self.via, model.shape[1]
        k = list_length(request, via, n_items)
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
        made: Retrieval | None
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
        if self.n_unknown is None:
            made = None
        elif first == 0:
            made = Retrieval(*made[:5], *self.n_unknown)
        if rankings.shape[0] != relevance.shape[0]:
            rankings = rankings.part(0, relevance.shape[0])
        rankings = replace(rankings, users=relevance.users, items_index=relevance.items_index)
        return Block(first, rankings, relevance, side_data, made, knows_judged=True)


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


_NEED_EXACT = (
    "this model cannot be evaluated in blocks of users, because its recommend() rounds scores "
    "differently for different batches of users. Omit memory= and client=, or use a model with "
    "factors"
)


class ModelSource(RowSource):
    """The users of a model, ranked block by block.

    Parameters
    ----------
    request : Request
    execution : Execution
        In blocks, the rankings of the model have to be exact.
    model : model, Factors or path
    train, validation
        As in `evaluate_model`.
    inputs : dict
        `item_groups`, `item_vectors`, `propensity` and `candidates`.
    chosen : sequence of hashable, optional
        The users to evaluate, everyone by default.
    warns : bool
        Whether to warn of models without ids, or of other training data.
    """

    load: RankingLoader

    def __init__(
        self,
        request: Request,
        execution: Execution,
        model: ModelLike,
        train: Any,
        validation: Any,
        inputs: dict[str, Any],
        chosen: Any = None,
        *,
        warns: bool = True,
    ) -> None:
        self.request, self.execution = request, execution
        whole = self.whole = execution.whole
        fitted = opened = as_model(model, check=False)
        learnt_from = None
        if isinstance(train, Holdout):
            learnt_from = train.train
            model = opened = with_new_users(fitted, train, execution.num_threads)
            train = train.seen
        given = {"users": model, "train": train, "validation": validation}
        if not (whole or opened.exact):
            raise UnsupportedModelError(_NEED_EXACT)
        candidates = inputs.get("candidates")
        lists = execution.keep == "lists"
        via = choose_way(opened, request, among=candidates is not None, lists=lists)
        is_read = whole or chosen is not None
        if not whole:
            check_part(train)
            train = _sliceable(train, "the train matrix")
            validation = _sliceable(validation, "the validation matrix")
            is_read = is_read or {*labels_of(train), *labels_of(validation)} != {None}
        if is_read:
            train, validation = open_train(train), open_relevance(validation)
            warn_of_zeros(opened, train)
        opened = opened.bound(train)
        largest = largest_gain(validation) if request.needs_largest_gain else None
        names = name_of("train", given["train"]), name_of("validation", given["validation"])
        matched = candidates if is_read else None
        sides = match_sides(opened, train, validation, names, matched, chosen)
        if is_read and warns:
            if sides.users is not None or sides.items is not None:
                warn_without_ids(opened, train, validation)
            if has_other_data(fitted, train if learnt_from is None else learnt_from):
                warn_of_other_data("the model")
        if sides.user_rows is not None:
            opened = as_model(opened, check=whole).take(sides.user_rows)
        self.model, self.n_known = opened, sides.n_known
        train, validation = sides.train, sides.relevance
        self.total = validation.shape[0]
        users, items = (validation.users, validation.items_index) if is_read else (None, None)
        size = max(opened.shape[1], train.shape[1], validation.shape[1])
        side_data = SideData(size, items=items)
        if sides.candidates is not None:
            inputs = inputs | {"candidates": sides.candidates}
        if inputs:
            places = Place(None, users, self.total), Place(None, items, size)
            side_data = SideData.of(*places, **inputs)
        training = None
        if whole or any("train" in plan.inputs for plan in request.plans):
            matrix = train if is_read else open_train(train).csr
            training = as_training(matrix, self.total, side_data.n_items)
        side_data = replace(side_data, training=training, largest_gain=largest)
        unknown = sides.n_unknown_users, sides.n_unknown_items
        threads = execution.num_threads if execution.client is None else 1
        progress = execution.progress if whole else False
        about = (side_data, threads, progress, unknown, is_read)
        self.load = RankingLoader(request, opened, via, *about)
        self.sides = {"users": None, "train": train, "validation": validation}
        self.references = {}
        if not whole:
            self._cut(given, is_read)

    def _cut(self, given: dict[str, Any], is_read: bool) -> None:
        """Cut the users into blocks; workers open the inputs that are paths."""
        model, side_data = self.model, self.load.side_data
        self.sides["users"] = model.known(self.n_known)
        self.references = {
            name: FileReference.of(side, is_model=name == "users")
            for name, side in given.items()
            if self.execution.client is not None
            and isinstance(side, str | Path)
            and (name == "users" or not is_read)
        }
        shipped: Any = self.references.get("users", model.of(None))
        if is_read or model.takes_any_user:  # its users differ from the file's
            self.references.pop("users", None)
        if side_data.candidates is not None and not side_data.candidates.for_all:
            self.sides["candidates"] = side_data.candidates
            side_data = replace(side_data, candidates=None)
        self.load = replace(self.load, model=shipped, side_data=side_data)
        self.n_rows = self._n_rows()

    def evaluate(self) -> Evaluation:
        """Evaluate all users: at once, or block by block."""
        if self.whole:
            return evaluate_whole(self.request, self.execution, self.everybody)
        return evaluate_source(self.request, self.execution, self)

    def everybody(self) -> Block:
        """Rank the items of all users at once."""
        model, n_known, total = self.model, self.n_known, self.total
        train, side_data = self.sides["train"], self.load.side_data
        if n_known > total:
            model, n_known = model.of(model.known(n_known)[:total]), total
        if train.shape[0] > total or side_data.candidates is not None:
            side_data = side_data.of_users(0, total)
        if train.shape[0] != total:
            train = slice_rows(train, 0, total)
        return self.load.rank(model, n_known, train, self.sides["validation"], side_data)

    @property
    def repeatable(self) -> bool:
        """Whether the workers' files still exist."""
        files = [*self.references.values(), self.load.model]
        return all(one.path.exists() for one in files if isinstance(one, FileReference))

    def _n_rows(self) -> int:
        """Return the number of users per block that stays within the memory limit."""
        model, load, memory = self.model, self.load, self.execution.memory
        fixed, n_items = model.memory, load.side_data.n_items
        if memory is not None and memory < 2 * fixed:
            raise InvalidDataError(
                f"memory is {memory:,} bytes, but ranking {n_items:,} items takes "
                f"{fixed:,} bytes for any number of users. Use memory={2 * fixed} or more",
                argument="memory",
            )
        n_entries = sum(int(self.sides[name].indptr[-1]) for name in ("train", "validation"))
        if "candidates" in self.sides:
            n_entries += len(self.sides["candidates"].items)
        is_listed = load.via == "top_k"
        listed = list_length(self.request, load.via, model.shape[1]) if is_listed else 0
        n_entries += (self.total or 1) * (listed + model.entries_per_user)
        n_metrics = len(self.request.metrics)
        n_rows = users_per_block(self.execution, n_entries, self.total or 1, n_metrics, fixed)
        return max(n_rows // model.step, 1) * model.step

    def by_popularity(self) -> ModelSource:
        """Return the same users, ranked by the popularity of items in the training data."""
        train = self.sides["train"]
        n_items = train.shape[1]
        counts = np.zeros(n_items, np.int64)
        for first in range(0, train.shape[0], USERS_PER_BLOCK):
            with in_block(first):  # entries that are stored twice count once
                rows = slice_rows(train, first, min(first + USERS_PER_BLOCK, train.shape[0]))
                counts += count_users(open_train(rows).csr)
            release(train)
        labels = self.load.side_data.items
        if labels is not None and labels.order is not None and len(labels) == n_items:
            # Equally popular items are in the order of their labels, not of the model's columns.
            ranks = np.lexsort((np.argsort(labels.order), -counts))
            counts[ranks] = np.arange(n_items, 0, -1)
        popularity = Factors(np.ones((self.total, 1)), counts[:, None].astype(np.float64))
        lists = self.execution.keep == "lists"
        via = choose_way(popularity, self.request, among=False, lists=lists)
        source = copy(self)
        source.model, source.n_known = popularity, self.total
        source.sides = self.sides | {"users": popularity.user_factors}
        source.references = {one: self.references[one] for one in self.references if one != "users"}
        source.load = replace(self.load, model=popularity.of(None), via=via, n_unknown=None)
        return source


def _sliceable(side: Any, name: str) -> Relevance | CSRMatrix:
    """Open training data or held-out items, so that their rows can be sliced."""
    opened = read_truth(side)
    if isinstance(opened, Relevance):
        return opened
    csr = sliceable_csr(opened, name)
    return opened if isinstance(opened, LabelledMatrix) else csr
