"""The grammar of metric names: ``ndcg(gain=exp)@10`` is parsed into a `Metric` and printed back.

::

    list    = metric ("," metric)*
    metric  = name ["(" option "=" value ("," option "=" value)* ")"] ["@" cutoffs]
    cutoffs = k ("," k)* | "{" k ("," k)* "}"

Case and white space are ignored. A name may be one of the registry's `ALIASES`. It may end with the
cut-off, as in trec_eval's ``P_10`` and ``ndcg_cut_10``, ``ndcg_at_10`` and ``ndcg10``. A `Metric`
always has the registry's own name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..errors import InvalidMetricError
from .registry import Definition, definition, find, nearest
from .user_statistics import FULL_LIST

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Defaults of options that differ from the registry's, by metric. If a key is an alias of a metric,
#: its value has the options that this alias implies.
Defaults: TypeAlias = Mapping[str, Mapping[str, str]]

_METRIC = re.compile(r"(?P<name>[^()@{},]+)(?:\((?P<options>[^()]*)\))?(?:@(?P<cutoffs>.*))?")
_STRETCH = re.compile(r"[^(){}]*(?:[(){}]|$)")  # up to the next bracket


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its options and cut-off.

    It is immutable and hashable, and ``parse(str(metric)) == (metric,)``.

    Attributes
    ----------
    name : str
        A name of the registry.
    cutoff : int or None
        k, at least 1; None for the whole list.
    options : tuple of (str, str)
        (name, value) of the options that differ from their default, sorted by name.

    See Also
    --------
    sparse_eval.metrics.parse : Parse one metric or several.

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
        """The cut-off, or `FULL_LIST` without one."""
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

    Raises `InvalidMetricError` if the text does not follow the grammar, a name may mean several
    metrics, or a cut-off is missing or is not a positive integer. Also if a metric, option or value
    is unknown; the message shows the nearest ones.

    Parameters
    ----------
    text : str
        For instance ``"ndcg@10"``, ``"map(normalizer=min)@{5,10}"`` or ``"ndcg@10, recall@20"``.
        Common other names are recognized too: ``"hr@10"``, ``"P_10"``.
    defaults : mapping, optional
        Defaults of options that differ from the registry's, by metric, such as
        ``Convention.options``.

    Returns
    -------
    tuple of Metric
        A metric for each cut-off, in the order of the text.

    See Also
    --------
    parse_metrics : Parse several arguments, without duplicates.

    Examples
    --------
    >>> from sparse_eval.metrics import parse
    >>> [str(metric) for metric in parse("recall@{5,10}, mrr")]
    ['recall@5', 'recall@10', 'mrr']
    >>> [str(metric) for metric in parse("HR@10, ndcg_cut_10, P_5")]
    ['hit_rate@10', 'ndcg@10', 'precision@5']
    """
    metrics: list[Metric] = []
    for part in _joined(_split(text)):
        compact = re.sub(r"\s+", "", part).lower()
        match = _METRIC.fullmatch(compact)
        if match is None:
            raise InvalidMetricError(
                f"{part.strip()!r} is not a metric; expected name, name@k, name@{{k,k}} or "
                "name(option=value)@k, for instance 'ndcg(gain=exp)@10'",
                metric=part,
            )
        entry, name, cutoff_of_name, option_of_name = find(match["name"])
        defaults_of_entry = (defaults or {}).get(entry.name, {})
        of_alias = (defaults or {}).get(name, {}) if name != entry.name else {}
        assigned = ",".join(filter(None, (option_of_name, match["options"])))
        options = _options(entry, assigned, part.strip(), defaults_of_entry, of_alias)
        if cutoff_of_name is not None and match["cutoffs"] is not None:
            raise InvalidMetricError(
                f"{part.strip()!r} has two cut-offs; write '{entry.name}@{cutoff_of_name}'",
                metric=part,
            )
        cutoffs = _cutoffs(entry, cutoff_of_name or match["cutoffs"], part.strip())
        metrics += [Metric(entry.name, cutoff, options) for cutoff in cutoffs]
    return tuple(metrics)


def parse_metrics(
    metrics: str | Metric | Iterable[str | Metric], defaults: Defaults | None = None
) -> tuple[Metric, ...]:
    """Parse one metric or several, without duplicates.

    Raises `InvalidMetricError` as from `parse`, or if there is no metric.

    Parameters
    ----------
    metrics : str, Metric or iterable of these
        Each text may name several metrics.
    defaults : mapping, optional
        As in `parse`.

    Returns
    -------
    tuple of Metric
        In the order given.

    See Also
    --------
    parse : Parse one text, with duplicates.

    Examples
    --------
    >>> from sparse_eval.metrics import Metric, parse_metrics
    >>> [str(metric) for metric in parse_metrics(["ndcg@{5,10}", Metric("mrr"), "NDCG@5"])]
    ['ndcg@5', 'ndcg@10', 'mrr']
    """
    if isinstance(metrics, Mapping):
        raise InvalidMetricError(
            f"metrics is {metrics!r}; expected a list of names with their cut-offs, such as "
            "['ndcg@10', 'recall@20']",
            argument="metrics",
        )
    try:
        entries = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    except TypeError:
        raise InvalidMetricError(
            f"metrics is {metrics!r}; expected names of metrics, such as ['ndcg@10', 'recall@20']",
            argument="metrics",
        ) from None
    unique: dict[Metric, None] = {}
    for entry in entries:
        for metric in parse(str(entry), defaults):
            unique[metric] = None
    if not unique:
        raise InvalidMetricError("no metric is asked for; name at least one, such as 'ndcg@10'")
    return tuple(unique)


def _split(text: str) -> list[str]:
    """Split a text at the commas outside brackets, in time proportional to its length.

    A comma is inside if the next bracket is a closing one.
    """
    starts = [0]
    for stretch in _STRETCH.finditer(text):
        if not stretch[0].endswith((")", "}")):
            starts += [stretch.start() + comma.end() for comma in re.finditer(",", stretch[0])]
    ends = [start - 1 for start in starts[1:]] + [len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _joined(parts: list[str]) -> list[str]:
    """Join metrics with all their cut-offs, such as ``recall@10,20``, which is in two parts."""
    joined: list[list[str]] = []
    takes_more = False
    for part in parts:
        if takes_more and re.fullmatch(r"\s*[0-9]+\s*", part):
            joined[-1].append(part)
        else:
            joined.append([part])
            takes_more = re.search("@[^{}]*$", part) is not None
    return [",".join(one) for one in joined]


def _options(
    entry: Definition,
    text: str,
    part: str,
    defaults: Mapping[str, str],
    of_alias: Mapping[str, str],
) -> tuple[tuple[str, str], ...]:
    options = {option.name: option for option in entry.options}
    chosen: dict[str, str] = {}
    for assignment in text.split(",") if text else ():
        name, _, value = assignment.partition("=")
        if name not in options:
            remedy = nearest(name, options) if options else f"{entry.name} has no options"
            raise InvalidMetricError(
                f"{part!r}: there is no option {name!r}; {remedy}", metric=part
            )
        if name in chosen:
            raise InvalidMetricError(f"{part!r}: option {name!r} is given twice", metric=part)
        try:
            chosen[name] = options[name].canonical(value)
        except InvalidMetricError as error:
            raise InvalidMetricError(f"{part!r}: {error}", metric=part) from None
    chosen = {**of_alias, **chosen}
    return tuple(
        (name, chosen[name])
        for name in sorted(chosen)
        if chosen[name] != defaults.get(name, options[name].default)
    )


def _cutoffs(entry: Definition, text: str | None, part: str) -> list[int | None]:
    if text is None:
        if entry.cutoff == "required":
            raise InvalidMetricError(
                f"{part!r} has no cut-off; {entry.name} needs one, such as '{entry.name}@10'",
                metric=part,
            )
        return [None]
    if entry.cutoff == "none":
        raise InvalidMetricError(
            f"{part!r} has a cut-off, but {entry.name} is over whole lists; ask for '{entry.name}'",
            metric=part,
        )
    braced = text.startswith("{") and text.endswith("}")
    numbers = (text[1:-1] if braced else text).split(",")
    cutoffs: list[int | None] = []
    for number in numbers:
        least = entry.formula.least_cutoff
        if not re.fullmatch("[0-9]{1,18}", number) or int(number) < least:
            raise InvalidMetricError(
                f"{part[:80]!r} has the cut-off {number[:40]!r}; expected a whole number of at "
                f"least {least}, of at most 18 digits",
                metric=part,
            )
        cutoffs.append(int(number))
    return cutoffs
