"""Random numbers that belong to a user, wherever and with whomever it is evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .hashing import splitmix64

if TYPE_CHECKING:
    from .types import Floats, Hashes, Integers


def uniforms(keys: Hashes, counts: Integers, seed: int) -> Floats:
    """Draw numbers uniformly from [0, 1), of which each depends on nothing but its key and place.

    A generator handed from user to user would give other numbers to a block of them.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_users,)
        A hash of each user.
    counts : ndarray of int64, shape (n_users,)
        How many numbers each user gets.
    seed : int

    Returns
    -------
    ndarray of float64, shape (sum of counts,)
        Those of each user in succession.
    """
    ends = np.cumsum(counts)
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    streams = splitmix64(keys ^ splitmix64(np.array([seed], np.uint64)))
    with np.errstate(over="ignore"):
        numbers = splitmix64(np.repeat(streams, counts) + places.astype(np.uint64))
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53
