"""Number training data and held-out items as a model numbers its users and items."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.csr import added
from ..errors import InvalidDataError
from ..inputs.axes import Axis
from ..inputs.candidates import align_candidates
from ..inputs.labelled import LabelledMatrix, Place, labels_of, moved, place
from ..inputs.npy import slice_rows
from ..inputs.relevance import Relevance
from .accepted import check_shape
from .identifiers import ids_of, rows_of_users, warn_without_ids

if TYPE_CHECKING:
    from ..core.types import Integers
    from ..inputs.candidates import Candidates
    from .model import Model


class Sides(NamedTuple):
    """Both parts of a split in one numbering.

    Items are numbered as by the model, and those that it does not know come behind. Users are too,
    unless the held-out items are of other users than the model: then those with held-out items
    come first, among them those whom the model knows, and all others come behind.

    Attributes
    ----------
    train : csr_matrix
        Of all users.
    relevance : Relevance
        Of the first users.
    users, items : Axis or None
        The ids of all of them.
    n_known : int
        So many of the first users are known to the model.
    user_rows : ndarray of int64 or None
        Their rows in the model; None if these are the first ones.
    n_unknown_users, n_unknown_items : int
        Users with relevant items, and relevant items, that the model does not know.
    candidates : Candidates or None
        Of all users.
    largest_gain : float
        The largest held-out gain of all users, chosen or not.
    """

    train: sparse.csr_matrix
    relevance: Relevance
    users: Axis | None
    items: Axis | None
    n_known: int
    user_rows: Integers | None
    n_unknown_users: int
    n_unknown_items: int
    candidates: Candidates | None = None
    largest_gain: float = 0.0


def match_sides(
    model: Model | None,
    train: LabelledMatrix,
    relevance: Relevance | None,
    names: tuple[str, str] = ("train", "validation"),
    candidates: Candidates | None = None,
    chosen: Any = None,
) -> Sides:
    """Match both parts of a split with the users and items of a model: by id where it has ids.

    Parameters
    ----------
    model : model from `as_model`, optional
        Without ids of its own it is numbered as `train`; None stands for a model yet to be trained.
    train : LabelledMatrix
    relevance : Relevance or None
        None if nothing is held out.
    names : tuple of str
        What messages call the two.
    candidates : Candidates, optional
        Numbered as `train` where they have no ids.
    chosen : sequence of hashable, optional
        The users whose held-out items `relevance` is reduced to, in the order of the model.

    Raises
    ------
    InvalidDataError
        If a part has ids that nothing can be matched with, or another shape than the model where
        there are no ids; or as from `rows_of_users`.

    Warns
    -----
    UserWarning
        If the model has no ids and a part has ids.
    """
    if relevance is None:
        relevance = Relevance.from_csr(sparse.csr_matrix((0, 0)))
    trained = [_place_train(model, train, axis, names[0]) for axis in (0, 1)]
    shape = [size for _, size in trained]
    matrix = moved(train.csr, *(axis for axis, _ in trained))
    if candidates is not None:
        _check_numbering(candidates, [axis for axis, _ in trained], names[0])
    users, items = (
        _place_held_out(relevance, number, axis, names) for number, (axis, _) in enumerate(trained)
    )
    n_known, user_rows = shape[0], None
    largest_gain = float(relevance.gains.max(initial=0.0))
    # They are in the order of the model now, as are its lists.
    own = [None if axis.labels is None else axis.labels.marked(False) for axis in (users, items)]
    held = relevance.with_entries(moved(relevance.to_csr().csr, users, items), None, own[1])
    if candidates is not None:
        everyone = users._replace(size=max(users.size, matrix.shape[0]))
        if candidates.users is None and (users.places is not None or chosen is not None):
            candidates = candidates.part(0, everyone.size)
        candidates, _ = align_candidates(candidates, everyone, items, "the model")
    first = None if users.places is None else np.unique(users.places)
    labels = users.labels
    if chosen is not None:
        first = np.unique(rows_of_users(chosen, labels, users.size, "the model and the data know"))
    if first is None:
        held = replace(held, users=own[0] if own[0] is None else own[0][: held.shape[0]])
    else:  # ascending: those whom the model knows come first
        order = np.concatenate((first, np.setdiff1d(np.arange(users.size), first)))
        padded: Any = slice_rows(matrix, 0, max(users.size, matrix.shape[0]))
        matrix = padded[order]
        held = held.part(0, users.size).take(first)
        if candidates is not None:
            candidates = candidates.take(order)
        if labels is not None:
            labels = labels[order]
        own_users = Axis(first) if labels is None else labels[: len(first)].marked(False)
        held = replace(held, users=own_users)
        user_rows = first[first < shape[0]]
        n_known = len(user_rows)
    if chosen is not None and not held.n_relevant.any():
        raise InvalidDataError(
            f"none of the {held.shape[0]} users asked for has a held-out item, so there is "
            "nothing to evaluate"
        )
    if model is not None:
        warn_without_ids(model, train, relevance)
    relevant = held.items[held.gains > 0]
    return Sides(
        matrix,
        held,
        labels,
        items.labels,
        n_known,
        user_rows,
        int(np.count_nonzero(held.n_relevant[n_known:])),
        len(np.unique(relevant[relevant >= shape[1]])),
        candidates,
        largest_gain,
    )


_AXES = ("users", "items")


def match_items(model: Model, train: LabelledMatrix, name: str = "train") -> Any:
    """Return training data of any users with the items of a model, without those unknown to it.

    Raises
    ------
    InvalidDataError
        As `match_sides`.
    """
    items, n_items = _place_train(model, train, 1, name)
    matrix = moved(train.csr, Place(None, None, train.shape[0]), items)
    warn_without_ids(model, train, of_users=False)
    return within(matrix, train.shape[0], n_items)


def add_sides(sides: Sides) -> LabelledMatrix:
    """Return training data and held-out items together, explicit zeros included."""
    matrix = added(sides.train, sides.relevance.to_csr())
    return LabelledMatrix.of(matrix, sides.users, sides.items)


def _place_train(
    model: Model | None, train: LabelledMatrix, number: int, name: str
) -> tuple[Place, int]:
    """Return where the rows or columns of training data go, and how many the model knows."""
    role, given = _AXES[number], labels_of(train)[number]
    known = None if model is None else ids_of(model)[number]
    size = None if model is None else model.shape[number]
    n_given: int = train.shape[number]
    if size is None:  # a model yet to be trained, or one of any users
        return Place(None, given, n_given), n_given
    found = place(role, known, given, (size, n_given), ("the model", name))
    if model is not None and (known is None or given is None):
        check_shape(model, train.shape, role, name)
    return found, size


def _place_held_out(
    relevance: Relevance, number: int, trained: Place, names: tuple[str, str]
) -> Place:
    """Return where the rows or columns of held-out items are among those trained on."""
    role, given, n_given = _AXES[number], labels_of(relevance)[number], relevance.shape[number]
    found = place(role, trained.labels, given, (trained.size, n_given), names)
    if n_given > trained.size and (trained.labels is None or given is None):
        raise InvalidDataError(
            f"{names[1]} has {n_given} {role} (shape {relevance.shape}), train {trained.size}; "
            "give both the users and items of the same split"
        )
    return found


def _check_numbering(candidates: Candidates, trained: list[Place], name: str) -> None:
    """Raise if candidates number what the model and training data name in different orders."""
    for axis, one in zip(_AXES, trained, strict=True):
        own = candidates.users if axis == "users" else candidates.items_index
        if own is None and one.places is not None and not (candidates.for_all and axis == "users"):
            raise InvalidDataError(
                f"candidates number {axis}, and the model and {name} have ids in different orders, "
                "so they cannot be matched; give candidates with ids"
            )
    last, n_items = candidates.shape[1] - 1, trained[1].size
    if candidates.for_all and candidates.items_index is None and last >= n_items:
        raise InvalidDataError(
            f"candidates has item {last}, and items are numbered from 0 to {n_items - 1}; give "
            "such numbers, or ids as pandas.Index(ids)",
            argument="candidates",
        )


def within(matrix: Any, n_users: int, n_items: int) -> Any:
    """Return the first rows and columns of a matrix: those that a model knows."""
    fits = matrix.shape[0] <= n_users and matrix.shape[1] <= n_items
    return matrix if fits else matrix[:n_users, :n_items]
