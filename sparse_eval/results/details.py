"""Data saved and shown with the numbers: settings, inputs, curves, lists of single users."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import check_whole
from ..core.formatting import plain, records
from ..core.hashing import digest_csr
from ..core.versions import installed_version, library_versions
from ..errors import InvalidDataError
from ..metrics.measure import collect_hits, discount_tables
from .segments import break_down

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..core.types import Booleans, Floats, Hashes, Integers, JSONValue
    from ..inputs.axes import Axis
    from ..metrics.lists import Aligned
    from .measured import Measured


#: Version of the output of `Evaluation.to_dict` and `Evaluation.save`. The same keys may have a
#: different meaning in a newer version.
SCHEMA = 4

#: Users that are picked by their number of relevant items, at these shares of all.
_PICKED_AT = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.98)

#: The columns that are kept of a user's list.
_COLUMNS = ["rank", "item", "gain", "discount", "contribution", "cumulative"]

#: Kept rows of a user's list, and of the relevant items missing from it.
_LISTED, _MISSED = 20, 10

#: Points of a curve.
_POINTS = 60


def to_dict(evaluation: Any, summary: pd.DataFrame) -> dict[str, Any]:
    """Return the content of `Evaluation.to_dict`."""
    retrieval, candidates = evaluation.retrieval, evaluation._candidates
    seen = evaluation._part.seen
    return {
        "schema": SCHEMA,
        "sparse_eval": installed_version(),
        "n_users": evaluation.n_users,
        "n_skipped": evaluation.n_skipped,
        "n_without_list": evaluation._part.n_without_list,
        "n_cold": None if seen is None else seen.n_cold,
        "n_relevant_seen": None if seen is None else seen.n_relevant,
        "n_listed_seen": None if seen is None else seen.n_listed,
        "no_relevant": evaluation.request.no_relevant,
        "without_list": evaluation.request.without_list,
        "seen": evaluation.request.seen,
        "convention": evaluation.request.convention.name,
        "retrieval": None if retrieval is None else retrieval._asdict(),
        "candidates": None if candidates is None else candidates.to_dict(),
        "propensities": evaluation._propensities,
        "metrics": plain_rows(summary),
    }


def plain_rows(summary: pd.DataFrame) -> dict[str, dict[str, JSONValue]]:
    """Return the rows of a summary by metric, ready for JSON."""
    return {
        str(name): {str(key): plain(value) for key, value in row.items()}
        for name, row in summary.iterrows()
    }


def make_record(block: Measured | None) -> dict[str, Any]:
    """Return the details that are saved and shown with the numbers, ready for JSON.

    Returns
    -------
    dict
        ``versions`` of the libraries; ``about``: the caller's own details; ``by``: means by
        "activity" and "popularity", if training data were given; ``precision_recall``, at some
        ranks. ``concentration``: the Lorenz curve of how often items are recommended, if complete
        lists are known; ``examples``: users in depth; ``inputs``: shape, entries and SHA-256 of
        each. Without the lists, most of it is empty.
    """
    record: dict[str, Any] = {
        "versions": library_versions(),
        "about": {},
        "by": {},
        "precision_recall": None,
        "concentration": None,
        "examples": [],
        "inputs": {},
    }
    return record if block is None else record | _describe_lists(block)


def _describe_lists(block: Measured) -> dict[str, Any]:
    aligned = block.aligned
    longest = max(int(aligned.rankings.lengths.max(initial=0)), 1)
    curve = None
    if aligned.rankings.last_positions is None:
        curve = _describe_curve(precision_recall(block, min(longest, MAX_RANKS)))
    by = {}
    if aligned.side_data.training is not None:
        divisible = any(plan.definition.formula.by_item for plan in block.request.plans)
        for groups in ("activity", "popularity") if divisible else ("activity",):
            by[groups] = records(break_down(block, groups).reset_index())
    return {
        "by": by,
        "precision_recall": curve,
        "concentration": _describe_concentration(block),
        "examples": _examples(block),
        "inputs": _inputs(block),
    }


def _examples(block: Measured) -> list[dict[str, Any]]:
    """Describe a few users in depth: some that all models share, and the best of this one."""
    rows = dict.fromkeys(_pick_examples(block.n_relevant, block.counted, block.fingerprints), "")
    for row, plan in enumerate(block.request.plans):
        values = block.numbers.values[row]
        if plan.per_user and np.isfinite(values).any():
            sign = 1 if plan.definition.higher_is_better else -1
            rows.setdefault(int(np.nanargmax(sign * values)), f"best by {plan.metric}")
            break
    labels, rankings = block.labels, block.aligned.rankings
    complete = np.diff(rankings.indptr) == rankings.lengths
    examples = []
    for row, why in rows.items():
        explained = explain(block.aligned, row)
        absent = explained["rank"].isna()
        listed, missed = explained[~absent], explained[absent][["item", "gain"]]
        examples.append(
            {
                "user": plain(row if labels is None else labels[row]),
                "why": why,
                "whole": bool(complete[row]),  # else only the ranks of relevant items are known
                "n_listed": len(listed),
                "listed": records(listed[_COLUMNS].head(_LISTED)),
                "n_missed": len(missed),
                "missed": records(missed.head(_MISSED)),
            }
        )
    return examples


def _inputs(block: Measured) -> dict[str, Any]:
    """Return the size of each input and a digest of it, aligned as it was evaluated."""
    lists, truth = block.aligned.rankings, block.aligned.relevance
    training = block.aligned.side_data.training
    parts: dict[str, tuple[Any, ...]] = {
        "rankings": (lists.shape, lists.indptr, lists.items, lists.positions),
        "relevance": (truth.shape, truth.indptr, truth.items, truth.gains),
    }
    if training is not None:
        shape = (len(training.indptr) - 1, training.n_items)
        parts["train"] = (shape, training.indptr, training.items)
    return {
        name: {"shape": list(part[0]), "entries": len(part[2]), "sha256": digest_csr(*part)}
        for name, part in parts.items()
    }


def check_about(about: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `about` after a round trip through JSON, or raise `InvalidDataError`."""
    try:
        plain_about = json.loads(json.dumps(dict(about or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidDataError(
            f"about has values that JSON does not support ({error}); use text, numbers, lists and "
            "dicts"
        ) from None
    return dict(plain_about)


def _describe_curve(curve: PrecisionRecall) -> dict[str, Any]:
    """Return a precision–recall curve, at no more than some ranks, evenly on a log scale."""
    ranks = np.unique(np.geomspace(1, len(curve.precision), _POINTS).round().astype(np.int64))
    return {
        "ranks": ranks.tolist(),
        "precision": curve.precision[ranks - 1].tolist(),
        "recall": curve.recall[ranks - 1].tolist(),
        "levels": curve.levels.tolist(),
        "interpolated": curve.interpolated.tolist(),
        "average_precision": curve.average_precision,
    }


def _describe_concentration(block: Measured) -> dict[str, Any] | None:
    """Return the Lorenz curve of how often items are recommended, down to the largest cut-off.

    Returns
    -------
    dict or None
        ``k``, the cut-off, ``n_items``, ``n_recommended`` items that are in any list. The curve:
        ``items`` and ``recommendations``, both shares from 0 to 1, the least recommended items
        first. ``top_percent``, the share of the recommendations that the most recommended 1 % of
        items get. None if lists have gaps or are empty, because the recommended items are then
        unknown.
    """
    rankings, n_items = block.aligned.rankings, block.aligned.side_data.n_items
    users = np.flatnonzero(block.counted)
    k = max(metric.cutoff or 0 for metric in block.request.metrics) or MAX_RANKS
    if (np.diff(rankings.indptr)[users] != rankings.lengths[users]).any():
        return None
    owners = np.repeat(np.arange(len(rankings.lengths)), np.diff(rankings.indptr))
    listed = block.counted[owners] & (rankings.positions <= k)
    counts = np.sort(np.bincount(rankings.items[listed], minlength=n_items))
    if not counts.any():
        return None
    reached = np.concatenate(([0], np.cumsum(counts))) / counts.sum()
    # More points at the few most recommended items, where the curve bends.
    shares = np.concatenate((np.linspace(0, 1, 41), 1 - np.geomspace(1e-4, 1, _POINTS)))
    places = np.unique((shares * n_items).round().astype(np.int64))
    top = max(round(n_items / 100), 1)
    return {
        "k": k,
        "n_items": n_items,
        "n_recommended": int((counts > 0).sum()),
        "items": (places / n_items).tolist(),
        "recommendations": reached[places].tolist(),
        "top_percent": float(1 - reached[n_items - top]),
    }


def _pick_examples(n_relevant: Integers, counted: Booleans, prints: Hashes) -> list[int]:
    """Pick users to show: with few, some and many relevant items, regardless of their lists.

    Evaluations of the same validation data therefore show the same users. Fingerprints decide
    between users with equally many relevant items.
    """
    rows = np.flatnonzero(counted & (n_relevant > 0))
    order = rows[np.lexsort((prints[rows], n_relevant[rows]))]
    places = [int(share * (len(order) - 1)) for share in _PICKED_AT if len(order)]
    return [int(order[place]) for place in dict.fromkeys(places)]


#: The last rank of a curve, at most.
MAX_RANKS = 10_000_000

#: Levels of recall at which precision is interpolated, as trec_eval does.
LEVELS = tuple(level / 10 for level in range(11))


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionRecall:
    """Precision and recall at every rank, and interpolated precision, averaged over users.

    Interpolated precision at a level of recall is the largest precision at any rank, down to k,
    with at least that recall. It is 0 if there is no such rank.

    Attributes
    ----------
    precision, recall : ndarray of float64, shape (k,)
        At ranks 1 to k.
    levels : ndarray of float64, shape (11,)
        Recall 0, 0.1, …, 1, the levels of trec_eval.
    interpolated : ndarray of float64, shape (11,)
        Mean over users of the interpolated precision at `levels`.
    average_precision : float
        Mean over users of the interpolated precision, averaged over each user's own levels 1/n,
        2/n, …, 1, where n is the user's number of relevant items.
    n_users : int
        Number of users averaged over.
    """

    precision: Floats
    recall: Floats
    levels: Floats
    interpolated: Floats
    average_precision: float
    n_users: int

    def __repr__(self) -> str:
        return (
            f"<PrecisionRecall: ranks 1 to {len(self.precision)}, {self.n_users} "
            f"{'user' if self.n_users == 1 else 'users'}, average precision "
            f"{self.average_precision:.4f}>"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with columns ``precision`` and ``recall``, indexed by ``rank``."""
        import pandas as pd

        ranks = pd.RangeIndex(1, len(self.precision) + 1, name="rank")
        return pd.DataFrame({"precision": self.precision, "recall": self.recall}, index=ranks)


def precision_recall(block: Measured, k: int | None) -> PrecisionRecall:
    """Return the curve that `Evaluation.precision_recall` describes."""
    import pandas as pd

    rankings = block.aligned.rankings
    if rankings.last_positions is not None:
        raise InvalidDataError(
            'lists with ties="average" have no certain positions; use ties="item"'
        )
    k = max(int(rankings.lengths.max(initial=0)), 1) if k is None else k
    check_whole("k", k, 1, MAX_RANKS)
    hits = collect_hits(block.aligned, k)
    n_users = block.n_counted
    counts = np.diff(hits.indptr)
    owners = np.repeat(np.arange(len(counts)), counts)
    kept = block.counted[owners]
    # The number of each hit among its user's hits, before users are left out.
    number = (np.arange(len(owners)) - hits.indptr[:-1][owners] + 1)[kept]
    owners, ranks = owners[kept], hits.ranks[: len(kept)][kept]
    n = np.maximum(block.n_relevant, 1).astype(np.float64)
    hits_at_rank = np.bincount(ranks, minlength=k + 1)[1:]
    shares = np.bincount(ranks, 1.0 / n[owners], k + 1)[1:]
    # For each hit, the largest precision at its rank and the ranks of its user's later hits.
    later = pd.Series((number / ranks)[::-1]).groupby(owners[::-1])
    best = later.cummax().to_numpy()[::-1]
    levels = np.array(LEVELS)
    interpolated = np.zeros(len(levels))
    for i, level in enumerate(levels):
        # The number of the first hit that reaches the level. Due to the tolerance, a product just
        # above a whole number does not need one more hit.
        needed = np.maximum(np.ceil(level * n[owners] - 1e-9), 1)
        interpolated[i] = best[number == needed].sum() / n_users
    return PrecisionRecall(
        np.cumsum(hits_at_rank) / np.arange(1, k + 1) / n_users,
        np.cumsum(shares) / n_users,
        levels,
        interpolated,
        float((best / n[owners]).sum() / n_users),
        n_users,
    )


def explain(aligned: Aligned, row: int) -> pd.DataFrame:
    """Return the table of `Evaluation.explain` for the user in a row."""
    import pandas as pd

    rankings, relevance = aligned.rankings, aligned.relevance
    listed = slice(rankings.indptr[row], rankings.indptr[row + 1])
    items = rankings.items[listed].tolist()
    first = rankings.positions[listed]
    last = first if rankings.last_positions is None else rankings.last_positions[listed]
    judged = slice(relevance.indptr[row], relevance.indptr[row + 1])
    judged_gains = aligned.hit_gains[0][judged].tolist()
    gain_of = dict(zip(relevance.items[judged].tolist(), judged_gains, strict=True))
    gains = [gain_of.get(item, 0.0) for item in items]
    length = int(rankings.lengths[row])
    discount, _ = discount_tables(aligned.convention, length)
    discounts = [
        math.fsum(discount[a : min(b, length) + 1]) / (b - a + 1)
        for a, b in zip(first.tolist(), last.tolist(), strict=True)
    ]
    recommended = set(items)
    missed = sorted(
        (item for item, gain in gain_of.items() if gain > 0 and item not in recommended),
        key=lambda item: -gain_of[item],
    )
    contributions = np.array(gains) * np.array(discounts)
    absent = np.full(len(missed), np.nan)
    nothing = np.zeros(len(missed))
    total = contributions.sum() if len(contributions) else 0.0
    return pd.DataFrame(
        {
            "rank": pd.array([*first.tolist(), *[pd.NA] * len(missed)], dtype="Int64"),
            "item": [_label(aligned, item) for item in [*items, *missed]],
            "gain": [*gains, *(gain_of[item] for item in missed)],
            "discount": np.concatenate((discounts, absent)),
            "contribution": np.concatenate((contributions, nothing)),
            "cumulative": np.concatenate((np.cumsum(contributions), nothing + total)),
        }
    )


def _label(aligned: Aligned, item: int) -> Any:
    # Only the side with more columns has labels of all items.
    for side in (aligned.relevance, aligned.rankings):
        if side.items_index is not None and item < len(side.items_index):
            return side.items_index[item]
    return item


def row_of_user(user: Hashable, labels: Axis | None, n_users: int) -> int:
    """Return the row of a user, by label or row number."""
    if labels is not None:
        row = int(labels.locate([user])[0]) if isinstance(user, Hashable) else -1
        if row < 0:
            raise InvalidDataError(f"there is no user {user!r} among the {n_users} labels")
        return row
    if not isinstance(user, int | np.integer) or not 0 <= user < n_users:
        raise InvalidDataError(
            f"there is no user {user!r}; expected a row number from 0 to {n_users - 1}", user=user
        )
    return int(user)
