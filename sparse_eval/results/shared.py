"""Metrics and users that evaluations share, and those left out of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.arrays import describe
from ..core.formatting import escaped
from ..errors import InvalidDataError
from ..metrics import parse_metrics
from .scores import Scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..core.types import Integers
    from ..inputs.axes import Axis
    from ..metrics import Metric


def named_evaluations(evaluations: Any, least: int = 1) -> dict[str, Any]:
    """Return evaluations with their names as text.

    Raises
    ------
    InvalidDataError
        If they are too few, two have the same name, or one is something else.
    """
    if not isinstance(evaluations, Mapping) or len(evaluations) < least:
        several = "two or more evaluations" if least > 1 else "one or more evaluations"
        raise InvalidDataError(
            f'give {several} by name: {{"als": ev, "bpr": other}}. A CrossValidation compares its '
            "own models: cv.compare()"
        )
    named = {escaped(name): ev for name, ev in evaluations.items()}
    if len(named) < len(evaluations):
        raise InvalidDataError(f"two evaluations have the same name: {', '.join(named)}")
    for name, ev in named.items():
        if not isinstance(ev, Scores):
            raise InvalidDataError(f"{name} is {describe(ev)}; expected what evaluate returns")
    return named


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
    evaluations: Mapping[str, Any], metrics: str | Iterable[str] | None
) -> tuple[list[str], list[str]]:
    """Return the metrics to compare, and a note about those that not all evaluations have.

    Raises
    ------
    InvalidDataError
        If there is none, or an evaluation lacks one that was named.
    """
    every = dict.fromkeys(metric for ev in evaluations.values() for metric in ev.names)
    lacking = {
        metric: [name for name, ev in evaluations.items() if metric not in ev.names]
        for metric in every
    }
    if metrics is None:
        chosen = [metric for metric in every if not lacking[metric]]
        parts = [
            f"{metric} (not in {', '.join(names)})" for metric, names in lacking.items() if names
        ]
    else:
        chosen = list(dict.fromkeys(map(str, _spelt_as_evaluated(evaluations, metrics))))
        parts = []
    missing = [metric for metric in chosen if lacking.get(metric, True)]
    if missing or not chosen:
        theirs = "; ".join(f"{name}: {', '.join(ev.names)}" for name, ev in evaluations.items())
        raise InvalidDataError(
            f"not all evaluations have {', '.join(missing) or 'a metric'} ({theirs}); evaluate the "
            "same metrics for all, or choose shared metrics"
        )
    return chosen, [f"metrics left out: {', '.join(parts)}"] if parts else []


def _spelt_as_evaluated(
    evaluations: Mapping[str, Any], metrics: str | Iterable[str]
) -> Iterator[str | Metric]:
    """Yield the names as the evaluations print them, where they have them."""
    evaluated = {name for ev in evaluations.values() for name in ev.names}
    defaults = next(iter(evaluations.values())).request.convention.options
    try:
        given: list[Any] = [metrics] if isinstance(metrics, str) else list(metrics)
    except TypeError:  # raised by parse_metrics
        given = [metrics]
    for metric in given:
        if isinstance(metric, str) and metric in evaluated:  # it may not be registered here
            yield metric
        else:
            yield from parse_metrics(metric, defaults)


def check_alike(evaluations: Mapping[str, Any], metrics: Iterable[str]) -> None:
    """Raise if evaluations follow different conventions, or weight hits of a metric differently."""
    (first_name, first), *others = evaluations.items()
    traits = [first.request.traits[first.names.index(metric)] for metric in metrics]
    needs = sorted({one.weighted_by for one in traits if one.weighted_by is not None})
    ours = _options(first, needs)
    for name, ev in others:
        for option, b in _options(ev, needs).items():
            a = ours[option]
            if a != b:
                raise InvalidDataError(
                    f"{first_name} was evaluated with {option}={a!r}, {name} with {option}={b!r}. "
                    "Evaluate both with the same value"
                )


def _options(ev: Any, needs: list[str]) -> dict[str, Any]:
    """Return the options that must be equal in compared evaluations."""
    return {
        "convention": ev.request.convention.name,
        "no_relevant": ev.request.no_relevant,
        "without_list": ev.request.without_list,
        "filter_seen": ev.request.seen == "exclude",
        "candidates": ev._candidates and ev._candidates.kind,
        **{f"propensities of {name}": ev._propensities.get(name) for name in needs},
    }


def shared_users(evaluations: Mapping[str, Any]) -> SharedUsers:
    """Return the users that all evaluations have, matched by label, or by row without labels.

    Raises
    ------
    InvalidDataError
        If there are fewer than two, or only some evaluations have labels. If shared users have
        different relevant items.
    """
    names, scored = list(evaluations), list(evaluations.values())
    unlabelled = [name for name, ev in evaluations.items() if ev._values.labels is None]
    if unlabelled and any(not are_row_numbers(ev._values.labels) for ev in scored):
        raise InvalidDataError(
            f"{unlabelled[0]} has no labels for its users, but others have. Label all of them, "
            "with Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items)"
        )
    labels = [ev._evaluated_users for ev in scored]
    common = labels[0]
    for users in labels[1:]:
        if not users.equals(labels[0]):
            common = common[common.isin(users)]
    if len(common) < 2:
        raise InvalidDataError(f"users to compare: {len(common)}; a comparison needs two or more")
    rows: list[Integers] = []
    for name, ev, users in zip(names, scored, labels, strict=True):
        order = np.arange(len(users)) if users.equals(common) else users.locate(common)
        rows.append(np.flatnonzero(ev._values.counted)[order])
        same = scored[0]._values.fingerprints[rows[0]] == ev._values.fingerprints[rows[-1]]
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
