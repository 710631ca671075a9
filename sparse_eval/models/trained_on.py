"""`TrainedOn`: what a model stores about its training data, to notice other data."""

from __future__ import annotations

import re
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.csr import canonical_csr
from ..core.hashing import digest_arrays, digest_csr, hash_labels, splitmix64
from ..core.messages import warn
from ..inputs.axes import Axis
from ..inputs.labelled import labels_of
from .ids import ITEM_IDS, USER_IDS, keep_ids

if TYPE_CHECKING:
    from ..core.types import AnyArray
    from ..inputs.labelled import LabelledMatrix

#: The attribute of a model, and the array of its checkpoint, that identify its training data.
TRAINED_ON = "trained_on"


class TrainedOn(NamedTuple):
    """Identifies training data.

    Attributes
    ----------
    n_pairs : int
        The number of pairs of user and item.
    digest : str
        Of the number of pairs of each user and each item, regardless of order and values. It starts
        with "ids" if it uses ids, or with "numbers" if it uses the numbers of rows and columns.
    before : str
        The point in time that all events precede: a date (ISO 8601, UTC), or a number if its unit
        is not known. It is empty if nothing is known.
    model : str
        Digests of the factors that were trained, and of the ids. It is empty for models that
        nothing else can train.
    """

    n_pairs: int
    digest: str
    before: str
    model: str = ""

    @classmethod
    def of(cls, train: LabelledMatrix) -> TrainedOn:
        """Describe a matrix."""
        # Hashing each pair would take as long as a fifth of an evaluation.
        counts = np.diff(train.indptr), np.bincount(train.indices, minlength=train.shape[1])
        digest = np.zeros(1, np.uint64)
        for labels, n_pairs in zip(labels_of(train), counts, strict=True):
            hashes = hash_labels(np.arange(len(n_pairs))) if labels is None else labels.hashes
            digest = splitmix64(digest + (hashes * n_pairs.astype(np.uint64)).sum(dtype=np.uint64))
        kind = "numbers" if train.users is None and train.items is None else "ids"
        before = "" if train.before is None else str(train.before)
        return cls(train.nnz, f"{kind}:{int(digest[0]):016x}", before)

    def __str__(self) -> str:
        return " ".join(filter(None, map(str, self)))

    @classmethod
    def parse(cls, text: object) -> TrainedOn | None:
        """Parse the text of `str`; return None for any other text, as other programs write."""
        time = r"-?\d{1,18}|\d{4}-\d\d-\d\d(?:T[\d:.]+)?"
        data, model = r"(?:ids|numbers):[\da-f]{16}", r"model:[\da-f]{16}:[\da-f]{16}"
        found = re.fullmatch(rf"(\d+) ({data})(?: ({time}))?(?: ({model}))?", str(text))
        if found is None:
            return None
        before = found[3] or ""
        with suppress(ValueError):
            time_of(before or "0")
            return cls(int(found[1]), found[2], before, found[4] or "")
        return None

    def precedes(self, train: LabelledMatrix) -> bool:
        """Return whether all its events are known to precede the cut of a split by time."""
        if not self.before or train.cut is None:
            return False
        time = time_of(self.before)
        if isinstance(time, np.datetime64) != isinstance(train.cut, np.datetime64):
            return False
        return bool(time <= train.cut)

    def has_pairs_of(self, train: LabelledMatrix) -> bool:
        """Return whether it describes this matrix, as far as can be told with or without ids."""
        if self.n_pairs != train.nnz:  # there is no need to hash them
            return False
        found = TrainedOn.of(train)
        return found.digest == self.digest or found.digest[0] != self.digest[0]


def time_of(text: str) -> Any:
    """Return a date, or a number in an unknown unit."""
    return np.datetime64(text) if "-" in text[1:] else int(text)


def copy_ids(model: Any, other: Any) -> Any:
    """Copy what a model stores about its training data to another form of it, and return that."""
    keep_ids(other, getattr(model, USER_IDS, None), getattr(model, ITEM_IDS, None))
    setattr(other, TRAINED_ON, getattr(model, TRAINED_ON, None))
    return other


def keep_training(model: Any, train: LabelledMatrix | None) -> None:
    """Store the ids and a digest of its training data in a model, or remove them."""
    keep_ids(model, *((None, None) if train is None else labels_of(train)))
    known = None
    if train is not None:
        digest = _digest(model)
        digest = digest and f"model:{digest}:{_digest_of_ids(model)}"
        known = str(TrainedOn.of(train)._replace(model=digest))
    setattr(model, TRAINED_ON, known)


def without_old_training(model: Any) -> Any:
    """Return a model, or a copy without its ids and digest if it was trained again since.

    implicit's own ``fit`` and ``partial_fit_users`` keep both attributes, which then describe other
    factors. Ids that were replaced since are kept.
    """
    known = TrainedOn.parse(getattr(model, TRAINED_ON, None))
    if known is None or not known.model:
        return model
    _, factors, ids = known.model.split(":")
    if factors == _digest(model):
        return model
    model = copy(model)
    if ids == _digest_of_ids(model):
        keep_ids(model, None, None)
    setattr(model, TRAINED_ON, None)
    return model


def _digest(model: Any) -> str:
    """Return a digest of what a model of implicit has learnt, the same once it is saved."""
    model = model.to_cpu() if hasattr(model, "to_cpu") else model
    if hasattr(model, "item_factors"):
        factors = np.asarray(model.user_factors), np.asarray(model.item_factors)
        return digest_arrays(*in_one_dtype(*factors))
    if getattr(model, "similarity", None) is None:
        return ""
    csr = canonical_csr(model.similarity, "the similarity matrix", sum_duplicates=True)
    return digest_csr(csr.shape, csr.indptr, csr.indices, csr.data)[:16]


def _digest_of_ids(model: Any) -> str:
    ids = (getattr(model, name, None) for name in (USER_IDS, ITEM_IDS))
    axes = (None if one is None else Axis.of(one, "ids") for one in ids)
    return digest_arrays(*(np.zeros(0) if one is None else one.hashes for one in axes))


def in_one_dtype(*factors: AnyArray) -> tuple[AnyArray, ...]:
    """Return factors of users and items in the dtype that a loaded checkpoint has."""
    dtype = np.float32 if max(one.dtype.itemsize for one in factors) <= 4 else np.float64
    return tuple(one.astype(dtype, copy=False) for one in factors)


def has_other_data(model: Any, train: LabelledMatrix) -> bool:
    """Return whether a model was trained on other data, which may hold the held-out pairs.

    A model is trusted in four cases. Its training data are unknown, all their events precede the
    cut of a split by time, `train` is the seen part of a split by users, or the model was trained
    on `train` or on one of the parts of which it is made.
    """
    text = getattr(getattr(model, "trained", None) or model, TRAINED_ON, None)
    known = None if text is None else TrainedOn.parse(text)
    if known is None or train.part == "seen" or known.precedes(train):
        return False
    return not any(known.has_pairs_of(part) for part in (train, *train.parts))


def warn_of_other_data(name: str) -> None:
    """Warn about models that were trained on other data, which the message calls `name`."""
    warn(
        f"{name} was trained on pairs that are not in train. If these include held-out pairs, its "
        "metrics are too high. Train it on the train part of this split, or cut the split after "
        "its last training event"
    )
