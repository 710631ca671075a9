"""What a model was trained on: noted on the model, saved with it, and compared with other data."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ..core.hashing import fingerprints, hash_labels, splitmix64
from ..core.warning import warn
from ..inputs.labelled import LabelledMatrix, labels_of
from .identifiers import TRAINED_ON, keep_ids


class TrainedOn(NamedTuple):
    """Identifies training data.

    Attributes
    ----------
    n_pairs : int
        The number of pairs of user and item.
    digest : str
        Of the pairs, whatever their order and values: of ids if there are any, which it begins
        with, or of the numbers of rows and columns.
    before : str
        The point in time that all events precede: a date (ISO 8601, UTC), or a number if its unit
        is not known; empty if nothing is known.
    """

    n_pairs: int
    digest: str
    before: str

    @classmethod
    def of(cls, train: LabelledMatrix) -> TrainedOn:
        """Describe a matrix."""
        users, items = (
            hash_labels(np.arange(size) if labels is None else labels.to_numpy())
            for size, labels in zip(train.shape, labels_of(train), strict=True)
        )
        rows = fingerprints(train.indptr, train.indices, np.ones(train.nnz), items)
        some = rows != 0
        sums = splitmix64(rows[some] ^ users[some]).sum(dtype=np.uint64)
        kind = "numbers" if train.users is None and train.items is None else "ids"
        before = "" if train.before is None else str(train.before)
        return cls(train.nnz, f"{kind}:{int(sums):016x}", before)

    def __str__(self) -> str:
        return " ".join(map(str, self)).strip()

    @classmethod
    def parse(cls, text: object) -> TrainedOn | None:
        """Return what `str` made a text of, None of something else, as of a model of others."""
        time = r"-?\d{1,18}|\d{4}-\d\d-\d\d(?:T[\d:.]+)?"
        found = re.fullmatch(rf"(\d+) ((?:ids|numbers):[\da-f]{{16}})(?: ({time}))?", str(text))
        if found is None:
            return None
        before = found[3] or ""
        with suppress(ValueError):
            time_of(before or "0")
            return cls(int(found[1]), found[2], before)
        return None

    def precedes(self, train: LabelledMatrix) -> bool:
        """Return whether all its events are known to precede the end of other training data."""
        if not self.before or train.before is None:
            return False
        time = time_of(self.before)
        if isinstance(time, np.datetime64) != isinstance(train.before, np.datetime64):
            return False
        return bool(time <= train.before)


def time_of(text: str) -> Any:
    """Return a date, or a number in a unit that nobody told."""
    return np.datetime64(text) if "-" in text[1:] else int(text)


def keep_training(model: Any, train: LabelledMatrix | None) -> None:
    """Let a model know the ids and the identity of its training data, or forget them."""
    keep_ids(model, *((None, None) if train is None else labels_of(train)))
    setattr(model, TRAINED_ON, None if train is None else str(TrainedOn.of(train)))


def has_other_data(model: Any, train: LabelledMatrix) -> bool:
    """Return whether a model was trained on other data, which may hold the held-out pairs.

    Models are trusted if nothing is known about their training, if all its events were earlier
    than the cut of a split by time, or if `train` is what users of a split by users have seen.
    """
    text = getattr(getattr(model, "trained", None) or model, TRAINED_ON, None)
    known = TrainedOn.parse(text)
    if known is None or train.part == "seen" or known.precedes(train):
        return False
    if known.n_pairs != train.nnz:  # there is no need to hash them
        return True
    found = TrainedOn.of(train)
    return found.digest != known.digest and found.digest[0] == known.digest[0]


def warn_of_other_data(name: str) -> None:
    """Warn of models that were trained on other data, which the message calls `name`."""
    warn(
        f"{name} was trained on other pairs than train holds: if held-out ones are among them, "
        "metrics are too high; train it on the train part of this split, or split by time after "
        "the last event it was trained on"
    )
