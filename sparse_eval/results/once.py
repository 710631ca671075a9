"""One evaluation: what is asked, settled once, and the columns of some users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from ..errors import InvalidDataError, InvalidMetricError
from ..metrics import Convention, Metric, convention_named, parse_metrics
from ..metrics.measure import Plan, Setting, make_plans, measure
from ..results import Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..inputs.side_data import Context

    NoRelevant = Literal["exclude", "zero", "judged"]

__all__ = ["Question", "Terms", "evaluate_once", "settle_terms", "terms_of"]


class Question(NamedTuple):
    """What is asked, in words: it can be sent to another process.

    Attributes
    ----------
    metrics : tuple of str
        In their canonical spelling.
    convention : str or None
    no_relevant : str or None
        None: as the convention says.
    given : frozenset of str
        The inputs beside lists and relevance.
    """

    metrics: tuple[str, ...]
    convention: str | None
    no_relevant: NoRelevant | None
    given: frozenset[str]

    @classmethod
    def of(
        cls,
        metrics: str | Metric | Iterable[str | Metric],
        convention: str | None,
        no_relevant: NoRelevant | None,
        given: Iterable[str] = (),
    ) -> Question:
        """Check what is asked, or raise as `evaluate` does."""
        given = frozenset(given)
        terms = settle_terms(metrics, convention, no_relevant, given)
        return cls(tuple(str(plan.metric) for plan in terms.plans), convention, no_relevant, given)


class Terms(NamedTuple):
    """How it is answered."""

    plans: tuple[Plan, ...]
    rules: Convention
    no_relevant: NoRelevant


def terms_of(question: Question) -> Terms:
    """Return how each metric is computed."""
    return settle_terms(*question)


def settle_terms(
    metrics: str | Metric | Iterable[str | Metric],
    convention: str | None,
    no_relevant: NoRelevant | None,
    given: Iterable[str],
) -> Terms:
    """Settle how each metric is computed, or raise as `evaluate` does."""
    rules = convention_named(convention)
    plans = make_plans(parse_metrics(metrics, rules.options), rules, frozenset(given))
    missing = rules.no_relevant if no_relevant is None else no_relevant
    if not isinstance(missing, str) or missing not in ("exclude", "zero", "judged"):
        raise InvalidDataError(
            f"no_relevant is {missing!r}; expected 'exclude', 'zero' or 'judged'"
        )
    return Terms(tuple(plans), rules, missing)


def evaluate_once(
    terms: Terms,
    rankings: Rankings,
    relevance: Relevance,
    context: Context,
    num_threads: int | None,
    *,
    alone: bool = True,
) -> Evaluation:
    """Evaluate users whose lists and relevance are aligned.

    Unless they are `alone`, but a block of users, somebody has to count.
    """
    plans, rules, missing = terms
    if rankings.last_positions is not None:
        for plan in plans:
            if not plan.definition.averages_ties:
                raise InvalidMetricError(
                    f"{plan.metric} has no expectation over tied items; make the lists with "
                    'ties="item"'
                )
    setting = Setting(rankings, relevance, context, rules)
    sums, n_relevant = measure(setting, list(plans), num_threads)
    if alone and not n_relevant.any():
        raise InvalidDataError(
            f"none of the {len(n_relevant)} users has a relevant item (a stored value above 0); "
            "there is nothing to evaluate"
        )
    if missing != "exclude":
        for row, plan in enumerate(plans):
            if plan.definition.over == "statistics":
                sums.columns[row, n_relevant == 0] = 0.0
    evaluation = Evaluation.of(setting, plans, sums, n_relevant, missing, alone=alone)
    if alone and evaluation.n_users == 0:
        raise InvalidDataError(
            f"nobody counts with convention={rules.name!r}: no user has both a relevant item and "
            "a list"
        )
    return evaluation
