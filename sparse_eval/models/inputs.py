"""Open and check training data, held-out items and candidates, and match them with a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from ..core.csr import training_csr
from ..core.hashing import digest, digest_csr
from ..datasets.split.holdout import Holdout
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.axes import Axis
from ..inputs.candidates import Candidates, align_candidates
from ..inputs.labelled import LabelledMatrix, Place, check_part, labels_of, moved, place
from ..inputs.npy import slice_rows
from ..inputs.paths import read_truth
from ..inputs.relevance import Relevance
from .accepted import check_size
from .identifiers import ids_of, rows_of_users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import ArrayLike

    from ..core.types import Integers, PathLike, SparseInput
    from ..datasets import Interactions
    from ..inputs.tables import FrameLike
    from .model import Model


#: Training data or held-out items.
TrainLike: TypeAlias = "SparseInput | Interactions | Relevance | FrameLike | PathLike | Holdout"


def training_part(holdout: Holdout) -> LabelledMatrix | Holdout:
    """Return the training data of a split, or a split by users itself, for its users to fold in."""
    return holdout.train if holdout.fold_in is None else holdout


#: Items that can be recommended to users.
CandidatesLike: TypeAlias = "TrainLike | Candidates | Mapping[Any, Iterable[Any]] | ArrayLike"

#: Candidates, or a function of a split that returns its own.
CandidatesOfSplit: TypeAlias = "CandidatesLike | Callable[[Holdout], CandidatesLike]"


def load_split(train: Any) -> Any:
    """Return the split that was saved in the folder `train`, and any other data as they are."""
    if isinstance(train, str | Path) and (Path(train) / "labels.npz").exists():
        return Holdout.load(train)
    return train


def split_arguments(train: Any, validation: Any, metrics: Any) -> tuple[Any, Any, Any]:
    """Return train, validation and metrics, where a `Holdout` may stand for the first two.

    So may the folder where it was saved. Train is the part, or a split by users, see
    `training_part`.
    """
    train = load_split(train)
    if isinstance(train, Holdout):
        if validation is not None and metrics is not None:
            raise InvalidDataError(
                "a Holdout has its own validation part. Pass the Holdout and the metrics, or "
                "its parts: holdout.train, validation, metrics"
            )
        metrics = validation if metrics is None else metrics
        train, validation = training_part(train), train.validation
    if metrics is None:
        raise InvalidMetricError(
            "no metrics are given; expected train, validation and metrics, or a Holdout and metrics"
        )
    return train, validation, metrics


def open_train(train: Any, name: str = "the train matrix") -> LabelledMatrix:
    """Return training data, or the train part of a holdout; messages call a matrix `name`.

    Raises
    ------
    InvalidDataError
        If it is not valid for `training_csr`, or is the validation part of a holdout.
    """
    opened = train.train if isinstance(train, Holdout) else train
    if not sparse.issparse(opened):
        check_part(opened)
        opened = read_truth(opened)
    if isinstance(opened, Relevance):
        return opened.to_csr()
    # Compiled code takes no csr_array.
    matrix = sparse.csr_matrix(training_csr(opened, name))
    if isinstance(opened, LabelledMatrix):
        return replace(opened, csr=matrix)
    return LabelledMatrix(matrix)


def name_of(role: str, side: Any) -> str:
    """Return the name of an input in messages: its role and, if it is a file, its path."""
    return f"{role} ({side})" if isinstance(side, str | Path) else role


def open_held_out(validation: Any, name: str = "validation") -> Relevance:
    """Return held-out items.

    Raises
    ------
    InvalidDataError
        If no user has a relevant item.
    """
    relevance = open_relevance(validation)
    if not (relevance.gains > 0).any():
        raise InvalidDataError(
            f"{name} has no relevant item: none of the {relevance.shape[0]} users has a stored "
            "value above 0, so there is nothing to evaluate"
        )
    return relevance


def open_relevance(truth: Any) -> Relevance:
    """Return relevant items; there may be none."""
    opened = truth if sparse.issparse(truth) else read_truth(truth)
    return opened if isinstance(opened, Relevance) else Relevance.from_csr(opened)


def digest_of(side: LabelledMatrix | Relevance | Holdout) -> str:
    """Return a digest of a matrix: 16 hexadecimal digits that do not depend on its dtypes.

    Ids of users and items count, if it has any.
    """
    if isinstance(side, Holdout):
        both = [digest_of(part) for part in (side.train, side.fold_in) if part is not None]
        return digest(*both)[:16]
    matrix = side.to_csr() if isinstance(side, Relevance) else side
    of_entries = digest_csr(matrix.shape, matrix.indptr, matrix.indices, matrix.data)
    if matrix.users is matrix.items is None:
        return of_entries[:16]
    labels = (None if axis is None else axis.tolist() for axis in (matrix.users, matrix.items))
    return digest(of_entries, *map(repr, labels))[:16]


class Sides(NamedTuple):
    """Both parts of a split in one numbering.

    Items have the model's order; items unknown to the model come last. Users have the model's order
    too, unless the model and the held-out items have different users. Then users with held-out
    items come first (users of the model before others), and all other users last.

    Attributes
    ----------
    train : csr_matrix
        Of all users.
    relevance : Relevance
        Of the first users.
    users, items : Axis or None
        The ids of all of them.
    n_known : int
        The number of first users that the model knows.
    user_rows : ndarray of int64 or None
        Their rows in the model; None if these are the first ones.
    n_unknown_users, n_unknown_items : int
        Users with relevant items, and relevant items, that the model does not know.
    candidates : Candidates or None
        Of all users.
    """

    train: sparse.csr_matrix
    relevance: Relevance
    users: Axis | None
    items: Axis | None
    n_known: int
    user_rows: Integers | None
    n_unknown_users: int = 0
    n_unknown_items: int = 0
    candidates: Candidates | None = None


def match_sides(
    model: Model | None,
    train: Any,
    relevance: Any,
    names: tuple[str, str] = ("train", "validation"),
    candidates: Candidates | None = None,
    chosen: Any = None,
) -> Sides:
    """Match both parts of a split with the users and items of a model: by id if it has ids.

    Parameters
    ----------
    model : model from `as_model`, optional
        Without ids it is numbered as `train`; None stands for a model yet to be trained.
    train : LabelledMatrix
    relevance : Relevance or None
        None if nothing is held out.
    names : tuple of str
        What messages call the two.
    candidates : Candidates, optional
        Numbered as `train` if they have no ids.
    chosen : sequence of hashable, optional
        The users whose held-out items `relevance` is reduced to, in the order of the model.

    Both parts may be matrices that stay on disk, which have no ids, if there are neither candidates
    nor chosen users: only their shapes are compared.

    Raises
    ------
    InvalidDataError
        If a part has ids that cannot be matched, or without ids a different shape from the model.
        Also as from `rows_of_users`.
    """
    if relevance is None:
        relevance = Relevance.from_csr(sparse.csr_matrix((0, 0)))
    known = (None, None) if model is None else ids_of(model)
    of_users, of_items = zip(known, labels_of(train), labels_of(relevance), strict=True)
    n_known, rows, users = _match_axis(0, model, train, relevance, names, *of_users)
    n_items, columns, items = _match_axis(1, model, train, relevance, names, *of_items)
    matrix = train.csr if isinstance(train, LabelledMatrix) else train
    is_numbered = candidates is None and chosen is None and users.labels is items.labels is None
    if is_numbered or not isinstance(relevance, Relevance):
        return Sides(matrix, relevance, None, None, n_known, None)
    matrix = moved(matrix, rows, columns)
    if candidates is not None:
        _check_numbering(candidates, (rows, columns), names[0])
    user_rows = None
    # They are in the order of the model now, as are its lists.
    own = [None if axis.labels is None else axis.labels.marked(False) for axis in (users, items)]
    held = relevance.with_entries(moved(relevance.to_csr().csr, users, items), None, own[1])
    if candidates is not None:
        everyone = users._replace(size=max(users.size, matrix.shape[0]))
        if candidates.users is None and (users.places is not None or chosen is not None):
            candidates = candidates.part(0, everyone.size)
        candidates, _ = align_candidates(candidates, everyone, items, "the model")
    first = None if users.places is None else np.unique(users.places)
    ids = users.labels
    if chosen is not None:
        first = np.unique(rows_of_users(chosen, ids, users.size, "the model and the data know"))
    if first is None:
        held = replace(held, users=own[0] if own[0] is None else own[0][: held.shape[0]])
    else:  # ascending: users of the model come first
        order = np.concatenate((first, np.setdiff1d(np.arange(users.size), first)))
        padded: Any = slice_rows(matrix, 0, max(users.size, matrix.shape[0]))
        matrix = padded[order]
        held = held.part(0, users.size).take(first)
        if candidates is not None:
            candidates = candidates.take(order)
        if ids is not None:
            ids = ids[order]
        own_users = Axis(first) if ids is None else ids[: len(first)].marked(False)
        held = replace(held, users=own_users)
        user_rows = first[first < n_known]
        n_known = len(user_rows)
    relevant = held.items[held.gains > 0]
    n_unknown_users = int(np.count_nonzero(held.n_relevant[n_known:]))
    n_unknown_items = len(np.unique(relevant[relevant >= n_items]))
    unknown = n_unknown_users, n_unknown_items
    return Sides(matrix, held, ids, items.labels, n_known, user_rows, *unknown, candidates)


_AXES = ("users", "items")


def match_items(model: Model, train: LabelledMatrix, name: str = "train") -> Any:
    """Return training data of any users with the items of a model, without those unknown to it.

    Raises
    ------
    InvalidDataError
        As `match_sides`.
    """
    nothing = sparse.csr_matrix((0, 0))
    labels = ids_of(model)[1], train.items, None
    n_items, columns, _ = _match_axis(1, model, train, nothing, (name, "validation"), *labels)
    matrix = moved(train.csr, Place(None, None, train.shape[0]), columns)
    return within(matrix, train.shape[0], n_items)


def _match_axis(
    number: int,
    model: Model | None,
    train: Any,
    relevance: Any,
    names: tuple[str, str],
    known: Axis | None,
    given: Axis | None,
    own: Axis | None,
) -> tuple[int, Place, Place]:
    """Return the number of rows or columns of a model, and where those of both parts go.

    `known`, `given` and `own` are the labels of the model, of training data and of `relevance`.
    """
    role, n_given, n_held = _AXES[number], train.shape[number], relevance.shape[number]
    size = None if model is None else model.shape[number]
    if size is None:  # a model yet to be trained, or one of any users
        size, trained = n_given, Place(None, given, n_given)
    else:
        trained = Place(None, None, max(size, n_given))
        if known is not None or given is not None:
            trained = place(role, known, given, (size, n_given), ("the model", names[0]))
        if known is None or given is None:
            check_size(role, n_given, size, names[0])
    held = Place(None, None, max(trained.size, n_held))
    if trained.labels is not None or own is not None:
        held = place(role, trained.labels, own, (trained.size, n_held), names)
    if n_held > trained.size and (trained.labels is None or own is None):
        raise InvalidDataError(
            f"{names[1]} has {n_held} {role} (shape {relevance.shape}), train {trained.size}. Use "
            "the users and items of the same split for both"
        )
    return size, trained, held


def _check_numbering(candidates: Candidates, trained: tuple[Place, Place], name: str) -> None:
    """Raise if candidates without ids do not fit different orders of model and training data."""
    for axis, one in zip(_AXES, trained, strict=True):
        own = candidates.users if axis == "users" else candidates.items_index
        if own is None and one.places is not None and not (candidates.for_all and axis == "users"):
            raise InvalidDataError(
                f"candidates number {axis}, and the model and {name} have ids in different orders, "
                "so they cannot be matched. Pass candidates with ids"
            )
    last, n_items = candidates.shape[1] - 1, trained[1].size
    if candidates.for_all and candidates.items_index is None and last >= n_items:
        raise InvalidDataError(
            f"candidates has item {last}, but items are numbered from 0 to {n_items - 1}. Pass "
            "such numbers, or ids as pandas.Index(ids)",
            argument="candidates",
        )


def within(matrix: Any, n_users: int, n_items: int) -> Any:
    """Return the first rows and columns of a matrix, which a model knows."""
    fits = matrix.shape[0] <= n_users and matrix.shape[1] <= n_items
    return matrix if fits else matrix[:n_users, :n_items]
