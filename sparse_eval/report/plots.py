"""Charts of evaluations. Each draws into the Axes it is given, or a new one, and returns it.

Evaluations are given by name, ``{"als": ev, "bpr": load_evaluation("results/bpr")}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..errors import InvalidDataError, MissingExtraError
from ..results import Evaluation
from ..results.comparison import Comparison
from .contrasts import FEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.axes import Axes

    from ..results.saved import SavedEvaluation

    Evaluations = Mapping[str, Evaluation | SavedEvaluation]

__all__ = [
    "by_cutoff",
    "by_group",
    "concentration",
    "differences",
    "distribution",
    "learning_curve",
    "lift",
    "means",
    "precision_recall",
]

#: Colours that can be told apart on white and on black, and by most who are colour-blind; markers
#: and lines differ too.
COLOURS = ("#3a7ebf", "#d9661f", "#2a9d6f", "#b5589c", "#a8871c", "#7d8794", "#d0475a", "#3fa7b5")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")

#: Of a name, a legend and the rows of a chart show no more characters.
_LONGEST, _LONGEST_ROW = 40, 24

#: So many checkpoints are named below a learning curve, more are counted.
_FILES = 12

#: Points of a distribution, however many users there are.
_POINTS = 300


def means(evaluations: Evaluations, metric: str, ax: Axes | None = None) -> Axes:
    """Draw the mean of a metric and its 95 % interval, the evaluations side by side.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        By name; saved ones too.
    metric : str
        As it is named in the evaluations.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If there are no evaluations.
    InvalidMetricError
        If one of them has no such metric.
    MissingExtraError
        If matplotlib is not installed.
    """
    ax = _axes(ax)
    for place, (_, ev, style) in enumerate(_styled(evaluations)):
        row = _row(ev, metric)
        style = style | {"linestyle": "none"}
        ends = _ends(row["mean"], row)
        ax.errorbar([row["mean"]], [place], xerr=ends, capsize=3, **style | {"label": None})
    _name_above(ax, [shorten(str(name)) for name in evaluations])
    ax.set_xlabel(metric)
    return ax


def differences(comparison: Comparison, metric: str, ax: Axes | None = None) -> Axes:
    """Draw the differences of a metric between every two evaluations, with their intervals.

    Parameters
    ----------
    comparison : Comparison
    metric : str
        One that was compared.
    ax : matplotlib Axes, optional
        As of `means`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If it is no comparison, or the metric was not compared.
    MissingExtraError
        If matplotlib is not installed.
    """
    from matplotlib.ticker import MaxNLocator

    ax = _axes(ax)
    if not isinstance(comparison, Comparison):
        raise InvalidDataError("differences are of a Comparison, as se.compare returns it")
    rows = comparison.table[comparison.table["metric"] == metric]
    if rows.empty:
        raise InvalidDataError(f"{metric!r} was not compared")
    for place, row in enumerate(rows.to_dict("records")):
        shown = bool(row["better"])
        ax.errorbar(
            [row["difference"]],
            [place],
            xerr=_ends(row["difference"], row),
            fmt="o",
            capsize=3,
            color=COLOURS[0],
            markerfacecolor=COLOURS[0] if shown else "none",
        )
    ax.axvline(0, color=_ink(), linewidth=0.8)
    first = rows["a"].iloc[0]
    if len(rows) > 1 and (rows["a"] == first).all():
        names = [f"− {shorten(b)}" for b in rows["b"]]
        ax.set_xlabel(f"{metric}: {shorten(first, _LONGEST_ROW)} less the others")
    else:
        pairs = zip(rows["a"], rows["b"], strict=True)
        names = [f"{shorten(a, _LONGEST_ROW)} − {shorten(b, _LONGEST_ROW)}" for a, b in pairs]
        ax.set_xlabel(f"difference of {metric}")
    _name_above(ax, names)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    return ax


def by_cutoff(evaluations: Evaluations, name: str, ax: Axes | None = None) -> Axes:
    """Draw a metric against its cut-off, with 95 % bands.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        As of `means`.
    name : str
        A metric without its cut-off, such as "ndcg" or "ndcg(gain=exp)".
    ax : matplotlib Axes, optional
        As of `means`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If an evaluation has no such metric with a cut-off.
    MissingExtraError
        If matplotlib is not installed.
    """
    ax = _axes(ax)
    ticks: set[int] = set()
    for title, ev, style in _styled(evaluations):
        cutoffs = cutoffs_of(ev.names, name)
        if not cutoffs:
            raise InvalidDataError(
                f"{title} has no {name!r} with a cut-off; name the metric alone, one of "
                f"{', '.join(dict.fromkeys(n.partition('@')[0] for n in ev.names if '@' in n))}"
            )
        rows = ev.summary().loc[[f"{name}@{k}" for k in cutoffs]]
        ax.plot(cutoffs, rows["mean"], **style)
        ax.fill_between(
            cutoffs, rows["ci_low"].astype(float), rows["ci_high"].astype(float),
            color=style["color"], alpha=0.25, linewidth=0,
        )  # fmt: skip
        ticks.update(cutoffs)
    ax.set_xticks(sorted(ticks))
    ax.set_xlabel("k")
    ax.set_ylabel(f"{name}@k")
    _legend(ax, evaluations)
    return ax


def distribution(evaluations: Evaluations, metric: str, ax: Axes | None = None) -> Axes:
    """Draw which share of the users reaches each value of a metric.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        As of `means`.
    metric : str
        One with a value for each user.
    ax : matplotlib Axes, optional
        As of `means`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidMetricError
        If an evaluation has no such metric, or no values of it for single users.
    MissingExtraError
        If matplotlib is not installed.
    """
    ax = _axes(ax)
    for _, ev, style in _styled(evaluations):
        values = np.sort(ev.values(metric))
        values = values[~np.isnan(values)]
        # A step at every value of 50,000 users would be megabytes; the shape is in a few hundred.
        places = np.unique(np.linspace(0, max(len(values) - 1, 0), _POINTS).astype(int))
        places = places[: len(values)]
        reached = [1 - np.searchsorted(values, value) / len(values) for value in values[places]]
        ax.step(values[places], reached, where="pre", **style | {"marker": None})
    ax.set_ylim(0, 1.02)
    ax.set_xlabel(metric)
    ax.set_ylabel("share of users with at least that")
    _legend(ax, evaluations)
    return ax


def precision_recall(evaluations: Evaluations, ax: Axes | None = None) -> Axes:
    """Draw mean precision against mean recall, at the ranks down to the end of the lists.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        As of `means`.
    ax : matplotlib Axes, optional
        As of `means`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If an evaluation is of lists with uncertain positions.
    MissingExtraError
        If matplotlib is not installed.
    """
    ax = _axes(ax)
    for title, ev, style in _styled(evaluations):
        curve = ev.content["precision_recall"]
        if curve is None:
            raise InvalidDataError(f"the lists of {title} have no certain positions")
        ax.plot(curve["recall"], curve["precision"], markevery=0.2, **style)
    ax.set_xlabel("recall")
    ax.set_ylabel("precision")
    ax.set_ylim(bottom=0)
    _legend(ax, evaluations)
    return ax


def by_group(
    evaluations: Evaluations,
    groups: Literal["activity", "popularity"],
    metric: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw a metric by user activity or by item popularity, with 95 % intervals.

    Groups of fewer than 10 users have none.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        As of `means`, evaluated with `train`.
    groups : {"activity", "popularity"}
        See `Evaluation.by`.
    metric : str
        For "popularity" one that can be divided by items, such as recall.
    ax : matplotlib Axes, optional
        As of `means`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If an evaluation was not broken down that way.
    MissingExtraError
        If matplotlib is not installed.
    """
    if groups not in ("activity", "popularity"):
        raise InvalidDataError(f"groups is {groups!r}; expected 'activity' or 'popularity'")
    ax = _axes(ax)
    tables = {title: groups_of(ev, groups, metric) for title, ev, _ in _styled(evaluations)}
    for title, ev, _ in _styled(evaluations):
        if not tables[title]:
            there = dict.fromkeys(row["metric"] for row in ev.content["by"].get(groups, []))
            told = f"but {', '.join(there)}" if there else "as it was evaluated without train="
            raise InvalidDataError(f"{title} has no {metric} by {groups}, {told}")
    names = list(dict.fromkeys(row["group"] for rows in tables.values() for row in rows))
    shift = np.linspace(-0.2, 0.2, len(tables)) if len(tables) > 1 else np.zeros(1)
    for (title, _, style), offset in zip(_styled(evaluations), shift, strict=True):
        rows = tables[title]
        places = np.array([names.index(row["group"]) for row in rows]) + offset
        half = [row["ci_high"] - row["mean"] for row in rows]
        ax.errorbar(
            places, [row["mean"] for row in rows], yerr=half, capsize=3,
            **style | {"linestyle": "none"},
        )  # fmt: skip
    ax.set_xticks(range(len(names)), [shorten(name).replace(" ", "\n", 1) for name in names])
    ax.set_ylabel(metric)
    of_what = "training items of the user" if groups == "activity" else "training users of the item"
    ax.set_xlabel(of_what)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    _legend(ax, evaluations)
    return ax


def concentration(evaluations: Evaluations, ax: Axes | None = None) -> Axes:
    """Draw the Lorenz curve: which share of the recommendations the most recommended items get.

    On a log scale, from the items that are recommended most, since of large catalogues a few
    hundredths get nearly all recommendations.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        As of `means`, of whole lists.
    ax : matplotlib Axes, optional
        As of `means`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If an evaluation is of ranks only, so that it is not known what was recommended.
    MissingExtraError
        If matplotlib is not installed.
    """
    ax = _axes(ax)
    for title, ev, style in _styled(evaluations):
        curve = ev.content["concentration"]
        if curve is None:
            raise InvalidDataError(
                f'{title} was evaluated by ranks only; evaluate it with via="top_k"'
            )
        items, places = (1 - np.array(curve[key])[::-1] for key in ("items", "recommendations"))
        ax.plot(items[1:], places[1:], **style | {"marker": None})
    equal = np.geomspace(1e-4, 1, 50)
    ax.plot(equal, equal, color=_ink(), linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("share of the items, most recommended first")
    ax.set_ylabel("share of recommendations")
    _legend(ax, evaluations)
    return ax


def lift(
    evaluations: Evaluations, metrics: list[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how many times better than random lists each metric is, on a log scale.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        As of `means`.
    metrics : list of str, optional
        By default all that have a lift above 0 in each evaluation.
    ax : matplotlib Axes, optional
        As of `means`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If there is no metric to draw.
    MissingExtraError
        If matplotlib is not installed.
    """
    ax = _axes(ax)
    tables = {title: ev.summary()["lift"] for title, ev, _ in _styled(evaluations)}
    names = metrics_with_lift(tables) if metrics is None else metrics
    if not names:
        raise InvalidDataError("no metric has a lift above 0 in each evaluation")
    for title, _, style in _styled(evaluations):
        lifts = tables[title].loc[names].astype(float)
        ax.plot(lifts, range(len(names)), **style | {"linestyle": "none"})
    ax.set_xscale("log")
    ax.axvline(1, color=_ink(), linewidth=0.8)
    _name_rows(ax, names)
    ax.set_xlabel("times the value of random lists")
    _legend(ax, evaluations)
    return ax


def learning_curve(table: pd.DataFrame, metrics: str | list[str], ax: Axes | None = None) -> Axes:
    """Draw metrics over the iterations of a training, or the checkpoints of a sweep.

    Parameters
    ----------
    table : pandas.DataFrame
        ``EvaluationCallback.history``, or what `sweep` returned, in its order.
    metrics : str or list of str
        Columns of it.
    ax : matplotlib Axes, optional
        As of `means`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidDataError
        If the table has no such column.
    MissingExtraError
        If matplotlib is not installed.
    """
    from matplotlib.ticker import MaxNLocator

    ax = _axes(ax)
    asked = [metrics] if isinstance(metrics, str) else list(metrics)
    lacking = [name for name in asked if name not in table.columns]
    if lacking:
        raise InvalidDataError(f"the table has no {', '.join(lacking)}, but {list(table.columns)}")
    files = "file" in table.columns
    places = np.arange(1, len(table) + 1) if files else table.index.to_numpy()
    for name, style in zip(asked, _styles(), strict=False):
        ax.plot(places, table[name].astype(float), label=name, **style)
    ax.set_xlabel("checkpoint, in the order of the table" if files else "iteration")
    if files and len(table) <= _FILES:
        names = [_plain_text(shorten(Path(str(file)).stem, 16)) for file in table["file"]]
        ax.set_xticks(places, names, rotation=45, ha="right")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(asked) > 1:
        ax.legend()
    else:
        ax.set_ylabel(asked[0])
    return ax


def cutoffs_of(names: list[str], name: str) -> list[int]:
    """Return the cut-offs that a metric was asked for with, ascending."""
    return sorted(int(k) for head, _, k in (n.partition("@") for n in names) if head == name and k)


def groups_of(ev: SavedEvaluation, groups: str, metric: str) -> list[dict[str, Any]]:
    """Return a metric by activity or popularity, with Student's 95 % interval of each mean."""
    from scipy import stats

    rows = []
    for row in ev.content["by"].get(groups, []):
        if row["metric"] != metric or row["mean"] is None:
            continue
        half = math.nan
        if row["std"] is not None and row["n_users"] >= FEWEST:
            error = row["std"] / math.sqrt(row["n_users"])
            half = float(stats.t.ppf(0.975, row["n_users"] - 1)) * error
        rows.append(row | {"ci_low": row["mean"] - half, "ci_high": row["mean"] + half})
    return rows


def metrics_with_lift(lifts: Mapping[str, pd.Series[Any]]) -> list[str]:
    """Return the metrics of the first evaluation that have a lift above 0 in all of them."""
    first = next(iter(lifts.values()))
    return [
        str(name)
        for name in first.index
        if all(name in lift.index and lift[name] > 0 for lift in lifts.values())
    ]


def shorten(name: str, longest: int = _LONGEST) -> str:
    """Return a name as a chart can show it: in one line, and without its middle if it is long.

    Names of models mostly differ at their end.
    """
    line = " ".join(str(name).split()) or "(no name)"
    line = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )
    if len(line) <= longest:
        return line
    head = longest // 3
    return f"{line[:head]}…{line[len(line) - (longest - head - 1) :]}"


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt  # chooses where figures are shown, so only when needed
    except ImportError:
        raise MissingExtraError(
            'charts need matplotlib: pip install "sparse_eval[report]"'
        ) from None
    return plt.subplots(layout="constrained")[1]


def _styles() -> Iterator[dict[str, Any]]:
    for number in count():
        shift = number + number // len(COLOURS)  # so that the ninth is not like the first
        yield {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[shift % len(MARKERS)],
            "linestyle": LINES[shift % len(LINES)],
            "markersize": 4,
        }


def _styled(evaluations: Evaluations) -> Iterator[tuple[str, SavedEvaluation, dict[str, Any]]]:
    """Go through the evaluations, each with the style that is its own in every chart."""
    if not isinstance(evaluations, Mapping) or not evaluations:
        raise InvalidDataError('give evaluations by name: {"als": ev}')
    for (name, ev), style in zip(evaluations.items(), _styles(), strict=False):
        taken = ev.snapshot() if isinstance(ev, Evaluation) else ev
        yield str(name), taken, style | {"label": _plain_text(shorten(str(name)))}


def _plain_text(text: str) -> str:
    """Keep matplotlib from reading dollars as mathematics, and from hiding names with a "_"."""
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def _ends(value: float, row: Mapping[Any, Any]) -> list[list[float]]:
    """Return how far an interval reaches to both sides; a value may be beside it by rounding."""
    return [[max(value - row["ci_low"], 0.0)], [max(row["ci_high"] - value, 0.0)]]


def _row(ev: SavedEvaluation, metric: str) -> dict[str, Any]:
    ev.is_per_user(metric)  # or it raises what there is instead
    return dict(ev.summary().loc[metric])


def _name_rows(ax: Axes, names: list[str]) -> None:
    ax.set_yticks(range(len(names)), [_plain_text(shorten(name, _LONGEST_ROW)) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)


def _name_above(ax: Axes, names: list[str]) -> None:
    """Write the name of each row into the chart, above it: beside it, long ones have no room."""
    ax.set_yticks(range(len(names)), [])
    ax.set_ylim(len(names) - 0.5, -0.7)
    for place, name in enumerate(names):
        ax.text(
            0.01, place - 0.2, _plain_text(name), transform=ax.get_yaxis_transform(), va="bottom"
        )


def _legend(ax: Axes, evaluations: Evaluations) -> None:
    """Name the evaluations above the chart, where they hide nothing of it."""
    if len(evaluations) > 1:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=legend_columns(list(map(str, evaluations))),
            borderaxespad=0.2,
        )


def legend_columns(names: list[str]) -> int:
    """Return how many names fit beside each other."""
    longest = max(len(shorten(name)) for name in names)
    # In points: of a chart, a character, and what stands between two names.
    return min(len(names), max(int(260 // (5.2 * longest + 48)), 1))


def _ink() -> str:
    import matplotlib as mpl

    return str(mpl.rcParams["axes.edgecolor"])
