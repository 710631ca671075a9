"""The trend over the nights of a history: charts, what has changed, and the last night in words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.formatting import records
from ..errors import InvalidDataError, InvalidFileError
from ..jobs.history import History
from .axes import COLOURS, axes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from matplotlib.axes import Axes

    from ..core.types import PathLike

#: Charts of so many metrics, the main one first.
_MAX_CHARTS = 4


class Trend(NamedTuple):
    """What a page shows of a history.

    Attributes
    ----------
    n_nights : int
    main : str
        The main metric.
    charts : list of tuple of str
        Titles of the charts, and the charts drawn as SVG.
    last : dict or None
        How the last night differs from the one before by the main metric: one test, so that it
        does not become duller with every night. None with one night.
    changes : list of dict
        How nights differ from the one before, the last one first: every night by the main metric,
        and those that have changed by another one.
    notes : list of str
        What is to be known about the comparisons.
    """

    n_nights: int
    main: str
    charts: list[tuple[str, str]]
    last: dict[str, Any] | None
    changes: list[dict[str, Any]]
    notes: list[str]


def describe_trend(
    history: History | PathLike, metrics: Sequence[str], correction: Any = "holm"
) -> Trend:
    """Draw the trend of the metrics that a history has, and compare its nights.

    As on the page, the p-values of the first metric are corrected apart from those of the others.

    Raises
    ------
    InvalidDataError
        If the history has none of the metrics.
    InvalidFileError
        If it has no nights, or cannot be read.
    """
    opened = history if isinstance(history, History) else History(history)
    if not opened.nights:
        raise InvalidFileError(
            "has no nights; sparse-eval score --history, or History.append, adds one", opened.path
        )
    known = {metric for night in opened.nights for metric in night.metrics}
    chosen = [metric for metric in metrics if metric in known]
    if not chosen:
        raise InvalidDataError(
            f"{opened.path} has none of {', '.join(metrics)}, but {', '.join(sorted(known))}; "
            "choose metrics that the history has"
        )
    from .style import draw_svg

    main, *others = chosen
    nights = opened.nights
    charts = []
    for number, metric in enumerate(chosen[:_MAX_CHARTS]):
        title = f"{nights[-1].shown(metric)} over the nights"
        drawn = draw_svg(partial(trend, opened, metric), f"trend{number}", title)
        charts.append((title, drawn))
    of_others = opened.changes(others, correction=correction)
    rows = records(opened.changes(main, correction=correction))
    rows += records(of_others[of_others["change"] != ""])
    rows.sort(key=lambda row: str(row["time"]), reverse=True)
    by_main = opened.changes(main, correction="none")
    last = records(by_main[by_main["time"] == nights[-1].time])
    return Trend(
        len(nights),
        nights[-1].shown(main),
        charts,
        last[-1] if last else None,
        rows,
        opened.notes(),
    )


def trend(history: History, metric: str, *, ax: Axes | None = None) -> Axes:
    """Draw a metric over the nights of a history, with its 95 % intervals.

    Nights that differ significantly from the one before, by `History.changes`, have another marker.

    Parameters
    ----------
    history : History
    metric : str
        Name of the metric in the evaluations, such as "ndcg@10".
    ax : matplotlib Axes, optional

    Raises
    ------
    InvalidDataError
        If no night has the metric.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> from matplotlib.figure import Figure
    >>> from scipy.sparse import csr_matrix
    >>> ev = se.evaluate(se.Rankings.from_topk([[0], [1]]), csr_matrix([[1, 0], [1, 0]]), "mrr@1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = se.History(Path(folder) / "nights.jsonl")
    ...     history.append(ev, "als", time="2026-11-22T03:00Z")
    ...     history.append(ev, "als", time="2026-11-23T03:00Z")
    ...     ax = se.plots.trend(history, "mrr@1", ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('night (UTC)', 'mrr@1')
    """
    table = history.changes(metric)
    ax = axes_of(ax)
    from matplotlib import dates

    nights = [night for night in history.nights if metric in night.metrics]
    times = _times(night.time for night in nights)
    means = np.array([night.metrics[metric].mean for night in nights])
    low, high = (
        np.array([getattr(night.metrics[metric], end) for night in nights])
        for end in ("ci_low", "ci_high")
    )
    bars = np.clip(np.nan_to_num([means - low, high - means]), 0, None)
    ax.errorbar(times, means, bars, color=COLOURS[0], marker="o", markersize=4, linewidth=1)
    changed = np.isin(times, _times(table[table["change"] != ""]["time"]))
    if changed.any():
        look: dict[str, Any] = {"color": COLOURS[1], "markersize": 7, "zorder": 3}
        ax.plot(times[changed], means[changed], "D", label="changed", **look)
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    locator = dates.AutoDateLocator(minticks=2, maxticks=6)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(
        dates.ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    )
    ax.set_xlabel("night (UTC)")
    higher = nights[-1].metrics[metric].higher_is_better
    ax.set_ylabel(nights[-1].shown(metric) + ("" if higher else " (lower is better)"))
    return ax


def _times(times: Iterable[datetime]) -> Any:
    return np.array([time.replace(tzinfo=None) for time in times], "datetime64[s]")
