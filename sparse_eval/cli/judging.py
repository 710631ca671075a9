"""Options that end a command with another exit status if a result is not good enough.

A nightly job decides by the status whether to release a model. 0: good. 1: good, but some inputs
could not be scored or read; or none could. 2: bad input. 3: not good enough. A broken checkpoint
never hides a model that is not good enough: 3 takes precedence over 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ..core.formatting import number
from ..errors import InvalidMetricError
from ..metrics import convention_named, parse_metrics
from .echo import echo
from .options import option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..metrics import Metric
    from ..results.comparison import Comparison

#: The exit status of a command whose result is not good enough.
NOT_GOOD_ENOUGH = 3


@dataclass(frozen=True)
class Gate:
    """Whether a result is good enough.

    Parameters
    ----------
    fail_under
        End with exit status 3 if a metric is worse than a number, as ndcg@10=0.15: below it, or
        above it where less is better; repeatable.
    """

    fail_under: Annotated[list[str] | None, option(metavar="METRIC=NUMBER")] = None


@dataclass(frozen=True)
class GateOfSeveral(Gate):
    """Whether the best of several results is good enough.

    Parameters
    ----------
    max_failed
        Several models: how many may fail to be scored. The exit status is 1 if more of them, or
        all, fail.
    """

    max_failed: Annotated[int, option(min=0)] = 0


@dataclass(frozen=True)
class GateOfComparison:
    """Whether the last model is good enough.

    Parameters
    ----------
    fail_if_worse
        End with exit status 3 if the last model named is worse than another one, by the corrected
        test of any metric compared.
    tolerance
        With --fail-if-worse: a loss that does not matter, as ndcg@10=0.002; repeatable.
    """

    fail_if_worse: bool = False
    tolerance: Annotated[list[str] | None, option(metavar="METRIC=NUMBER")] = None


#: The metrics to judge, and the worst value that each may have.
Bounds: TypeAlias = "list[tuple[Metric, float]]"


def parse_bounds(
    words: Sequence[str] | None,
    metrics: Sequence[str | Metric],
    convention: str | None,
    option: str = "--fail-under",
) -> Bounds:
    """Parse ``METRIC=NUMBER``, or raise unless each is about one of the metrics to compute."""
    if not words:  # saved metrics may not be registered here
        return []
    defaults = convention_named(convention).options
    computed = parse_metrics(list(metrics), defaults)
    bounds = []
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            worst = float(text)
        except ValueError:
            worst = math.nan
        if not name or not math.isfinite(worst):
            raise InvalidMetricError(
                f"{option} is {word!r}; expected a metric and a number, as ndcg@10=0.15"
            )
        for metric in parse_metrics(name, defaults):
            if metric not in computed:
                raise InvalidMetricError(
                    f"{option} is about {metric}, which is not computed; ask for it: -m '{metric}'"
                )
            bounds.append((metric, worst))
    return bounds


def fail_if_under(bounds: Bounds, value_of: Callable[[str], float], what: str) -> None:
    """End the command if a value, which is asked for by the metric's name, is worse than a bound.

    `what` has the values: a checkpoint, or a file of lists.
    """
    faults = []
    for metric, worst in bounds:
        value, higher = value_of(str(metric)), metric.definition.higher_is_better
        if not (value >= worst if higher else value <= worst):
            found = "not defined" if math.isnan(value) else number(value)
            least = "least" if higher else "most"
            faults.append(f"{metric} is {found}, and has to be at {least} {worst:g}")
    if faults:
        echo(f"{what} is not good enough: {'; '.join(faults)}", err=True)
        raise typer.Exit(NOT_GOOD_ENOUGH)


def fail_if_worse(compared: Comparison, tolerances: Mapping[str, float]) -> None:
    """End the command if the last model is worse than another one, by more than is tolerated."""
    faults = losses(compared, tolerances)
    if faults:
        echo(f"{compared.names[-1]} is worse {'; '.join(faults)}", err=True)
        raise typer.Exit(NOT_GOOD_ENOUGH)


def losses(compared: Comparison, tolerances: Mapping[str, float] | None = None) -> list[str]:
    """Return what the last model is worse than, by the corrected test; empty for none.

    Differences of no more than the tolerance of a metric are left out.
    """
    last, tolerated = compared.names[-1], tolerances or {}
    return [
        f"than {row['better']} by {row['metric']}"
        + (f" in {row['by']} {row['segment']}" if compared.by else "")
        + f" ({number(abs(row['difference']))}, p = {row['p_corrected']:.2g})"
        for row in compared.table.to_dict("records")
        if last in (row["a"], row["b"])
        and row["better"] not in ("", last)
        and abs(row["difference"]) > tolerated.get(row["metric"], 0.0)
    ]
