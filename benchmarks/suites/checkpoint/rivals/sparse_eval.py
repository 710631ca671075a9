"""sparse_eval itself: the lists of all users, and only the ranks of the held-out items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import sparse_eval as se

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.checkpoint.case import Checkpoint


FEW = 10


def prepare(case: Checkpoint) -> None:
    """Load the compiled kernels, so that the first call does not differ from the others."""
    few = case._replace(
        user_factors=case.user_factors[:FEW],
        train=case.train[:FEW],
        validation=case.validation[:FEW],
        users=case.users[case.users < FEW],
    )
    top_k(few, None)
    held_out_ranks(few, None)


def top_k(case: Checkpoint, raw: None) -> np.ndarray:
    return se.top_k(
        (case.user_factors, case.item_factors),
        k=case.k,
        seen=case.train,
        users=case.users,
        num_threads=case.threads,
    ).ids


def lists(case: Checkpoint, raw: None, result: np.ndarray) -> Values:
    return {"ids": result} | share("lists", case, len(case.users), case.k, case.users)


def held_out_ranks(case: Checkpoint, raw: None) -> se.Rankings:
    return se.ranks(
        (case.user_factors, case.item_factors),
        case.validation,
        k=case.k,
        seen=case.train,
        num_threads=case.threads,
    )


def hits(case: Checkpoint, raw: None, result: se.Rankings) -> Values:
    users = np.repeat(np.arange(len(case.user_factors)), np.diff(result.indptr))
    relevance = se.Relevance.from_csr(case.validation)
    n_users = np.count_nonzero(relevance.n_relevant)
    return {
        "hit_users": users,
        "hit_items": result.items,
        "hit_ranks": result.positions,
    } | share("ranks", case, n_users, relevance, case.k)


def share(function: str, case: Checkpoint, n_users: int, *arguments: Any) -> Values:
    """Return the share of all scores that was computed, which public functions do not return."""
    try:
        from sparse_eval.retrieval.ranker import Options
        from sparse_eval.retrieval.search import Search
    except ImportError:  # a checkout with a different location
        return {}
    search = Search(case.user_factors, case.item_factors, Options(case.train))
    getattr(search, function)(*arguments)
    n_pairs = n_users * len(case.item_factors)
    return {"share": np.array(int(search.n_products[0]) / n_pairs)}


TASKS = {"top_k": (top_k, lists), "held_out_ranks": (held_out_ranks, hits)}
