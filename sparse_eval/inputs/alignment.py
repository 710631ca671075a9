"""Match the users and items of several inputs: by id, or else by row and column number.

`match` and `align` bring lists into the order of the relevance. `match_split` brings training data,
held-out items and candidates into the order of a model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.csr import find_entries, indptr_from_counts, row_numbers, training_csr
from ..errors import InvalidDataError
from .axes import Axis
from .labelled import LabelledMatrix, UserRows, labels_of
from .npy import slice_rows
from .relevance import Relevance

if TYPE_CHECKING:
    from typing import TypeVar

    from ..core.types import Integers
    from .candidates import Candidates
    from .rankings import Rankings

    Side = TypeVar("Side", bound=UserRows)

_ROLES = ("users", "items")

#: How to add ids to an input without them.
_REMEDIES = {
    "the model": "from se.train_als or se.save_model(model, path, users=…, items=…)",
    "candidates": "such as a mapping, a frame or pandas.Index(ids)",
}

#: What to pass for numbers that are columns, and for numbers that are ids.
_COLUMNS_OR_IDS = {
    **dict.fromkeys(("candidates", "exclude"), ("holdout.items[numbers]", "pandas.Index(numbers)")),
    "the model": ("a model with the same columns", "se.save_model(model, path, items=ids)"),
}
_OTHERWISE = (
    "se.Rankings.from_topk(numbers, items=holdout.items)",
    "a frame, or a mapping of users to items",
)


class Place(NamedTuple):
    """Where the rows or columns of one side go in the other side's order.

    Attributes
    ----------
    places : ndarray of int64 or None
        The place of each; None if they stay.
    labels : Axis or None
        The labels of all, the other side's first.
    size : int
        The number of all.
    """

    places: Integers | None
    labels: Axis | None
    size: int

    def sources(self, n: int) -> Integers:
        """Return for each place the row or column (of `n`) that goes there; -1 for none."""
        rows = np.full(self.size, -1)
        rows[slice(n) if self.places is None else self.places] = np.arange(n)
        return rows


def place(
    role: str,
    known: Axis | None,
    given: Axis | None,
    sizes: tuple[int, int],
    names: tuple[str, str],
    may_be_ids: bool = False,
) -> Place:
    """Match the rows or columns of two sides: by id, or else by number.

    Rows or columns that the other side lacks come last.

    Raises `InvalidDataError` if one side was numbered from ids and the other has none. If the
    numbers of items may be columns or ids, or exceed the labels. If ids are text on only one side,
    so none can match.

    Parameters
    ----------
    known, given : Axis or None
        The labels of the other side, and the labels to match with them.
    sizes : tuple of int
        The numbers of rows or columns of the two. If there are fewer labels than `sizes` has, there
        are none for what comes behind.
    names : tuple of str
        What messages call the two.
    may_be_ids : bool
        Whether the numbers of the second side may be ids, see `UserRows.may_be_ids`.
    """
    if known is None or given is None:
        labels, numbered, labelled = (given, *names) if known is None else (known, *names[::-1])
        if labels is not None and labels.by_id and min(sizes):
            remedy = _REMEDIES.get(
                numbered, "such as a frame, Interactions, or users=… and items=…"
            )
            raise InvalidDataError(
                f"{labelled} has ids of {role} ({labels[0]!r}, …) but {numbered} has none, so they "
                f"cannot be matched. Pass {numbered} with ids, {remedy}, or pass both as matrices "
                "with the same row and column order"
            )
        if labels is not None and role == "items":
            n_numbered = sizes[0] if known is None else sizes[1]
            _check_columns(labels, n_numbered, may_be_ids, numbered, labelled)
        return Place(None, labels, max(sizes))
    if known.is_text != given.is_text:
        known, given = known.as_text(), given.as_text()
    if given is known or given.equals(known):
        return Place(None, known, max(sizes))
    size = max(sizes[0], len(known))
    places, union = known.union(given)
    unknown = places >= len(known)
    if unknown.all() and len(known) and len(given) and known.is_text != given.is_text:
        raise InvalidDataError(
            f"no {role} can match, because only one side has text as ids: {names[1]} has "
            f"{given[0]!r}, …, and {names[0]} has {known[0]!r}, …. Convert one of them"
        )
    places[unknown] += size - len(known)
    labels = union if size == len(known) else known
    return Place(places, labels, size + int(np.count_nonzero(unknown)))


def _check_columns(
    labels: Axis, n_numbered: int, may_be_ids: bool, numbered: str, labelled: str
) -> None:
    """Raise if the numbers of items, from 0 to `n_numbered` − 1, are not the columns of labels."""
    if not n_numbered:
        return
    n_items = len(labels)
    for_columns, for_ids = _COLUMNS_OR_IDS.get(numbered, _OTHERWISE)
    if n_numbered > n_items:
        raise InvalidDataError(
            f"{numbered} has item number {n_numbered - 1}, but {labelled} has only {n_items} items "
            f"(columns 0 to {n_items - 1}). If the numbers are ids, pass {for_ids}; otherwise, "
            "pass columns in this range"
        )
    if may_be_ids and labels.is_integer and not labels.equals(Axis.numbers(n_items)):
        raise InvalidDataError(
            f"the item numbers of {numbered} may be columns or ids, because the item ids of "
            f"{labelled} are whole numbers ({labels[0]}, …). If the numbers are columns, pass "
            f"{for_columns}. If they are ids, pass {for_ids}"
        )


def moved(matrix: Any, rows: Place, columns: Place) -> Any:
    """Return a CSR with its rows and columns at their places, as it is if they stay."""
    if rows.places is None and columns.places is None:
        return matrix
    coo = matrix.tocoo()
    row, column = (
        entries if axis.places is None else axis.places[entries]
        for axis, entries in ((rows, coo.row), (columns, coo.col))
    )
    shape = [
        size if axis.places is None else axis.size
        for axis, size in zip((rows, columns), matrix.shape, strict=True)
    ]
    return sparse.csr_matrix((coo.data, (row, column)), tuple(shape))


def places(known: Iterable[Place], side: Any, names: tuple[str, str]) -> tuple[Place, Place]:
    """Match the users and items of a side with known ones, see `place`."""
    may_be_ids = isinstance(side, UserRows) and side.may_be_ids
    users, items = (
        place(role, one.labels, labels, (one.size, size), names, may_be_ids)
        for role, one, labels, size in zip(_ROLES, known, labels_of(side), side.shape, strict=True)
    )
    return users, items


def move(side: Side, users: Place, items: Place) -> Side:
    """Return the rows and items of a side at their places."""
    if users.places is not None:
        side = side.take(users.sources(side.shape[0]))
    if items.places is not None:
        side = side.renumbered(items.places, items.size, items.labels)
    return side


def match(rankings: Any, relevance: Any) -> tuple[Place, Place]:
    """Return where the users and items of lists (or of a matrix) go in the relevance's order.

    Raises `InvalidDataError` as from `place`, or if the sides look transposed.
    """
    labels, shape = labels_of(relevance), relevance.shape
    known = Place(None, labels[0], shape[0]), Place(None, labels[1], shape[1])
    users, items = places(known, rankings, ("validation", "the predictions"))
    n_users, n_items = rankings.shape
    unlabelled = users.labels is None and items.labels is None
    if unlabelled and n_users != n_items and relevance.shape == (n_items, n_users):
        raise InvalidDataError(
            f"the predictions are {n_users} × {n_items} and validation is {n_items} × {n_users}: "
            "one of them is transposed. Pass both as users × items"
        )
    return users, items


def align(
    rankings: Rankings, relevance: Relevance, users: Place, items: Place
) -> tuple[Rankings, Relevance]:
    """Return both sides with the same rows and columns; nothing is cut off.

    Raises `InvalidDataError` if only one side has labels of users, and they are too few.

    Parameters
    ----------
    users, items : Place
        From `match`.
    """
    if users.labels is not None and len(users.labels) != users.size:
        raise InvalidDataError(
            f"one side has {users.size} users, the other side labels {len(users.labels)}; label "
            "both sides, or pass the rows of validation that the lists belong to, with "
            "Rankings.from_topk(ids, user_rows=…)"
        )
    sides: list[Any] = []
    for side in (move(rankings, users, items), relevance):
        n_items = side.shape[1]
        labels = None if items.labels is None or n_items > len(items.labels) else items.labels
        side = side.part(0, users.size)
        sides.append(replace(side, users=users.labels, items_index=labels))
    rankings, relevance = sides
    if rankings.relevant_last:
        rankings = _put_relevant_last(rankings, relevance)
    return rankings, relevance


def _put_relevant_last(rankings: Rankings, relevance: Relevance) -> Rankings:
    """Order items of equal score by gain, then by id, and cut each list at its length."""
    n_users = len(rankings.indptr) - 1
    n_items = max(rankings.shape[1], relevance.shape[1])
    rows = np.repeat(np.arange(n_users), np.diff(rankings.indptr))
    entries = find_entries(rows, rankings.items, relevance.indptr, relevance.items, n_items)
    gains = np.append(relevance.gains, 0.0)[entries]
    order = np.lexsort((rankings.items, gains, rankings.positions, rows))
    ranks = np.arange(len(rows)) - rankings.indptr[:-1][rows]
    kept = ranks < rankings.lengths[rows]
    return replace(
        rankings,
        indptr=indptr_from_counts(rankings.lengths),
        items=rankings.items[order][kept],
        gapped_positions=None,
        last_positions=None,
        relevant_last=False,
    )


def align_train(train: Any, users: Place, items: Place) -> tuple[Any, Place]:
    """Return the training data as a CSR aligned with the evaluation, and the places of items."""
    if isinstance(train, Relevance):
        train = train.to_csr()
    matrix = training_csr(train)
    rows, columns = places((users, items), train, ("the lists", "train"))
    for axis, one, own in zip((rows, columns), (users, items), labels_of(train), strict=True):
        is_apart = axis.places is not None and axis.places.min(initial=axis.size) >= one.size
        if is_apart and own and one.labels:
            raise InvalidDataError(
                f"no id of train ({own[0]!r}, …, {own.dtype}) occurs in the validation "
                f"data ({one.labels[0]!r}, …, {one.labels.dtype}); use the same ids for both"
            )
    shown = columns if items.labels is not None else items._replace(size=columns.size)
    return moved(matrix, rows, columns), shown


def align_candidates(
    candidates: Candidates,
    users: Place,
    items: Place,
    others: str = "the lists",
    name: str = "candidates",
) -> tuple[Candidates, Place]:
    """Return candidates with the rows and columns of another input, and the places of all items.

    Items that the other input lacks come last; users that it lacks are dropped. Messages call it
    `others`, and the candidates `name`.

    Raises `InvalidDataError` as from `place`; if there are fewer rows than users; or if it is not
    clear whether items are numbers or ids.
    """
    n_users = candidates.shape[0]
    rows, columns = places((users, items), candidates, (others, name))
    labels = None if items.labels is None else columns.labels
    if not candidates.for_all and rows.places is None and n_users < users.size:
        raise InvalidDataError(
            f"candidates has {n_users} rows, and there are {users.size} users. Pass a row for "
            "each user, or candidates with ids",
            argument="candidates",
        )
    candidates = move(candidates, rows, columns)
    if not candidates.for_all:
        n_users = users.size if rows.places is not None else n_users
        candidates = replace(candidates.part(0, n_users), users=users.labels)
    shape = (candidates.shape[0], columns.size)
    return replace(candidates, shape=shape, items_index=labels), columns._replace(labels=labels)


class Known(NamedTuple):
    """The users and items of a model: their ids, None without ids, and their numbers.

    The number of users is None for a model that takes any users.
    """

    users: Axis | None
    items: Axis | None
    n_users: int | None
    n_items: int


class SplitSides(NamedTuple):
    """Both parts of a split, and candidates, in one order of users and of items.

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
    n_unknown_pairs : int
        Pairs of a user and such an item.
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
    n_unknown_pairs: int = 0
    candidates: Candidates | None = None


def match_split(
    known: Known | None,
    train: Any,
    relevance: Any,
    names: tuple[str, str] = ("train", "validation"),
    candidates: Candidates | None = None,
    chosen: Any = None,
) -> SplitSides:
    """Match both parts of a split with the users and items of a model: by id if it has ids.

    Raises `InvalidDataError` if a part has ids that cannot be matched, or without ids a different
    shape from the model. Also as from `rows_of_users`.

    Parameters
    ----------
    known : Known, optional
        The model's users and items; without ids they are numbered as in `train`. None for a model
        yet to be trained.
    relevance : Relevance or None
        None if nothing is held out.
    names : tuple of str
        What messages call the two.
    candidates : Candidates, optional
        Numbered as `train` if they have no ids.
    chosen : sequence of hashable, optional
        The users whose held-out items `relevance` is reduced to, in the order of the model.

    """
    if relevance is None:
        relevance = Relevance.from_csr(sparse.csr_matrix((0, 0)))
    (n_known, rows, users), (n_items, columns, items) = (
        _match_axis(number, known, train, relevance, names) for number in (0, 1)
    )
    matrix = train.csr if isinstance(train, LabelledMatrix) else train
    is_numbered = candidates is None and chosen is None and users.labels is items.labels is None
    if is_numbered or not isinstance(relevance, Relevance):
        return SplitSides(matrix, relevance, None, None, n_known, None)
    matrix = moved(matrix, rows, columns)
    if candidates is not None:
        _check_numbering(candidates, (rows, columns), names[0])
        everyone = users._replace(size=max(users.size, matrix.shape[0]))
        if candidates.users is None and (users.places is not None or chosen is not None):
            candidates = candidates.part(0, everyone.size)
        candidates, _ = align_candidates(candidates, everyone, items, "the model")
    # They are in the order of the model now, as are its lists.
    own_items = None if items.labels is None else items.labels.marked(False)
    held = replace(move(relevance, users, items), items_index=own_items)
    ids = users.labels
    first = None if users.places is None else np.unique(users.places)
    if chosen is not None:
        first = np.unique(rows_of_users(chosen, ids, users.size, "the model and the data know"))
    user_rows = None
    if first is None:
        own_users = None if ids is None else ids.marked(False)[: held.shape[0]]
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
        user_rows = first[first < n_known]
        n_known = len(user_rows)
    held = replace(held, users=own_users)
    relevant = held.items[held.gains > 0]
    n_unknown_users = int(np.count_nonzero(held.n_relevant[n_known:]))
    of_unknown = relevant[relevant >= n_items]
    unknown = n_unknown_users, len(np.unique(of_unknown)), len(of_unknown)
    return SplitSides(matrix, held, ids, items.labels, n_known, user_rows, *unknown, candidates)


def match_items(known: Known, train: LabelledMatrix, name: str = "train") -> Any:
    """Return training data of any users with the items of a model, without those unknown to it.

    Raises `InvalidDataError` as `match_split`.
    """
    nothing = sparse.csr_matrix((0, 0))
    n_items, columns, _ = _match_axis(1, known, train, nothing, (name, "validation"))
    matrix = moved(train.csr, Place(None, None, train.shape[0]), columns)
    return within(matrix, train.shape[0], n_items)


def _match_axis(
    number: int, known: Known | None, train: Any, relevance: Any, names: tuple[str, str]
) -> tuple[int, Place, Place]:
    """Return the number of users or items of a model, and where those of both parts go."""
    role, n_given, n_held = _ROLES[number], train.shape[number], relevance.shape[number]
    given, own = labels_of(train)[number], labels_of(relevance)[number]
    size = None if known is None else (known.n_users, known.n_items)[number]
    if known is None or size is None:  # a model yet to be trained, or one of any users
        size, trained = n_given, Place(None, given, n_given)
    else:
        ids = (known.users, known.items)[number]
        trained = Place(None, None, max(size, n_given))
        if ids is not None or given is not None:
            trained = place(role, ids, given, (size, n_given), ("the model", names[0]))
        if ids is None or given is None:
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


def check_size(role: str, size: int, expected: int, name: str = "train") -> None:
    """Raise `InvalidDataError` unless a matrix has as many users or items as a model."""
    if size != expected:
        raise InvalidDataError(
            f"{name} has {size} {role}, but the model has {expected}. Pass the matrix that the "
            "model was trained on"
        )


def rows_of_users(users: Any, labels: Axis | None, n_users: int, who_knows: str) -> Integers:
    """Return the rows of users among the first `n_users`, by label; all rows for None.

    `who_knows` begins the message about a user who is not among them.

    Raises `InvalidDataError` if a user is not among them, or ids are given and the model has none.
    """
    if users is None:
        return np.arange(n_users)
    if labels is None:
        try:
            return row_numbers(users, "users", n_users, "users")
        except InvalidDataError as error:
            raise InvalidDataError(
                f"{error}; neither the model nor train has ids, so users= must be rows of train. "
                "To use ids, train with ids, such as Interactions",
                argument="users",
            ) from None
    if isinstance(users, str | bytes) or not isinstance(users, Iterable):
        raise InvalidDataError(f"users is {users!r}; expected a list of ids, such as [{users!r}]")
    given = list(users)
    if given and isinstance(given[0], bool | np.bool_):
        raise InvalidDataError("users is a mask; pass the ids, such as holdout.users[mask]")
    rows = labels[:n_users].locate(given)
    if (rows < 0).any():
        unknown = given[int((rows < 0).argmax())]
        example = labels[0] if n_users else "none"
        raise InvalidDataError(
            f"{who_knows} no user {unknown!r}; the {n_users} users are {example!r}, …", user=unknown
        )
    return rows


def _check_numbering(candidates: Candidates, trained: tuple[Place, Place], name: str) -> None:
    """Raise if candidates without ids do not fit different orders of model and training data."""
    for axis, one in zip(_ROLES, trained, strict=True):
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
