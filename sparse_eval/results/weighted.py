"""Evaluations of users whose requests, or who themselves, have weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidDataError
from ..inputs.axes import Axis
from .clusters import of_users
from .evaluation import Evaluation
from .segments import label_table

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..core.types import Floats
    from ..inputs.requests import Requests
    from ..metrics.random_baseline import RandomTotals


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
        of_rows = np.ones(len(codes))
    else:
        # Requests that only the lists have are not evaluated.
        places = values.users.locate(_labels(requests).tolist())
        users, codes = requests.users, np.zeros(len(values.counted), np.int64)
        codes[places] = requests.user_codes
        of_rows = np.ones(len(codes))
        if requests.weights is not None:
            of_rows[places] = requests.weights
    of_people = None if weights is None else _weights_of(weights, users)
    part = of_users(
        rows._part, users, codes, of_rows, of_people, by_user=by_user,
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


def _weights_of(weights: Any, users: Axis) -> Floats:
    """Return the weight of each user, or raise if one has none, or none above 0."""
    if isinstance(weights, np.ndarray | list | tuple):
        found = np.asarray(weights, np.float64)
        if found.shape != (len(users),):
            raise InvalidDataError(
                f"there are {found.size} weights for {len(users)} users; give one for each, or a "
                "mapping by user",
                argument="weights",
            )
    else:
        table = label_table(weights, "user", argument="weights", column="weight", as_text=True)
        if len(table.columns) > 1:
            raise InvalidDataError(
                f"weights have the columns {', '.join(map(repr, table.columns))}; pass one of them",
                argument="weights",
            )
        found = table.iloc[:, 0].reindex(list(map(str, users))).to_numpy(np.float64)
    wrong = np.flatnonzero(~((found > 0) & np.isfinite(found)))
    if len(wrong):
        user = users[int(wrong[0])]
        raise InvalidDataError(
            f"the weight of user {user!r} is {found[wrong[0]]:g}; expected a finite number above 0 "
            f"({len(wrong):,} users have none)",
            argument="weights",
            user=user,
        )
    return found
