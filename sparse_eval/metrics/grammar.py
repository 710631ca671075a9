"""Names of metrics: ``ndcg(gain=exp)@10`` ⇄ `Metric`.

::

    list    = metric ("," metric)*
    metric  = name ["(" option "=" value ("," option "=" value)* ")"] ["@" cutoffs]
    cutoffs = k | "{" k ("," k)* "}"

Upper and lower case, and spaces, make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import InvalidMetricError
from .registry import Definition, definition, nearest
from .statistics import FULL_LIST

__all__ = ["Metric", "parse", "parse_metrics"]

#: For a metric, options whose default is another than the registry's.
Defaults = Mapping[str, Mapping[str, str]]

_METRIC = re.compile(r"(?P<name>[^()@{},]+)(?:\((?P<options>[^()]*)\))?(?:@(?P<cutoffs>.*))?")
_SEPARATOR = re.compile(r",(?![^({]*[)}])")  # a comma outside of brackets


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its options and its cut-off: a value that prints as it is parsed.

    Attributes
    ----------
    name : str
        A name of the registry.
    cutoff : int or None
        k, at least 1; None for the whole list.
    options : tuple of (str, str)
        The options that differ from their default, by name.

    Examples
    --------
    >>> from sparse_eval.metrics import parse
    >>> metric, = parse("NDCG(gain=exp)@10")
    >>> metric
    Metric(name='ndcg', cutoff=10, options=(('gain', 'exp'),))
    >>> str(metric)
    'ndcg(gain=exp)@10'
    """

    name: str
    cutoff: int | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def definition(self) -> Definition:
        """The metric's entry of the registry."""
        return definition(self.name)

    @property
    def k(self) -> int:
        """The cut-off as a number: `FULL_LIST` without one."""
        return FULL_LIST if self.cutoff is None else self.cutoff

    def __str__(self) -> str:
        options = ",".join(f"{name}={value}" for name, value in self.options)
        return (
            self.name
            + (f"({options})" if options else "")
            + (f"@{self.cutoff}" if self.cutoff is not None else "")
        )


def parse(text: str, defaults: Defaults | None = None) -> tuple[Metric, ...]:
    """Parse a metric, or several separated by commas.

    Parameters
    ----------
    text : str
        For instance ``"ndcg@10"``, ``"map(normalizer=min)@{5,10}"`` or ``"ndcg@10, recall@20"``.
    defaults : mapping, optional
        For a metric, options whose default is another than the registry's (a convention's).

    Returns
    -------
    tuple of Metric
        One for each cut-off, in the order of the text.

    Raises
    ------
    InvalidMetricError
        If the text does not follow the grammar, a metric, option or value is unknown (the nearest
        ones are named), a cut-off is no whole number of at least 1, or one is missing.

    Examples
    --------
    >>> from sparse_eval.metrics import parse
    >>> [str(metric) for metric in parse("recall@{5,10}, mrr")]
    ['recall@5', 'recall@10', 'mrr']
    """
    metrics: list[Metric] = []
    for part in _SEPARATOR.split(text):
        compact = re.sub(r"\s+", "", part).lower()
        match = _METRIC.fullmatch(compact)
        if match is None:
            raise InvalidMetricError(
                f"{part.strip()!r} is no metric; expected name, name@k, name@{{k,k}} or "
                "name(option=value)@k, for instance 'ndcg(gain=exp)@10'"
            )
        entry = definition(match["name"])
        other = (defaults or {}).get(entry.name, {})
        options = _options(entry, match["options"], part.strip(), other)
        cutoffs = _cutoffs(entry, match["cutoffs"], part.strip())
        metrics += [Metric(entry.name, cutoff, options) for cutoff in cutoffs]
    return tuple(metrics)


def parse_metrics(
    metrics: str | Metric | Iterable[str | Metric], defaults: Defaults | None = None
) -> tuple[Metric, ...]:
    """Parse what a caller asks for; a metric that is asked for twice comes once.

    `defaults` are as in `parse`.

    Raises
    ------
    InvalidMetricError
        As `parse`, and if there is no metric at all or an entry is neither text nor `Metric`.
    """
    if isinstance(metrics, str | Metric):
        metrics = [metrics]
    elif not isinstance(metrics, Iterable):
        raise InvalidMetricError(
            f"metrics is {metrics!r}; expected names of metrics, such as ['ndcg@10', 'recall@20']"
        )
    found: dict[Metric, None] = {}
    for entry in metrics:
        if not isinstance(entry, str | Metric):
            raise InvalidMetricError(
                f"{entry!r} is a {type(entry).__name__}; expected the name of a metric, such as "
                "'ndcg@10'"
            )
        for metric in parse(str(entry), defaults):
            found[metric] = None
    if not found:
        raise InvalidMetricError("no metric is asked for; name at least one, such as 'ndcg@10'")
    return tuple(found)


def _options(
    entry: Definition, text: str | None, part: str, defaults: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    known = {option.name: option for option in entry.options}
    chosen: dict[str, str] = {}
    for assignment in text.split(",") if text else ():
        name, _, value = assignment.partition("=")
        if name not in known:
            has = nearest(name, known) if known else f"{entry.name} has no options"
            raise InvalidMetricError(f"{part!r}: there is no option {name!r}; {has}")
        if name in chosen:
            raise InvalidMetricError(f"{part!r}: option {name!r} is given twice")
        try:
            chosen[name] = known[name].canonical(value)
        except InvalidMetricError as error:
            raise InvalidMetricError(f"{part!r}: {error}") from None
    return tuple(
        (name, chosen[name])
        for name in sorted(chosen)
        if chosen[name] != defaults.get(name, known[name].default)
    )


def _cutoffs(entry: Definition, text: str | None, part: str) -> list[int | None]:
    if text is None:
        if entry.cutoff == "required":
            raise InvalidMetricError(
                f"{part!r} has no cut-off; {entry.name} needs one, such as '{entry.name}@10'"
            )
        return [None]
    if entry.cutoff == "none":
        raise InvalidMetricError(
            f"{part!r} has a cut-off, but {entry.name} is over whole lists; ask for '{entry.name}'"
        )
    braced = text.startswith("{") and text.endswith("}")
    numbers = text[1:-1].split(",") if braced else [text]
    cutoffs: list[int | None] = []
    for number in numbers:
        least = entry.least_cutoff
        if not re.fullmatch("[0-9]{1,18}", number) or int(number) < least:
            raise InvalidMetricError(
                f"{part!r} has the cut-off {number!r}; expected a whole number of at least {least}"
            )
        cutoffs.append(int(number))
    return cutoffs
