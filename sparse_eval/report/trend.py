"""The nights of a history, on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.formatting import records
from ..errors import InvalidDataError, InvalidFileError
from ..jobs.history import History
from .wording import metric_title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.types import PathLike


def describe_trend(
    history: History | PathLike, metrics: Sequence[str], correction: Any = "holm"
) -> dict[str, Any]:
    """Compare the nights of a history.

    As on the page, the p-values of the first metric are corrected separately from the others.

    Returns
    -------
    dict
        The content of the page. ``last``, the difference between the last two nights by the main
        metric, is one test, so it does not lose power with every night. ``changes`` has every night
        by the main metric, the last one first, and those that have changed by another.

    Raises
    ------
    InvalidDataError
        If the history has none of the metrics.
    InvalidFileError
        If it has no nights, or cannot be read.
    """
    opened = history if isinstance(history, History) else History(history)
    nights = opened.nights
    if not nights:
        raise InvalidFileError(
            "has no nights; sparse-eval score --history, or History.append, adds one", opened.path
        )
    known = {metric for night in nights for metric in night.metrics}
    chosen = [metric for metric in metrics if metric in known]
    if not chosen:
        raise InvalidDataError(
            f"{opened.path} has none of {', '.join(metrics)}, but {', '.join(sorted(known))}; "
            "choose metrics that the history has"
        )
    main, *others = chosen
    of_others = opened.changes(others, correction=correction)
    rows = records(opened.changes(main, correction=correction))
    rows += records(of_others[of_others["change"] != ""])
    rows.sort(key=lambda row: str(row["time"]), reverse=True)
    by_main = opened.changes(main, correction="none")
    last = records(by_main[by_main["time"] == nights[-1].time])
    return {
        "n_nights": len(nights),
        "main": metric_title(nights[-1].shown(main)),
        "last": last[-1] if last else None,
        "changes": rows,
        "notes": opened.notes(),
    }
