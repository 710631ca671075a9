"""Warn about likely mistakes in the inputs of an evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.messages import warn
from ..errors import InvalidDataError
from ..inputs.candidates import WARNING

if TYPE_CHECKING:
    from ..results import Evaluation
    from ..results.counts import CandidateCounts, SeenCounts

#: With this number of relevant items, it is no coincidence if all are in train.
_ENOUGH = 20


def warn_of_mistakes(evaluation: Evaluation) -> None:
    """Warn about likely mistakes in the inputs of an evaluation.

    Raises
    ------
    InvalidDataError
        If all relevant items are in the training data, so nothing can be found.
    """
    if not evaluation.n_users:  # a block to be merged with others
        return
    part = evaluation._part
    if part.seen is not None:
        _check_seen(evaluation, part.seen)
    if part.candidates is not None:
        _check_candidates(evaluation, part.candidates)
    if part.n_cold:
        warn(
            f"{part.n_cold} of {evaluation.n_users} evaluated users have no training data "
            "(cold), so their lists are not personalized. holdout.known() (--only-known) leaves "
            "them out, and ev.by('activity') shows them separately. For a split by users, pass the "
            "holdout, so that they are folded in"
        )
    n_without, n_users = part.n_without_list, evaluation.n_users
    if evaluation.retrieval is None and n_users >= _ENOUGH and 2 * n_without > n_users:
        remedy = (
            "If the lists do not belong to the first rows of validation, assign them to users with "
            "Rankings.from_topk(ids, users=…) or user_rows=…"
            if part.per_user.labels is None
            else "To leave them out, pass se.Protocol(metrics, without_list='exclude') as metrics"
        )
        warn(f"{n_without} of {n_users} evaluated users have no list and count 0. {remedy}")
    if evaluation._leaves_candidates_out:
        warn(
            "the lists contain fewer items than the catalogue, and train= is missing. auc, "
            "percentile_rank and mean_rank count all unlisted items as candidates. Pass train= to "
            "exclude seen items"
        )
    if n_users >= _ENOUGH and evaluation._ranks_shown_items:
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
    retrieval = evaluation.retrieval
    if retrieval is not None and (retrieval.n_unknown_users or retrieval.n_unknown_items):
        warn(
            f"{retrieval.n_unknown_users} of {evaluation.n_users} evaluated users and "
            f"{retrieval.n_unknown_items} of their relevant items are unknown to the model. These "
            "users count 0, and these items count as missed"
        )
    if evaluation._found_nothing:
        warn(
            "no list contains a relevant item within the cut-offs. Check that both sides use the "
            "same ids, or the same row and column numbers, for users and items"
        )


def _check_seen(evaluation: Evaluation, seen: SeenCounts) -> None:
    n_seen, n_relevant = seen.n_relevant, seen.n_held_out
    by_model = evaluation.retrieval is not None
    if evaluation.request.seen == "allow":
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


def _check_candidates(evaluation: Evaluation, candidates: CandidateCounts) -> None:
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
    if candidates.n_listed and evaluation.retrieval is None:
        warn(
            f"{candidates.n_listed} listed items are not candidates for their users. Remove them "
            "from the lists, or add them to the candidates"
        )
    if evaluation.request.judged_only and candidates.n_candidates == n_relevant:
        warn(
            "judged_only=True, but every item stored in validation is relevant, so lists contain "
            "only relevant items. Store judged items that are not relevant with a zero, "
            "or omit judged_only"
        )
    if candidates.is_sampled:
        warn(WARNING)
