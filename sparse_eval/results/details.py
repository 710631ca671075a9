"""Curves, concentration and example users of a record, taken from lists that are not saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.formatting import plain, records

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import Booleans, Hashes, Integers
    from ..inputs.rankings import Rankings
    from .curves import PrecisionRecall

#: Users that are picked by their number of relevant items, at these shares of all.
_PICKED_AT = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.98)

#: Of a user's list, and of what is missing from it, so much is kept.
_LISTED, _MISSED = 20, 10

#: Points of a curve.
_POINTS = 60


def describe_curve(curve: PrecisionRecall) -> dict[str, Any]:
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


def describe_concentration(
    rankings: Rankings, users: Integers, k: int, n_items: int
) -> dict[str, Any] | None:
    """Return the Lorenz curve of how often items are recommended.

    Parameters
    ----------
    rankings : Rankings
    users : ndarray of int64
        Those whose lists count.
    k : int
        How much of a list counts.
    n_items : int
        Items of the catalogue.

    Returns
    -------
    dict or None
        ``k``, ``n_items``, ``n_recommended`` items that are in any list; the curve, ``items`` and
        ``recommendations``, both shares from 0 to 1, items that are recommended least coming
        first; and ``top_percent``, the share of the recommendations that goes to the 1 % of items
        that are recommended most. None where lists have gaps, or are empty: it is not known what
        was recommended.
    """
    if (np.diff(rankings.indptr)[users] != rankings.lengths[users]).any():
        return None
    owners = np.repeat(np.arange(len(rankings.lengths)), np.diff(rankings.indptr))
    counted = np.zeros(len(rankings.lengths), bool)
    counted[users] = True
    counted = counted[owners] & (rankings.positions <= k)
    counts = np.sort(np.bincount(rankings.items[counted], minlength=n_items))
    if not counts.any():
        return None
    reached = np.concatenate(([0], np.cumsum(counts))) / counts.sum()
    # Most of what happens is among the few items that are recommended most.
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


def pick_examples(n_relevant: Integers, counted: Booleans, prints: Hashes) -> list[int]:
    """Pick users to show: with few, some and many relevant items, whatever was recommended.

    So that evaluations of the same validation data show the same users. Of users with as many
    relevant items, their fingerprints decide.
    """
    rows = np.flatnonzero(counted & (n_relevant > 0))
    order = rows[np.lexsort((prints[rows], n_relevant[rows]))]
    places = [int(share * (len(order) - 1)) for share in _PICKED_AT if len(order)]
    return [int(order[place]) for place in dict.fromkeys(places)]


def describe_example(user: Any, explained: pd.DataFrame, whole: bool, why: str) -> dict[str, Any]:
    """Return one user's list and what it lacks, from what `Evaluation.explain` says.

    `whole` is false where the list has gaps: only the ranks of relevant items are known.
    """
    absent = explained["rank"].isna()
    listed, missed = explained[~absent], explained[absent]
    columns = ["rank", "item", "gain", "discount", "contribution", "cumulative"]
    return {
        "user": plain(user),
        "why": why,
        "whole": whole,
        "n_listed": len(listed),
        "listed": records(listed[columns].head(_LISTED)),
        "n_missed": len(missed),
        "missed": records(missed[["item", "gain"]].head(_MISSED)),
    }
