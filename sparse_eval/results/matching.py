"""Metrics and users that evaluations share, and those left out of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidDataError
from ..metrics import parse_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..core.types import Integers
    from ..inputs.axes import Axis
    from ..metrics import Metric
    from ..metrics.request import Request
    from .partial_results import Part


class SharedUsers(NamedTuple):
    """The users that all evaluations have.

    Attributes
    ----------
    rows : list of ndarray of int64
        Their rows in each evaluation, in the same order.
    left_out : dict of str to int
        The number of evaluated users that others lack, by name of the evaluation.
    users : Axis
        Their labels, or row numbers if there are none.
    """

    rows: list[Integers]
    left_out: dict[str, int]
    users: Axis

    def notes(self) -> list[str]:
        """Return in words which users are left out; empty if none are."""
        n_users = len(self.users)
        parts = [
            f"{count:,} of the {n_users + count:,} of {name}"
            for name, count in self.left_out.items()
            if count
        ]
        text = f"compared on the {n_users:,} users that all have; left out: {', '.join(parts)}"
        return [text] if parts else []


def shared_metrics(
    requests: Mapping[str, Request], metrics: str | Iterable[str] | None
) -> tuple[list[str], list[str]]:
    """Return the metrics to compare, and a note about those that not all evaluations have.

    Raises `InvalidDataError` if there is none, or an evaluation lacks one that was named.
    """
    every = dict.fromkeys(metric for request in requests.values() for metric in request.names)
    lacking = {
        metric: [name for name, request in requests.items() if metric not in request.names]
        for metric in every
    }
    if metrics is None:
        chosen = [metric for metric in every if not lacking[metric]]
        parts = [
            f"{metric} (not in {', '.join(names)})" for metric, names in lacking.items() if names
        ]
    else:
        chosen = list(dict.fromkeys(map(str, _spelt_as_evaluated(requests, metrics))))
        parts = []
    missing = [metric for metric in chosen if lacking.get(metric, True)]
    if missing or not chosen:
        theirs = "; ".join(f"{name}: {', '.join(one.names)}" for name, one in requests.items())
        raise InvalidDataError(
            f"not all evaluations have {', '.join(missing) or 'a metric'} ({theirs}); evaluate the "
            "same metrics for all, or choose shared metrics"
        )
    return chosen, [f"metrics left out: {', '.join(parts)}"] if parts else []


def _spelt_as_evaluated(
    requests: Mapping[str, Request], metrics: str | Iterable[str]
) -> Iterator[str | Metric]:
    """Yield the names as the evaluations print them, where they have them."""
    evaluated = {name for request in requests.values() for name in request.names}
    defaults = next(iter(requests.values())).convention.options
    try:
        given: list[Any] = [metrics] if isinstance(metrics, str) else list(metrics)
    except TypeError:  # raised by parse_metrics
        given = [metrics]
    for metric in given:
        if isinstance(metric, str) and metric in evaluated:  # it may not be registered here
            yield metric
        else:
            yield from parse_metrics(metric, defaults)


def check_alike(parts: Mapping[str, Part], metrics: Iterable[str]) -> None:
    """Raise if evaluations follow different conventions, or weight hits of a metric differently."""
    (first_name, first), *others = parts.items()
    traits = map(first.traits_of, metrics)
    needs = sorted({one.weighted_by for one in traits if one.weighted_by is not None})
    ours = _options(first, needs)
    for name, part in others:
        for option, b in _options(part, needs).items():
            a = ours[option]
            if a != b:
                raise InvalidDataError(
                    f"{first_name} was evaluated with {option}={a!r}, {name} with {option}={b!r}. "
                    "Evaluate both with the same value"
                )


def _options(part: Part, needs: list[str]) -> dict[str, Any]:
    """Return the options that must be equal in compared evaluations."""
    return {
        "convention": part.request.convention.name,
        "no_relevant": part.request.no_relevant,
        "without_list": part.request.without_list,
        "filter_seen": part.request.seen == "exclude",
        "candidates": part.candidates and part.candidates.kind,
        "average": part.key.get("average", "one list of each user"),
        **{f"propensities of {name}": part.key["propensities"].get(name) for name in needs},
    }


def shared_users(parts: Mapping[str, Part]) -> SharedUsers:
    """Return the users that all evaluations have, matched by label, or by row without labels.

    Raises `InvalidDataError` if there are fewer than two, or only some evaluations have labels. If
    shared users have different relevant items.
    """
    names, values = list(parts), [part.per_user for part in parts.values()]
    unlabelled = [name for name, one in zip(names, values, strict=True) if one.labels is None]
    if unlabelled and any(not are_row_numbers(one.labels) for one in values):
        raise InvalidDataError(
            f"{unlabelled[0]} has no labels for its users, but others have. Label all of them, "
            "with Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items)"
        )
    labels = [one.evaluated_users for one in values]
    common = labels[0]
    for users in labels[1:]:
        if not users.equals(labels[0]):
            common = common[common.isin(users)]
    if len(common) < 2:
        raise InvalidDataError(f"users to compare: {len(common)}; a comparison needs two or more")
    rows: list[Integers] = []
    for name, one, users in zip(names, values, labels, strict=True):
        order = np.arange(len(users)) if users.equals(common) else users.locate(common)
        rows.append(np.flatnonzero(one.counted)[order])
        same = values[0].fingerprints[rows[0]] == one.fingerprints[rows[-1]]
        different = np.flatnonzero(~same)
        if len(different):
            raise InvalidDataError(
                f"{names[0]} and {name} were evaluated on different validation data: "
                f"{len(different)} of {len(common)} users have different relevant items or "
                f"candidates (such as {_names(common[different].tolist())}); evaluate both on the "
                "same data"
            )
    left_out = [len(users) - len(common) for users in labels]
    return SharedUsers(rows, dict(zip(names, left_out, strict=True)), common)


def are_row_numbers(users: Axis | None) -> bool:
    """Return whether users are known by the numbers from 0 on, in any order."""
    if users is None:
        return True
    return users.dtype.kind in "iu" and np.array_equal(np.sort(users), np.arange(len(users)))


def _names(users: list[Any]) -> str:
    return ", ".join(map(repr, users[:3]))
