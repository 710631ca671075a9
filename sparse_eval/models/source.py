"""A model with its training data as a source of users, ranked block by block."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..datasets.split.holdout import Holdout
from ..errors import InvalidDataError, UnsupportedModelError
from ..evaluation.runners import USERS_PER_BLOCK, users_per_block
from ..evaluation.sources import RowSource, in_block, largest_gain
from ..inputs.labelled import LabelledMatrix, Place, check_part, labels_of
from ..inputs.npy import release, slice_rows, sliceable_csr
from ..inputs.paths import read_truth
from ..inputs.relevance import Relevance
from ..inputs.side_data import SideData
from ..inputs.training import count_users
from .accepted import as_model, check_shape, warn_of_zeros
from .factor_model import Factors
from .fold_in import with_new_users
from .identifiers import is_silent, warn_without_ids
from .inputs import name_of, open_held_out, open_train
from .matching import match_sides
from .ranking import FileReference, RankingLoader, choose_way, list_length
from .trained_on import has_other_data, warn_of_other_data

if TYPE_CHECKING:
    from ..core.types import CSRMatrix
    from ..evaluation.runners import Execution
    from ..metrics.request import Request
    from .accepted import ModelLike
    from .model import Model
    from .ranking import Via

_NEED_EXACT = (
    "users in blocks need a model whose rankings are exact, such as one with factors: recommend() "
    "rounds the scores of a user in another way beside other users; evaluate this model in one "
    "process, without memory= and client="
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
        `item_groups`, `item_vectors` and `candidates`.
    chosen : sequence of hashable, optional
        The users to evaluate, everyone by default.
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
    ) -> None:
        whole = self.whole = execution.whole
        fitted = opened = as_model(model, check=whole)
        learnt_from = None
        if isinstance(train, Holdout):
            learnt_from = train.train
            model = opened = with_new_users(fitted, train, execution.num_threads)
            train = train.seen
        given = {"users": model, "train": train, "validation": validation}
        if not (whole or opened.exact):
            raise UnsupportedModelError(_NEED_EXACT)
        self.request, self.execution, self.inputs = request, execution, inputs
        via = self._way(opened)
        if not whole:
            check_part(train)
            train, validation = (
                _sliceable(side, f"the {name} matrix")
                for side, name in ((train, "train"), (validation, "validation"))
            )
        labels = *labels_of(train), *labels_of(validation)
        matched = whole or chosen is not None or any(axis is not None for axis in labels)
        n_unknown = (0, 0)
        if matched:
            train = open_train(train)
            warn_of_zeros(opened, train)
        opened = opened.bound(train)
        n_known, n_items = train.shape[0], opened.shape[1]
        if matched:
            names = name_of("train", given["train"]), name_of("validation", given["validation"])
            held_out = open_held_out(validation)
            sides = match_sides(opened, train, held_out, names, inputs.get("candidates"), chosen)
            learnt = train if learnt_from is None else learnt_from
            if not is_silent() and has_other_data(fitted, learnt):
                warn_of_other_data("the model")
            if sides.candidates is not None:
                inputs["candidates"] = sides.candidates
            train, validation = sides.train, sides.relevance
            n_known, n_unknown = sides.n_known, (sides.n_unknown_users, sides.n_unknown_items)
            self.largest = sides.largest_gain if request.needs_largest_gain else None
            if sides.user_rows is not None:
                opened = opened.take(sides.user_rows)
        known = opened.known(n_known)
        if not matched:
            shape = len(known), n_items
            if any(of > than for of, than in zip(validation.shape, shape, strict=True)):
                raise InvalidDataError(
                    f"validation has shape {validation.shape}, the model {shape}; give both the "
                    "users and items of the same split"
                )
            warn_without_ids(opened, train, validation)
            check_shape(opened, train.shape)
            self.largest = largest_gain(request, validation)
        self.sides = {"users": known, "train": train, "validation": validation}
        self.total = validation.shape[0]
        self.references = {
            name: FileReference.of(side, is_model=name == "users")
            for name, side in given.items()
            if execution.client is not None
            and isinstance(side, str | Path)
            and (name == "users" or not matched)
        }
        shipped: Any = self.references.get("users", opened.of(None))
        if matched or opened.takes_any_user:  # its users are not those of the file
            self.references.pop("users", None)
        self.load = self._loader(shipped, via, n_items, n_unknown)
        self.n_rows = self.total if whole else self._n_rows(opened)

    @property
    def repeatable(self) -> bool:
        """Whether the files of workers are still there."""
        files = [*self.references.values(), self.load.model]
        return all(one.path.exists() for one in files if isinstance(one, FileReference))

    def _way(self, model: Model) -> Via:
        lists = self.execution.keep == "lists"
        return choose_way(model, self.request, among="candidates" in self.inputs, lists=lists)

    def _loader(
        self, model: Any, via: Via, n_items: int, n_unknown: tuple[int, int] | None
    ) -> RankingLoader:
        """Return what ranks blocks; the candidates of each user by itself become a side."""
        request, execution, validation = self.request, self.execution, self.sides["validation"]
        needs_train = self.whole or any("train" in plan.inputs for plan in request.plans)
        users, items = labels_of(validation)
        side_data = SideData.of(
            Place(None, users, self.total),
            Place(None, items, max(n_items, validation.shape[1])),
            train=self.sides["train"] if needs_train else None,
            **self.inputs,
        )
        if side_data.candidates is not None and not side_data.candidates.for_all:
            self.sides["candidates"] = side_data.candidates
            side_data = replace(side_data, candidates=None)
        return RankingLoader(
            request,
            model,
            via,
            list_length(request, via, n_items),
            replace(side_data, largest_gain=self.largest),
            execution.num_threads if execution.client is None else 1,
            execution.progress if self.whole else False,
            n_unknown,
        )

    def _n_rows(self, model: Model) -> int:
        """Return how many users a block has, for the evaluation to stay within a budget."""
        fixed, n_items, memory = model.memory, self.load.side_data.n_items, self.execution.memory
        if memory is not None and memory < 2 * fixed:
            raise InvalidDataError(
                f"memory is {memory:,} bytes, and ranking {n_items:,} items takes "
                f"{fixed:,} whatever the number of users; give {2 * fixed:,} at least"
            )
        n_entries = sum(int(self.sides[name].indptr[-1]) for name in ("train", "validation"))
        if "candidates" in self.sides:
            n_entries += len(self.sides["candidates"].items)
        listed = self.load.k if self.load.via == "top_k" else 0
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
        nobody: Any = None
        popularity = Factors(nobody, counts[:, None].astype(np.float64))
        source = copy(self)
        source.sides = self.sides | {"users": np.ones((self.total, 1))}
        source.references = {one: self.references[one] for one in self.references if one != "users"}
        source.load = source._loader(popularity, self._way(popularity), n_items, None)
        return source


def _sliceable(side: Any, name: str) -> Relevance | CSRMatrix:
    """Open training data or held-out items, so that their rows can be sliced."""
    opened = read_truth(side)
    if isinstance(opened, Relevance):
        return opened
    csr = sliceable_csr(opened, name)
    return opened if isinstance(opened, LabelledMatrix) else csr
