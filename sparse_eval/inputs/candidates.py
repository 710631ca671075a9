"""`Candidates`: the items that callers allow for each user, or for all; lists of judged items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse

from ..core.arrays import as_array, describe, read_only
from ..core.csr import as_int32, canonical_csr, integer_array, plain_matrix
from ..core.hashing import fingerprints
from ..core.threads import for_blocks
from ..errors import InvalidDataError
from .axes import Axis
from .labelled import UserRows, labels_of
from .lists_by_user import rows_by_user
from .paths import read_truth
from .relevance import Relevance

if TYPE_CHECKING:
    from ..core.types import AnyArray, Booleans, Hashes, Integers, Items
    from .rankings import Rankings


_EXPECTED = (
    "a sparse matrix or a frame with an entry for each user and candidate, a mapping of ids of "
    "users to items, or one flat array of items for all users"
)

#: The kind of candidates of unknown origin.
GIVEN = "candidates"

#: The kind of candidates that are the judged items.
JUDGED = "judged"


#: The warning about sampled metrics.
WARNING = (
    "metrics among sampled candidates differ from metrics of the whole catalogue and can rank "
    "models differently (Krichene and Rendle, 2020). Compare them only with numbers for the same "
    "candidates. To rank all items, omit candidates="
)

#: What replaces `Candidates.corrected`.
_INSTEAD = (
    "rank the whole catalogue (evaluate_model without candidates=, or se.top_k), because no "
    "correction of sampled metrics is exact"
)


@dataclass(frozen=True, eq=False, repr=False)
class Candidates(UserRows):
    """The items that can be recommended to each user; items that the user has seen are left out.

    `sparse_eval.sample_negatives` returns one; `candidates=` also takes a matrix, a frame, …

    Attributes
    ----------
    shape : tuple of int
        (number of users, number of items); 0 users where the items are for all.
    indptr : ndarray of int64, shape (n_users + 1,), or None
        Where each user's row starts and ends in `items`; None if the items are for all users.
    items : ndarray of int32
        Item ids, ascending within a row.
    kind : str
        Their name in tables. After `sample_negatives` or `read_negatives` it is "1+99" for 99
        negatives and one relevant item of each user, or "n+99" if users have several relevant
        items. It is "candidates" otherwise.
    users, items_index : Axis or None
        Labels of rows and columns, if they are known.
    """

    shape: tuple[int, int]
    indptr: Any
    items: Items
    kind: str = GIVEN
    users: Axis | None = None
    items_index: Axis | None = None

    @classmethod
    def of_csr(
        cls, matrix: Any, kind: str = GIVEN, users: Axis | None = None, items: Axis | None = None
    ) -> Candidates:
        """Return the stored entries of a canonical matrix as candidates."""
        arrays = matrix.indptr.astype(np.int64, copy=False), as_int32(matrix.indices)
        return cls(matrix.shape, *arrays, kind, users, items)

    @property
    def for_all(self) -> bool:
        """Whether all users have the same candidates."""
        return self.indptr is None

    @property
    def may_be_ids(self) -> bool:
        """Whether they are numbers for all users, without labels."""
        return self.for_all and self.items_index is None

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            instead = f"; {_INSTEAD}" if name == "corrected" else ""
            raise AttributeError(f"'Candidates' object has no attribute {name!r}{instead}")

    @cached_property
    def mask(self) -> Booleans:
        """Whether each item is a candidate, if all users have the same candidates."""
        mask = np.zeros(self.shape[1], bool)
        mask[self.items] = True
        return mask

    def hold(self, indptr: Integers, items: Items) -> Booleans:
        """Return whether items, in rows of users, are among the candidates of their users."""
        if self.indptr is None:
            return self.mask[items]
        return mark_seen(indptr, items, self.indptr, self.items)

    def unseen(self, indptr: Integers, items: Items) -> Candidates:
        """Return the candidates that users have not seen, given ascending rows of seen items."""
        n_users = min(len(indptr) - 1, self.shape[0])
        seen = self.indptr[: n_users + 1], self.items[: self.indptr[n_users]]
        is_seen = mark_seen(*seen, indptr, items)
        if not is_seen.any():
            return self
        kept = np.ones(len(self.items), bool)
        kept[: len(is_seen)] = ~is_seen
        return self.keep(kept)

    def fingerprints(self, n_users: int, labels: Axis | None) -> Hashes:
        """Return a hash of each user's candidates; `labels` belong to the columns."""
        indptr = np.array([0, len(self.items)]) if self.indptr is None else self.indptr
        keys = None if labels is None else labels.item_keys
        hashes = fingerprints(indptr, self.items, np.ones(len(self.items)), keys)
        return np.broadcast_to(hashes, n_users) if self.indptr is None else hashes[:n_users]

    def to_csr(self) -> Any:
        """Return a matrix of users × items with a 1 for each candidate."""
        data = np.ones(len(self.items), np.int8)
        return sparse.csr_matrix((data, self.items, self.indptr), shape=self.shape)

    def __repr__(self) -> str:
        if self.indptr is None:
            return f"<Candidates: {len(self.items)} items for all users>"
        n_users, n_items = self.shape
        return f"<Candidates: {self.kind}, {len(self.items)} of {n_users} users × {n_items} items>"


def as_candidates(given: Any) -> Candidates:
    """Return any form of candidates as `Candidates`, in their own order and with their labels.

    Raises `InvalidDataError` if they are something else.
    """
    if isinstance(given, Candidates):
        return given
    if isinstance(given, Mapping) and not sparse.issparse(given):  # whose users may have none
        given = Relevance.from_frame(rows_by_user(given, "candidates", "gain"), gain=None)
    is_text = isinstance(given, list | tuple) and given and isinstance(given[0], str)
    if is_text and not Path(given[0]).exists():  # ids, unless they are paths of tables
        return for_all_users(given)
    given = read_truth(given, gain=None)
    if isinstance(given, Relevance):
        given = given.to_csr()
    if sparse.issparse(plain_matrix(given)):
        matrix = canonical_csr(given, "candidates", sum_duplicates=True)
        return Candidates.of_csr(matrix, GIVEN, *labels_of(given))
    return for_all_users(given)


def for_all_users(given: Any, name: str = "candidates", expected: str = _EXPECTED) -> Candidates:
    """Return the same items for all users: ids, or column numbers.

    Raises `InvalidDataError` if they are something else, or negative.
    """
    if hasattr(given, "get_indexer"):  # a pandas.Index, of ids
        return _ids_for_all(given if isinstance(given, Axis) else given.unique())
    array = as_array(given, name, expected)
    if array.ndim != 1:
        raise InvalidDataError(f"{name} is {describe(array)}; expected {expected}")
    if len(array) and isinstance(array[0], str):
        return _ids_for_all(list(dict.fromkeys(given)))
    rows = np.unique(integer_array(array, name, 1))
    if len(rows) and rows[0] < 0:
        raise InvalidDataError(f"{name} contains {rows[0]}; expected item numbers from 0 on")
    return Candidates((0, int(rows.max(initial=-1)) + 1), None, as_int32(rows))


def _ids_for_all(ids: Any) -> Candidates:
    labels = Axis.of(ids, "items").marked(True)
    items = np.arange(len(labels), dtype=np.int32)
    return Candidates((0, len(labels)), None, items, items_index=labels)


def mark_seen(indptr: Integers, items: Items, seen_indptr: AnyArray, seen_items: Items) -> Booleans:
    """Return a mask of the items of a CSR that the same row of another one contains."""
    # Imported here, because few evaluations need these kernels.
    from ..kernels.exact import find_seen
    from ..kernels.structures import Seen

    was_seen = np.empty(len(items), bool)
    users = np.arange(len(indptr) - 1)
    rows = read_only(indptr), read_only(items)
    bounds = read_only(seen_indptr.astype(np.int64, copy=False))
    seen = Seen(bounds, read_only(as_int32(seen_items)))
    for_blocks(find_seen, len(users), arguments=(users, *rows, seen, was_seen))
    return was_seen


def name_among(name: str, kind: str | None) -> str:
    """Return a metric's display name, such as ``hit_rate@10 (1+99)`` among candidates.

    `kind` is None if all items are candidates.
    """
    return name if kind is None else f"{name} ({kind})"


def is_sampled(kind: str) -> bool:
    """Return whether candidates are known to be a sample of the catalogue."""
    # The name of samples: relevant items + number of negatives.
    return re.match(r"(1|n)\+[0-9]+", kind) is not None


def condense(rankings: Rankings, relevance: Relevance) -> Rankings:
    """Return lists without unjudged items; the others move up.

    Raises `InvalidDataError` if a list ends in the middle of a group of tied items.

    References
    ----------
    T. Sakai, "Alternatives to Bpref", SIGIR 2007. doi:10.1145/1277741.1277756
    """
    kept = mark_seen(rankings.indptr, rankings.items, relevance.indptr, relevance.items)
    condensed = rankings.keep(kept)
    indptr = condensed.indptr
    condensed = replace(condensed, gapped_positions=None, lengths=np.diff(indptr))
    if rankings.last_positions is None:
        return condensed
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(rankings.indptr))
    is_cut = rankings.last_positions > rankings.lengths[rows]
    if is_cut.any():
        raise InvalidDataError(
            f"the list of user {rows[is_cut][0]} ends in the middle of tied items, so it is "
            "unknown which of them it contains. To evaluate "
            'judged items only, make lists of all items, without k=, or with ties="item"',
            user=rows[is_cut][0],
        )
    rows, first = rows[kept], rankings.positions[kept]
    begins = np.append(True, (rows[1:] != rows[:-1]) | (first[1:] != first[:-1]))[: len(rows)]
    starts = np.flatnonzero(begins)
    group = np.cumsum(begins) - 1
    position = starts[group] - indptr[rows] + 1
    sizes = np.diff(np.append(starts, len(rows)))
    return replace(
        condensed,
        gapped_positions=position.astype(np.int32),
        last_positions=(position + sizes[group] - 1).astype(np.int32),
    )


def check_judged_listed(rankings: Rankings, relevance: Relevance) -> None:
    """Raise if the positions of judged items are unknown.

    A list may have empty positions only if it contains all judged items of its user.
    """
    counts = np.diff(rankings.indptr)
    gapped = counts < rankings.lengths
    if rankings.last_positions is not None or not gapped.any():
        return
    listed = mark_seen(rankings.indptr, rankings.items, relevance.indptr, relevance.items)
    rows = np.repeat(np.arange(len(counts)), counts)
    missing = np.diff(relevance.indptr) - np.bincount(rows[listed], minlength=len(counts))
    unknown = np.flatnonzero(gapped & (missing > 0))
    if len(unknown):
        user = unknown[0]
        raise InvalidDataError(
            f"the list of user {user} has positions without an item, and {missing[user]} of the "
            "user's judged items (stored in validation, zeros too) are not listed, so their "
            "positions are unknown. Pass complete lists, or evaluate the model with "
            "evaluate_model",
            user=user,
        )


def judged_candidates(relevance: Relevance) -> Candidates:
    """Return the judged items of each user as candidates."""
    return Candidates(relevance.shape, relevance.indptr, relevance.items, JUDGED)
