"""Open and align a model, training data and held-out items: a source of users to rank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..datasets.split.holdout import Holdout
from ..datasets.split.parts import name_of, open_relevance, open_train
from ..errors import UnsupportedModelError
from ..evaluation.array_source import Arrays, FileReference, in_block, largest_gain
from ..evaluation.execution import USERS_PER_BLOCK
from ..inputs.alignment import Place, match_split
from ..inputs.data import Data, SideData, as_training
from ..inputs.labelled import LabelledMatrix, check_part, labels_of
from ..inputs.npy import release, slice_rows, sliceable_csr
from ..inputs.paths import read_truth
from ..inputs.relevance import Relevance
from ..inputs.training import count_users
from .fold_in import with_new_users
from .ids import known_to, warn_without_ids
from .model import Factors
from .opening import as_model, warn_of_zeros
from .ranking import ModelRanking, ModelReference, choose_way
from .trained_on import has_other_data, warn_of_other_data

if TYPE_CHECKING:
    from ..core.types import CSRMatrix
    from ..evaluation.execution import Execution
    from ..inputs.alignment import SplitSides
    from ..inputs.axes import Axis
    from ..metrics.request import Request
    from .model import Model
    from .opening import ModelLike

_NEED_EXACT = (
    "this model cannot be evaluated in blocks of users, because its recommend() rounds scores "
    "differently for different batches of users. Omit memory= and client=, or use a model with "
    "factors"
)


def open_source(
    request: Request,
    execution: Execution,
    model: ModelLike,
    train: Any,
    validation: Any,
    inputs: dict[str, Any],
    chosen: Any = None,
    *,
    warns: bool = True,
) -> Arrays:
    """Open, number and align everything that evaluates a model.

    Parameters
    ----------
    execution : Execution
        In blocks, the rankings of the model have to be exact.
    train, validation
        As in `evaluate_model`.
    inputs : dict
        `item_groups`, `item_vectors`, `propensity` and `candidates`.
    chosen : sequence of hashable, optional
        The users to evaluate, everyone by default.
    warns : bool
        Whether to warn of models without ids, or of other training data.
    """
    fitted = opened = as_model(model, check=False)
    learnt_from = None
    if isinstance(train, Holdout):
        learnt_from = train.train
        model = opened = with_new_users(fitted, train, execution.num_threads)
        train = train.seen
    given = {"known": model, "train": train, "relevance": validation}
    names = name_of("train", train), name_of("validation", validation)
    if not (execution.whole or opened.exact):
        raise UnsupportedModelError(_NEED_EXACT)
    candidates = inputs.get("candidates")
    lists = execution.keep == "lists"
    via = choose_way(opened, request, among=candidates is not None, lists=lists)
    is_read = execution.whole or chosen is not None
    if not execution.whole:
        check_part(train)
        train = _sliceable(train, "the train matrix")
        validation = _sliceable(validation, "the validation matrix")
        is_read = is_read or {*labels_of(train), *labels_of(validation)} != {None}
    if is_read:
        train, validation = open_train(train), open_relevance(validation)
        warn_of_zeros(opened, train)
    opened = opened.bound(train)
    largest = largest_gain(validation) if request.needs_largest_gain else None
    matched = candidates if is_read else None
    sides = match_split(known_to(opened), train, validation, names, matched, chosen)
    if is_read and warns:
        if sides.users is not None or sides.items is not None:
            warn_without_ids(opened, train, validation)
        if has_other_data(fitted, train if learnt_from is None else learnt_from):
            warn_of_other_data("the model")
    if sides.user_rows is not None:
        if execution.whole:
            opened.check()
        opened = opened.take(sides.user_rows)
    side_data = _side_data(request, execution, opened, sides, inputs, is_read=is_read)
    side_data = replace(side_data, largest_gain=largest)
    known = opened.known(sides.n_known)
    data = Data(sides.relevance, side_data, None, sides.train, known, is_read=is_read)
    ranking = ModelRanking(
        request,
        opened.of(None),
        via,
        num_threads=execution.num_threads if execution.client is None else 1,
        progress=execution.progress if execution.whole else False,
        n_unknown=(sides.n_unknown_users, sides.n_unknown_items, sides.n_unknown_pairs),
    )
    # Workers open the inputs that are paths, unless their users are in another order here.
    references: dict[str, FileReference] = {}
    if execution.client is not None:
        if isinstance(model, str | Path):
            ranking = replace(ranking, reference=ModelReference.of(model))
        for name, side in given.items():
            if isinstance(side, str | Path) and not is_read:
                kind = ModelReference if name == "known" else FileReference
                references[name] = kind.of(side)
        if opened.takes_any_user:
            references.pop("known", None)
    return Arrays(request, execution, data, ranking, references)


def _side_data(
    request: Request,
    execution: Execution,
    model: Model,
    sides: SplitSides,
    inputs: dict[str, Any],
    *,
    is_read: bool,
) -> SideData:
    """Return the other inputs, aligned with both parts in the order of the model."""
    train, relevance = sides.train, sides.relevance
    n_users = relevance.shape[0]
    n_items = max(model.shape[1], train.shape[1], relevance.shape[1])
    users, items = (relevance.users, relevance.items_index) if is_read else (None, None)
    if sides.candidates is not None:
        inputs = inputs | {"candidates": sides.candidates}
    side_data = SideData.of(Place(None, users, n_users), Place(None, items, n_items), **inputs)
    if execution.whole or any("train" in plan.inputs for plan in request.plans):
        matrix = train if is_read else open_train(train).csr
        training = as_training(matrix, n_users, side_data.n_items)
        side_data = replace(side_data, training=training)
    return side_data


def rank_by_popularity(source: Arrays) -> Arrays:
    """Return the same users, with items ranked by their popularity in the training data."""
    data = source.data
    ranking: Any = source.ranking
    labels: Axis | None = source.load.side_data.items
    train, n_users = data.train, data.n_users
    n_items = train.shape[1]
    counts = np.zeros(n_items, np.int64)
    for first in range(0, train.shape[0], USERS_PER_BLOCK):
        with in_block(first):  # entries that are stored twice count once
            rows = slice_rows(train, first, min(first + USERS_PER_BLOCK, train.shape[0]))
            counts += count_users(open_train(rows).csr)
        release(train)
    if labels is not None and labels.order is not None and len(labels) == n_items:
        # Equally popular items are in the order of their labels, not of the model's columns.
        ranks = np.lexsort((np.argsort(labels.order), -counts))
        counts[ranks] = np.arange(n_items, 0, -1)
    popularity = Factors(np.ones((n_users, 1)), counts[:, None].astype(np.float64))
    lists = source.execution.keep == "lists"
    via = choose_way(popularity, source.request, among=False, lists=lists)
    about: dict[str, Any] = {"model": popularity.of(None), "via": via, "n_unknown": None}
    return Arrays(
        source.request,
        source.execution,
        replace(data, known=popularity.user_factors),
        replace(ranking, **about, reference=None),
        {name: one for name, one in source.references.items() if name != "known"},
    )


def _sliceable(side: Any, name: str) -> Relevance | CSRMatrix:
    """Open training data or held-out items, so that their rows can be sliced."""
    opened = read_truth(side)
    if isinstance(opened, Relevance):
        return opened
    csr = sliceable_csr(opened, name)
    return opened if isinstance(opened, LabelledMatrix) else csr
