"""The nights of a history: what a line holds, and which of them differ from the one before."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.arguments import check_fraction
from ..errors import InvalidDataError
from ..results.candidates import name_among
from ..results.paired_tests import correct, significance
from ..results.variance import UNKNOWN, Error, add_variances

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

#: What has to be the same on two nights whose numbers are compared.
SETTINGS = ("convention", "no_relevant", "without_list", "seen", "corrected", "candidates")


class NightlyMetric(NamedTuple):
    """The mean of a metric on a night, NaN where it is not defined, and how sure it is.

    `freedom` are the degrees of freedom of the standard error.
    """

    mean: float
    standard_error: float
    freedom: int
    ci_low: float
    ci_high: float
    interval: str
    n_users: int
    higher_is_better: bool

    @property
    def error(self) -> Error:
        """The variance of the mean."""
        if math.isnan(self.standard_error) or self.freedom < 1:
            return UNKNOWN
        return Error(self.standard_error**2, self.freedom)


class Night(NamedTuple):
    """A line of a history.

    Attributes
    ----------
    time : datetime
        In UTC.
    name : str
        What was evaluated.
    metrics : dict of str to NightlyMetric
    n_users : int
        Evaluated users.
    users, relevance : str or None
        Digests of the users, and of their relevant items; None where they are not known.
    settings : dict of str to (str or None)
        Convention, candidates and what else has to be the same for numbers to compare.
    version : str
        Of sparse_eval.
    about : dict
    """

    time: datetime
    name: str
    metrics: dict[str, NightlyMetric]
    n_users: int
    users: str | None
    relevance: str | None
    settings: dict[str, str | None]
    version: str
    about: dict[str, Any]

    def shown(self, metric: str) -> str:
        """Return a metric's name as people read it: ``hit_rate@10 (1+99)`` among candidates."""
        return name_among(metric, self.settings["candidates"], self.settings["corrected"])

    def same_users(self, other: Night) -> bool | None:
        """Return whether another night is of the same users; None where that is not known."""
        if self.relevance is not None and self.relevance == other.relevance:
            return True
        if self.users is None or other.users is None:
            return None
        return self.users == other.users


def parse_night(content: Any) -> Night:
    """Return what a line holds, or raise `InvalidDataError` with what is wrong."""
    if not isinstance(content, dict) or not isinstance(content.get("schema"), int):
        raise InvalidDataError("it is something else")
    if content["schema"] != 1:
        raise InvalidDataError(f"it is of schema {content['schema']}, and 1 can be read here")
    try:
        metrics = {}
        for name, one in content["metrics"].items():
            written = map(one.__getitem__, NightlyMetric._fields)
            numbers: Any = (math.nan if number is None else number for number in written)
            metrics[name] = NightlyMetric(*numbers)
        return Night(
            datetime.fromisoformat(content["time"]).astimezone(UTC),
            content["name"],
            metrics,
            content["n_users"],
            content["users"],
            content["relevance"],
            {name: content[name] for name in SETTINGS},
            content["sparse_eval"],
            content["about"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidDataError(f"a value is missing or something else ({error})") from None


def changes(
    nights: Sequence[Night], metrics: Iterable[str] | None, correction: str, level: float
) -> pd.DataFrame:
    """Compare each night with the one before; see `History.changes`."""
    import pandas as pd

    level = check_fraction("level", level)
    wanted = None if metrics is None else set(metrics)
    rows: list[tuple[Any, ...]] = []
    for before, night in pairwise(nights):
        alike = before.settings == night.settings
        for metric in night.metrics:
            if metric not in before.metrics or (wanted is not None and metric not in wanted):
                continue
            a, b = before.metrics[metric], night.metrics[metric]
            difference = b.mean - a.mean if alike else math.nan
            error = add_variances([a.error, b.error])
            interval = error.interval(difference, level)
            p_value, same_users = error.p_value(difference), night.same_users(before)
            rows.append((
                night.shown(metric), night.time, night.name, before.time, before.name, b.mean,
                a.mean, difference, interval.low, interval.high, p_value, same_users,
                b.higher_is_better,
            ))  # fmt: skip
    columns = (
        "metric", "time", "name", "before", "name_before", "mean", "mean_before", "difference",
        "ci_low", "ci_high", "p", "same_users", "higher_is_better",
    )  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    p = correct(table["p"].to_numpy(np.float64), correction)
    table.insert(11, "p_corrected", p)
    better = (table["difference"] > 0).to_numpy() == table.pop("higher_is_better").to_numpy(bool)
    change = np.where(better, "better", "worse")
    table.insert(12, "change", np.where(p < significance(level), change, ""))
    table["same_users"] = table["same_users"].astype("boolean")
    return table


def notes(nights: Sequence[Night]) -> list[str]:
    """Return what is to be known about comparisons of nights."""
    pairs = list(pairwise(nights))
    said = []
    same = [night.same_users(before) for before, night in pairs]
    n_other, n_unknown = same.count(False), same.count(None)
    if n_other:
        said.append(f"nights of other users than the night before: {n_other:,} of {len(pairs):,}")
    if n_unknown:
        said.append(
            f"nights of users who may be others than the night before: {n_unknown:,} of "
            f"{len(pairs):,}; they have no labels, or their values were not kept"
        )
    if True in same:
        said.append(
            "nights of the same users are compared as if they were of others, since they cannot be "
            "paired by means alone, so that smaller changes are missed; compare their saved "
            "evaluations"
        )
    for before, night in pairs:
        for option in SETTINGS:
            a, b = before.settings[option], night.settings[option]
            if a != b:
                said.append(
                    f"{night.time:%Y-%m-%d %H:%M} is not compared with the night before, as "
                    f"{option} is {b or 'none'}, and was {a or 'none'}"
                )
    return said
