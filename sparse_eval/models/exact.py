"""Models that are ranked here, exactly: those with factors, item-item matrices and functions.

Each opens a `Ranker` for its users. What a model knows of each user (a row of factors, the number
that a function calls the user by) is an array by users, so that blocks of users take their part.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from ..core.threads import thread_count
from ..errors import InvalidDataError
from ..inputs.labelled import labels_of
from ..retrieval.candidates import CandidateSearch
from ..retrieval.scores import (
    CELLS_OF_THREAD,
    FunctionScores,
    ItemScores,
    ScoreSearch,
    users_per_call,
)
from ..retrieval.search import Search
from .accepted import FactorModel, catalogue, count_items, has_factors
from .checkpoints import Factors
from .identifiers import keep_ids
from .recommender import Recommender
from .scorers import ItemItemModel, Scorer

if TYPE_CHECKING:
    from ..core.types import AnyArray, CSRMatrix, Integers
    from ..retrieval.ranker import Ranker
    from .accepted import Model

ExactModel: TypeAlias = "FactorModel | Factors | ItemItemModel | Scorer"

#: Memory of retrieval in bytes: for each number in the factors of items, and in total for the rest.
PER_ITEM_FACTOR, PER_SEARCH = 4, 80_000_000


def is_exact(model: Model) -> TypeGuard[ExactModel]:
    """Return whether a model is ranked here, rather than by its own `recommend`."""
    return has_factors(model) or isinstance(model, ItemItemModel | Scorer)


def numbered_as(model: Any, train: Any) -> Any:
    """Return a model with the users and items of `train` if it does not have its own.

    Only a function lacks them; any other model is returned as it is.

    Raises
    ------
    InvalidDataError
        If `train` does not show them, or a square matrix could be item-item weights or scores.
    """
    shape = None if train is None else train.shape
    by_id = any(axis is not None and axis.by_id for axis in labels_of(train))
    if isinstance(model, ItemItemModel):
        if model.may_be_scores and not by_id and shape == model.weights.shape:
            n_users, n_items = shape
            raise InvalidDataError(
                f"the matrix has shape {shape}, and there are {n_users} users and {n_items} items, "
                "so it could be scores of users × items or item-item weights; give "
                "se.Scorer(matrix) or se.Scorer(item_item=matrix), or a file of one of them from "
                "se.save_model"
            )
        return model
    if not isinstance(model, Scorer) or None not in (model.n_users, model.n_items):
        return model
    if shape is None:
        raise InvalidDataError(
            "nothing says how many users and items the function has; give what users have seen as "
            "a matrix, or se.Scorer(function, users=…, items=…)"
        )
    numbered = copy(model)
    n_users, n_items = shape
    numbered.n_users = n_users if model.n_users is None else model.n_users
    numbered.n_items = n_items if model.n_items is None else model.n_items
    return numbered


def take_users(model: Any, user_rows: Integers | None) -> Any:
    """Return a model with some of its users only, or the model itself for None."""
    if user_rows is None:
        return model
    if isinstance(model, Recommender):
        some = copy(model.model)
        some.user_factors = some.user_factors[user_rows]
        keep_ids(some, None, None)
        return Recommender(some)
    return with_users(model, users_of(model)[user_rows]) if catalogue(model)[0] else model


def users_of(model: ExactModel) -> AnyArray:
    """Return what a model knows of each user."""
    if has_factors(model):
        return model.user_factors
    assert isinstance(model, Scorer)  # noqa: S101 - an item-item model knows nothing of users
    return np.arange(model.n_users or 0) if model.rows is None else model.rows


def with_users(model: Any, users: Any) -> Any:
    """Return a model with other users, given what `users_of` returns, and without their ids."""
    if has_factors(model):
        return Factors(users, model.item_factors)
    if not isinstance(model, Scorer):
        return model
    some = copy(model)
    some.rows, some.n_users = users, None if users is None else len(users)
    keep_ids(some, None, None)
    return some


def open_ranker(
    model: ExactModel,
    train: CSRMatrix | None,
    seen: CSRMatrix | None,
    **options: Any,
) -> Ranker:
    """Return what ranks the items of a model's users.

    Parameters
    ----------
    model : model with factors, ItemItemModel or Scorer
        With its users, in the rows of `train` and `seen`.
    train : csr_matrix, shape (n_users, n_items), or None
        What users have, for an item-item model.
    seen : csr_matrix, shape (n_users, n_items), or None
        What is left out.
    **options
        As of `Ranker`.
    """
    if has_factors(model):
        among = options.get("candidates")
        search = Search if among is None or among.for_all else CandidateSearch
        return search(model.user_factors, model.item_factors, seen, **options)
    if isinstance(model, ItemItemModel):
        if train is None:
            raise InvalidDataError(
                "an item-item model scores items by what users have seen; give it as seen= "
                "(se.Scorer(matrix) makes a model of scores of users × items)"
            )
        return ScoreSearch(ItemScores(train, model.weights), seen, **options)
    assert isinstance(model, Scorer)  # noqa: S101 - there is no other kind
    n_items = count_items(model)
    return ScoreSearch(FunctionScores(model.function, users_of(model), n_items), seen, **options)


def users_per_step(model: ExactModel) -> int:
    """Return the number of users at multiples of which blocks begin, so that they change no bit."""
    return users_per_call(count_items(model)) if isinstance(model, Scorer) else 1


def search_memory(model: ExactModel) -> int:
    """Return the bytes that ranking takes whatever the number of users, beside the model."""
    n_items = count_items(model)
    if has_factors(model):
        return PER_SEARCH + PER_ITEM_FACTOR * n_items * int(model.item_factors.shape[1])
    if isinstance(model, Scorer):  # the function's scores, and as many as it works with
        return PER_SEARCH + 3 * 8 * n_items * users_per_call(n_items)
    return PER_SEARCH + 8 * max(CELLS_OF_THREAD, n_items) * thread_count(None)
