"""Means over the requests of users, with errors that respect that requests of one user are alike.

A request has a value x and a weight w. With W, the sum of w over a user's requests, and S, that of
w·x, the mean over requests is m = ΣS / ΣW. Its standard error, linearized, and robust against any
correlation of the requests of one user (CR1 of cluster-robust regression on a constant), is that of
the mean of one value for each of the G users:

    v = m + (S − m·W) · G / ΣW

These have the mean m, and Student's t with G − 1 degrees of freedom gives the interval. The values
v of two models are paired by user: the mean of their differences is the difference of the models,
with the linearized error of a difference. So every test and interval of means of users takes v in
place of a user's value. If all users have the same W, v is the user's mean.

References
----------
.. [1] S.-Y. Liang and S. L. Zeger, "Longitudinal data analysis using generalized linear models",
   Biometrika 73(1), 1986, pp. 13-22. doi:10.1093/biomet/73.1.13
.. [2] W. G. Cochran, "Sampling Techniques", 3rd edition, Wiley, 1977, chapter 6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.exact_sums import Moments
from ..core.hashing import hash_labels, splitmix64
from ..errors import InvalidDataError, InvalidMetricError
from .counts import Span
from .intervals import FEWEST_FOR_T
from .partial_results import SavedNumber
from .user_values import ARRAYS, RequestValues, UserValues

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.types import AnyArray, Floats, Integers
    from ..inputs.axes import Axis
    from .partial_results import Part


def linear(values: Floats, weights: Floats | None) -> Floats:
    """Return values whose mean and standard error are those of a weighted mean of the users'.

    Parameters
    ----------
    values : ndarray of float64, shape (n_users,)
        The mean of each user's requests, NaN for users who are left out.
    weights : ndarray of float64, shape (n_users,), or None
        W of each user; None if all count the same, which returns the values.
    """
    if weights is None:
        return values
    found = np.full(len(values), np.nan)
    defined = np.flatnonzero(~np.isnan(values))
    if len(defined):
        x, w = values[defined], weights[defined]
        total = w.sum()
        mean = (w * x).sum() / total
        found[defined] = mean + (x - mean) * w * (len(defined) / total)
    return found


def values_in(metric: str, part: Part, rows: Integers) -> Floats:
    """Return the values of some rows of users: the mean of each user's requests."""
    return part.values_of(metric)[rows]


def linear_in(metric: str, part: Part, rows: Integers) -> Floats:
    """Return `linear` of the values of some rows of users."""
    weights = part.weights_of(metric)
    return linear(values_in(metric, part, rows), None if weights is None else weights[rows])


def check_same_requests(metric: str, parts: Mapping[str, Part]) -> None:
    """Raise unless evaluations have values of a metric for the same requests.

    Users are paired, and the mean of one evaluation would be of other requests.
    """
    known: dict[str, tuple[AnyArray, AnyArray]] = {}
    for name, part in parts.items():
        if part.requests is not None:
            ids = part.requests.requests
            order = np.argsort(ids, kind="stable")
            column = part.requests.columns[part.number_of(metric)]
            known[name] = ids[order], ~np.isnan(column[order])
    if len(known) < 2:
        return
    (first, (ids, defined)), *others = known.items()
    for name, (other_ids, other) in others:
        shared, one, two = np.intersect1d(ids, other_ids, return_indices=True)
        n_different = int(np.count_nonzero(defined[one] != other[two]))
        if n_different:
            raise InvalidDataError(
                f"{n_different:,} of {len(shared):,} requests have a value of {metric} only in one "
                f"of {first} and {name}; evaluate lists of the same requests"
            )


def linear_pair(
    metric: str, one: tuple[Part, Integers], other: tuple[Part, Integers]
) -> list[Floats]:
    """Return values to compare of some rows of users in two parts, NaN unless both have one.

    Without weights these are the values of the users.
    """
    values = [values_in(metric, *one), values_in(metric, *other)]
    weights = [part.weights_of(metric) for part, _ in (one, other)]
    if weights[0] is None and weights[1] is None:
        return values
    defined = ~(np.isnan(values[0]) | np.isnan(values[1]))
    return [
        linear(np.where(defined, column, np.nan), None if weight is None else weight[rows])
        for column, weight, (_, rows) in zip(values, weights, (one, other), strict=True)
    ]


def of_users(
    part: Part,
    rows: Integers,
    users: Axis,
    codes: Integers,
    weights: Floats,
    user_weights: Floats | None = None,
    *,
    by_user: bool = False,
    has_requests: bool = True,
) -> Part:
    """Return the results of users, made of the results of their requests.

    Parameters
    ----------
    part : Part
        With the values of requests.
    rows : ndarray of int64
        The row of each request there; others are left out.
    users : Axis
        The labels of the users.
    codes : ndarray of int64
        The user of each request.
    weights : ndarray of float64
        Of each request.
    user_weights : ndarray of float64, optional
        Of each user: the requests of a user have it as a factor.
    by_user : bool
        Average the means of users, instead of all requests.
    has_requests : bool
        Whether rows are requests, and not users with weights.

    Raises `InvalidMetricError` if weights differ, and a metric is about all requests together.
    """
    every = part.per_user
    chosen = {name: getattr(every, name)[..., rows] for name in ARRAYS}
    n_seen = None if every.n_seen is None else every.n_seen[rows]
    values = UserValues(**chosen, n_seen=n_seen)
    # By their labels, so that the order of the rows makes no difference.
    order = np.argsort(values.user_ids, kind="stable")
    order = order[np.argsort(codes[order], kind="stable")]
    present, starts = np.unique(codes[order], return_index=True)

    def summed(rows: AnyArray) -> AnyArray:
        sums: AnyArray = np.add.reduceat(rows[..., order], starts, axis=-1)
        return sums

    columns = values.columns
    defined = ~np.isnan(columns)
    total = summed(np.where(defined, weights, 0.0))
    with np.errstate(invalid="ignore"):
        means = summed(np.where(defined, columns * weights, 0.0)) / total
    # One request of weight w has the mean x·w / w, which may differ from x in the last bit.
    single = np.flatnonzero(np.diff(np.append(starts, len(codes))) == 1)
    means[:, single] = columns[:, order[starts[single]]]
    counted = summed(values.counted.astype(np.int64)) > 0
    labels = users[present]
    is_weighted = user_weights is not None and np.ptp(user_weights) > 0
    for traits, metric in zip(part.request.traits, part.request.metrics, strict=True):
        if not traits.per_user and (is_weighted or np.ptp(weights) > 0):
            raise InvalidMetricError(
                f"{metric} is about all lists together, and has no weights; leave it out",
                metric=metric,
            )
    if by_user:
        total = (total > 0).astype(np.float64)
    if user_weights is not None:
        total *= user_weights[present]
        weights = weights * user_weights[codes]
    is_even = bool((total[:, counted] == total[:, counted][:, :1]).all())
    of_all = UserValues(
        labels.to_numpy(),
        counted,
        summed(values.has_list.astype(np.int64)) > 0,
        summed(values.n_relevant),
        _fingerprints(values, weights, summed),
        means,
        None if values.n_seen is None else values.n_seen[order[starts]],
        True,
        None if is_even else total,
    )
    moments, samples, saved = [], [], {}
    number = 0
    for row, traits in enumerate(part.request.traits):
        found = np.zeros(0)
        if traits.per_user:
            found = linear(means[number], of_all.weights_of(number))
            found = found[counted & ~np.isnan(found)]
            if of_all.weights is not None:
                # Sums over requests, rounded once, as in evaluations of rows without users.
                x, w = (means, total) if by_user else (columns, np.where(defined, weights, 0.0))
                some = w[number] > 0
                sums = (x[number, some] * w[number, some], w[number, some])
                above, below = (Moments.of(one, squares=False).sum for one in sums)
                mean = above / below if below else np.nan
                saved[row] = SavedNumber(mean, len(found), None)
            number += 1
        else:  # without an interval, since the groups of its jackknife are not of users
            saved[row] = SavedNumber(part.value(row), part.count(row), np.zeros(0))
        moments.append(Moments.of(found))
        samples.append(found if len(found) < FEWEST_FOR_T else None)
    of_rows = users.take(codes).to_numpy()
    requests = RequestValues(values.user_ids, of_rows, columns, weights, values.counted)
    return replace(
        part.computed(),
        key=part.key | {"average": "user" if by_user else "request", "weighted": not is_even},
        span=Span.of(of_all.user_ids, hash_labels(of_all.user_ids)),
        n_counted=int(counted.sum()),
        moments=tuple(moments),
        samples=tuple(samples),
        ratios={},
        lists={},
        values=of_all,
        saved=saved,
        random=None,
        requests=requests if has_requests else None,
    )


def _fingerprints(values: UserValues, weights: Floats, summed: Any) -> AnyArray:
    """Return a hash of each user's requests, their relevant items and weights, in any order."""
    of_rows = values.fingerprints ^ splitmix64(weights.view(np.uint64))
    found: AnyArray = summed(splitmix64(of_rows ^ hash_labels(values.user_ids)))
    return found
