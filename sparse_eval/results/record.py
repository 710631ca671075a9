"""What the page shows of an evaluation with its numbers: curves, groups, examples and inputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.formatting import plain, records
from ..core.hashing import digest_csr
from ..core.versions import installed_version, library_versions
from ..errors import InvalidDataError
from .curves import MAX_RANKS, explain, precision_recall
from .segments import break_down

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..core.types import Booleans, Hashes, Integers, JSONValue
    from .curves import PrecisionRecall
    from .measured import Measured

#: Version of what `Evaluation.to_json` and `Evaluation.save` write. A newer one may mean something
#: else by the same keys.
SCHEMA = 3

#: Users that are picked by their number of relevant items, at these shares of all.
_PICKED_AT = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.98)

#: What is kept of a user's list.
_COLUMNS = ["rank", "item", "gain", "discount", "contribution", "cumulative"]

#: Of a user's list, and of what is missing from it, so much is kept.
_LISTED, _MISSED = 20, 10

#: Points of a curve.
_POINTS = 60


def to_dict(evaluation: Any, summary: pd.DataFrame) -> dict[str, Any]:
    """Return what `Evaluation.to_dict` describes."""
    retrieval, candidates = evaluation.retrieval, evaluation.candidates
    counts = ("n_users", "n_skipped", "n_without_list", "n_cold", "n_relevant_seen")
    return {
        "schema": SCHEMA,
        "sparse_eval": installed_version(),
        **{name: getattr(evaluation, name) for name in (*counts, "n_listed_seen", "no_relevant")},
        "without_list": evaluation.request.without_list,
        "seen": evaluation.request.seen,
        "convention": evaluation.convention,
        "corrected": evaluation.request.corrected,
        "retrieval": None if retrieval is None else retrieval._asdict(),
        "candidates": None if candidates is None else candidates.to_dict(),
        "propensities": evaluation.propensities,
        "metrics": plain_rows(summary),
    }


def plain_rows(summary: pd.DataFrame) -> dict[str, dict[str, JSONValue]]:
    """Return the rows of a summary by metric, ready for JSON."""
    return {
        str(name): {str(key): plain(value) for key, value in row.items()}
        for name, row in summary.iterrows()
    }


def make_record(block: Measured | None) -> dict[str, Any]:
    """Return what is saved and shown with the numbers, ready for JSON.

    Returns
    -------
    dict
        ``versions`` of the libraries; ``about``: what the caller wants to be remembered; ``by``:
        means by "activity" and "popularity", where training data were given;
        ``precision_recall``, at some ranks; ``concentration``: the Lorenz curve of how often items
        are recommended, where complete lists are known; ``examples``: users in depth; ``inputs``:
        shape, entries and SHA-256 of each. Without the lists, most of it is empty.
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
    """Return what is to be remembered as JSON gives it back, or raise `InvalidDataError`."""
    try:
        plain_about = json.loads(json.dumps(dict(about or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidDataError(
            f"about holds what JSON cannot ({error}); give text, numbers, lists and dicts by name"
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
        ``k``, the cut-off, ``n_items``, ``n_recommended`` items that are in any list; the curve,
        ``items`` and ``recommendations``, both shares from 0 to 1, items that are recommended least
        coming first; and ``top_percent``, the share of the recommendations that goes to the 1 % of
        items that are recommended most. None where lists have gaps, or are empty: it is not known
        what was recommended.
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


def _pick_examples(n_relevant: Integers, counted: Booleans, prints: Hashes) -> list[int]:
    """Pick users to show: with few, some and many relevant items, whatever was recommended.

    So that evaluations of the same validation data show the same users. Of users with as many
    relevant items, their fingerprints decide.
    """
    rows = np.flatnonzero(counted & (n_relevant > 0))
    order = rows[np.lexsort((prints[rows], n_relevant[rows]))]
    places = [int(share * (len(order) - 1)) for share in _PICKED_AT if len(order)]
    return [int(order[place]) for place in dict.fromkeys(places)]
