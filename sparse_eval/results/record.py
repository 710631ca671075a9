"""`Evaluation.to_dict`, and the record of versions and inputs; both are saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..core.formatting import plain
from ..core.hashing import digest_csr
from ..core.versions import installed_version, library_versions
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..core.types import JSONValue
    from .measured_block import Measured
    from .partial_results import Part


#: Version of the output of `Evaluation.to_dict` and `Evaluation.save`. The same keys may have a
#: different meaning in a newer version.
SCHEMA = 4


def to_dict(part: Part, summary: pd.DataFrame) -> dict[str, Any]:
    """Return the content of `Evaluation.to_dict`."""
    request, retrieval, candidates, seen = part.request, part.retrieval, part.candidates, part.seen
    return {
        "schema": SCHEMA,
        "sparse_eval": installed_version(),
        "n_users": part.n_counted,
        "n_skipped": part.n_users - part.n_counted,
        "n_without_list": part.n_without_list,
        "n_cold": part.n_cold,
        "n_relevant_seen": None if seen is None else seen.n_relevant,
        "n_listed_seen": None if seen is None else seen.n_listed,
        "no_relevant": request.no_relevant,
        "without_list": request.without_list,
        "seen": request.seen,
        "convention": request.convention.name,
        **_of_weights(part),
        "retrieval": None if retrieval is None else retrieval._asdict(),
        "candidates": None if candidates is None else candidates.to_dict(),
        "propensities": part.key["propensities"],
        "metrics": plain_rows(summary),
    }


def _of_weights(part: Part) -> dict[str, Any]:
    """Return how requests or weighted users are averaged; nothing for other evaluations."""
    if not part.is_weighted:
        return {}
    requests = part.requests
    n_requests = None if requests is None else int(requests.counted.sum())
    return {name: part.key[name] for name in ("average", "weighted")} | {"n_requests": n_requests}


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
