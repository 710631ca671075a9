"""The metrics that there are: one `Definition` each, from which every listing is made."""

from __future__ import annotations

import difflib
import math
import re
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InvalidMetricError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "ENTRY_POINTS",
    "REGISTRY",
    "Choice",
    "Definition",
    "Number",
    "definition",
    "load_extensions",
    "nearest",
    "register",
]

#: The group of entry points under which other packages announce modules that register metrics.
ENTRY_POINTS = "sparse_eval.metrics"


@dataclass(frozen=True, slots=True)
class Choice:
    """An option that is one of a few words; the first is the default.

    `needs` names, for a word, the input of `evaluate` that a metric needs when it is chosen.
    """

    name: str
    values: tuple[str, ...]
    description: str
    needs: Mapping[str, str] = field(default_factory=dict)

    @property
    def default(self) -> str:
        """The value without a word about it."""
        return self.values[0]

    @property
    def allowed(self) -> str:
        """What may be given, in a line."""
        return " | ".join(self.values)

    def canonical(self, text: str) -> str:
        """Return the one spelling of a value, or raise `InvalidMetricError`."""
        if text not in self.values:
            raise InvalidMetricError(f"option {self.name!r} is {text!r}; {_nearest(text, self)}")
        return text

    def value(self, text: str) -> str:
        """Return what a formula is given."""
        return text


@dataclass(frozen=True, slots=True)
class Number:
    """An option that is a number between two bounds, themselves not allowed.

    `default` may be a word: what it stands for is known when data are evaluated.
    """

    name: str
    default: str
    above: float
    below: float
    description: str
    needs: Mapping[str, str] = field(default_factory=dict)

    @property
    def allowed(self) -> str:
        """What may be given, in a line."""
        bounds = f"number above {self.above:g}"
        if self.below < math.inf:
            bounds = f"number between {self.above:g} and {self.below:g}"
        return f"{self.default} (default) | {bounds}"

    def canonical(self, text: str) -> str:
        """Return the one spelling of a value, or raise `InvalidMetricError`."""
        if text == self.default:
            return text
        # No sign and no name of a number: float() would take nan, 1_0 and others.
        number = float(text) if re.fullmatch(r"[0-9]*\.?[0-9]+(e-?[0-9]+)?", text) else math.nan
        if not self.above < number < self.below:
            raise InvalidMetricError(
                f"option {self.name!r} is {text!r}; expected {self.allowed.partition(' | ')[2]}"
            )
        return f"{number!r}".removesuffix(".0")

    def value(self, text: str) -> float | str:
        """Return what a formula is given: the number, or the default's word."""
        try:
            return float(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Definition:
    """A metric's formula and what is known about it.

    Attributes
    ----------
    name : str
        As it is written in the grammar, lower case.
    formula : callable
        ``formula(statistics, **options)`` or ``formula(lists, **options)``, see `over`. It
        returns a float64 array with a value for each user, or a pair of arrays, numerator and
        denominator, or, where `per_user` is false, one number. Its values for users who are left
        out are not used, and may be 0/0; NaN leaves a user out.
    text, description : str
        The formula and its meaning in a line each.
    over : {"statistics", "lists"}
        What the formula is given: `Statistics` or `Lists`.
    per_user : bool
        Whether there is a value for each user; otherwise there is one for all of them together.
    options : tuple of Choice or Number
        What ``name(option=value)`` may choose.
    cutoff : {"optional", "required", "none"}
        Whether ``@k`` may, must or must not stand behind the name.
    least_cutoff : int
        The smallest k with a meaning.
    lower : float
        The smallest value it can take.
    upper : float or callable
        The largest one, or ``upper(options)``.
    higher_is_better : bool
        Which way it is better, when models are compared by it.
    averages_ties : bool
        Whether it has an expectation over random orders of tied items.
    needs : tuple of str
        Inputs of `evaluate` without which it cannot be computed: "train", "item_groups",
        "item_vectors".
    uses : tuple of str
        What else has to be made for it: "hits" (the rank of every hit), "candidates" (each
        user's number of items that could be recommended).
    closed_form : callable
        ``closed_form(options)``: whether the formula is linear in the statistics, so that applied
        to their expectations it gives the expectation under a random ranking.
    expected : callable, optional
        ``expected(random, **options)``: the expectation itself, where it is known and the formula
        is not linear. It is given `ExpectedStatistics` or `RandomLists`, and returns what the
        formula returns, or None where it is not known after all. Without any of these the
        expectation is estimated.
    of_largest : callable
        ``of_largest(options)``: whether the values depend on the largest gain of all users.
    by_item : bool
        Whether it can be asked for some of the relevant items only, as recall can.
    source : str
        Where the formula comes from.
    """

    name: str
    formula: Callable[..., Any]
    text: str
    description: str
    over: Literal["statistics", "lists"] = "statistics"
    per_user: bool = True
    options: tuple[Choice | Number, ...] = ()
    cutoff: Literal["optional", "required", "none"] = "optional"
    least_cutoff: int = 1
    lower: float = 0.0
    upper: float | Callable[[Mapping[str, Any]], float] = 1.0
    higher_is_better: bool = True
    averages_ties: bool = False
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    closed_form: Callable[[Mapping[str, Any]], bool] = lambda options: False
    expected: Callable[..., Any] | None = None
    of_largest: Callable[[Mapping[str, Any]], bool] = lambda options: False
    by_item: bool = False
    source: str = ""

    @property
    def spelling(self) -> str:
        """The name with its cut-off: ``name@k``, ``name[@k]`` or ``name``."""
        return self.name + {"required": "@k", "optional": "[@k]", "none": ""}[self.cutoff]


REGISTRY: dict[str, Definition] = {}


def register(entry: Definition) -> None:
    """Add a metric; a name is taken once."""
    if entry.name in REGISTRY:
        raise InvalidMetricError(f"a metric named {entry.name!r} is registered already")
    REGISTRY[entry.name] = entry


def definition(name: str) -> Definition:
    """Return the metric of that name, or raise `InvalidMetricError` with the nearest names."""
    wanted = name.lower()
    if wanted not in REGISTRY:  # only then: looking for other packages takes longer than evaluating
        load_extensions()
    try:
        return REGISTRY[wanted]
    except KeyError:
        raise InvalidMetricError(
            f"there is no metric {name!r}; {nearest(wanted, REGISTRY)}"
        ) from None


@lru_cache(maxsize=1)
def load_extensions() -> None:
    """Import what other packages announce as metrics, once.

    One that fails is named in a warning and left out; the others are not affected.
    """
    for point in entry_points(group=ENTRY_POINTS):
        before = dict(REGISTRY)
        try:
            point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is theirs
            REGISTRY.clear()
            REGISTRY.update(before)  # what it had registered before it failed
            warnings.warn(
                f"the metrics of entry point {point.name!r} ({point.value}) are left out, because "
                f"it failed to load: {type(error).__name__}: {error}",
                stacklevel=2,
            )


def nearest(word: str, choices: Iterable[str]) -> str:
    """Say which of `choices` was probably meant."""
    names = sorted(choices)
    close = difflib.get_close_matches(word, names, n=3)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "expected one of " + ", ".join(names)


def _nearest(word: str, option: Choice) -> str:
    return nearest(word, option.values)
