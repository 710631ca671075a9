"""Warnings about a finished evaluation: what looks like a mistake in its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.messages import warn
from ..errors import InvalidDataError
from ..inputs.candidates import WARNING

if TYPE_CHECKING:
    from ..results import Evaluation
    from ..results.parts import CandidateCounts, SeenCounts


#: So many relevant items are not all in train by chance.
_ENOUGH = 20


def give_notice(evaluation: Evaluation) -> None:
    """Warn of what looks like a mistake in the inputs of an evaluation.

    Raises
    ------
    InvalidDataError
        If all relevant items are in the training data, so that nothing can be found.
    """
    if evaluation.seen is not None:
        _check_seen(evaluation, evaluation.seen)
    if evaluation.candidates is not None:
        _check_candidates(evaluation, evaluation.candidates)
    if evaluation.n_cold:
        warn(
            f"{evaluation.n_cold} of {evaluation.n_users} evaluated users have nothing in train "
            "(cold), so that their lists say nothing about what was learnt of them; holdout.known()"
            " leaves them out, and ev.by('activity') shows them apart; of a split by users give "
            "the holdout itself, so that its users are folded in"
        )
    n_without, n_users = evaluation.n_without_list, evaluation.n_users
    if evaluation.retrieval is None and n_users >= _ENOUGH and 2 * n_without > n_users:
        warn(
            f"{n_without} of {n_users} evaluated users have no list, and count 0; if the lists are "
            "of other users than the first rows, say whose they are: Rankings.from_topk(ids, "
            "users=…), or user_rows=…)"
        )
    if evaluation.leaves_candidates_out:
        warn(
            "the lists rank fewer items than the catalogue has, and nothing says what users have "
            "seen: auc, percentile_rank and mean_rank take the others for candidates; give train=, "
            "what they have seen"
        )
    first = evaluation.first_ranks
    if first is not None and first.smallest > 1 and first.has_others:
        warn(
            f"no list has a rank 1: the smallest rank is {first.smallest}, and missing ranks count "
            f"as items that are not relevant; if the lists begin at rank {first.smallest}, "
            f"subtract {first.smallest - 1} from every rank"
        )
    retrieval = evaluation.retrieval
    if retrieval is not None and (retrieval.n_unknown_users or retrieval.n_unknown_items):
        warn(
            f"{retrieval.n_unknown_users} of {evaluation.n_users} evaluated users and "
            f"{retrieval.n_unknown_items} of their relevant items are unknown to the model; such "
            "users count 0, and such items are missed"
        )
    if _found_nothing(evaluation):
        warn(
            "no list holds a relevant item at a rank that counts, so that every metric of hits is "
            "0; check that both sides mean the same users and items, by ids of the same kind or by "
            "the same numbers"
        )


def _found_nothing(evaluation: Evaluation) -> bool:
    """Return whether every metric of hits is 0, of which there is at least one."""
    names = []
    for name, plan in zip(evaluation.request.names, evaluation.request.plans, strict=True):
        if plan.is_swept and plan.definition.higher_is_better:
            if evaluation[name]:
                return False
            names.append(name)
    return bool(names)


def _check_seen(evaluation: Evaluation, seen: SeenCounts) -> None:
    n_seen, n_relevant = seen.n_relevant, seen.n_held_out
    by_model = evaluation.retrieval is not None
    if evaluation.request.seen == "allow":
        if not n_seen:
            warn(
                "filter_seen=False, and no held-out item is in its user's train, so that whatever "
                "is recommended again is wrong; hold such items out too, as with repeats='keep' in "
                "split.temporal, rolling and last_n"
            )
        return
    if n_seen == n_relevant and n_seen >= (1 if by_model else _ENOUGH):
        raise InvalidDataError(
            f"all {n_seen} relevant items are in train, as what users have seen already, and no "
            "list can hold them; give as train what came before, without what is held out"
        )
    if n_seen:
        warn(
            f"{n_seen} of {n_relevant} held-out items were seen by their users; they can be in no "
            "list and count as missed"
            if by_model
            else f"{n_seen} of {n_relevant} relevant items are in train, as what their users have "
            "seen already; if they were trained on, results are too good"
        )
    if seen.n_listed and not by_model:
        warn(
            f"{seen.n_listed} listed items are in train, as what their users have seen "
            "already; take them out of the lists, or leave train out, which says what is no "
            "candidate"
        )


def _check_candidates(evaluation: Evaluation, candidates: CandidateCounts) -> None:
    n_outside, n_relevant = candidates.n_relevant, candidates.n_held_out
    if n_outside == n_relevant:
        raise InvalidDataError(
            f"none of the {n_relevant} relevant items is a candidate of its user, so that nothing "
            "can be found; give candidates of the same users and items, the relevant ones included"
        )
    if n_outside:
        warn(
            f"{n_outside} of {n_relevant} relevant items are no candidates of their users; they "
            "can be in no list and count as missed"
        )
    if candidates.n_listed and evaluation.retrieval is None:
        warn(
            f"{candidates.n_listed} listed items are no candidates of their users; take them out "
            "of the lists, or give candidates that hold them"
        )
    if evaluation.request.judged_only and candidates.n_candidates == n_relevant:
        warn(
            "judged_only=True, and every item that validation stores is relevant, so that no list "
            "holds anything else; store those that were judged and are not relevant with a zero, "
            "or leave judged_only out"
        )
    if candidates.is_sampled and evaluation.request.corrected is None:
        warn(WARNING)
