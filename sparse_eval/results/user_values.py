"""`UserValues`: the values of every metric for each user, and what they were computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..inputs.axes import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.types import AnyArray, Booleans, Floats, Hashes, Integers

#: The arrays of `UserValues` that every block has.
ARRAYS = ("user_ids", "counted", "has_list", "n_relevant", "fingerprints", "columns")


@dataclass(frozen=True, eq=False)
class UserValues:
    """The values of each user.

    Attributes
    ----------
    user_ids : ndarray
        Labels or row numbers.
    counted : ndarray of bool
        Whether the user is evaluated.
    has_list : ndarray of bool
        Whether the user has a list; those whom a model does not know have none.
    n_relevant : ndarray of int64
        Number of relevant items.
    fingerprints : ndarray of uint64
        A hash of the relevant items and their gains.
    columns : ndarray of float64, shape (n_metrics, n_users)
        The metrics that have a value for each user.
    n_seen : ndarray of int64 or None
        Number of training items, of saved evaluations if it is known.
    labelled : bool or None
        Whether the users have labels; None if they do unless they are numbers from 0 on.
    weights : ndarray of float64, shape (n_metrics, n_users), or None
        The weight of each user in the mean of each of `columns`; None if all count the same. A user
        of several requests has the sum of their weights.
    """

    user_ids: AnyArray
    counted: Booleans
    has_list: Booleans
    n_relevant: Integers
    fingerprints: Hashes
    columns: Floats
    n_seen: Integers | None = None
    labelled: bool | None = None
    weights: Floats | None = None

    def weights_of(self, number: int) -> Floats | None:
        """Return the weights of the users for one of `columns`."""
        return None if self.weights is None else self.weights[number]

    @cached_property
    def labels(self) -> Axis | None:
        """The users' labels, None if they are the row numbers from 0 on."""
        users = self.user_ids
        is_plain = users.dtype.kind in "iu" and np.array_equal(users, np.arange(len(users)))
        labelled = not is_plain if self.labelled is None else self.labelled
        return Axis.unchecked(users) if labelled else None

    @property
    def users(self) -> Axis:
        """The users' labels, or their row numbers if there are none."""
        return Axis.numbers(len(self.counted)) if self.labels is None else self.labels

    @property
    def evaluated_users(self) -> Axis:
        """The labels of the users that count in the means, or their row numbers."""
        return self.users[self.counted]

    @classmethod
    def concatenate(cls, blocks: Sequence[UserValues]) -> UserValues:
        """Return the values of all blocks, in the order of the users."""
        arrays: list[Any] = [
            np.concatenate([getattr(block, name) for block in blocks], axis=-1) for name in ARRAYS
        ]
        users = arrays[0]
        if not (users[1:] > users[:-1]).all():
            order = np.argsort(users, kind="stable")
            arrays = [array[..., order] for array in arrays]
        return cls(*arrays)


@dataclass(frozen=True, eq=False)
class RequestValues:
    """The values of requests.

    Attributes
    ----------
    requests, users : ndarray
        The labels of the requests, and of the user of each.
    columns : ndarray of float64, shape (n_metrics, n_requests)
        The metrics that have a value for each, NaN for a request that is left out.
    weights : ndarray of float64
    counted : ndarray of bool
        Whether the request counts in the means.
    """

    requests: AnyArray
    users: AnyArray
    columns: Floats
    weights: Floats
    counted: Booleans
