"""Charts that show what a table does not.

Each function draws into the matplotlib Axes `ax`, by default into a new figure, and returns the
Axes. Evaluations are given by name, as in ``{"als": als, "bpr": bpr}``; they may have been loaded
from a folder. All functions raise `InvalidDataError` if evaluations are not given so, and
`MissingExtraError` if matplotlib is not installed. The style of the page is a style of matplotlib:
``matplotlib.pyplot.style.context("sparse_eval.report.chart")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import describe
from ..core.messages import no_attribute
from ..errors import InvalidDataError, MissingExtraError
from ..results.distribution import paired
from ..results.evaluation import named_evaluations
from .wording import metric_title, short_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from ..core.types import PathLike
    from ..results import Evaluation

    Evaluations = Mapping[str, Evaluation]

__all__ = ["by_cutoff", "distribution", "losers", "nights"]

#: The calls that replace former names.
_INSTEAD = {
    "by_group": "se.compare(evs, by=segments).table, or ev.by(segments)",
    "concentration": "the metrics coverage@10 and gini@10",
    "differences": "se.compare(evs).table",
    "learning_curve": "callback.history['ndcg@10'].plot()",
    "lift": "ev.summary()['lift']",
    "means": "ev.summary()[['mean', 'ci_low', 'ci_high']]",
    "precision_recall": "ev.precision_recall().to_frame()",
    "save": "ax.figure.savefig('chart.pdf')",
    "style": "matplotlib.pyplot.style.context('sparse_eval.report.chart')",
    "trend": "se.plots.nights(folder, 'ndcg@10')",
}

#: A step at every value of 50,000 users would take megabytes; so many points show the shape.
_POINTS = 300

#: A legend has two columns if no name has more characters.
_SIDE_BY_SIDE = 16


def __getattr__(name: str) -> object:
    raise no_attribute(f"module {__name__!r}", name, _INSTEAD)


def by_cutoff(evaluations: Evaluations, name: str, *, ax: Axes | None = None) -> Axes:
    """Draw a metric against its cut-off, with 95 % bands.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Evaluations by name.
    name : str
        A metric without its cut-off, such as "ndcg" or "ndcg(gain=exp)".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If an evaluation has no such metric with a cut-off.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from matplotlib.figure import Figure
    >>> from scipy.sparse import csr_matrix
    >>> ev = se.evaluate(se.Rankings.from_topk([[0, 1], [1, 0]]), csr_matrix([[1, 0], [1, 0]]),
    ...                  "mrr@{1,2}")
    >>> ax = se.plots.by_cutoff({"als": ev}, "mrr", ax=Figure().subplots())
    >>> ax.get_ylabel()
    'MRR@k'
    """
    named, ax = named_evaluations(evaluations), _axes_of(ax)
    ticks: set[int] = set()
    lines = []
    for title, ev in named.items():
        cutoffs = cutoffs_of(ev.keys(), name)
        if not cutoffs:
            raise InvalidDataError(
                f"{title} has no {name!r} with a cut-off; pass the metric without one: "
                f"{', '.join(dict.fromkeys(n.partition('@')[0] for n in ev if '@' in n))}"
            )
        rows = ev._summarize().loc[[f"{name}@{k}" for k in cutoffs]]
        lines += ax.plot(cutoffs, rows["mean"])
        low, high = rows["ci_low"].astype(float), rows["ci_high"].astype(float)
        ax.fill_between(cutoffs, low, high, color=lines[-1].get_color(), alpha=0.25, linewidth=0)
        ticks.update(cutoffs)
    ax.set_xticks(sorted(ticks))
    ax.set_xlabel("k")
    ax.set_ylabel(metric_title(f"{name}@k"))
    _add_legend(ax, lines, named)
    return ax


def distribution(evaluations: Evaluations, metric: str, *, ax: Axes | None = None) -> Axes:
    """Draw the share of users who reach each value of a metric.

    Parameters
    ----------
    evaluations, ax
        As in `by_cutoff`.
    metric : str
        A metric with a value for each user.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidMetricError
        If an evaluation does not have the metric, or has no values of it for each user.

    See Also
    --------
    Evaluation.distribution : Quantiles, and the mean of the worst users.
    """
    named, ax = named_evaluations(evaluations), _axes_of(ax)
    lines = []
    for ev in named.values():
        values = np.sort(ev.values(metric))
        values = values[~np.isnan(values)]
        points = np.linspace(0, max(len(values) - 1, 0), _POINTS).astype(int)
        points = np.unique(points)[: len(values)]
        shares = [1 - np.searchsorted(values, value) / len(values) for value in values[points]]
        lines += ax.step(values[points], shares, where="pre", marker="")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel(_with_direction(next(iter(named.values())), metric))
    ax.set_ylabel("share of users with at least this value")
    _add_legend(ax, lines, named)
    return ax


def losers(
    evaluations: Evaluations, metric: str, margin: float = 0.0, *, ax: Axes | None = None
) -> Axes:
    """Draw each user's gain by a new model, from the largest loss on, with the losers shaded.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two by name: the new model, and the model to compare it with.
    metric : str
        A metric with a value for each user.
    margin : float
        The losers are users who lose more than this, as in `Evaluation.losers`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If there are not two evaluations, or as from `Evaluation.losers`.
    InvalidMetricError
        As from `Evaluation.losers`.

    See Also
    --------
    Evaluation.losers : The number of losers, with the interval of their share.
    """
    named, ax = named_evaluations(evaluations), _axes_of(ax)
    names = short_names(named)
    if len(names) != 2:
        raise InvalidDataError(f"losers of {len(names)} evaluations; give a new and an old one")
    new, old = named.values()
    gains = np.sort(paired(new._part, old._part, metric)[0])
    if not len(gains):
        raise InvalidDataError(f"no user has a value of {metric} in both evaluations")
    counts = new.losers(old, metric, margin).iloc[0]
    if not new._part.traits_of(metric).higher_is_better:
        gains, names = -gains[::-1], names[::-1]
    n, n_losers = len(gains), int(counts["losers"])
    points = np.linspace(0, n - 1, _POINTS).astype(int)
    points = np.unique([*points, max(n_losers - 1, 0), min(n_losers, n - 1)])
    shares = 100 * (points + 0.5) / n
    ax.plot(shares, gains[points], marker="")
    low, share, high = (f"{100 * counts[name]:.1f}" for name in ("ci_low", "share", "ci_high"))
    more = f" more than {margin:g}" if margin else ""
    shaded = ax.fill_between(
        shares, gains[points], where=points < n_losers, color="C1", alpha=0.5, linewidth=0
    )
    ax.axhline(0, color="C5", linewidth=0.8)
    ax.set_xlim(0, 100)
    ax.set_xlabel("users, from the largest loss on (%)")
    ax.set_ylabel(f"{metric_title(metric)}: {names[0]}\n− {names[1]}")
    ax.legend([shaded], [f"{share} % of users lose{more} ({low} to {high} %)"])
    return ax


def nights(path: PathLike, metric: str, *, ax: Axes | None = None) -> Axes:
    """Draw a metric of the candidates and champions of nights, with 95 % intervals.

    Parameters
    ----------
    path : str or Path
        A folder that ``sparse-eval night`` wrote, or the ledger in it.
    metric : str
        A metric that was evaluated in the nights.
    ax : matplotlib Axes, optional
        As in `by_cutoff`.

    Returns
    -------
    matplotlib Axes
        Nights that failed have a cross, undecided ones an open circle.

    Raises
    ------
    InvalidDataError
        If no night has the metric.
    InvalidFileError
        If there are no nights, or the file cannot be read.
    """
    from ..jobs.nights import nights_with, read_nights

    ax = _axes_of(ax)
    rows = nights_with(metric, read_nights(path))
    if not rows:
        raise InvalidDataError(f"no night of {path} has {metric}; choose a metric of the rules")
    for shift, role in enumerate(("candidate", "champion")):
        each = [row["metrics"][role][metric] for row in rows]
        low, mean, high = (
            np.array([one[name] for one in each], float) for name in ("ci_low", "mean", "ci_high")
        )
        places = np.arange(len(rows)) + 0.15 * shift
        ax.errorbar(places, mean, [mean - low, high - mean], fmt=".", label=role, color=f"C{shift}")
        if role == "candidate":
            for verdict, marker in (("failed", "x"), ("undecided", "o")):
                chosen = [row["verdict"] == verdict for row in rows]
                if any(chosen):
                    ax.plot(
                        places[chosen], mean[chosen], marker, color="C1", markersize=9,
                        fillstyle="none", label=verdict,
                    )  # fmt: skip
    shown = np.unique(np.linspace(0, len(rows) - 1, 4).astype(int))
    ax.set_xticks(shown, [rows[one]["night"] for one in shown])
    ax.set_ylabel(metric_title(metric))
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return ax


def cutoffs_of(metrics: Sequence[str], name: str) -> list[int]:
    """Return the cut-offs that a metric was evaluated with, ascending."""
    parts = (metric.partition("@") for metric in metrics)
    return sorted(int(cutoff) for base, _, cutoff in parts if base == str(name) and cutoff)


def _axes_of(ax: Axes | None) -> Axes:
    """Return the Axes given, or the Axes of a new figure."""
    if ax is not None:
        if not hasattr(ax, "plot") or not hasattr(ax, "set_xlabel"):
            raise InvalidDataError(f"ax is {describe(ax)}; expected the Axes of a figure")
        return ax
    try:
        import matplotlib.pyplot as plt  # selects a backend, so only if a figure is needed
    except ImportError:
        raise MissingExtraError(
            'charts need matplotlib: pip install "sparse_eval[report]"'
        ) from None
    return plt.subplots(layout="constrained")[1]


def _with_direction(ev: Evaluation, metric: str) -> str:
    """Return the name of a metric for an axis, and that lower is better if so."""
    lower = "" if ev._part.traits_of(metric).higher_is_better else " (lower is better)"
    return metric_title(ev._part.shown(metric)) + lower


def _add_legend(ax: Axes, lines: Sequence[Any], names: Mapping[str, object]) -> None:
    """Name several evaluations above the chart, where a legend hides nothing."""
    short = short_names(names)
    if len(short) > 1:
        columns = 2 if max(map(len, short)) <= _SIDE_BY_SIDE else 1
        # The names are given here, because matplotlib hides a label that begins with "_".
        ax.legend(
            lines, short, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2
        )
