"""Named tuples of arrays that the kernels of exact retrieval share.

Lengths are relative: the vectors of users have length 1, those of items at most 1. A *relative
score* is a score divided by the norm of the user and the largest norm of an item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .jit import Array


class Seen(NamedTuple):
    """The items that users have seen: a CSR matrix, ascending within a row."""

    indptr: Array
    items: Array


class Lists(NamedTuple):
    """The best items of each row so far, either in the results or of a block of users.

    Attributes
    ----------
    items : ndarray of int32, shape (n_rows, capacity)
    scores : ndarray of float64, shape (n_rows, capacity)
    size : ndarray of int64, shape (n_rows,)
        The number of items of a row.
    dropped : ndarray of float64, shape (n_rows,)
        The best score that was dropped from the row.
    """

    items: Array
    scores: Array
    size: Array
    dropped: Array


class HeldOut(NamedTuple):
    """Held-out items, the best of each row first.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_rows + 1,)
        The bounds of the rows.
    items : ndarray of int32
        Rows of the item factors.
    scores : ndarray of float64
        Exact scores.
    above : ndarray of int32
        The number of unseen candidates counted so far that are better.
    tied : ndarray of int32
        The number of unseen candidates counted so far with the same score.
    alive : ndarray of int64, shape (n_rows,)
        The number of items of a row that may still be among the first k; the others need not be
        counted further.
    """

    indptr: Array
    items: Array
    scores: Array
    above: Array
    tied: Array
    alive: Array


class Catalogue(NamedTuple):
    """The candidate items, by descending norm.

    Attributes
    ----------
    factors : ndarray of float, shape (n_ids, n_factors)
        The factors of all items, as stored.
    directions : ndarray of int32, shape (n, pairs)
        See `products`.
    norms : ndarray of float32, shape (n,)
        Divided by the largest.
    weights : ndarray of float32, shape (n,)
        Norms in units of a product of directions.
    margins : ndarray of float32, shape (n,)
        Bounds on the difference between a product times its weight and the relative score.
    item_of : ndarray of int32, shape (n,)
        Rows of `factors`.
    order : ndarray of int32, shape (n,)
        0, 1, 2, …: the default order in which items are scanned.
    """

    factors: Array
    directions: Array
    norms: Array
    weights: Array
    margins: Array
    item_of: Array
    order: Array


class Users(NamedTuple):
    """Users in the order of their groups.

    Attributes
    ----------
    factors : ndarray of float, shape (n_users, n_factors)
        The factors of all users, as stored.
    row : ndarray of int64, shape (n,)
        Rows of `factors` and of `Seen`.
    result_row : ndarray of int64, shape (n,)
        Rows of the results and of `HeldOut`.
    directions : ndarray of int32, shape (n, pairs)
        See `products`.
    direction : ndarray of int64, shape (n,)
        Rows of `directions`.
    scale : ndarray of float64, shape (n,)
        The norm of the user times the largest norm of an item.
    cosine : ndarray of float32, shape (n,)
        A lower bound on the cosine of the angle between the user and the centre of the group.
    """

    factors: Array
    row: Array
    result_row: Array
    directions: Array
    direction: Array
    scale: Array
    cosine: Array


class Groups(NamedTuple):
    """Users of similar direction.

    Attributes
    ----------
    start : ndarray of int64, shape (n_groups + 1,)
        The bounds of the groups in `Users`.
    centre : ndarray of int64, shape (n_groups,)
        Rows of `projections`.
    projections : ndarray of float32, shape (n_centres, n)
        Upper bounds on the product of a centre, of length 1, and an item of the catalogue; at most
        the norm of the item.
    """

    start: Array
    centre: Array
    projections: Array


class Task(NamedTuple):
    """What to search for, and sizes that do not change a result.

    Attributes
    ----------
    k : int
        The length of a list.
    ranks : bool
        Whether ranks of held-out items are computed instead of lists.
    batch : int
        The number of items in the first batch of a group.
    maxima : int
        The number of parts of that batch whose maxima bound the k-th best score.
    tile : int
        The number of users multiplied at once.
    chunk : int
        The number of items multiplied at once.
    """

    k: int
    ranks: bool
    batch: int
    maxima: int
    tile: int
    chunk: int


class Workspace(NamedTuple):
    """What `retrieval.scan` writes to: users being processed, and candidates found for them.

    Attributes
    ----------
    at : ndarray of int64, shape (tile,)
        Indices of the users in `Users`.
    slot : ndarray of int64, shape (tile,)
        Their rows of `lists`.
    lists : Lists
        Lists of the users of a group.
    rows : ndarray of int64, shape (tile,)
        Rows of their directions.
    strips : ndarray of int32, shape (⌈tile / LANES⌉, pairs, LANES)
        Their directions.
    limits : ndarray of float32
        The relative scores that items must reach, lane by lane.
    marks : ndarray of uint16
        The bits that `mark_above` sets.
    hits, n_hits : ndarray of int32, shape (tile, chunk), and of int64, shape (tile,)
        Items whose products reach the limit, and their number.
    selected, exact : ndarray of int32 and of float64
        The unseen ones of a user, and their exact scores.
    """

    at: Array
    slot: Array
    lists: Lists
    rows: Array
    strips: Array
    limits: Array
    marks: Array
    hits: Array
    n_hits: Array
    selected: Array
    exact: Array
