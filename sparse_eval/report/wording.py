"""Names and numbers as the page and the charts write them."""

from __future__ import annotations

import math
import re
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from ..core.formatting import numbers
from ..core.messages import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MINUS = "\N{MINUS SIGN}"

#: The longest name of a model, in characters.
_LONGEST = 32

#: Words in the names of metrics that are written differently in text.
_CAPITALS = (
    "aclt aplt arhr auc cg dcg efd epc err f1 fcp gauc ia idcg map mar mrr psp r rbp reo rsp"
)
_WRITTEN = {word: word.upper() for word in _CAPITALS.split()} | {
    "infap": "infAP",
    "ndcg": "nDCG",
    "psndcg": "PSnDCG",
    "psrecall": "PSrecall",
}


def metric_title(name: str) -> str:
    """Return the name of a metric as it is written in text: nDCG@10 for ndcg@10.

    Examples
    --------
    >>> metric_title("ndcg(gain=exp)@10"), metric_title("hit_rate@5 (1+99)")
    ('nDCG(gain=exp)@10', 'hit rate@5 (1+99)')
    """
    head = re.split("[@( ]", name)[0]
    return " ".join(_WRITTEN.get(word, word) for word in head.split("_")) + name[len(head) :]


def short_names(names: Iterable[str]) -> list[str]:
    """Return names of models in one line, long ones without their common beginning and end.

    If a name is still too long, it loses its middle. Different names stay different.

    Examples
    --------
    >>> short_names(["als", "bpr"])
    ['als', 'bpr']
    >>> short_names([f"runs/2026-11-24/als_factors={n}_iterations=15.npz" for n in (8, 64)])
    ['factors=8', 'factors=64']
    """
    given = list(names)
    lines = list(map(_one_line, given))
    if len(lines) > 1 and max(map(len, lines)) > _LONGEST:
        # The last word of the common beginning stays, since it is the name of what differs.
        start = _length_of_common_words(lines, kept=1)
        lines = [line[start:][::-1] for line in lines]
        end = _length_of_common_words(lines, kept=0)
        lines = [line[end:][::-1] or line[::-1] for line in lines]
    short = [_shorten(line) for line in lines]
    if len(set(short)) == len(set(given)):
        return short
    return [_shorten(f"{number}: {line}") for number, line in enumerate(lines, start=1)]


def _length_of_common_words(lines: list[str], kept: int) -> int:
    """Return the length of the leading words that all lines share, without the last `kept`."""
    common = commonprefix(lines)  # noqa: RUF071 - names need not be paths
    words = re.findall(r"[^-_/,;:|=\s]*[-_/,;:|=\s]+", common)
    return len("".join(words[: max(len(words) - kept, 0)]))


def _one_line(name: str) -> str:
    """Return a name in one line, with control characters escaped."""
    line = printable(" ".join(str(name).split())) or "(no name)"
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )


def _shorten(line: str) -> str:
    """Return a name without its middle if it is too long."""
    head = _LONGEST // 3
    return line if len(line) <= _LONGEST else f"{line[:head]}…{line[head + 1 - _LONGEST :]}"


def format_numbers(*values: float | None) -> list[str]:
    """Return numbers that belong together, such as the ends of an interval, with equal decimals."""
    texts = numbers(*(math.nan if value is None else value for value in values))
    return [text.replace("-", _MINUS) or "–" for text in texts]


def format_number(value: float | None) -> str:
    """Return a number with three significant digits."""
    return format_numbers(value)[0]


def format_p(p: float | None) -> str:
    """Return the text that follows "p" in a sentence: "= 0.012" or "< 0.001"."""
    if p is None:
        return "unknown"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def in_words(row: Mapping[str, Any]) -> str:
    """Return a difference as for a headline: relative, with both means and its interval.

    Numbers are rounded to what the interval supports.
    """
    means = row["mean_a"], row["mean_b"]
    low, high = row["ci_low"], row["ci_high"]
    if low is None or not high > low:
        a, b = format_numbers(*means)
        return f"{a} against {b}"
    a, b, *ends = numbers(*means, low, high, within=high - low)
    low, high = (end if end.startswith("-") else f"+{end}" for end in ends)
    text = f"({a} against {b}; 95 % interval of the difference {low} to {high}"
    text += f"; {row['n_users']:,} users)"
    # A relative difference from a mean of almost 0 says nothing.
    if abs(row["difference"]) < 1e4 * row["mean_b"]:
        share = 100 * row["difference"] / row["mean_b"]
        text = f"{share:+,.{0 if abs(share) >= 10 else 1}f} % {text}"
    return text.replace("-", _MINUS)


#: The size of the interval in a cell of a table, and the margin for its point, in pixels.
_WIDTH, _HEIGHT, _MARGIN = 96, 12, 5


def draw_interval(row: Mapping[str, Any], scale: tuple[float, float], mean: str = "mean") -> str:
    """Draw a mean and its interval as a small SVG, and a tick at 0 if the scale has both signs.

    The numbers are in the cell too, so that a screen reader can leave out the drawing.
    """
    start, end = scale
    low, high = row["ci_low"], row["ci_high"]
    if row[mean] is None:
        return ""

    def place(value: float) -> str:
        share = (value - start) / (end - start) if end > start else 0.5
        return f"{_MARGIN + share * (_WIDTH - 2 * _MARGIN):.1f}"

    middle = _HEIGHT // 2
    zero = f'<path class="scale" d="M{place(0)} 0V{_HEIGHT}"/>' if start < 0 < end else ""
    line = ""
    if low is not None and high is not None:
        line = f'<path d="M{place(low)} {middle}H{place(high)}" stroke-width="3"/>'
    return (
        f'<svg class="strip" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">'
        f'<path class="scale" d="M0 {middle}H{_WIDTH}"/>{zero}{line}'
        f'<circle cx="{place(row[mean])}" cy="{middle}" r="3.5"/></svg>'
    )
