"""`Scores`: the numbers of some users, as comparisons and charts read them; the printed table."""

from __future__ import annotations

import html
import math
import textwrap
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..core.formatting import number, numbers, text_table
from ..errors import InvalidMetricError
from ..inputs.candidates import name_among
from ..metrics import Metric, parse
from ..metrics.random_baseline import UNKNOWN, RandomSums
from .intervals import FEWEST_EFFECTIVE, LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from ..core.types import Floats
    from ..metrics.random_baseline import Expectation, RandomTotals
    from ..metrics.request import Request, Traits
    from .intervals import Interval
    from .parts import CandidateCounts

#: The columns of the table of numbers, before and after the columns of the baselines.
_BEFORE = ("mean", "std", "ci_low", "ci_high", "interval", "random", "random_se", "lift")
_BEHIND = ("n_users", "n_skipped", "candidates")
COLUMNS = frozenset(_BEFORE + _BEHIND)


class Scores(ABC):
    """Every metric of some users, for tables, charts and the page.

    Attributes
    ----------
    request : Request
        The metrics that were computed.
    n_users : int
        Number of users that count in the means.
    n_skipped : int
        Number of users left out: without a relevant item, or by the rules of the convention.
    """

    n_users: int = 0
    n_skipped: int = 0
    _candidates: CandidateCounts | None = None
    _n_cold: int | None = None  # evaluated users without training data, if it is known
    _has_values: bool = True  # whether the values of each user are kept

    def __init__(self, request: Request, candidates: CandidateCounts | None) -> None:
        self.request, self._candidates = request, candidates
        self._among = "" if candidates is None else name_among("", candidates.kind)

    @property
    def names(self) -> list[str]:
        """The canonical names of the metrics."""
        return list(self.request.names)

    def _shown(self, name: str) -> str:
        """Return a metric's display name, such as ``hit_rate@10 (1+99)`` among candidates."""
        return name + self._among

    def _is_per_user(self, name: str | Metric) -> bool:
        """Return whether a metric has a value for each user."""
        return self._traits(name).per_user

    def _higher_is_better(self, name: str | Metric) -> bool:
        """Return whether a larger value of a metric is the better one."""
        return self._traits(name).higher_is_better

    def _traits(self, name: str | Metric) -> Traits:
        return self.request.traits[self._row_of(name)]

    def _row_of(self, name: str | Metric) -> int:
        if not isinstance(name, str | Metric):
            raise InvalidMetricError(f"metric is {name!r}; expected one name, such as 'ndcg@10'")
        names, spelling = self.request.names, str(name).removesuffix(self._among)
        if spelling not in names:  # mostly it is spelt as it is printed
            parsed = parse(spelling, self.request.convention.options)
            spelling = str(parsed[0]) if len(parsed) == 1 else ""
        if spelling not in names:
            raise InvalidMetricError(
                f"{str(name)!r} was not evaluated; the metrics are {', '.join(names)}", metric=name
            )
        return names.index(spelling)

    @property
    @abstractmethod
    def _record(self) -> dict[str, Any]:
        """The details that the page shows with the numbers, see `sparse_eval.results.details`."""

    @property
    def baselines(self) -> Mapping[str, Scores]:
        """Evaluations of simple rankings of the same users, by name."""
        return {}

    @property
    def _random(self) -> RandomTotals | None:
        """The value of each metric under random rankings, None if it is not known."""
        return None

    @abstractmethod
    def values(self, name: str | Metric) -> Floats:
        """Return one metric of every user."""

    def __getitem__(self, name: str | Metric) -> float:
        """Return the mean of a metric over the evaluated users, or its one number."""
        return self._value(self._row_of(name))

    def keys(self) -> list[str]:
        """Return the names of the metrics, so that ``dict(ev)`` has the means."""
        return list(self.request.names)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the metrics, as for a mapping of names to means."""
        return iter(self.request.names)

    def __contains__(self, name: str | Metric) -> bool:
        """Return whether a metric was evaluated."""
        with suppress(InvalidMetricError):
            return self._row_of(name) >= 0
        return False

    def _summarize(self, level: float = LEVEL) -> pd.DataFrame:
        """Return the summary without a warning of few users, if nobody reads its intervals."""
        return summarize(self, self._random, level)

    # The numbers of a metric, which is given by its position.

    @abstractmethod
    def _value(self, row: int) -> float:
        """Return the mean, or the one number about all users."""

    @abstractmethod
    def _count(self, row: int) -> int:
        """Return the number of users in the mean."""

    @abstractmethod
    def _std(self, row: int) -> float:
        """Return the standard deviation of the users' values, with n − 1; NaN without any."""

    def _interval(self, row: int, mean: float, level: float) -> Interval:
        """Return the confidence interval, within the range of the metric."""
        return self._unlimited(row, mean, level).within(mean, self.request.range_of(row))

    @abstractmethod
    def _unlimited(self, row: int, mean: float, level: float) -> Interval:
        """Return the confidence interval, which may exceed the range of the metric."""

    def _rests_on_few(self, _: int) -> bool:
        """Return whether too few users make up a mean for its interval to reach its level."""
        return False


def summarize(scores: Scores, random: RandomTotals | None, level: float) -> pd.DataFrame:
    """Return the table that `Evaluation.summary` describes."""
    import pandas as pd

    rows = []
    everybody = scores.n_users + scores.n_skipped
    for row, name in enumerate(scores.names):
        mean, n_users = scores._value(row), scores._count(row)
        interval = scores._interval(row, mean, level)
        expected = expectation(scores, random, row) or UNKNOWN
        lift = _lift(mean, expected.mean, scores.request.traits[row])
        beside = [of._value(of._row_of(name)) for of in scores.baselines.values()]
        counts = (n_users, everybody - n_users)
        among = () if scores._candidates is None else (scores._candidates.kind,)
        rows.append((mean, scores._std(row), *interval, *expected, lift, *beside, *counts, *among))
    behind = _BEHIND if scores._candidates is not None else _BEHIND[:-1]
    return pd.DataFrame(
        rows,
        index=pd.Index(scores.names, name="metric"),
        columns=[*_BEFORE, *scores.baselines, *behind],
    )


def expectation(scores: Scores, totals: RandomTotals | None, row: int) -> Expectation | None:
    """Return the random baseline of the metric at a position, None if it is not known."""
    total = None if totals is None else totals[row]
    if isinstance(total, RandomSums):
        return total.expectation(scores.request.plan_of(row))
    return total


def _lift(mean: float, random: float, traits: Traits) -> float:
    """Return the ratio of a mean to random lists; NaN if that has no meaning."""
    if traits.lower < 0 or random == 0:
        return math.nan
    if traits.higher_is_better:
        return mean / random
    return random / mean if mean else math.nan


def show(scores: Scores, random: RandomTotals | None, style: str) -> str:
    """Return the printed table, and a line below it about the evaluated users.

    `style` is "simple" for plain text, "pipe" for Markdown or "html".
    """
    columns = [column for column in _columns(scores, random) if any(column[2])]
    headings, aligned, cells = zip(*columns, strict=True)
    table = text_table(list(zip(*cells, strict=True)), headings, aligned, style)
    lines = [_who(scores)]
    if few := few_users(scores):
        lines += textwrap.wrap(f"note: {few}", 80)
    if style == "html":
        return table + "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    return "\n".join((table, "", *lines))


def few_users(scores: Scores) -> str | None:
    """Return a note about means that too few users make up, None if there are none."""
    rows = range(len(scores.names))
    names = [scores._shown(scores.names[row]) for row in rows if scores._rests_on_few(row)]
    if not names:
        return None
    return (
        f"too few users for the intervals of {', '.join(names)}: fewer than {FEWEST_EFFECTIVE} "
        "users make up most of the mean, so coverage is below the nominal level. Evaluate more "
        "users"
    )


def _columns(scores: Scores, random: RandomTotals | None) -> list[Any]:
    """Return heading, alignment and cells of each column, those without any cell included."""
    names = scores.names
    rows = range(len(names))
    means = list(map(scores._value, rows))
    intervals = [scores._interval(row, mean, LEVEL) for row, mean in enumerate(means)]
    rounded = [numbers(mean, *one[:2])[0] for mean, one in zip(means, intervals, strict=True)]
    expected = [expectation(scores, random, row) for row in rows]
    counts = list(map(scores._count, rows))
    differ = any(count != scores.n_users for count in counts)
    return [
        ("metric", "left", [scores._shown(name) for name in names]),
        ("mean", "decimal", [text or "none" for text in rounded]),
        ("95 % interval", "left", [one.text() for one in intervals]),
        ("random", "decimal", [number(one.mean) if one else "" for one in expected]),
        *(
            (name, "decimal", [number(of._value(of._row_of(metric))) for metric in names])
            for name, of in scores.baselines.items()
        ),
        ("users", "right", [f"{count:,}" if differ else "" for count in counts]),
    ]


def _who(scores: Scores) -> str:
    """Return the numbers of evaluated, left-out and cold users as text."""
    convention = scores.request.convention.name
    n_users, n_skipped, n_cold = scores.n_users, scores.n_skipped, scores._n_cold
    why = "nothing relevant" if convention == "standard" else f"as {convention} does"
    parts = [f"means over {n_users:,} user{'' if n_users == 1 else 's'}"]
    parts.append(f"{n_skipped:,} left out" + (f" ({why})" if n_skipped else ""))
    if n_cold is not None:
        parts.append(f"{n_cold:,} cold" + (" (not in train)" if n_cold else ""))
    if scores.request.seen == "allow":
        parts.append("seen items may be recommended again")
    return ", ".join(parts)
