"""`Record`: what is saved and reported of an evaluation, which is all but its lists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.formatting import plain, records
from ..core.hashing import digest_csr
from ..core.versions import installed_version, library_versions
from ..errors import InvalidDataError
from .breakdown import break_down
from .curves import MAX_RANKS, precision_recall
from .details import (
    describe_concentration,
    describe_curve,
    describe_example,
    pick_examples,
)
from .explain import explain

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from .block import BlockResult
    from .scores import Scores

#: Version of what `Evaluation.to_json` and `Evaluation.save` write. A newer one may mean something
#: else by the same keys.
SCHEMA = 2

#: Columns of the table of users that are not metrics, and their types.
USER_COLUMNS: dict[str, type[np.integer[Any]]] = {
    "evaluated": np.int64,
    "relevant": np.int64,
    "fingerprint": np.uint64,
    "seen": np.int64,
}


class Record(NamedTuple):
    """What is saved and reported.

    Attributes
    ----------
    content : dict
        What ``summary.json`` holds, see `sparse_eval.results.saving`.
    table : pandas.DataFrame or None
        One row for each user, indexed by label or row number: ``evaluated``, ``relevant``,
        ``fingerprint``, ``seen`` where it is known, and the metrics. None where the values of the
        users were not kept.
    """

    content: dict[str, Any]
    table: pd.DataFrame | None


def to_dict(evaluation: Scores, summary: pd.DataFrame) -> dict[str, Any]:
    """Return what `Evaluation.to_dict` describes."""
    retrieval, candidates = evaluation.retrieval, None
    if evaluation.candidates is not None:
        candidates = evaluation.candidates._asdict() | {"digest": evaluation.candidates.digest}
        del candidates["checksum"]
    return {
        "schema": SCHEMA,
        "sparse_eval": installed_version(),
        "n_users": evaluation.n_users,
        "n_skipped": evaluation.n_skipped,
        "n_without_list": evaluation.n_without_list,
        "n_cold": evaluation.n_cold,
        "n_relevant_seen": evaluation.n_relevant_seen,
        "n_listed_seen": evaluation.n_listed_seen,
        "no_relevant": evaluation.no_relevant,
        "without_list": evaluation.request.without_list,
        "seen": evaluation.request.seen,
        "convention": evaluation.convention,
        "corrected": evaluation.request.corrected,
        "retrieval": None if retrieval is None else retrieval._asdict(),
        "candidates": candidates,
        "propensities": evaluation.propensities,
        "metrics": {
            name: {key: plain(value) for key, value in row.items()}
            for name, row in summary.iterrows()
        },
    }


def make_record(evaluation: Scores, summary: pd.DataFrame) -> Record:
    """Describe an evaluation: its numbers, and what a report shows of its lists."""
    block = evaluation._block
    names, plans = evaluation.names, evaluation.request.plans
    content = to_dict(evaluation, summary) | {
        "inputs_given": sorted(evaluation.request.inputs),
        "per_user": [name for name in names if evaluation.is_per_user(name)],
        "replicates": {
            name: list(map(plain, evaluation.replicates(name)))
            for name in names
            if not evaluation.is_per_user(name)
        },
        "higher_is_better": {name: evaluation.higher_is_better(name) for name in names},
        "lower": {
            name: plain(plan.definition.lower) for name, plan in zip(names, plans, strict=True)
        },
        "versions": library_versions(),
        "about": {},
        "by": {},
        "precision_recall": None,
        "concentration": None,
        "examples": [],
        "inputs": {},
    }
    if block is not None:
        content |= _describe_lists(block)
    return Record(content, _table(evaluation, block))


def _table(evaluation: Scores, block: BlockResult | None) -> pd.DataFrame | None:
    """Return the table of the users, None where their values were not kept."""
    if block is None and evaluation._merged.values is None:
        return None
    columns = {
        "evaluated": evaluation.counted,
        "relevant": evaluation.n_relevant,
        "fingerprint": evaluation.fingerprints,
    }
    training = None if block is None else block.aligned.side_data.training
    if training is not None:
        columns["seen"] = training.user_counts[: len(evaluation.n_relevant)]
    table = evaluation.per_user
    for number, (name, column) in enumerate(columns.items()):
        table.insert(number, name, column)
    return table


def _describe_lists(block: BlockResult) -> dict[str, Any]:
    """Return what a report shows of the lists, as JSON has it."""
    aligned = block.aligned
    longest = max(int(aligned.rankings.lengths.max(initial=0)), 1)
    curve = None
    if aligned.rankings.last_positions is None:
        curve = describe_curve(precision_recall(block, min(longest, MAX_RANKS)))
    by = {}
    if aligned.side_data.training is not None:
        divisible = any(plan.definition.by_item for plan in block.request.plans)
        for groups in ("activity", "popularity") if divisible else ("activity",):
            by[groups] = records(break_down(block, groups).reset_index())
    return {
        "by": by,
        "precision_recall": curve,
        "concentration": describe_concentration(
            aligned.rankings,
            np.flatnonzero(block.counted()),
            max((metric.cutoff or 0 for metric in block.request.metrics), default=0) or MAX_RANKS,
            aligned.side_data.n_items,
        ),
        "examples": _examples(block),
        "inputs": _inputs(block),
    }


def _examples(block: BlockResult) -> list[dict[str, Any]]:
    """Describe a few users in depth: some that all models share, and the best of this one."""
    rows = dict.fromkeys(pick_examples(block.n_relevant, block.counted(), block.fingerprints), "")
    for row, plan in enumerate(block.request.plans):
        values = block.columns.values[row]
        if plan.per_user and np.isfinite(values).any():
            sign = 1 if plan.definition.higher_is_better else -1
            rows.setdefault(int(np.nanargmax(sign * values)), f"best by {plan.metric}")
            break
    labels, rankings = block.labels, block.aligned.rankings
    complete = np.diff(rankings.indptr) == rankings.lengths
    return [
        describe_example(
            row if labels is None else labels[row],
            explain(block.aligned, row),
            bool(complete[row]),
            why,
        )
        for row, why in rows.items()
    ]


def _inputs(block: BlockResult) -> dict[str, Any]:
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
