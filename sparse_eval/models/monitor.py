"""The one metric by which models are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidMetricError
from ..metrics import STANDARD, Convention, Metric, parse_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["goodness", "monitored"]


def monitored(
    monitor: str | Metric, metrics: Iterable[Metric], convention: Convention = STANDARD
) -> Metric:
    """Return what is monitored, or raise `InvalidMetricError` if it is not one of `metrics`."""
    found = parse_metrics(monitor, convention.options)
    if len(found) != 1 or found[0] not in metrics:
        raise InvalidMetricError(
            f"monitor is {str(monitor)!r}, which is not among the metrics; expected one of "
            f"{', '.join(map(str, metrics))} in monitor="
        )
    return found[0]


def goodness(metric: Metric, value: float) -> float:
    """Return a number that is larger for the better value."""
    return value if metric.definition.higher_is_better else -value
