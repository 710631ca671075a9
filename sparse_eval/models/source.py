"""A model with its training matrix as a source of users, ranked block by block."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import is_array
from ..errors import InvalidDataError, UnsupportedModelError
from ..evaluation.budget import users_within
from ..evaluation.evaluate import open_side, users_per_task
from ..evaluation.sources import USERS_PER_BLOCK, Block, in_block, largest_gain
from ..inputs.alignment import Place
from ..inputs.labelled import LabelledMatrix, check_part, labels_of
from ..inputs.npy import release, slice_rows, sliceable_csr
from ..inputs.paths import open_truth
from ..inputs.relevance import Relevance
from ..inputs.side_data import SideData, as_training
from ..inputs.training import count_users
from .accepted import (
    as_model,
    catalogue,
    check_shape,
    count_items,
    has_factors,
    warn_of_zeros,
)
from .checkpoints import Factors
from .exact import (
    is_exact,
    numbered_as,
    search_memory,
    take_users,
    users_of,
    users_per_step,
    with_users,
)
from .inputs import name_of, open_held_out, open_train, training_matrix
from .matching import match_sides
from .ranking import choose_way, list_length, rank
from .references import FileReference, open_model
from .without_ids import warn_without_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.types import CSRMatrix
    from ..inputs.candidates import Candidates
    from ..metrics.request import Request
    from .accepted import ModelLike
    from .ranking import Via

_NEED_EXACT = (
    "users in blocks need a model whose rankings are exact, such as one with factors: recommend() "
    "rounds the scores of a user in another way beside other users; evaluate this model in one "
    "process, without memory= and client="
)


@dataclass(frozen=True)
class UserRows:
    """A task: some users, with the rows of each side, or a reference to the whole of it.

    `users` is what the model knows of each, see `users_of`.
    """

    first: int
    last: int
    train: Any
    validation: Any
    users: Any = None
    candidates: Candidates | None = None


@dataclass(frozen=True)
class RankingLoader:
    """Rank the unseen items of some users.

    Attributes
    ----------
    model : model from `as_model` without users, or FileReference
    via : {"held_out_ranks", "full_ranks", "top_k"}
    k : int
        List length.
    side_data : SideData
        Of all users; `training` only if metrics need that of all users.
    request : Request
    num_threads : int or None
    n_unknown : tuple of int or None
        Users and items that the model does not know, of all blocks; reported with the first. None
        if nothing is to be reported, as of a baseline.
    progress : bool, optional
        Show a progress bar for each block.
    """

    model: Any
    via: Via
    k: int
    side_data: SideData
    request: Request
    num_threads: int | None
    n_unknown: tuple[int, int] | None
    progress: bool | None = False

    def __call__(self, task: UserRows) -> Block:
        """Return the block of a task."""
        with in_block(task.first):
            return self._block(task)

    def _block(self, task: UserRows) -> Block:
        model, users = self.model, task.users
        if isinstance(model, FileReference):
            model = model.open()
        if isinstance(users, FileReference):
            whole = users_of(users.open())
            users = np.array(whole[task.first : task.last])
            release(whole)
        if is_exact(model):
            model = with_users(model, users)
        train, relevance, side_data = _load_rows(task, self.side_data)
        rankings, made = rank(
            model,
            train,
            relevance,
            self.k,
            self.via,
            self.request,
            n_known=None if users is None else len(users),
            candidates=side_data.candidates,
            num_threads=self.num_threads,
            progress=self.progress,
        )
        retrieval = None if self.n_unknown is None else made
        if self.n_unknown is not None and task.first == 0:
            n_users, n_items = self.n_unknown
            retrieval = made._replace(n_unknown_users=n_users, n_unknown_items=n_items)
        return Block(task.first, rankings, relevance, side_data, retrieval, knows_judged=True)


def _load_rows(task: UserRows, shared: SideData) -> tuple[CSRMatrix, Relevance, SideData]:
    """Return the training rows, the held-out items and the side data of the users of a task."""
    train, held = (
        _rows_of_reference(side, task.first, task.last) if isinstance(side, FileReference) else side
        for side in (task.train, task.validation)
    )
    train = training_matrix(train).csr
    relevance = held if isinstance(held, Relevance) else Relevance.from_csr(held)
    if task.candidates is not None:
        shared = replace(shared, candidates=None)
    side_data = shared.of_users(task.first, task.last)
    if task.candidates is not None:
        side_data = replace(side_data, candidates=task.candidates)
    if side_data.training is None:  # the users' own rows are enough
        own = as_training(train, *train.shape)
        side_data = replace(side_data, training=own.of_own_users())
    return train, relevance, side_data


def _rows_of_reference(reference: FileReference, first: int, last: int) -> Any:
    matrix = reference.open()
    rows = slice_rows(matrix, first, last).copy()
    release(matrix)
    return rows


class ModelSource:
    """The users of a model, ranked block by block.

    Parameters
    ----------
    request : Request
    model : model, Factors or path
        One whose rankings are exact, or any if `whole`.
    train, validation
        As in `evaluate_model`.
    inputs : dict
        `item_groups`, `item_vectors` and `candidates`.
    chosen : sequence of hashable, optional
        The users to evaluate, everyone by default.
    num_threads : int, optional
        For each block.
    for_workers : bool
        Whether blocks are evaluated by workers, which then open what is given by path.
    whole, lists : bool
        Whether all users are evaluated at once, and whether lists are wanted whatever the metrics
        need.
    """

    unit = " users"

    def __init__(
        self,
        request: Request,
        model: ModelLike,
        train: Any,
        validation: Any,
        inputs: dict[str, Any],
        *,
        chosen: Any = None,
        num_threads: int | None = None,
        for_workers: bool = False,
        whole: bool = False,
        lists: bool = False,
    ) -> None:
        given = {"users": model, "train": train, "validation": validation}
        opened: Any = open_model(model)
        self.whole, self.lists = whole, lists
        if whole or not (isinstance(opened, Factors) and all(map(is_array, opened[:2]))):
            opened = as_model(opened)  # rows of factors are checked block by block
        if not (whole or is_exact(opened)):
            raise UnsupportedModelError(_NEED_EXACT)
        way = choose_way(opened, request, among="candidates" in inputs, lists=lists)
        if not whole:
            check_part(train)
            train, validation = (
                _sliceable(side, f"the {name} matrix")
                for side, name in ((train, "train"), (validation, "validation"))
            )
        labels = *labels_of(train), *labels_of(validation)
        matched = whole or chosen is not None or any(axis is not None for axis in labels)
        self.matched, n_unknown = matched, (0, 0)
        #: The largest gain of all users; None to read it from the validation data.
        self.largest_gain: float | None = None
        if matched:
            train = open_train(train)
            warn_of_zeros(opened, train)
        opened = numbered_as(opened, train)
        n_items = count_items(opened)
        n_known = train.shape[0]
        if matched:
            names = name_of("train", given["train"]), name_of("validation", given["validation"])
            held_out = open_held_out(validation)
            among = inputs.get("candidates")
            sides = match_sides(opened, train, held_out, names, among, chosen)
            if sides.candidates is not None:
                inputs["candidates"] = sides.candidates
            train, validation = sides.train, sides.relevance
            n_unknown = (sides.n_unknown_users, sides.n_unknown_items)
            self.largest_gain = sides.largest_gain
            opened, n_known = take_users(opened, sides.user_rows), sides.n_known
        takes_any = catalogue(opened)[0] is None  # its users are rows of train
        users = np.arange(n_known) if takes_any else None
        if is_exact(opened) and not takes_any:
            users = users_of(opened)
        self.sides = {"train": train, "validation": validation}
        if users is not None:
            self.sides["users"] = users
        self.total: int = validation.shape[0]
        self.references: dict[str, FileReference] = {}
        #: Of each user by itself: they go with the tasks, and those for all with the side data.
        self.candidates: Candidates | None = None
        self.n_rows = USERS_PER_BLOCK
        if not matched:
            shape = ((train if users is None else users).shape[0], n_items)
            if any(of > than for of, than in zip(validation.shape, shape, strict=True)):
                raise InvalidDataError(
                    f"validation has shape {validation.shape}, the model {shape}; give both the "
                    "users and items of the same split"
                )
            warn_without_ids(opened, train, validation)
            check_shape(opened, train.shape)
        if for_workers:
            self.references = {
                name: FileReference.of(side, is_model=name == "users")
                for name, side in given.items()
                if isinstance(side, str | Path) and (name == "users" or not matched)
            }
            self.n_rows = users_per_task(self.total)
        shipped = self.references.get("users")
        if shipped is None:
            shipped = with_users(opened, None) if is_exact(opened) else opened
        if takes_any:
            self.references.pop("users", None)
        self.model = opened
        self._begin_blocks_at_steps()
        self.load = RankingLoader(
            shipped,
            way,
            list_length(request, way, n_items),
            self.side_data(request, inputs, n_items),
            request,
            num_threads,
            n_unknown,
        )

    @property
    def repeatable(self) -> bool:
        """Whether the files of workers are still there."""
        return all(reference.path.exists() for reference in self.references.values())

    def block_of_all(self, progress: bool | None) -> Block:
        """Return the block of all users."""
        self.n_rows = self.total
        ((task, _),) = self.tasks()
        return replace(self.load, progress=progress)(task)

    def side_data(self, request: Request, inputs: dict[str, Any], n_items: int) -> SideData:
        """Return the side data of all users and items."""
        train, validation = self.sides["train"], self.sides["validation"]
        needs_train = self.whole or any("train" in plan.inputs for plan in request.plans)
        users, items = labels_of(validation)
        n_items = max(n_items, validation.shape[1])
        places = Place(None, users, self.total), Place(None, items, n_items)
        side_data = SideData.of(*places, train=train if needs_train else None, **inputs)
        if side_data.candidates is not None and not side_data.candidates.for_all:
            self.candidates = side_data.candidates
            side_data = replace(side_data, candidates=None)
        if not request.needs_largest_gain:
            return side_data
        if self.largest_gain is not None:
            return replace(side_data, largest_gain=self.largest_gain)
        return replace(side_data, largest_gain=largest_gain(request, validation))

    def tasks(self) -> Iterator[tuple[UserRows, int]]:
        """Cut the users into blocks of `n_rows`."""
        for first in range(0, self.total, self.n_rows):
            last = min(first + self.n_rows, self.total)
            rows = {name: self._rows(name, first, last) for name in self.sides}
            own = self.candidates and self.candidates.of_users(first, last)
            yield UserRows(first, last, **rows, candidates=own), last - first
            release(*self.sides.values())

    def _rows(self, name: str, first: int, last: int) -> Any:
        if name in self.references and not (self.matched and name == "users"):
            return self.references[name]
        side = self.sides[name]
        return side[first:last] if is_array(side) else slice_rows(side, first, last)

    def fit_into(self, memory: int, request: Request, *, per_user: bool) -> None:
        """Cut the users into blocks so small that the evaluation stays within a budget."""
        n_items = self.load.side_data.n_items
        fixed = search_memory(self.model)
        if memory < 2 * fixed:
            raise InvalidDataError(
                f"memory is {memory:,} bytes, and ranking {n_items:,} items takes {fixed:,} "
                f"whatever the number of users; give {2 * fixed:,} at least"
            )
        n_users = self.total or 1
        entries = sum(int(self.sides[name].indptr[-1]) for name in ("train", "validation"))
        entries += 0 if self.candidates is None else len(self.candidates.items)
        listed = self.load.k if self.load.via == "top_k" else 0
        width = self.model.item_factors.shape[1] if has_factors(self.model) else 0
        n_entries = entries + n_users * (listed + width // 4)
        n_rows = users_within(
            memory - fixed, n_entries, n_users, len(request.metrics), per_user=per_user
        )
        self.n_rows = min(self.n_rows, n_rows) if self.references else n_rows
        self._begin_blocks_at_steps()

    def _begin_blocks_at_steps(self) -> None:
        step = users_per_step(self.model)
        self.n_rows = max(self.n_rows // step, 1) * step

    def by_popularity(self, inputs: dict[str, Any]) -> ModelSource:
        """Return the same users, ranked by the popularity of items in the training data."""
        train, request = self.sides["train"], self.load.request
        n_items = train.shape[1]
        counts = np.zeros(n_items, np.int64)
        for first in range(0, train.shape[0], USERS_PER_BLOCK):
            with in_block(first):  # entries that are stored twice count once
                rows = slice_rows(train, first, min(first + USERS_PER_BLOCK, train.shape[0]))
                counts += count_users(training_matrix(rows).csr)
            release(train)
        everyone = np.ones((self.total, 1))
        nobody: Any = None
        popularity = Factors(nobody, counts[:, None].astype(np.float64))
        way = choose_way(popularity, request, among="candidates" in inputs, lists=self.lists)
        source = copy(self)
        source.sides = self.sides | {"users": everyone}
        source.references = {one: self.references[one] for one in self.references if one != "users"}
        source.load = replace(
            self.load,
            model=popularity,
            via=way,
            k=list_length(request, way, n_items),
            side_data=source.side_data(request, inputs, n_items),
            n_unknown=None,
        )
        return source


def _sliceable(side: Any, name: str) -> Relevance | CSRMatrix:
    """Open training data or held-out items, so that their rows can be sliced."""
    opened = open_side(open_truth(side))
    if isinstance(opened, Relevance):
        return opened
    csr = sliceable_csr(opened, name)
    return opened if isinstance(opened, LabelledMatrix) else csr
