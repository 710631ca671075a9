"""`Request`: which metrics are to be computed, and how each of them is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ..core.arguments import check_choice, check_flag
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.training import SeenItems
from .conventions import Convention, convention_named
from .corrected import Corrected, check_corrected, correct
from .grammar import Metric, parse_metrics
from .plan import Plan
from .propensity import check_weights

if TYPE_CHECKING:
    from collections.abc import Iterable


#: One metric or several, by name or parsed.
MetricsLike: TypeAlias = "str | Metric | Iterable[str | Metric]"

#: What becomes of users without relevant items, see `evaluate`.
NoRelevant: TypeAlias = Literal["exclude", "zero", "judged"]

#: What becomes of users with relevant items and no list, see `evaluate`.
WithoutList: TypeAlias = Literal["exclude", "zero"]


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
        "item_vectors", "propensity", "candidates".
    corrected : {"unbiased", "bias_variance"} or None
        How metrics of the whole catalogue are estimated from sampled candidates.
    seen : {"exclude", "allow"}
        Whether what users have seen is no candidate, or may be recommended again.
    judged_only : bool
        Whether lists are of judged items alone.
    without_list : {"zero", "exclude"}
        What becomes of users with relevant items and no list.
    """

    metrics: tuple[Metric, ...]
    convention: Convention
    no_relevant: NoRelevant
    inputs: frozenset[str]
    corrected: Corrected | None = None
    seen: SeenItems = "exclude"
    judged_only: bool = False
    without_list: WithoutList = "zero"

    @classmethod
    def parse(
        cls,
        metrics: MetricsLike,
        convention: str | None = None,
        no_relevant: NoRelevant | None = None,
        inputs: Iterable[str] = (),
        *,
        corrected: object = None,
        seen: SeenItems = "exclude",
        judged_only: bool = False,
        without_list: WithoutList | None = None,
    ) -> Request:
        """Parse and check the arguments of `evaluate` that say what to compute.

        Raises
        ------
        InvalidMetricError
            If a metric, option or convention is unknown, the convention does not have a metric in
            this form, a metric needs an input that is not given, or `judged_only` is given with
            candidates.
        InvalidDataError
            If `no_relevant`, `without_list`, `seen` or `judged_only` is something else.
        """
        rules = convention_named(convention)
        if no_relevant is None:
            no_relevant = rules.no_relevant
        if not isinstance(no_relevant, str) or no_relevant not in ("exclude", "zero", "judged"):
            raise InvalidDataError(
                f"no_relevant is {no_relevant!r}; expected 'exclude', 'zero' or 'judged'"
            )
        if without_list is None:
            without_list = rules.without_list
        check_choice("without_list", without_list, get_args(WithoutList))
        check_choice("seen", seen, get_args(SeenItems))
        check_flag("judged_only", judged_only)
        parsed = parse_metrics(metrics, rules.options)
        request = cls(
            parsed,
            rules,
            no_relevant,
            frozenset(inputs),
            seen=seen,
            judged_only=judged_only,
            without_list=without_list,
        )
        if judged_only and "candidates" in request.inputs:
            raise InvalidMetricError(
                "judged_only=True makes the judged items of each user its candidates, and "
                "candidates= others; leave out one of both"
            )
        for plan in request.plans:
            rules.check(plan.metric)
            check_weights(plan.metric, plan.arguments)
            for name in sorted(plan.inputs - request.inputs):
                # The other commands have no option for what is known of items.
                where = "" if name == "train" else " to evaluate"
                raise InvalidMetricError(f"{plan.metric} needs {name}: give {name}={where}")
        request._check_vectors_are_used()
        request._check_propensity_is_used()
        correction = check_corrected(corrected, request.plans, request.inputs, rules)
        return request if correction is None else replace(request, corrected=correction)

    def _check_vectors_are_used(self) -> None:
        """Raise if item vectors were meant for a metric that compares items by something else."""
        if "item_vectors" not in self.inputs:
            return
        if any("item_vectors" in plan.inputs for plan in self.plans):
            return
        for plan in self.plans:
            if "similarity" in plan.arguments:
                metric = plan.metric
                raise InvalidMetricError(
                    f"{metric} does not compare items by the item_vectors given; "
                    f"ask for {metric.name}(similarity=vectors)@{metric.cutoff or 10}, or leave "
                    "item_vectors out"
                )

    def _check_propensity_is_used(self) -> None:
        """Raise if propensities are given, and no metric weights hits by them."""
        if "propensity" not in self.inputs:
            return
        if not any("propensity" in plan.inputs for plan in self.plans):
            raise InvalidMetricError(
                "no metric weights hits by the propensity given; ask for recall(weights=snips)@10 "
                "or psp(propensity=given)@10, or leave propensity out"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling by name: definitions hold functions, which every process has."""
        names = tuple(map(str, self.metrics))
        arguments = (names, self.convention.name, self.no_relevant, tuple(sorted(self.inputs)))
        parse = partial(
            Request.parse,
            corrected=self.corrected,
            seen=self.seen,
            judged_only=self.judged_only,
            without_list=self.without_list,
        )
        return parse, arguments

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """How each metric is computed."""
        plans = tuple(
            Plan(metric, metric.definition, self.convention.arguments(metric))
            for metric in self.metrics
        )
        return plans if self.corrected is None else correct(plans, self.corrected)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The canonical names of the metrics."""
        return tuple(map(str, self.metrics))

    @cached_property
    def uses_judged(self) -> bool:
        """Whether it matters which items are judged to be not relevant, and which nobody judged."""
        return self.judged_only or any(plan.uses_judged for plan in self.plans)

    @property
    def ranks_stored_zeros(self) -> bool:
        """Whether the ranks of items stored with a zero matter as those of relevant ones do."""
        return self.convention.stored_zeros or self.uses_judged

    @cached_property
    def of_whole_rankings(self) -> tuple[Metric, ...]:
        """The metrics without a cut-off, but for those that the convention has so on any list."""
        uncut = () if self.convention.ranks_all else self.convention.uncut
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
    def weighted_by(self) -> frozenset[str]:
        """The inputs that tell by which propensities hits are weighted."""
        views = {plan.weights for plan in self.plans}
        return frozenset(weights.needs for weights in views if weights is not None)

    @cached_property
    def side_inputs(self) -> frozenset[str]:
        """The inputs other than lists and relevance that the metrics depend on."""
        return frozenset().union(*(plan.inputs for plan in self.plans))

    @property
    def needs_side_data(self) -> bool:
        """Whether a metric depends on an input beside lists and relevance."""
        return bool(self.side_inputs)
