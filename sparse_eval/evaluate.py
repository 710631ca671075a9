"""`evaluate`: rankings and relevance in, one row of numbers for each user out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .align import align
from .compute import Setting, make_plans, measure
from .context import Context
from .errors import InvalidDataError, InvalidMetricError
from .matrices import Rankings, Relevance
from .metrics import Metric, convention_named, parse_metrics
from .results import Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["evaluate"]


def evaluate(
    predictions: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    convention: str | None = None,
    train: Any = None,
    item_groups: Any = None,
    item_vectors: Any = None,
    no_relevant: Literal["exclude", "zero", "judged"] | None = None,
    num_threads: int | None = None,
) -> Evaluation:
    """Evaluate ranked lists against the items that turned out to be relevant.

    Parameters
    ----------
    predictions : Rankings, or scipy sparse matrix or array, shape (n_users, n_items)
        A matrix holds 1-based positions (`Rankings.from_positions`).
    validation : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        A matrix holds gains, at least 0 (`Relevance.from_csr`). Where both sides carry labels
        they are matched by label; otherwise row and column numbers are compared, and the smaller
        matrix is padded: an item outside of the other is not relevant but keeps its position.
    metrics : str, Metric or iterable of them
        For instance ``["ndcg@{5,10}", "map(normalizer=min)@20"]``.
    convention : str, optional
        Count as another library does: "trec_eval", "implicit", "ranx", … It changes the defaults
        of options, the discount, the ideal list, and which users count what: ``sparse-eval
        metrics --convention NAME`` lists it. Options and `no_relevant` that are given are kept.
        Lists are taken as they come: where a library orders equal scores another way, make them
        so, with the ``ties=`` of `Rankings` or `sparse_eval.trec.read_run`.
    train : scipy sparse matrix or array, shape (n_users, n_items), or Relevance, optional
        What the users had seen: every stored entry, an explicit zero too, is no candidate for
        recommendation; entries other than zero count for popularity, co-occurrence and history.
        Numbered as `validation`, or labelled like it (`Relevance.from_frame`). Some metrics need
        it. The catalogue is as large as the largest of all inputs.
    item_groups : sequence, mapping, Series, or matrix of shape (n_items, n_groups), optional
        The group of each item, or its weights in several.
    item_vectors : array_like of shape (n_items, width), or DataFrame by item, optional
        A vector for each item.
    no_relevant : {"exclude", "zero", "judged"}, optional
        A user without relevant items is left out of every mean (NaN for that user; the default),
        or counts 0, or counts 0 only if the validation data hold zeros for it. A user with
        relevant items and no list counts 0, unless the convention leaves it out.
    num_threads : int, optional
        Threads to use, one for each core by default. The result does not depend on it.

    Returns
    -------
    Evaluation

    Raises
    ------
    InvalidMetricError
        If a metric, option or convention is unknown, none is asked for, one needs an input that
        is not given, or one is not defined for lists with ``ties="average"``.
    InvalidDataError
        If a matrix is refused by `Rankings.from_positions` or `Relevance.from_csr`, groups or
        vectors do not cover the items, no user has a relevant item, gains are too large for a sum
        of them to be finite, or a metric of what is recommended meets a list with unknown items.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> rankings = se.Rankings.from_topk([[0, 3, 2], [1, 0, 2]])
    >>> relevant = csr_matrix([[1, 0, 1, 0], [0, 0, 0, 0]])
    >>> ev = se.evaluate(rankings, relevant, ["ndcg@3", "recall@1"])
    >>> round(ev["ndcg@3"], 6)
    0.919721
    >>> ev
    <Evaluation: 1 users, 1 left out; ndcg@3 0.9197, recall@1 0.5000>
    >>> se.evaluate(rankings, relevant, "ndcg@3", convention="rectools")["ndcg@3"]
    0.7039180890341347
    """
    rules = convention_named(convention)
    asked = parse_metrics(metrics, rules.options)
    inputs = {"train": train, "item_groups": item_groups, "item_vectors": item_vectors}
    given = frozenset(name for name, value in inputs.items() if value is not None)
    plans = make_plans(asked, rules, given)
    missing = rules.no_relevant if no_relevant is None else no_relevant
    if not isinstance(missing, str) or missing not in ("exclude", "zero", "judged"):
        raise InvalidDataError(
            f"no_relevant is {no_relevant!r}; expected 'exclude', 'zero' or 'judged'"
        )
    rankings = (
        predictions if isinstance(predictions, Rankings) else Rankings.from_positions(predictions)
    )
    relevance = validation if isinstance(validation, Relevance) else Relevance.from_csr(validation)
    rankings, relevance = align(rankings, relevance)
    if rankings.last_positions is not None:
        for metric in asked:
            if not metric.definition.averages_ties:
                raise InvalidMetricError(
                    f'{metric} has no expectation over tied items; make the lists with ties="item"'
                )
    context = Context.of(rankings, relevance, **inputs)
    setting = Setting(rankings, relevance, context, rules)
    sums, n_relevant = measure(setting, plans, num_threads)
    if not n_relevant.any():
        raise InvalidDataError(
            f"none of the {len(n_relevant)} users has a relevant item (a stored value above 0); "
            "there is nothing to evaluate"
        )
    if missing != "exclude":
        for row, plan in enumerate(plans):
            if plan.definition.over == "statistics":
                sums.columns[row, n_relevant == 0] = 0.0
    evaluation = Evaluation.of(setting, tuple(plans), sums, n_relevant, missing)
    if evaluation.n_users == 0:
        raise InvalidDataError(
            f"nobody counts with convention={rules.name!r}: no user has both a relevant item and "
            "a list"
        )
    return evaluation
