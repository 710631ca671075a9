"""Details of an evaluation: the inputs, the lists of single users, precision and recall."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import check_whole
from ..core.formatting import plain
from ..core.hashing import digest_csr
from ..core.versions import installed_version, library_versions
from ..errors import InvalidDataError
from ..metrics.measure import collect_hits, discount_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..core.types import Floats, JSONValue
    from ..inputs.axes import Axis
    from ..metrics.lists import Aligned
    from .measured import Measured


#: Version of the output of `Evaluation.to_dict` and `Evaluation.save`. The same keys may have a
#: different meaning in a newer version.
SCHEMA = 4


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
        ``versions`` of the libraries; ``about``: the caller's own details; ``inputs``: shape,
        entries and SHA-256 of each, empty without the lists.
    """
    inputs = {} if block is None else _inputs(block)
    return {"versions": library_versions(), "about": {}, "inputs": inputs}


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
