"""Evaluations of users whose requests, or who themselves, have weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import describe
from ..errors import InvalidDataError
from ..inputs.axes import Axis
from ..inputs.requests import check_weights
from .clusters import of_users
from .evaluation import Evaluation
from .segments import label_table

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..core.types import Floats
    from ..inputs.requests import Requests
    from ..metrics.random_baseline import RandomTotals
    from .user_values import UserValues


def evaluation_of_users(
    rows: Evaluation, requests: Requests | None, weights: Any, *, by_user: bool
) -> Evaluation:
    """Return the evaluation of users, made of that of their requests, or of users with weights.

    Parameters
    ----------
    rows : Evaluation
        Of the requests, or of the users.
    requests : Requests or None
        None if each row is a user.
    weights
        Of users, as in `evaluate`.
    """
    values = rows._values
    if requests is None:
        users, codes = values.users, np.arange(len(values.counted))
        places, of_rows = codes, np.ones(len(codes))
    else:
        places = values.users.locate(_labels(requests).tolist())
        others = np.ones(len(values.counted), bool)
        others[places] = False
        if n_others := int(np.count_nonzero(others & values.counted)):
            raise InvalidDataError(
                f"{n_others:,} requests of the lists are not in validation, and would count, but "
                "their users are not known; leave them out of the lists"
            )
        users, codes = requests.users, requests.user_codes
        of_rows = np.ones(len(codes)) if requests.weights is None else requests.weights
    of_people = None if weights is None else _weights_of(weights, users, values, requests)
    part = of_users(
        rows._part, places, users, codes, of_rows, of_people, by_user=by_user,
        has_requests=requests is not None,
    )  # fmt: skip
    if of_people is not None:
        of_rows = of_rows * of_people[codes]
    is_mean_of_rows = not by_user or len(np.unique(codes)) == len(codes)
    has_random = is_mean_of_rows and bool((of_rows == of_rows[:1]).all())
    return Evaluation(part, again=_OfRows(rows) if has_random else None)


class _OfRows:
    """The random baseline of rows that all count the same, in their mean."""

    def __init__(self, rows: Evaluation) -> None:
        self._rows = rows

    def random_totals(self) -> RandomTotals | None:
        """Return the random baseline of the rows."""
        return self._rows._random

    def one_user(self, user: Hashable) -> None:
        """Return None: users have several lists."""


def _labels(requests: Requests) -> Axis:
    labels = requests.relevance.users
    return Axis.numbers(len(requests)) if labels is None else labels


def _weights_of(weights: Any, users: Axis, values: UserValues, requests: Requests | None) -> Floats:
    """Return the weight of each user, or raise if one has none."""
    if isinstance(weights, np.ndarray | list | tuple):
        found = np.asarray(weights)
        if requests is not None or values.labels is not None or found.ndim != 1:
            raise InvalidDataError(
                f"weights is {describe(weights)}, and users have ids; pass a mapping, a Series or "
                "a table by user",
                argument="weights",
            )
        rows = users.to_numpy()
        if len(found) <= rows.max():
            raise InvalidDataError(
                f"there are {len(found)} weights, and users in {rows.max() + 1} rows; give one for "
                "each row",
                argument="weights",
            )
        return check_weights(found[rows], users)
    table = label_table(weights, "user", argument="weights", column="weight", as_text=True)
    if len(table.columns) > 1:
        raise InvalidDataError(
            f"weights have the columns {', '.join(map(repr, table.columns))}; pass one of them",
            argument="weights",
        )
    column = table.iloc[:, 0].reindex(list(map(str, users)))
    if column.isna().any():
        first = int(np.flatnonzero(column.isna())[0])
        raise InvalidDataError(
            f"user {users[first]!r} has no weight ({int(column.isna().sum()):,} have none); give "
            "each a number above 0",
            argument="weights",
            user=users[first],
        )
    return check_weights(column.to_numpy(), users)
