"""`Request`: which metrics are to be computed, and how each of them is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidMetricError
from .conventions import Convention, convention_named
from .corrected import check_corrected, correct
from .plan import Plan
from .propensity import check_weights
from .protocol import NoRelevant, Protocol, WithoutList

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.types import Integers
    from ..inputs.candidates import Estimator
    from ..inputs.relevance import Relevance
    from ..inputs.training import SeenItems
    from .grammar import Metric

#: How the inputs are given that are not arguments.
_GIVEN = {
    "item_groups": "groups of items: give items=se.ItemData(groups=…)",
    "item_vectors": "vectors of items: give items=se.ItemData(vectors=…)",
    "propensity": "propensities of items: give items=se.ItemData(propensity=…)",
}


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
    corrected: Estimator | None = None
    seen: SeenItems = "exclude"
    judged_only: bool = False
    without_list: WithoutList = "zero"

    @classmethod
    def parse(cls, protocol: Protocol, inputs: Iterable[str] = ()) -> Request:
        """Check a protocol against the inputs that are given.

        Raises
        ------
        InvalidMetricError
            If a metric needs an input that is not given, or `judged_only` is given with candidates.
        """
        rules = convention_named(protocol.convention)
        request = cls(
            protocol.metrics,
            rules,
            protocol.no_relevant or rules.no_relevant,
            frozenset(inputs),
            seen="exclude" if protocol.filter_seen else "allow",
            judged_only=protocol.judged_only,
            without_list=protocol.without_list or rules.without_list,
        )
        if request.judged_only and "candidates" in request.inputs:
            raise InvalidMetricError(
                "judged_only=True makes the judged items of each user its candidates, and "
                "candidates= others; leave out one of both"
            )
        for plan in request.plans:
            check_weights(plan.metric, plan.arguments)
            for name in sorted(plan.inputs - request.inputs):
                missing = _GIVEN.get(name, f"{name}: give {name}=")
                raise InvalidMetricError(f"{plan.metric} needs {missing}", metric=plan.metric)
        # Vectors or propensities of items may be given that no metric takes.
        unused = request.inputs.difference(*(plan.inputs for plan in request.plans))
        others = (plan.metric for plan in request.plans if "similarity" in plan.arguments)
        if "item_vectors" in unused and (metric := next(others, None)):
            raise InvalidMetricError(
                f"{metric} does not compare items by the vectors= of se.ItemData; ask for "
                f"{metric.name}(similarity=vectors)@{metric.cutoff or 10}, or leave vectors= out",
                metric=metric,
            )
        if "propensity" in unused:
            raise InvalidMetricError(
                "no metric weights hits by the propensity= of se.ItemData; ask for "
                "recall(weights=snips)@10 or psp(propensity=given)@10, or leave propensity= out"
            )
        return request

    def corrected_by(self, estimator: Estimator | None) -> Request:
        """Return the request for candidates from whose ranks metrics are estimated, if they are.

        Raises
        ------
        InvalidMetricError
            If no estimate is defined for a metric or the convention.
        """
        if estimator is None:
            return self
        check_corrected(self.plans, self.convention)
        return replace(self, corrected=estimator)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling by name: definitions hold functions, which every process has."""
        protocol = Protocol(
            tuple(map(str, self.metrics)),
            convention=self.convention.name,
            no_relevant=self.no_relevant,
            without_list=self.without_list,
            filter_seen=self.seen == "exclude",
            judged_only=self.judged_only,
        )
        return _unpickle, (protocol, tuple(sorted(self.inputs)), self.corrected)

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
    def rules(self) -> str:
        """The convention, and what is given besides of the rules about users, for tables."""
        own = [
            f"{name}={value}"
            for name in ("no_relevant", "without_list")
            if (value := getattr(self, name)) != getattr(self.convention, name)
        ]
        return " ".join([self.convention.name, *own])

    @property
    def ranks_stored_zeros(self) -> bool:
        """Whether the ranks of items stored with a zero matter as those of relevant ones do."""
        return self.convention.stored_zeros or self.uses_judged

    def listed_users(self, relevance: Relevance) -> Integers:
        """Return the rows of the users whose lists matter: who count, or whose lists do."""
        if self.no_relevant == "zero" or self.convention.lists_of_all:
            return np.arange(relevance.shape[0])
        judged = np.diff(relevance.indptr) if self.no_relevant == "judged" else 0
        return np.flatnonzero(relevance.n_relevant + judged)

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


def _unpickle(protocol: Protocol, inputs: tuple[str, ...], corrected: Estimator | None) -> Request:
    return Request.parse(protocol, inputs).corrected_by(corrected)
