"""The registry of metrics: the formula, options and range of each metric, by name.

Formulas are added with the decorator `metric`, or `register_metric` in other packages.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from importlib.metadata import entry_points
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from ..core.messages import warn
from ..core.threads import thread_lock
from ..errors import InvalidMetricError

#: The group of entry points for modules of other packages that register metrics.
ENTRY_POINTS = "sparse_eval.metrics"

#: The options of a metric in the form that its formula takes: words and numbers.
Arguments: TypeAlias = Mapping[str, str | float]

Function = TypeVar("Function", bound=Callable[..., Any])

#: Other names of each metric.
_OTHER_NAMES = {
    "aplt": ("tail_percentage", "tailpercentage"),
    "coverage": ("catalog_coverage", "catalogue_coverage", "item_coverage"),
    "diversity": ("ild", "intra_list_diversity"),
    "f1": ("f1_score", "fbeta", "fbeta_score"),
    "gini": ("gini_index",),
    "hit_rate": ("hit", "hit_ratio", "hitrate", "hitratio", "hr", "success"),
    "iprec_at_recall": ("11pt_avg",),
    "map": ("ap", "average_precision", "mean_average_precision", "pr_auc", "prauc"),
    "mar": ("mean_average_recall",),
    "mrr": ("mean_reciprocal_rank", "recip_rank", "reciprocal_rank", "rr"),
    "novelty": ("surprisal",),
    "percentile_rank": ("mean_percentile_rank", "mpr"),
    "pop_reo": ("popreo",),
    "pop_rsp": ("poprsp",),
    "popularity": ("arp", "average_popularity"),
    "precision": ("p", "prec"),
    "psp": ("psprecision",),
    "psrecall": ("psr",),
    "r_precision": ("r_prec", "rprec"),
    "recall": ("rec", "set_recall"),
    "set_precision": ("set_p",),
    "set_relative_precision": ("set_relative_p",),
}

#: Other names, and the metrics they may refer to. A name that may refer to several metrics raises
#: an error that lists them.
ALIASES: Mapping[str, tuple[str, ...]] = {
    **{other: (name,) for name, others in _OTHER_NAMES.items() for other in others},
    "hits": ("hit_rate", "precision", "cg"),
    "r": ("recall", "r_precision"),
    "rank": ("mean_rank", "percentile_rank"),
}

#: Other names that refer to a metric with an option: the metric and the option.
ALIASES_WITH_OPTION: Mapping[str, tuple[str, str]] = {
    "gm_bpref": ("bpref", "average=geometric"),
    "gm_map": ("map", "average=geometric"),
    "relative_p": ("precision", "denominator=min"),
}

#: The option whose number is written into a name, as in trec_eval's ``iprec_at_recall_0.10``.
_WITH_NUMBER = {
    "iprec_at_recall": ("iprec_at_recall", "level"),
    "rprec_mult": ("r_precision", "multiple"),
}
_NUMBERED = re.compile(f"(?P<name>{'|'.join(_WITH_NUMBER)})_(?P<number>[0-9.]+)")

#: A cut-off written into the name: trec_eval's ``P_10`` and ``ndcg_cut_10``, ``ndcg_at_10``,
#: ``ndcg10``.
_WITH_CUTOFF = re.compile("(?P<name>.+?)(?:(?:_cut|_at)?_)?(?P<cutoff>[0-9]+)")


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return the end of an error message that suggests the `choices` nearest to `word`."""
    names = sorted(choices)
    close = difflib.get_close_matches(word, names, n=3)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "expected one of " + ", ".join(names)


@dataclass(frozen=True, slots=True)
class Choice:
    """An option that is one of a few words.

    Attributes
    ----------
    name : str
    values : tuple of str
        The allowed words; the first is the default.
    description : str
        The meaning of the words, in a line.
    needs : mapping of str to str
        For each word, the input of `evaluate` that the metric needs if the word is chosen.

    See Also
    --------
    Number : An option that is a number.
    """

    name: str
    values: tuple[str, ...]
    description: str
    needs: Mapping[str, str] = field(default_factory=dict)

    @property
    def default(self) -> str:
        """The value if none is given."""
        return self.values[0]

    @property
    def allowed(self) -> str:
        """The allowed values, in a line."""
        return " | ".join(self.values)

    def canonical(self, text: str) -> str:
        """Return the canonical spelling of a value, or raise `InvalidMetricError`."""
        if text not in self.values:
            raise InvalidMetricError(
                f"option {self.name!r} is {text!r}; {nearest(text, self.values)}"
            )
        return text

    def value(self, text: str) -> str:
        """Return the value in the form that the formula takes."""
        return text


@dataclass(frozen=True, slots=True)
class Number:
    """An option that is a number in an interval.

    Attributes
    ----------
    name : str
    default : str
        A number, or a word for a number that depends on the data.
    above, below : float
        The bounds.
    description : str
        The meaning of the number, in a line.
    closed : bool
        Whether the bounds themselves are allowed.
    needs : mapping of str to str
        Always empty; for consistency with `Choice`.

    See Also
    --------
    Choice : An option that is one of a few words.
    """

    name: str
    default: str
    above: float
    below: float
    description: str
    needs: Mapping[str, str] = field(default_factory=dict)
    closed: bool = False

    @property
    def allowed(self) -> str:
        """The allowed values, in a line."""
        bounds = f"number above {self.above:g}"
        if self.below < math.inf:
            bounds = f"number between {self.above:g} and {self.below:g}"
        if self.closed:
            bounds = f"number from {self.above:g} to {self.below:g}"
        return f"{self.default} (default) | {bounds}"

    def canonical(self, text: str) -> str:
        """Return the canonical spelling of a value, or raise `InvalidMetricError`."""
        if text == self.default:
            return text
        # Without the pattern, float() would also accept signs, nan and 1_0.
        number = float(text) if re.fullmatch(r"[0-9]*\.?[0-9]+(e-?[0-9]+)?", text) else math.nan
        is_end = self.closed and number in (self.above, self.below)
        if not (self.above < number < self.below or is_end):
            raise InvalidMetricError(
                f"option {self.name!r} is {text!r}; expected {self.allowed.partition(' | ')[2]}"
            )
        return f"{number!r}".removesuffix(".0")

    def value(self, text: str) -> float | str:
        """Return the value in the form that the formula takes: a number, or the default's word."""
        try:
            return float(text)
        except ValueError:
            return text


def always(options: Arguments) -> bool:
    """Return True for any options."""
    return True


def never(options: Arguments) -> bool:
    """Return False for any options."""
    return False


@dataclass(frozen=True, slots=True)
class Formula:
    """How a metric is computed.

    Attributes
    ----------
    function : callable
        ``function(statistics, **options)`` or ``function(lists, **options)``, see
        `Definition.over`. It returns a float64 array with a value for each user, or a pair of
        arrays, numerator and denominator. If `Definition.per_user` is false, it returns one number.
        Its values for users who are left out are not used and may be 0/0; NaN leaves a user out.
    least_cutoff : int
        The smallest meaningful k.
    averages_ties : callable
        ``averages_ties(options)``: whether it has an expectation over random orders of tied items.
    closed_form : callable
        ``closed_form(options)``: whether a formula over statistics is linear in them, so that
        their expectations give the expectation of the metric under a random ranking.
    expected : callable, optional
        ``expected(random, **options)``: the expectation itself, if it is known although the
        formula is not linear. It takes `ExpectedStatistics` or `RandomLists`. It returns the same
        type of result as the formula, or None if the expectation is unknown for these options.
        Without `closed_form` and `expected`, the expectation is estimated.
    of_largest : callable
        ``of_largest(options)``: whether the values depend on the largest gain of all users.
    combine : callable, optional
        ``combine(sums, **options)``: the value for all users. The formula then returns an array of
        int64 that is summed over users, with the same shape for all of them.
    for_all_users : bool
        Whether the formula has a value for users without relevant items too. Otherwise they count
        0, if they count at all.
    by_item : bool
        Whether it can be restricted to some of the relevant items, as recall can. The option
        "items" selects them, see `Aligned.of_items`.
    is_ratio : bool
        Whether it is one number for all users with any options: the sum of their numerators / the
        sum of their denominators.
    """

    function: Callable[..., Any]
    least_cutoff: int = 1
    averages_ties: Callable[[Arguments], bool] = never
    closed_form: Callable[[Arguments], bool] = always
    expected: Callable[..., Any] | None = None
    of_largest: Callable[[Arguments], bool] = never
    combine: Callable[..., float] | None = None
    for_all_users: bool = False
    by_item: bool = False
    is_ratio: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """A metric: its formula and its properties.

    It pickles by name, so the process that unpickles it must have registered the metric too.

    Attributes
    ----------
    name : str
        The name in the grammar, in lower case.
    formula : Formula
        The function that computes it, and how the function behaves.
    text, description : str
        The formula and its meaning, in a line each.
    plain : str
        An explanation in one sentence, for readers who do not know the terms.
    over : {"statistics", "lists"}
        Whether the formula takes `Statistics` or `Lists`.
    per_user : bool
        Whether there is a value for each user, rather than one value for all users together.
    options : tuple of Choice or Number
        The options that ``name(option=value)`` sets.
    cutoff : {"optional", "required", "none"}
        Whether ``@k`` may, must or must not follow the name.
    range : tuple of float
        The smallest and the largest possible value; the latter may be ``upper(options)``.
    higher_is_better : bool
        Whether larger values are better when models are compared.
    needs : tuple of str
        Inputs of `evaluate` that the metric requires: "train", "item_groups", "item_vectors".
    uses : tuple of str
        Optional attributes of `Statistics` that the formula reads, see `register_metric`.
    source : str
        The publication that defines it.

    See Also
    --------
    sparse_eval.register_metric : Register a function as a metric.
    """

    name: str
    formula: Formula
    text: str
    description: str
    over: Literal["statistics", "lists"] = "statistics"
    per_user: bool = True
    options: tuple[Choice | Number, ...] = ()
    cutoff: Literal["optional", "required", "none"] = "optional"
    range: tuple[float, float | Callable[[Arguments], float]] = (0.0, 1.0)
    higher_is_better: bool = True
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    plain: str = ""
    source: str = ""

    @property
    def spelling(self) -> str:
        """The name with its cut-off: ``name@k``, ``name[@k]`` or ``name``."""
        return self.name + {"required": "@k", "optional": "[@k]", "none": ""}[self.cutoff]

    def __reduce__(self) -> tuple[Callable[[str], Definition], tuple[str]]:
        return definition, (self.name,)


REGISTRY: dict[str, Definition] = {}


def register(entry: Definition) -> None:
    """Add a metric to the registry, or raise `InvalidMetricError` if its name is already used.

    A function replaces its earlier definition, as when a cell of a notebook runs again.
    """
    known = REGISTRY.get(entry.name)
    again = known is not None and _place(known) == _place(entry)
    if not again and entry.name in REGISTRY.keys() | ALIASES.keys() | ALIASES_WITH_OPTION.keys():
        raise InvalidMetricError(
            f"{entry.name!r} is the name, or another name, of a registered metric; choose a new one"
        )
    REGISTRY[entry.name] = entry


def _place(entry: Definition) -> tuple[str, str]:
    """Return the module and the name of the function of a metric."""
    function = entry.formula.function
    return getattr(function, "__module__", ""), getattr(function, "__qualname__", repr(function))


def metric(name: str, **facts: Any) -> Callable[[Function], Function]:
    """Register the decorated formula as a metric of this package.

    The three paragraphs of its docstring become `description`, `text` and `plain` of its
    `Definition`; `facts` are the other attributes of it and of its `Formula`, and its range as
    `lower` and `upper`.
    """

    def add(function: Function) -> Function:
        paragraphs = (function.__doc__ or "\n\n\n\n").split("\n\n")
        description, text, plain = (" ".join(paragraph.split()) for paragraph in paragraphs)
        of_formula = {
            each.name: facts.pop(each.name) for each in fields(Formula) if each.name in facts
        }
        facts["range"] = facts.pop("lower", 0.0), facts.pop("upper", 1.0)
        formula = Formula(function, **of_formula)
        register(Definition(name, formula, text, description, plain=plain, **facts))
        return function

    return add


def definition(name: str) -> Definition:
    """Return the metric with this name, or raise `InvalidMetricError` with the nearest names."""
    return find(name).definition


class Meaning(NamedTuple):
    """The meaning of a name or alias: a metric, and the cut-off and option that it includes.

    `name` is the name or alias without its cut-off or number.
    """

    definition: Definition
    name: str
    cutoff: str | None = None
    option: str | None = None


def find(name: str) -> Meaning:
    """Return the metric that a name or alias refers to.

    Raises `InvalidMetricError` if there is no such metric, or the name may refer to several
    metrics.
    """
    key = name.lower().replace("-", "_")
    if (meant := _named(key)) is not None:
        return meant
    load_extensions()  # only if needed: finding other packages takes longer than evaluating
    if (meant := _named(key)) is not None:
        return meant
    if (numbered := _NUMBERED.fullmatch(key)) is not None:
        meant_name, option = _WITH_NUMBER[numbered["name"]]
        return Meaning(REGISTRY[meant_name], meant_name, option=f"{option}={numbered['number']}")
    with_cutoff = _WITH_CUTOFF.fullmatch(key)
    if with_cutoff is not None and (meant := _named(with_cutoff["name"])) is not None:
        return meant._replace(cutoff=with_cutoff["cutoff"])
    raise InvalidMetricError(f"there is no metric {name!r}; {nearest(key, REGISTRY)}", metric=name)


def _named(key: str) -> Meaning | None:
    """Return the meaning of a name or alias without a number, None if there is no such metric."""
    if key in ALIASES_WITH_OPTION:
        name, option = ALIASES_WITH_OPTION[key]
        return Meaning(REGISTRY[name], key, option=option)
    names = ALIASES.get(key, (key,))
    if len(names) > 1:
        choices = " or ".join(repr(name) for name in names)
        raise InvalidMetricError(f"{key!r} may mean several metrics; did you mean {choices}?")
    entry = REGISTRY.get(names[0])
    return None if entry is None else Meaning(entry, key)


@lru_cache(maxsize=1)
def load_extensions() -> None:
    """Import the modules with metrics that other packages declare, once.

    If a module fails to load, it is left out with a warning.
    """
    for point in entry_points(group=ENTRY_POINTS):
        with thread_lock("metrics of other packages"):
            before = set(REGISTRY)
            try:
                point.load()
            except (Exception, SystemExit) as error:  # noqa: BLE001 - any failure of foreign code
                for name in REGISTRY.keys() - before:  # that it registered before it failed
                    del REGISTRY[name]
                warn(
                    f"the metrics of entry point {point.name!r} ({point.value}) are left out, "
                    f"because it failed to load: {type(error).__name__}: {error}"
                )


def register_metric(
    name: str,
    description: str,
    *,
    text: str = "",
    over: Literal["statistics", "lists"] = "statistics",
    per_user: bool = True,
    options: Iterable[Choice | Number] = (),
    cutoff: Literal["optional", "required", "none"] = "optional",
    range: tuple[float, float] = (0.0, math.inf),  # noqa: A002 - the word for it
    higher_is_better: bool = True,
    needs: Iterable[str] = (),
    uses: Iterable[str] = (),
    linear: bool = False,
    plain: str = "",
    source: str = "",
) -> Callable[[Function], Function]:
    """Register a function as a metric, to be used by name like the built-in ones.

    A package can declare a module that registers metrics as an entry point of the group
    ``sparse_eval.metrics``. The module is imported when an unknown name is parsed or the metrics
    are listed, so its metrics work on the command line too.

    Parameters
    ----------
    name : str
        Lower case letters, digits and underscores, starting with a letter.
    description, text : str
        The meaning and the formula, in a line each.
    over : {"statistics", "lists"}
        Whether the function takes the `sparse_eval.metrics.Statistics` or the
        `sparse_eval.metrics.Lists` of a block of users.
    per_user : bool
        Whether the function returns a float64 array with a value for each user (NaN leaves the
        user out). Otherwise it returns one number for all users together; this requires
        ``over="lists"``.
    options : sequence of Choice or Number
        From `sparse_eval.metrics`; passed to the function by name.
    cutoff : {"optional", "required", "none"}
        Whether ``@k`` may, must or must not be given. Without a cut-off, ``k`` is
        `sparse_eval.metrics.FULL_LIST`, larger than any list; use ``list_length`` for the length.
    range : tuple of float
        The smallest and the largest possible value.
    higher_is_better : bool
        Whether larger values are better when models are compared, or training stops at the best.
    needs : sequence of {"train", "item_groups", "item_vectors"}
        Inputs that the metric requires: `train` of `evaluate`, and `groups` and `vectors` of
        `ItemData`. A metric that reads ``lists.train`` must declare "train"; otherwise, a model's
        users cannot be evaluated in blocks.
    uses : sequence of {"hits", "candidates", "total_gain", "exp", "judged"}
        Attributes of `Statistics` that are only computed for metrics that use them. "hits", the
        ranks of all hits: the methods, ``rank_sum``, ``gain_rank_sum``, ``pairs`` and
        ``largest_gain``; "candidates": ``candidates``; "total_gain": ``all_gain``; "exp":
        ``dcg_exp`` and ``idcg_exp``; "judged": ``judged_items``. With "judged", stored items
        count as hits: with gain 2 if they are relevant, otherwise with gain 1.
    linear : bool
        Whether the function is linear in the statistics, so that their expectations give the
        expectation of the metric under a random ranking. Otherwise, `Evaluation.summary`
        estimates it.
    plain : str
        An explanation in one sentence, for readers of a report who do not know the terms.
    source : str
        The publication that defines the metric.

    Returns
    -------
    callable
        A decorator that returns the function unchanged.

    Raises
    ------
    InvalidMetricError
        If the name is not allowed, or is already a name or another name of a metric of another
        function, or if an option cannot be written in the grammar.

    See Also
    --------
    sparse_eval.metrics.Statistics, sparse_eval.metrics.Lists : The inputs of formulas.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> @se.register_metric("half_hits", "whether half of the list are hits", cutoff="required")
    ... def half_hits(s):
    ...     return (s.hits >= s.k / 2).astype(np.float64)
    >>> from scipy.sparse import csr_matrix
    >>> lists = se.Rankings.from_topk([[0, 1], [2, 3]])
    >>> se.evaluate(lists, csr_matrix([[1, 0, 0, 0], [1, 0, 0, 0]]), "half_hits@2")["half_hits@2"]
    0.5
    """
    options, uses = tuple(options), tuple(uses)
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise InvalidMetricError(
            f"{name!r} is not a name for a metric; expected lower case letters, digits and _, the "
            "first a letter"
        )
    if over not in ("statistics", "lists") or cutoff not in ("optional", "required", "none"):
        raise InvalidMetricError(
            f"metric {name!r}: over is {over!r} and cutoff {cutoff!r}; expected 'statistics' or "
            "'lists', and 'optional', 'required' or 'none'"
        )
    if not per_user and over != "lists":
        raise InvalidMetricError(
            f"metric {name!r}: only a metric over lists can be one number for all users"
        )
    formula = partial(
        Formula,
        closed_form=always if linear else never,
        of_largest=always if "hits" in uses else never,  # it may read largest_gain
    )

    def add(function: Function) -> Function:
        register(
            Definition(
                name,
                formula(function),
                text,
                description,
                over=over,
                per_user=per_user,
                options=options,
                cutoff=cutoff,
                range=range,
                higher_is_better=higher_is_better,
                needs=tuple(needs),
                uses=uses,
                plain=plain,
                source=source,
            )
        )
        return function

    return add
