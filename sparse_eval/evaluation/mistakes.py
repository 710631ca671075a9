"""After an evaluation, warn if its counts suggest mistakes in the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.messages import warn
from ..errors import InvalidDataError
from ..inputs.candidates import WARNING, mark_seen
from ..results.measured_block import Measured

if TYPE_CHECKING:
    from ..results.counts import CandidateCounts, SeenCounts
    from ..results.partial_results import Part

#: With this number of relevant items, it is no coincidence if all are in train.
_ENOUGH = 20


def warn_of_mistakes(part: Part) -> None:
    """Warn about likely mistakes in the inputs of an evaluation.

    Raises `InvalidDataError` if all relevant items are in the training data, so nothing can be
    found.
    """
    n_users, retrieval = part.n_counted, part.retrieval
    if not n_users:  # a block to be merged with others
        return
    if part.seen is not None:
        _check_seen(part, part.seen)
    if part.candidates is not None:
        _check_candidates(part, part.candidates)
    if part.n_cold:
        warn(
            f"{part.n_cold} of {n_users} evaluated users have no training data "
            "(cold), so their lists are not personalized. holdout.known() (--only-known) leaves "
            "them out, and ev.by('activity') shows them separately. For a split by users, pass the "
            "holdout, so that they are folded in"
        )
    n_without = part.n_without_list
    if retrieval is None and n_users >= _ENOUGH and 2 * n_without > n_users:
        remedy = (
            "If the lists do not belong to the first rows of validation, assign them to users with "
            "Rankings.from_topk(ids, users=…) or user_rows=…"
            if part.values is None or part.values.labels is None
            else "To leave them out, pass se.Protocol(metrics, without_list='exclude') as metrics"
        )
        warn(f"{n_without} of {n_users} evaluated users have no list and count 0. {remedy}")
    if isinstance(part, Measured) and _leaves_candidates_out(part):
        warn(
            "the lists contain fewer items than the catalogue, and train= is missing. auc, "
            "percentile_rank and mean_rank count all unlisted items as candidates. Pass train= to "
            "exclude seen items"
        )
    if n_users >= _ENOUGH and isinstance(part, Measured) and _ranks_shown_items(part):
        warn(
            "the lists contain every relevant item and less than half of the candidates, as lists "
            "of shown items do. auc, gauc, percentile_rank and mean_rank count all other items as "
            "ranked below. Use auc(among=list), or pass the shown items as candidates="
        )
    first = part.first_ranks
    if first is not None and first.smallest > 1 and first.has_others:
        warn(
            f"no list has a rank 1: the smallest rank is {first.smallest}, and missing ranks count "
            f"as irrelevant items. If the lists begin at rank {first.smallest}, "
            f"subtract {first.smallest - 1} from every rank"
        )
    if retrieval is not None and (retrieval.n_unknown_users or retrieval.n_unknown_items):
        warn(
            f"{retrieval.n_unknown_users} of {n_users} evaluated users and "
            f"{retrieval.n_unknown_items} of their relevant items are unknown to the model. These "
            "users count 0, and these items count as missed"
        )
    plans = part.request.plans
    counts_hits = any(plan.is_swept and plan.definition.higher_is_better for plan in plans)
    if counts_hits and not part.has_hits:
        warn(
            "no list contains a relevant item within the cut-offs. Check that both sides use the "
            "same ids, or the same row and column numbers, for users and items"
        )


def _leaves_candidates_out(block: Measured) -> bool:
    """Return whether full rankings of different lengths are counted against the whole catalogue.

    Such as rankings of unseen items, if training data are not given.
    """
    if block.seen is not None or block.candidates is not None:
        return False
    lengths = block.aligned.rankings.lengths[block.counted]
    n_items, least = block.aligned.side_data.n_items, lengths.min()
    if least == lengths.max() or not least < n_items < 2 * lengths.mean():
        return False
    return _counts_unlisted(block)


def _ranks_shown_items(block: Measured) -> bool:
    """Return whether lists of shown items are counted against the whole catalogue.

    Such lists contain every relevant item, but less than half of the candidates: more than half is
    a full ranking, see `_leaves_candidates_out`. Lists that end at k miss relevant items, and the
    ranks of hits among all items have positions without an item.
    """
    if block.retrieval or block.candidates or not _counts_unlisted(block):
        return False
    aligned = block.aligned
    rankings, relevance = aligned.rankings, aligned.relevance
    if len(rankings.items) < rankings.lengths.sum():
        return False
    n_candidates = aligned.count_candidates(0, aligned.n_users)
    if 2 * rankings.lengths[block.counted].sum() >= n_candidates[block.counted].sum():
        return False
    relevant = relevance.keep(relevance.gains > 0)
    found = mark_seen(rankings.indptr, rankings.items, relevant.indptr, relevant.items)
    return int(np.count_nonzero(found)) == len(relevant.items)


def _counts_unlisted(part: Part) -> bool:
    """Return whether a metric counts candidates that are not listed."""
    return any(
        "candidates" in plan.definition.uses and plan.arguments.get("among") != "list"
        for plan in part.request.plans
    )


def _check_seen(part: Part, seen: SeenCounts) -> None:
    n_seen, n_relevant = seen.n_relevant, seen.n_held_out
    by_model = part.retrieval is not None
    if part.request.seen == "allow":
        if not n_seen:
            warn(
                "filter_seen=False, but no held-out item is in its user's train, so every item "
                "that is recommended again counts as wrong. Hold out repeated items too, with "
                "repeats='keep' in split.temporal, rolling and last_n"
            )
        return
    if n_seen == n_relevant and n_seen >= (1 if by_model else _ENOUGH):
        raise InvalidDataError(
            f"all {n_seen} relevant items are also in train. Seen items are never recommended, so "
            "no list can contain them. Pass train without the held-out items"
        )
    if n_seen:
        warn(
            f"{n_seen} of {n_relevant} held-out items were seen by their users. No list can "
            "contain them, so they count as missed"
            if by_model
            else f"{n_seen} of {n_relevant} relevant items are in train, so their users "
            "have already seen them. If the model was trained on them, results are too good"
        )
    if seen.n_listed and not by_model:
        warn(
            f"{seen.n_listed} listed items are in train, so their users have already seen them. "
            "Remove them from the lists, or omit train=, which excludes seen items as "
            "candidates"
        )


def _check_candidates(part: Part, candidates: CandidateCounts) -> None:
    n_outside, n_relevant = candidates.n_relevant, candidates.n_held_out
    if n_outside == n_relevant:
        raise InvalidDataError(
            f"none of the {n_relevant} relevant items is a candidate for its user, so nothing "
            "can be found. Pass candidates for the same users and items, including relevant items"
        )
    if n_outside:
        warn(
            f"{n_outside} of {n_relevant} relevant items are not candidates for their users. No "
            "list can contain them, so they count as missed"
        )
    if candidates.n_listed and part.retrieval is None:
        warn(
            f"{candidates.n_listed} listed items are not candidates for their users. Remove them "
            "from the lists, or add them to the candidates"
        )
    if part.request.judged_only and candidates.n_candidates == n_relevant:
        warn(
            "judged_only=True, but every item stored in validation is relevant, so lists contain "
            "only relevant items. Store judged items that are not relevant with a zero, "
            "or omit judged_only"
        )
    if candidates.is_sampled:
        warn(WARNING)
