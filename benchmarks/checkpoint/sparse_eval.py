"""sparse_eval itself: everybody's list, and no more than the ranks of the held-out items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparse_eval.retrieval import top_k as retrieve

if TYPE_CHECKING:
    from checkpoint_case import Checkpoint
    from worker import Values

    import sparse_eval as se


FEW = 10


def prepare(case: Checkpoint) -> None:
    """Load the compiled kernels, so that a first call is no different from the others."""
    few = case._replace(
        user_factors=case.user_factors[:FEW],
        train=case.train[:FEW],
        validation=case.validation[:FEW],
        users=case.users[case.users < FEW],
    )
    top_k(few, None)
    held_out_ranks(few, None)


def top_k(case: Checkpoint, raw: None) -> retrieve.TopK:
    return retrieve.top_k(
        case.user_factors,
        case.item_factors,
        case.k,
        seen=case.train,
        users=case.users,
        num_threads=case.threads,
    )


def lists(case: Checkpoint, raw: None, result: retrieve.TopK) -> Values:
    *_, report = retrieve.find_lists(
        case.user_factors, case.item_factors, case.k, case.train, case.users
    )
    return {"ids": result.ids, "share": share(report)}


def held_out_ranks(case: Checkpoint, raw: None) -> se.Rankings:
    return retrieve.held_out_ranks(
        case.user_factors,
        case.item_factors,
        case.validation,
        case.k,
        seen=case.train,
        num_threads=case.threads,
    )


def hits(case: Checkpoint, raw: None, result: se.Rankings) -> Values:
    *_, report = retrieve.find_ranks(
        case.user_factors, case.item_factors, case.validation, case.k, case.train
    )
    users = np.repeat(np.arange(len(case.user_factors)), np.diff(result.indptr))
    return {
        "hit_users": users,
        "hit_items": result.items,
        "hit_ranks": result.positions,
        "share": share(report),
    }


def share(report: retrieve.Report) -> np.ndarray:
    """Return which part of all scores was computed at all."""
    return np.array(report.n_products / report.n_pairs)


TASKS = {"top_k": (top_k, lists), "held_out_ranks": (held_out_ranks, hits)}
