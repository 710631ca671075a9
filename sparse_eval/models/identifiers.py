"""What a model stores about its training data: ids and a digest."""

from __future__ import annotations

import re
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.csr import canonical_csr
from ..core.hashing import digest_arrays, digest_csr, hash_labels, splitmix64
from ..core.messages import warn
from ..datasets.interactions import label_array
from ..errors import InvalidDataError
from ..inputs.alignment import Known
from ..inputs.axes import Axis
from ..inputs.labelled import LabelledMatrix, labels_of

if TYPE_CHECKING:
    from ..core.types import AnyArray

#: Attributes of a model, and arrays of its checkpoint, which implicit makes attributes again when
#: it loads one.
USER_IDS, ITEM_IDS = "user_ids", "item_ids"
#: Likewise what identifies its training data, see `TrainedOn`.
TRAINED_ON = "trained_on"

#: Attributes of a model that have a row for each user or item.
_ROWS = {USER_IDS: ("user_factors",), ITEM_IDS: ("item_factors", "similarity", "weights")}


def ids_of(model: object, users: Any = None, items: Any = None) -> tuple[Axis | None, Axis | None]:
    """Return the ids of a model's users and items, None if it only numbers them.

    `users` and `items`, if given, replace the ids that the model has.

    Raises
    ------
    InvalidDataError
        If there are more or fewer ids than users or items, as after another training.
    """
    model = getattr(model, "trained", None) or model
    users = getattr(model, USER_IDS, None) if users is None else users
    items = getattr(model, ITEM_IDS, None) if items is None else items
    return _checked(model, users, USER_IDS), _checked(model, items, ITEM_IDS)


def known_to(model: Any) -> Known:
    """Return the users and items of a model from `as_model`."""
    return Known(*ids_of(model), *model.shape)


def _checked(model: object, ids: Any, name: str) -> Axis | None:
    if ids is None:
        return None
    ids = ids if hasattr(ids, "__len__") else list(ids)
    side = _ROWS[name][0]
    rows = [matrix for one in _ROWS[name] if (matrix := getattr(model, one, None)) is not None]
    n = rows[0].shape[0] if rows else getattr(model, f"n_{name.replace('_ids', 's')}", None)
    if n is not None and len(ids) != n:
        raise InvalidDataError(
            f"there are {len(ids)} {name} for a model with {n} {side}; expected one for each. A "
            f"model has them as its attribute {name}; set it to None to remove them"
        )
    return Axis.of(ids, name.replace("_ids", "s"), n)


def keep_ids(model: Any, users: Axis | None, items: Axis | None) -> None:
    """Store the ids of its users and items in a model, or remove them."""
    for name, labels in ((USER_IDS, users), (ITEM_IDS, items)):
        if labels is not None or getattr(model, name, None) is not None:
            setattr(model, name, labels)


def copy_ids(model: Any, other: Any) -> Any:
    """Copy what a model stores about its training data to another form of it, and return that."""
    keep_ids(other, getattr(model, USER_IDS, None), getattr(model, ITEM_IDS, None))
    setattr(other, TRAINED_ON, getattr(model, TRAINED_ON, None))
    return other


def id_arrays(users: Axis | None, items: Axis | None) -> dict[str, AnyArray]:
    """Return ids as arrays, by name, that are saved without pickle.

    Raises
    ------
    InvalidDataError
        If they are neither all text nor all whole numbers.
    """
    return {
        name: label_array(name, labels)
        for name, labels in ((USER_IDS, users), (ITEM_IDS, items))
        if labels is not None
    }


#: How to add ids to a model.
_REMEDY = (
    "train it with se.train_als or se.train_model and save it with se.save_model in place of "
    "model.save, or give the ids as users=… and items=… to se.save_model, se.factor_model or "
    "se.Scorer"
)


def warn_without_ids(model: Any, *data: object, of_users: bool = True) -> None:
    """Warn if a model has no ids, so that it is matched with data by row and column number.

    If `of_users` is False, only the ids of items matter.
    """
    if lacks_ids(model, *data, of_users=of_users):
        warn_of_numbers("the model")


def warn_of_numbers(name: str) -> None:
    """Warn about models without ids, which the message calls `name`."""
    warn(
        f"{name} has no ids, but the data have, so users and items are matched by row and column "
        f"number. Metrics are wrong if it was trained on a different order; {_REMEDY}"
    )


def lacks_ids(model: Any, *data: object, of_users: bool = True) -> bool:
    """Return whether a model lacks ids of users or items that the data have.

    A function lacks none: by definition it uses the row and column numbers of the training data.
    """
    users, items = zip(*map(labels_of, data), strict=True)
    known_users, known_items = ids_of(model)
    return bool(model.needs_ids) and (
        (known_items is None and any(items))
        or (known_users is None and any(users) and of_users and not model.takes_any_user)
    )


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
    ids = (getattr(model, name, None) for name in _ROWS)
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
