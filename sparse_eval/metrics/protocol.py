"""`Protocol`: the metrics of an evaluation, with their rules for counting users and items."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ..core.arguments import check_choice, check_flag
from ..errors import InvalidMetricError
from .conventions import convention_named
from .grammar import Metric, parse_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

#: One metric or several, by name or parsed, with or without their rules.
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
        defaults of options, the discount, the ideal list, and the rules for users: ``sparse-eval
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
        people listen or buy repeatedly. The held-out data must then have such items too, see
        ``repeats="keep"`` of `split.temporal`. ``recall(items=repeat)`` and
        ``recall(items=explore)`` measure repeated and new items separately.
    judged_only : bool
        Whether unjudged items are first removed from the lists, and the other items move up
        (condensed lists, [1]_; trec_eval's ``-J``). Items stored in the validation data count as
        judged, explicit zeros included, such as MIND's impressions. The candidates of a user are
        then the judged items, also for random lists, auc, …, and tables show ``ndcg@10 (judged)``.
        Judged items outside the list count as missed, so give complete lists: cut lists look worse
        than random ones. A user whose list has no judged item still has a list, see `without_list`.

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
        for name in ("no_relevant", "without_list"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(rules, name))
        check_choice("no_relevant", self.no_relevant, get_args(NoRelevant))
        check_choice("without_list", self.without_list, get_args(WithoutList))
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
                "convention= is given beside a Protocol, which has one of its own; give "
                f"Protocol(metrics, convention={convention!r})",
                argument="convention",
            )
        return metrics
