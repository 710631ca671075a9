"""Number training data and held-out items as a model numbers its users and items."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.csr import canonical_csr, indptr_from_counts, plain_matrix
from ..errors import InvalidDataError
from ..inputs.alignment import locate
from ..inputs.axes import Axis
from ..inputs.candidates import align_candidates
from ..inputs.labelled import LabelledMatrix, labels_of
from ..inputs.npy import slice_rows
from ..inputs.relevance import Relevance
from ..inputs.training import take_rows
from .accepted import catalogue, check_shape
from .identifiers import ids_of
from .without_ids import warn_without_ids

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, Integers
    from ..inputs.candidates import Candidates
    from .accepted import Model
    from .chosen_users import ChosenUsers


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
    users, items : pandas.Index or None
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


class _Axis(NamedTuple):
    """Users or items: where rows or columns go, and what all of them are called and how many."""

    places: Integers | None  # None if they stay
    labels: Axis | None
    size: int


def match_sides(
    model: Model | None,
    train: CSRMatrix | Relevance,
    relevance: Relevance,
    names: tuple[str, str] = ("train", "validation"),
    candidates: Candidates | None = None,
    chosen: ChosenUsers | None = None,
) -> Sides:
    """Match both parts of a split with the users and items of a model: by id where it has ids.

    Parameters
    ----------
    model : model from `as_model`, optional
        Without ids of its own it is numbered as `train`; None stands for a model yet to be trained.
    train : csr_matrix, or Relevance with ids
    relevance : Relevance
    names : tuple of str
        What messages call the two.
    candidates : Candidates, optional
        Numbered as `train` where they have no ids.
    chosen : ChosenUsers, optional
        Whose held-out items `relevance` is reduced to, in the order of the model.

    Raises
    ------
    InvalidDataError
        If a part has ids that nothing can be matched with, or another shape than the model where
        there are no ids; or as `ChosenUsers.rows`.

    Warns
    -----
    UserWarning
        If the model has no ids and a part has ids.
    """
    shape: tuple[int, int] = train.shape
    known: tuple[Axis | None, Axis | None] = (None, None)
    if model is not None:
        known = ids_of(model)
        n_users, n_items = catalogue(model)
        shape = (train.shape[0] if n_users is None else n_users, n_items)
    trained = [
        _place_train(model, train, axis, labels, size, names[0])
        for axis, labels, size in zip(_AXES, known, shape, strict=True)
    ]
    matrix = _as_matrix(train, trained)
    if candidates is not None:
        _check_numbering(candidates, trained, names[0])
    users, items = (
        _place_held_out(relevance, axis, one, names[1])
        for axis, one in zip(_AXES, trained, strict=True)
    )
    n_known, user_rows = shape[0], None
    first = None if users.places is None else np.unique(users.places)
    largest_gain = float(relevance.gains.max(initial=0.0))
    if chosen is not None and not chosen.is_everyone:
        first = np.unique(chosen.rows(users.labels, users.size, "the model and the data know"))
        users, relevance = _choose(users, relevance, first)
    if first is not None:  # ascending: those whom the model knows come first
        rest = np.setdiff1d(np.arange(users.size), first)
        order = np.concatenate((first, rest))
        n_rows = int(order.max(initial=-1)) + 1
        matrix = slice_rows(matrix, 0, max(matrix.shape[0], n_rows))[order]
        if candidates is not None and candidates.users is None:
            candidates = candidates.padded(n_rows).take(order)
        assert users.places is not None  # noqa: S101 - it is of those in `first`
        ordered = None if users.labels is None else users.labels[order]
        users = _Axis(np.searchsorted(first, users.places), ordered, len(first))
        user_rows = first[first < shape[0]]
        n_known = len(user_rows)
    moved = _move_relevance(relevance, users, items)
    if candidates is not None:
        n_users = max(matrix.shape[0], moved.shape[0])
        candidates, _ = align_candidates(
            candidates, (n_users, items.size), users.labels, items.labels, others="the model"
        )
    if model is not None:
        warn_without_ids(model, train, relevance)
    if first is not None and users.labels is None:
        moved = replace(moved, users=Axis(first))
    relevant = moved.items[moved.gains > 0]
    return Sides(
        matrix,
        moved,
        users.labels,
        items.labels,
        n_known,
        user_rows,
        int(np.count_nonzero(moved.n_relevant[n_known:])),
        len(np.unique(relevant[relevant >= shape[1]])),
        candidates,
        largest_gain,
    )


_AXES = ("users", "items")


def match_items(model: Model, train: CSRMatrix | Relevance, name: str = "train") -> Any:
    """Return training data of any users with the items of a model, without those unknown to it.

    Raises
    ------
    InvalidDataError
        As `match_sides`.
    """
    n_items = catalogue(model)[1]
    items = _place_train(model, train, "items", ids_of(model)[1], n_items, name)
    matrix = _as_matrix(train, [_Axis(None, None, train.shape[0]), items])
    warn_without_ids(model, train, of_users=False)
    return within(matrix, (train.shape[0], n_items))


def _choose(users: _Axis, relevance: Relevance, chosen: Integers) -> tuple[_Axis, Relevance]:
    """Return the places of the chosen users with held-out items, and these items."""
    places = np.arange(relevance.shape[0]) if users.places is None else users.places
    rows = np.flatnonzero(np.isin(places, chosen))
    indptr, items = take_rows(relevance.indptr, rows, relevance.items)
    gains = take_rows(relevance.indptr, rows, relevance.gains)[1]
    if not (gains > 0).any():
        raise InvalidDataError(
            f"none of the {len(chosen)} users asked for has a held-out item, so there is nothing "
            "to evaluate"
        )
    shape = (len(rows), relevance.shape[1])
    taken = replace(relevance, shape=shape, indptr=indptr, items=items, gains=gains, users=None)
    return users._replace(places=places[rows]), taken


def add_sides(sides: Sides) -> CSRMatrix:
    """Return training data and held-out items together, explicit zeros included."""
    train, held_out = sides.train, sides.relevance
    shape = tuple(max(sizes) for sizes in zip(train.shape, held_out.shape, strict=True))
    rows = np.repeat(np.arange(held_out.shape[0]), np.diff(held_out.indptr))
    # The sum of two matrices would drop explicit zeros.
    parts = (train.tocoo(), sparse.coo_matrix((held_out.gains, (rows, held_out.items)), shape))
    data, row, column = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "row", "col")
    )
    matrix: CSRMatrix = sparse.csr_matrix((data, (row, column)), shape=shape)
    return LabelledMatrix.of(matrix, sides.users, sides.items)


def _place_train(
    model: Any,
    train: CSRMatrix | Relevance,
    axis: str,
    known: Axis | None,
    size: int,
    name: str,
) -> _Axis:
    """Return where the rows or columns of training data are among those of the model."""
    number = _AXES.index(axis)
    given = labels_of(train)[number]
    if known is not None and given is not None:
        return _place(known, given, axis, (name, "the model"))
    if model is not None and catalogue(model)[number] is not None:
        if given is not None and getattr(train, "encoded", False):
            raise InvalidDataError(
                f"{name} names {axis} by id ({given.tolist()[0]!r}, …), and the model numbers "
                "them, so nothing says which is which; give the matrix that the model was trained "
                "on, or a model with ids: from se.train_als, or saved by "
                "se.save_model(model, path, users=…, items=…)"
            )
        check_shape(model, train.shape, axis, name)
    return _Axis(None, given if known is None else known, size)


def _place_held_out(relevance: Relevance, axis: str, trained: _Axis, name: str) -> _Axis:
    """Return where the rows or columns of held-out items are among those trained on."""
    number = _AXES.index(axis)
    given, known = labels_of(relevance)[number], trained.labels
    if known is not None and given is not None:
        return _place(known, given, axis, (name, "the model"))
    if given is not None and relevance.encoded:
        raise InvalidDataError(
            f"{name} names {axis} by id ({given.tolist()[0]!r}, …), and the model and train number "
            "them, so nothing says which is which; give train with ids too (Interactions, a frame, "
            f"or the train part of a Holdout that has them), or {name} as a matrix with the rows "
            "and columns of train"
        )
    if relevance.shape[number] > trained.size:
        raise InvalidDataError(
            f"{name} has {relevance.shape[number]} {axis} (shape {relevance.shape}), train "
            f"{trained.size}; give both the users and items of the same split"
        )
    return _Axis(None, given if known is None else known, trained.size)


def _place(known: Axis, given: Axis, axis: str, sides: tuple[str, str]) -> _Axis:
    """Return where given labels are among those known, behind which come the unknown ones."""
    if given is known or given.equals(known):
        return _Axis(None, known, len(known))
    places, union = locate(known, given, axis.removesuffix("s"), sides)
    return _Axis(places, union, len(union))


def _as_matrix(train: CSRMatrix | Relevance, axes: list[_Axis]) -> sparse.csr_matrix:
    """Return training data as a matrix without labels, its rows and columns moved."""
    data = train.gains if isinstance(train, Relevance) else train.data
    items = train.items if isinstance(train, Relevance) else train.indices
    if all(axis.places is None for axis in axes):
        if not isinstance(train, Relevance):
            return plain_matrix(train)
        return sparse.csr_matrix((data, items, train.indptr), shape=train.shape)
    coordinates = _move(train.indptr, items, *axes)
    shape = tuple(axis.size for axis in axes)
    coo = sparse.coo_matrix((data, coordinates), shape=shape)
    return canonical_csr(coo, "train", sum_duplicates=True)


def _check_numbering(candidates: Candidates, trained: list[_Axis], name: str) -> None:
    """Raise if candidates number what the model and training data name in different orders."""
    for axis, one in zip(_AXES, trained, strict=True):
        own = candidates.users if axis == "users" else candidates.items_index
        if own is None and one.places is not None and not (candidates.for_all and axis == "users"):
            raise InvalidDataError(
                f"candidates number {axis}, and the model and {name} have ids in different orders, "
                "so nothing says which is which; give candidates with ids"
            )
    last, n_items = candidates.shape[1] - 1, trained[1].size
    if candidates.for_all and candidates.items_index is None and last >= n_items:
        raise InvalidDataError(
            f"candidates has item {last}, and items are numbered from 0 to {n_items - 1}; give "
            "such numbers, or ids as pandas.Index(ids)",
            argument="candidates",
        )


def _move_relevance(relevance: Relevance, users: _Axis, items: _Axis) -> Relevance:
    """Return relevance with its rows and columns moved, and the labels of both."""
    n_users, n_items = relevance.shape
    if users.places is None and items.places is None:
        labels = users.labels
        if labels is not None and len(labels) > n_users:
            labels = labels[:n_users]
        return replace(relevance, users=labels, items_index=items.labels, encoded=False)
    if users.places is not None:
        n_users = users.size
    rows, columns = _move(relevance.indptr, relevance.items, users, items)
    order = np.lexsort((columns, rows))
    return replace(
        relevance,
        shape=(n_users, n_items if items.places is None else items.size),
        indptr=indptr_from_counts(np.bincount(rows, minlength=n_users)),
        items=columns[order].astype(np.int32),
        gains=relevance.gains[order],
        users=None if users.labels is None else users.labels[:n_users],
        items_index=items.labels,
        encoded=False,
    )


def _move(indptr: Any, indices: Any, users: _Axis, items: _Axis) -> tuple[Integers, Integers]:
    """Return the new row and column of each entry."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    columns = np.asarray(indices, np.int64)
    return (
        rows if users.places is None else users.places[rows],
        columns if items.places is None else items.places[columns],
    )


def within(side: Any, shape: tuple[int, int]) -> Any:
    """Return the first rows and columns of a matrix or of relevance: those that a model knows."""
    if side.shape[0] > shape[0]:
        side = slice_rows(side, 0, shape[0])
    if side.shape[1] <= shape[1]:
        return side
    items = side.items if isinstance(side, Relevance) else side.indices
    kept = items < shape[1]
    indptr = np.concatenate(([0], np.cumsum(kept)))[side.indptr].astype(np.int64)
    size = (side.shape[0], shape[1])
    if not isinstance(side, Relevance):
        return sparse.csr_matrix((side.data[kept], items[kept], indptr), shape=size)
    labels = side.items_index
    return replace(
        side,
        shape=size,
        indptr=indptr,
        items=items[kept],
        gains=side.gains[kept],
        items_index=None if labels is None else labels[: shape[1]],
    )
