"""`Request`: which metrics are to be computed, and how each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from ..core.arguments import check_choice
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.training import SeenItems
from .conventions import Convention, convention_named
from .grammar import Metric, parse_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .registry import Definition

#: One metric or several, by name or parsed.
MetricsLike: TypeAlias = "str | Metric | Iterable[str | Metric]"

#: What becomes of users without relevant items, see `evaluate`.
NoRelevant: TypeAlias = Literal["exclude", "zero", "judged"]


class Plan(NamedTuple):
    """A metric, its definition and the arguments of its formula."""

    metric: Metric
    definition: Definition
    arguments: dict[str, Any]

    @property
    def is_micro(self) -> bool:
        """Whether numerators and denominators are summed over users before they are divided."""
        return self.arguments.get("average") == "micro"

    @property
    def items(self) -> str:
        """Which of the relevant items count: "all", or those that `Aligned.of_items` tells."""
        return str(self.arguments.get("items", "all")) if self.definition.by_item else "all"

    @property
    def is_exponential(self) -> bool:
        """Whether it needs the sums of 2^g − 1."""
        return self.arguments.get("gain") == "exp" or "exp" in self.definition.uses

    @property
    def is_swept(self) -> bool:
        """Whether its formula is applied to the statistics of the sweep, not to whole lists."""
        return self.definition.over == "statistics"

    @property
    def per_user(self) -> bool:
        """Whether there is a value for each user."""
        return self.definition.per_user and not self.is_micro

    @property
    def upper(self) -> float:
        """The largest value it can take."""
        upper = self.definition.upper
        return upper(self.arguments) if callable(upper) else upper

    @property
    def inputs(self) -> frozenset[str]:
        """The inputs of `evaluate` without which it cannot be computed."""
        chosen = {
            option.needs[value]
            for option in self.definition.options
            if (value := self.arguments[option.name]) in option.needs
        }
        return frozenset(chosen.union(self.definition.needs))

    def counts_apart(self, convention: Convention) -> tuple[bool, bool]:
        """Return whether it is over every list, and whether users without a list count 0.

        Both are exceptions that a convention makes for some metrics.
        """
        over_lists = not self.is_swept and self.metric.name != "user_coverage"
        return (
            convention.lists_of_all and over_lists,
            self.metric.name in convention.without_list_zero,
        )


@dataclass(frozen=True)
class Request:
    """What is to be computed; immutable, and cheap to send to another process.

    Make one with `Request.parse`.

    Attributes
    ----------
    metrics : tuple of Metric
        In the order in which they were requested, each once.
    convention : Convention
    no_relevant : {"exclude", "zero", "judged"}
        What becomes of users without relevant items.
    inputs : frozenset of str
        The inputs beside lists and relevance that are given: "train", "item_groups",
        "item_vectors".
    seen : {"exclude", "allow"}
        Whether what users have seen is no candidate, or may be recommended again.
    """

    metrics: tuple[Metric, ...]
    convention: Convention
    no_relevant: NoRelevant
    inputs: frozenset[str]
    seen: SeenItems = "exclude"

    @classmethod
    def parse(
        cls,
        metrics: MetricsLike,
        convention: str | None = None,
        no_relevant: NoRelevant | None = None,
        inputs: Iterable[str] = (),
        seen: SeenItems = "exclude",
    ) -> Request:
        """Parse and check the arguments of `evaluate` that say what to compute.

        Raises
        ------
        InvalidMetricError
            If a metric, option or convention is unknown, the convention does not have a metric in
            this form, or a metric needs an input that is not given.
        InvalidDataError
            If `no_relevant` or `seen` is something else.
        """
        rules = convention_named(convention)
        if no_relevant is None:
            no_relevant = rules.no_relevant
        if not isinstance(no_relevant, str) or no_relevant not in ("exclude", "zero", "judged"):
            raise InvalidDataError(
                f"no_relevant is {no_relevant!r}; expected 'exclude', 'zero' or 'judged'"
            )
        check_choice("seen", seen, get_args(SeenItems))
        parsed = parse_metrics(metrics, rules.options)
        request = cls(parsed, rules, no_relevant, frozenset(inputs), seen)
        for plan in request.plans:
            rules.check(plan.metric)
            for name in sorted(plan.inputs - request.inputs):
                # The other commands have no option for what is known of items.
                where = "" if name == "train" else " to evaluate"
                raise InvalidMetricError(f"{plan.metric} needs {name}: give {name}={where}")
        request._check_vectors_are_used()
        return request

    def _check_vectors_are_used(self) -> None:
        """Raise if item vectors were meant for a metric that compares items by their users."""
        if "item_vectors" not in self.inputs:
            return
        if any("item_vectors" in plan.inputs for plan in self.plans):
            return
        for plan in self.plans:
            if "similarity" in plan.arguments:
                metric = plan.metric
                raise InvalidMetricError(
                    f"{metric} compares items by their users, and not by the item_vectors given; "
                    f"ask for {metric.name}(similarity=vectors)@{metric.cutoff or 10}, or leave "
                    "item_vectors out"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling by name: definitions hold functions, which every process has."""
        names = tuple(map(str, self.metrics))
        inputs = tuple(sorted(self.inputs))
        return Request.parse, (names, self.convention.name, self.no_relevant, inputs, self.seen)

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """How each metric is computed."""
        return tuple(
            Plan(metric, metric.definition, self.convention.arguments(metric))
            for metric in self.metrics
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The canonical names of the metrics."""
        return tuple(map(str, self.metrics))

    @cached_property
    def of_whole_rankings(self) -> tuple[Metric, ...]:
        """The metrics without a cut-off, but for those that the convention has so on any list."""
        uncut = self.convention.uncut
        return tuple(m for m in self.metrics if m.cutoff is None and m.name not in uncut)

    @cached_property
    def needs_catalogue(self) -> bool:
        """Whether a metric depends on how many items there are."""
        return any(not plan.is_swept or "candidates" in plan.definition.uses for plan in self.plans)

    @cached_property
    def needs_largest_gain(self) -> bool:
        """Whether a metric depends on the largest gain of all users."""
        return any(plan.definition.of_largest(plan.arguments) for plan in self.plans)

    @cached_property
    def needs_side_data(self) -> bool:
        """Whether a metric depends on an input beside lists and relevance."""
        return any(plan.inputs for plan in self.plans)
