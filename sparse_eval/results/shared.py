"""What evaluations share, and what of each is left out of a comparison: metrics and users."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidDataError
from ..metrics import parse_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..core.types import Integers
    from ..inputs.axes import Axis
    from ..metrics import Metric
    from .evaluated import Evaluated
    from .scores import Requested


class SharedUsers(NamedTuple):
    """The users that all evaluations have.

    Attributes
    ----------
    rows : list of ndarray of int64
        Their rows in each evaluation, in the same order.
    left_out : dict of str to int
        The number of evaluated users that others lack, by name of the evaluation.
    users : Axis
        Their labels, or row numbers where there are none.
    """

    rows: list[Integers]
    left_out: dict[str, int]
    users: Axis

    @property
    def n_users(self) -> int:
        """The number of users that all have."""
        return len(self.rows[0])

    @property
    def are_all(self) -> bool:
        """Whether no evaluated user is left out."""
        return not any(self.left_out.values())

    def notes(self) -> list[str]:
        """Return in words which users are left out; empty if none are."""
        if self.are_all:
            return []
        parts = [
            f"{count:,} of the {self.n_users + count:,} of {name}"
            for name, count in self.left_out.items()
            if count
        ]
        return [
            f"compared on the {self.n_users:,} users that all have; left out: {', '.join(parts)}"
        ]


def shared_metrics(
    evaluations: Mapping[str, Requested], metrics: str | Iterable[str] | None
) -> tuple[list[str], list[str]]:
    """Return the metrics to compare, and a note about those that not all evaluations have.

    Raises
    ------
    InvalidDataError
        If there is none, or an evaluation lacks one that was named.
    """
    lacking: dict[str, list[str]] = {}
    if metrics is None:
        every = list(dict.fromkeys(metric for ev in evaluations.values() for metric in ev.names))
        for metric in every:
            without = [name for name, ev in evaluations.items() if metric not in ev.names]
            if without:
                lacking[metric] = without
        chosen = [metric for metric in every if metric not in lacking]
    else:
        chosen = list(dict.fromkeys(map(str, _spelt_as_evaluated(evaluations, metrics))))
    if not chosen:
        theirs = "; ".join(f"{name}: {', '.join(ev.names)}" for name, ev in evaluations.items())
        raise InvalidDataError(
            f"there is no metric to compare ({theirs}); evaluate the same metrics, and leave "
            "metrics out to compare all"
        )
    for name, ev in evaluations.items():
        missing = [metric for metric in chosen if metric not in ev.names]
        if missing:
            raise InvalidDataError(
                f"{name} has no {', '.join(map(str, missing))}, but {', '.join(ev.names)}; "
                "evaluate the same metrics for all, or choose those to compare"
            )
    parts = [f"{metric} (not in {', '.join(names)})" for metric, names in lacking.items()]
    return chosen, [f"metrics left out: {', '.join(parts)}"] if parts else []


def _spelt_as_evaluated(
    evaluations: Mapping[str, Requested], metrics: str | Iterable[str]
) -> Iterator[str | Metric]:
    """Yield the names as the evaluations print them, where they have them."""
    evaluated = {name for ev in evaluations.values() for name in ev.names}
    defaults = next(iter(evaluations.values())).request.convention.options
    try:
        given: list[Any] = [metrics] if isinstance(metrics, str) else list(metrics)
    except TypeError:  # which parse_metrics refuses
        given = [metrics]
    for metric in given:
        if isinstance(metric, str) and metric in evaluated:  # it may not be registered here
            yield metric
        else:
            yield from parse_metrics(metric, defaults)


def check_conventions(evaluations: Mapping[str, Evaluated]) -> None:
    """Raise `InvalidDataError` if evaluations follow different conventions."""
    (first_name, first), *others = evaluations.items()
    for name, ev in others:
        for option, a, b in (
            ("convention", first.convention, ev.convention),
            ("no_relevant", first.no_relevant, ev.no_relevant),
            ("without_list", first.request.without_list, ev.request.without_list),
            ("filter_seen", first.request.seen == "exclude", ev.request.seen == "exclude"),
            ("candidates.corrected()", first.request.corrected, ev.request.corrected),
            ("candidates", *(one.candidates and one.candidates.kind for one in (first, ev))),
        ):
            if a != b:
                raise InvalidDataError(
                    f"{first_name} was evaluated with {option} {a!r}, {name} with {b!r}; evaluate "
                    "both alike"
                )


def check_propensities(evaluations: Mapping[str, Evaluated], metrics: Iterable[str]) -> None:
    """Raise `InvalidDataError` if a metric weights hits by other propensities."""
    (first_name, first), *others = evaluations.items()
    plans = [first.request.plans[first.names.index(metric)] for metric in metrics]
    for (name, ev), plan in product(others, plans):
        weights = plan.weights
        if weights is None:
            continue
        a, b = (one.propensities.get(weights.needs) for one in (first, ev))
        if a and b and a != b:  # older versions did not write them
            raise InvalidDataError(
                f"{plan.metric} weights hits by other propensities in {first_name} than in {name}, "
                f"as {weights.needs}= was another; evaluate both alike, or choose other metrics to "
                "compare"
            )


def shared_users(evaluations: Mapping[str, Evaluated], how: str) -> SharedUsers:
    """Return the users that all evaluations have, matched by label, or by row without labels.

    Raises
    ------
    InvalidDataError
        If there are fewer than two; if some evaluations have labels and others do not; if users
        that are shared have other relevant items; or if users differ with ``how="same"``.
    """
    names, scored = list(evaluations), list(evaluations.values())
    unlabelled = [name for name, ev in evaluations.items() if ev.users is None]
    if unlabelled and any(not are_row_numbers(ev.users) for ev in scored):
        raise InvalidDataError(
            f"{unlabelled[0]} has no labels for its users and others have; label all of them, as "
            "Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items) does"
        )
    labels = [ev.evaluated_users for ev in scored]
    common = labels[0]
    for name, users in zip(names[1:], labels[1:], strict=True):
        if users.equals(labels[0]):
            continue
        if how == "same":
            only = [*labels[0][~labels[0].isin(users)], *users[~users.isin(labels[0])]]
            if len(only):
                raise InvalidDataError(
                    f"{names[0]} and {name} are about different users: {len(only)} are in one of "
                    f"them only (such as {_names(only)}); evaluate the same users, or compare "
                    'those that both have with how="intersection"'
                )
        common = common[common.isin(users)]
    if len(common) < 2:
        raise InvalidDataError(f"users to compare: {len(common)}; a comparison needs two or more")
    rows = []
    for ev, users in zip(scored, labels, strict=True):
        order = np.arange(len(users)) if users.equals(common) else users.locate(common)
        rows.append(np.flatnonzero(ev.counted)[order])
    fingerprints = [ev.fingerprints[row] for ev, row in zip(scored, rows, strict=True)]
    for name, others in zip(names[1:], fingerprints[1:], strict=True):
        different = np.flatnonzero(fingerprints[0] != others)
        if len(different):
            raise InvalidDataError(
                f"{names[0]} and {name} were evaluated on different validation data: "
                f"{len(different)} of {len(common)} users have other relevant items or candidates "
                f"(such as {_names(common[different].tolist())}); evaluate both on the same"
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
