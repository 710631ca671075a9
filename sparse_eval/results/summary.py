"""The table of an evaluation: in full as a data frame, and as it is printed."""

from __future__ import annotations

import html
import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.formatting import latex, number, numbers, text_table
from ..metrics.random_baseline import UNKNOWN, RandomSums
from .intervals import FEWEST_EFFECTIVE, LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..metrics.random_baseline import Expectation, RandomTotals
    from ..metrics.request import Traits
    from .partial_results import Part

#: The columns of the table of numbers, before and after the columns of the baselines.
_BEFORE = ("mean", "std", "ci_low", "ci_high", "interval", "random", "random_se", "lift")
_BEHIND = ("n_users", "n_skipped", "candidates")
COLUMNS = frozenset(_BEFORE + _BEHIND)


def summarize(
    part: Part, random: RandomTotals | None, baselines: Mapping[str, Part], level: float
) -> pd.DataFrame:
    """Return the table that `Evaluation.summary` describes, given the parts of the baselines."""
    import pandas as pd

    rows = []
    for row, name in enumerate(part.request.names):
        mean, n_users = part.value(row), part.count(row)
        interval = part.interval(row, level)
        expected = expectation(part, random, row) or UNKNOWN
        lift = _lift(mean, expected.mean, part.request.traits[row])
        beside = [of.value(of.row_of(name)) for of in baselines.values()]
        counts = (n_users, part.n_users - n_users)
        among = () if part.candidates is None else (part.candidates.kind,)
        rows.append((mean, part.std(row), *interval, *expected, lift, *beside, *counts, *among))
    behind = _BEHIND if part.candidates is not None else _BEHIND[:-1]
    return pd.DataFrame(
        rows,
        index=pd.Index(part.request.names, name="metric"),
        columns=[*_BEFORE, *baselines, *behind],
    )


def expectation(part: Part, totals: RandomTotals | None, row: int) -> Expectation | None:
    """Return the random baseline of the metric at a position, None if it is not known."""
    total = None if totals is None else totals[row]
    if isinstance(total, RandomSums):
        return total.expectation(part.request.plan_of(row))
    return total


def _lift(mean: float, random: float, traits: Traits) -> float:
    """Return the ratio of a mean to random lists; NaN if that has no meaning."""
    if traits.lower < 0 or random == 0:
        return math.nan
    if traits.higher_is_better:
        return mean / random
    return random / mean if mean else math.nan


def show(part: Part, random: RandomTotals | None, baselines: Mapping[str, Part], style: str) -> str:
    """Return the printed table, and a line below it about the evaluated users.

    `style` is "simple" for plain text, "pipe" for Markdown, "html" or "latex_raw".
    """
    columns = [column for column in _columns(part, random, baselines) if any(column[2])]
    escape = latex if style == "latex_raw" else str
    headings = [escape(heading) for heading, _, _ in columns]
    cells = [map(escape, column) for _, _, column in columns]
    aligned = [alignment for _, alignment, _ in columns]
    table = text_table(list(zip(*cells, strict=True)), headings, aligned, style)
    lines = [_who(part)]
    if few := few_users(part):
        lines += textwrap.wrap(f"note: {few}", 80)
    if style == "html":
        return table + "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    if style == "latex_raw":
        return "\n".join((table, "", *map(latex, lines)))
    return "\n".join((table, "", *lines))


def few_users(part: Part) -> str | None:
    """Return a note about means that too few users make up, None if there are none."""
    names = [
        part.shown(name) for row, name in enumerate(part.request.names) if part.rests_on_few(row)
    ]
    if not names:
        return None
    return (
        f"too few users for the intervals of {', '.join(names)}: fewer than {FEWEST_EFFECTIVE} "
        "users make up most of the mean, so coverage is below the nominal level. Evaluate more "
        "users"
    )


def _columns(part: Part, random: RandomTotals | None, baselines: Mapping[str, Part]) -> list[Any]:
    """Return heading, alignment and cells of each column, those without any cell included."""
    names = part.request.names
    rows = range(len(names))
    intervals = [part.interval(row, LEVEL) for row in rows]
    rounded = [numbers(part.value(row), *intervals[row][:2])[0] for row in rows]
    expected = [expectation(part, random, row) for row in rows]
    counts = list(map(part.count, rows))
    differ = any(count != part.n_counted for count in counts)
    return [
        ("metric", "left", list(map(part.shown, names))),
        ("mean", "decimal", [text or "none" for text in rounded]),
        ("95 % interval", "left", [one.text() for one in intervals]),
        ("random", "decimal", [number(one.mean) if one else "" for one in expected]),
        *(
            (name, "decimal", [number(of.value(of.row_of(metric))) for metric in names])
            for name, of in baselines.items()
        ),
        ("users", "right", [f"{count:,}" if differ else "" for count in counts]),
    ]


def _who(part: Part) -> str:
    """Return the numbers of evaluated, left-out and cold users as text."""
    convention = part.request.convention.name
    n_users, n_skipped, n_cold = part.n_counted, part.n_users - part.n_counted, part.n_cold
    why = "nothing relevant" if convention == "standard" else f"as {convention} does"
    people = f"{n_users:,} user{'' if n_users == 1 else 's'}"
    texts = [f"means over {people}"]
    if part.requests is not None:
        of = "means of users over" if part.key["average"] == "user" else "means over"
        texts = [f"{of} {np.count_nonzero(part.requests.counted):,} requests of {people}"]
    texts.append(f"{n_skipped:,} left out" + (f" ({why})" if n_skipped else ""))
    if n_cold is not None:
        texts.append(f"{n_cold:,} cold" + (" (not in train)" if n_cold else ""))
    if part.request.seen == "allow":
        texts.append("seen items may be recommended again")
    return ", ".join(texts)
