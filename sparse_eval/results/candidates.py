"""What the candidates of an evaluation were, where they were not the whole catalogue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.hashing import splitmix64

if TYPE_CHECKING:
    from ..core.types import Booleans, Hashes
    from ..inputs.axes import Axis
    from ..metrics.aligned import Aligned

#: What is said of sampled metrics.
WARNING = (
    "metrics among sampled candidates are not those of the whole catalogue, and can rank models "
    "in another order (Krichene and Rendle, 2020); compare them with none but numbers of the same "
    "candidates, rank all items by leaving candidates= out, or estimate that with "
    "candidates.corrected('unbiased')"
)


def name_among(name: str, kind: str | None, corrected: str | None = None) -> str:
    """Return a metric's name as people read it: ``hit_rate@10 (1+99)`` among candidates.

    `kind` is None where these are all items.
    """
    if kind is None:
        return name
    return f"{name} ({kind}{f', {corrected}' if corrected else ''})"


def is_sampled(kind: str) -> bool:
    """Return whether candidates are known to be a sample of the catalogue."""
    # So they are called: relevant items, and so many negatives beside them.
    return re.match(r"(1|n)\+[0-9]+", kind) is not None


class CandidateCounts(NamedTuple):
    """Counts over users whose candidates were given.

    Attributes
    ----------
    kind : str
        What the candidates are: "1+99" or "n+99" where `sample_negatives` or `read_negatives`
        returned them, beside the one relevant item of each user, or several; otherwise
        "candidates".
    n_users : int
        Evaluated users.
    n_candidates : int
        Their candidates that they have not seen.
    n_relevant : int
        Relevant items that are no candidates of their user.
    n_listed : int
        Listed items that are none.
    n_held_out : int
        Relevant items in all.
    checksum : int
        Of all users' candidates.
    """

    kind: str
    n_users: int
    n_candidates: int
    n_relevant: int
    n_listed: int
    n_held_out: int
    checksum: int

    def merge(self, other: CandidateCounts) -> CandidateCounts:
        """Return the counts over the users of both, whose candidates are of one kind."""
        counts = (a + b for a, b in zip(self[1:-1], other[1:-1], strict=True))
        checksum = (self.checksum + other.checksum) % 2**64
        return CandidateCounts._make((self.kind, *counts, checksum))

    @property
    def is_sampled(self) -> bool:
        """Whether they are known to be a sample of the catalogue."""
        return is_sampled(self.kind)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that identify the candidates of these users."""
        return f"{self.checksum:016x}"

    def to_dict(self) -> dict[str, int | str]:
        """Return the counts and the digest by name."""
        return {**dict(zip(self._fields[:-1], self, strict=False)), "digest": self.digest}


def candidate_counts(
    aligned: Aligned, counted: Booleans, users: Hashes, hashes: Hashes
) -> CandidateCounts | None:
    """Count over all users, `counted` being those that are evaluated; None without candidates.

    `users` are hashes of the users, and `hashes` of their candidates.
    """
    candidates = aligned.side_data.candidates
    if candidates is None or aligned.eligible is None:
        return None
    relevance, rankings = aligned.relevance, aligned.rankings
    is_relevant = relevance.gains > 0
    outside = ~candidates.hold(relevance.indptr, relevance.items)
    listed = ~candidates.hold(rankings.indptr, rankings.items)
    return CandidateCounts(
        candidates.kind,
        int(np.count_nonzero(counted)),
        int(aligned.eligible.counts[counted].sum()),
        int(np.count_nonzero(outside & is_relevant)),
        int(np.count_nonzero(listed)),
        int(np.count_nonzero(is_relevant)),
        int(splitmix64(users ^ hashes).sum(dtype=np.uint64)),
    )


def candidate_hashes(aligned: Aligned, labels: Axis | None) -> Hashes | None:
    """Return a hash of each user's candidates, None where there are none."""
    candidates = aligned.side_data.candidates
    if candidates is None:
        return None
    if labels is not None and len(labels) < candidates.shape[1]:
        labels = candidates.items_index
    return candidates.fingerprints(aligned.n_users, labels)
