"""`Protocol` and `Request`: which metrics to compute, and how to compute them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from ..core.arguments import check_choice, check_flag
from ..errors import InvalidMetricError
from .conventions import Convention, convention_named
from .grammar import Metric, parse_metrics
from .plan import Plan, check_weights

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.types import Integers
    from ..inputs.relevance import Relevance
    from ..inputs.training import SeenItems


#: One or several metrics, by name or parsed, with or without their rules.
MetricsLike: TypeAlias = "str | Metric | Iterable[str | Metric] | Protocol"

#: The rule for users without relevant items.
NoRelevant: TypeAlias = Literal["exclude", "zero", "judged"]

#: The rule for users with relevant items and no list.
WithoutList: TypeAlias = Literal["exclude", "zero"]


@dataclass(frozen=True)
class Protocol:
    """The metrics of an evaluation, with their rules for counting users and items.

    Every function that takes `metrics` also takes a `Protocol`.

    Parameters
    ----------
    metrics : str, Metric or iterable of them
        For instance ``["ndcg@{5,10}", "map(normalizer=min)@20"]``.
    convention : str, optional
        Count as another library does: "trec_eval", "implicit", "ranx", … A convention changes the
        defaults of options, the discount, the ideal list, and the rules for users. ``sparse-eval
        metrics --convention NAME`` lists its changes. Explicit options, `no_relevant` and
        `without_list` take precedence.
    no_relevant : {"exclude", "zero", "judged"}, optional
        With "exclude", a user without relevant items is left out of every mean (NaN for that user).
        With "zero", the user counts 0. With "judged", the user counts 0 only if the validation data
        hold zeros for this user. By default, the rule of the convention, or "exclude".
    without_list : {"zero", "exclude"}, optional
        A user with relevant items and no list counts 0, or is left out. By default, the rule of the
        convention, or "zero". ``convention="trec_eval"`` leaves such users out; with it, "zero" is
        trec_eval's ``-c``.
    filter_seen : bool
        Whether seen items are left out of the lists of a model and of the candidates. With False,
        every item of the catalogue is a candidate and may be recommended again, for instance if
        people listen or buy repeatedly. The held-out data must then contain such items too, see
        ``repeats="keep"`` of `split.temporal`. ``recall(items=repeat)`` and
        ``recall(items=explore)`` measure repeated and new items separately.
    judged_only : bool
        Whether unjudged items are first removed from the lists, and the other items move up
        (condensed lists, [1]_; trec_eval's ``-J``). Items stored in the validation data count as
        judged, including explicit zeros, such as MIND's impressions. The candidates of a user are
        then the judged items, also for random lists, auc, …, and tables show ``ndcg@10 (judged)``.
        Judged items outside the list count as missed, so pass complete lists: cut lists look worse
        than random lists. A user whose list has no judged item still has a list, see
        `without_list`.

    Raises
    ------
    InvalidMetricError
        If a metric, option or convention is unknown, or the convention does not have a metric in
        this form.
    InvalidDataError
        If another parameter has an invalid value.

    References
    ----------
    .. [1] T. Sakai, "Alternatives to Bpref", SIGIR 2007. doi:10.1145/1277741.1277756

    Examples
    --------
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> rankings = se.Rankings.from_topk([[0, 3, 2], [1, 0, 2]])
    >>> relevant = csr_matrix([[1, 0, 1, 0], [0, 0, 0, 0]])
    >>> se.evaluate(rankings, relevant, se.Protocol("recall@1", no_relevant="zero"))["recall@1"]
    0.25
    """

    metrics: Any
    _: KW_ONLY
    convention: str | None = None
    no_relevant: NoRelevant | None = None
    without_list: WithoutList | None = None
    filter_seen: bool = True
    judged_only: bool = False

    def __post_init__(self) -> None:
        rules = convention_named(self.convention)
        object.__setattr__(self, "metrics", parse_metrics(self.metrics, rules.options))
        for name, rule in (("no_relevant", NoRelevant), ("without_list", WithoutList)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(rules, name))
            else:
                check_choice(name, getattr(self, name), get_args(rule))
        check_flag("filter_seen", self.filter_seen)
        check_flag("judged_only", self.judged_only)
        for metric in self.metrics:
            rules.check(metric)

    @classmethod
    def of(cls, metrics: MetricsLike, convention: str | None = None) -> Protocol:
        """Return the given protocol, or a new protocol of the given metrics.

        Raises
        ------
        InvalidMetricError
            If a convention is given together with a protocol.
        """
        if not isinstance(metrics, Protocol):
            return cls(metrics, convention=convention)
        if convention is not None:
            raise InvalidMetricError(
                "convention= cannot be combined with a Protocol, which has its own; use "
                f"Protocol(metrics, convention={convention!r})",
                argument="convention",
            )
        return metrics


#: How to pass the inputs that are not arguments.
_GIVEN = {
    "item_groups": "groups of items: give item_data=se.ItemData(groups=…)",
    "item_vectors": "vectors of items: give item_data=se.ItemData(vectors=…)",
    "propensity": "propensities of items: give item_data=se.ItemData(propensity=…)",
}


class Traits(NamedTuple):
    """Properties of a metric that are saved with its values.

    Attributes
    ----------
    per_user : bool
        Whether it has a value for each user.
    higher_is_better : bool
    lower, upper : float
        The smallest and the largest value that a formula returns.
    weighted_by : str or None
        The input of the propensities that weight hits: "train" or "propensity".
    """

    per_user: bool
    higher_is_better: bool
    lower: float
    upper: float
    weighted_by: str | None

    @classmethod
    def of(cls, plan: Plan) -> Traits:
        """Return the traits of a metric that is registered."""
        definition, weights = plan.definition, plan.weights
        weighted_by = None if weights is None else weights.needs
        return cls(
            plan.per_user, definition.higher_is_better, definition.range[0], plan.upper, weighted_by
        )


@dataclass(frozen=True)
class Request:
    """The metrics to compute and their rules; immutable, and cheap to send to another process.

    `Request.parse` creates it.

    Attributes
    ----------
    metrics : tuple of Metric
        In the order requested, each once.
    convention : Convention
    no_relevant : {"exclude", "zero", "judged"}
        The rule for users without relevant items.
    inputs : frozenset of str
        The given inputs other than lists and relevance: "train", "item_groups", "item_vectors",
        "propensity", "candidates".
    seen : {"exclude", "allow"}
        Whether seen items are not candidates, or may be recommended again.
    judged_only : bool
        Whether lists contain only judged items.
    without_list : {"zero", "exclude"}
        The rule for users with relevant items and no list.
    saved_traits : tuple of Traits or None
        The traits of the metrics, if they were saved. The metrics need not be registered then.
    """

    metrics: tuple[Metric, ...]
    convention: Convention
    no_relevant: NoRelevant
    inputs: frozenset[str]
    seen: SeenItems = "exclude"
    judged_only: bool = False
    without_list: WithoutList = "zero"
    saved_traits: tuple[Traits, ...] | None = field(default=None, compare=False)

    @classmethod
    def parse(
        cls, metrics: MetricsLike, inputs: Iterable[str] = (), convention: str | None = None
    ) -> Request:
        """Check metrics or a protocol against the given inputs.

        Raises `InvalidMetricError` as from `Protocol.of`, if a metric needs an input that is not
        given, or `judged_only` is given with candidates.
        """
        protocol = Protocol.of(metrics, convention)
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
                "judged_only=True and candidates= both define the candidates of each user; "
                "use only one of them",
                argument="judged_only",
            )
        for plan in request.plans:
            check_weights(plan.metric, plan.arguments)
            for name in sorted(plan.inputs - request.inputs):
                missing = _GIVEN.get(name, f"{name}: give {name}=")
                raise InvalidMetricError(
                    f"{plan.metric} needs {missing}",
                    argument=name.removeprefix("item_"),
                    metric=plan.metric,
                )
        if "propensity" in request.inputs - request.side_inputs:
            raise InvalidMetricError(
                "no metric uses the propensity= of se.ItemData; request recall(weights=snips)@10 "
                "or psp(propensity=given)@10, or omit propensity=",
                argument="propensity",
            )
        return request

    @classmethod
    def parse_ranked(
        cls, metrics: MetricsLike, inputs: Iterable[str] = ("train",), convention: str | None = None
    ) -> Request:
        """Check the metrics of a model's rankings, to their cut-offs or of whole ones.

        Raises `InvalidMetricError` as from `parse`, if metrics without a cut-off are combined with
        others that need lists, or the length of lists is unknown.
        """
        request = cls.parse(metrics, inputs, convention)
        whole = request.of_whole_rankings
        for metric in whole:
            if metric in request.over_lists:
                raise InvalidMetricError(
                    f"{metric} has no cut-off, and the whole ranking lists everything that is "
                    f"unseen; ask for '{metric}@k'"
                )
        if whole and request.over_lists:
            raise InvalidMetricError(
                f"{whole[0]} has no cut-off, and needs the ranks of relevant items in the whole "
                f"catalogue; {request.over_lists[0]} needs lists. Evaluate them separately"
            )
        if not (request.largest_cutoff or whole):
            raise InvalidMetricError(
                f"{request.metrics[0]} has no cut-off, so the length of the lists is unknown. Add "
                "a metric whose cut-off is that length, such as 'ndcg@1000'"
            )
        return request

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling without `plans`, because every process has their functions."""
        return Request, tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """How each metric is computed."""
        return tuple(map(self.plan_of, range(len(self.metrics))))

    def plan_of(self, row: int) -> Plan:
        """Return how the metric at a position is computed.

        Raises `InvalidMetricError` if the metric is not registered in this process.
        """
        metric = self.metrics[row]
        try:
            return Plan(metric, metric.definition, self.convention.arguments(metric))
        except InvalidMetricError:
            raise InvalidMetricError(
                f"{metric} is not registered in this process, so it cannot be computed; register "
                "it with sparse_eval.register_metric",
                metric=metric,
            ) from None

    @cached_property
    def traits(self) -> tuple[Traits, ...]:
        """The traits of each metric."""
        return self.saved_traits or tuple(map(Traits.of, self.plans))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The canonical names of the metrics."""
        return tuple(map(str, self.metrics))

    @cached_property
    def uses_judged(self) -> bool:
        """Whether items judged as not relevant are distinguished from unjudged items."""
        return self.judged_only or any(plan.uses_judged for plan in self.plans)

    @property
    def rules(self) -> str:
        """The convention and the explicit rules about users, for tables."""
        own = [
            f"{name}={value}"
            for name in ("no_relevant", "without_list")
            if (value := getattr(self, name)) != getattr(self.convention, name)
        ]
        return " ".join([self.convention.name, *own])

    @property
    def ranks_stored_zeros(self) -> bool:
        """Whether the ranks of items stored with a zero matter like the ranks of relevant items."""
        return self.convention.zeros == "hit" or self.uses_judged

    def range_of(self, row: int) -> tuple[float, float]:
        """Return the smallest and the largest possible value of the metric at a position."""
        ends = self.traits[row].lower, self.traits[row].upper
        zero = () if self.no_relevant == "exclude" else (0.0,)  # which a user may count
        return min(*ends, *zero), max(*ends, *zero)

    def listed_users(self, relevance: Relevance) -> Integers:
        """Return the rows of the users whose lists matter, because the user or the list counts."""
        if self.no_relevant == "zero" or self.convention.exceptions.lists_of_all:
            return np.arange(relevance.shape[0])
        judged = np.diff(relevance.indptr) if self.no_relevant == "judged" else 0
        return np.flatnonzero(relevance.n_relevant + judged)

    @cached_property
    def of_whole_rankings(self) -> tuple[Metric, ...]:
        """The metrics without a cut-off, except those the convention computes on any list."""
        uncut = self.convention.uncut
        return tuple(m for m in self.metrics if not m.cutoff and uncut.get(m.name) != "lists")

    @cached_property
    def over_lists(self) -> tuple[Metric, ...]:
        """The metrics that need whole lists, rather than the ranks of relevant items."""
        return tuple(plan.metric for plan in self.plans if not plan.is_swept)

    @cached_property
    def largest_cutoff(self) -> int:
        """The largest cut-off, 0 if there is none."""
        return max(metric.cutoff or 0 for metric in self.metrics)

    @cached_property
    def needs_catalogue(self) -> bool:
        """Whether a metric depends on how many items there are."""
        return any(not plan.is_swept or "candidates" in plan.definition.uses for plan in self.plans)

    @cached_property
    def needs_largest_gain(self) -> bool:
        """Whether a metric depends on the largest gain of all users."""
        return any(plan.definition.formula.of_largest(plan.arguments) for plan in self.plans)

    @cached_property
    def weighted_by(self) -> frozenset[str]:
        """The inputs of the propensities that weight hits."""
        views = {plan.weights for plan in self.plans}
        return frozenset(weights.needs for weights in views if weights is not None)

    @cached_property
    def side_inputs(self) -> frozenset[str]:
        """The inputs other than lists and relevance that the metrics depend on."""
        return frozenset().union(*(plan.inputs for plan in self.plans))
