"""`Protocol`: the metrics of an evaluation, and the rules by which they count users and items."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ..core.arguments import check_choice, check_flag
from ..errors import InvalidMetricError
from .conventions import convention_named
from .grammar import Metric, parse_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

#: One metric or several, by name or parsed, alone or with their rules.
MetricsLike: TypeAlias = "str | Metric | Iterable[str | Metric] | Protocol"

#: What becomes of users without relevant items.
NoRelevant: TypeAlias = Literal["exclude", "zero", "judged"]

#: What becomes of users with relevant items and no list.
WithoutList: TypeAlias = Literal["exclude", "zero"]


@dataclass(frozen=True)
class Protocol:
    """The metrics of an evaluation, and the rules by which they count users and items.

    Every function that takes `metrics` takes a `Protocol` instead.

    Parameters
    ----------
    metrics : str, Metric or iterable of them
        For instance ``["ndcg@{5,10}", "map(normalizer=min)@20"]``.
    convention : str, optional
        Count as another library does: "trec_eval", "implicit", "ranx", … It changes the defaults
        of options, the discount, the ideal list, and which users count what: ``sparse-eval
        metrics --convention NAME`` lists it. Given options, `no_relevant` and `without_list` are
        kept.
    no_relevant : {"exclude", "zero", "judged"}, optional
        A user without relevant items is left out of every mean (NaN for that user), or counts 0,
        or counts 0 only if the validation data hold zeros for it. The default is that of the
        convention, "exclude" without any.
    without_list : {"zero", "exclude"}, optional
        A user with relevant items and no list counts 0, or is left out. The default is that of the
        convention, "zero" without any. With ``convention="trec_eval"``, which leaves such users
        out, "zero" is what trec_eval's ``-c`` does.
    filter_seen : bool
        Whether what users have seen is left out of the lists of a model and is no candidate. With
        False it may be recommended again, as where people listen or buy repeatedly: every item of
        the catalogue is a candidate. What is held out has to hold such items too, see
        ``repeats="keep"`` of `split.temporal`; ``recall(items=repeat)`` and
        ``recall(items=explore)`` tell both kinds apart.
    judged_only : bool
        Whether items that nobody has judged are taken out of the lists first, and the others move
        up (condensed lists, [1]_; trec_eval's ``-J``). What the validation data store is judged,
        explicit zeros included, as MIND's impressions are. The candidates of a user are then the
        judged items: random lists, auc, … are of them, and tables say ``ndcg@10 (judged)``. What is
        judged and not in the list is missed, so give lists as long as there are, or they look worse
        than random ones. A user whose list has no judged item still has a list, see `without_list`.

    Raises
    ------
    InvalidMetricError
        If a metric, option or convention is unknown, or the convention does not have a metric in
        this form.
    InvalidDataError
        If another parameter is something else.

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
        """Return the protocol that is given, or one of metrics alone.

        Raises
        ------
        InvalidMetricError
            If a convention is given beside a protocol.
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
