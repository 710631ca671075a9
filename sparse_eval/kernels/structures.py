"""Named tuples of arrays that the kernels of exact retrieval share.

Lengths are relative: user vectors have length 1, and item vectors at most 1. A *relative score* is
a score divided by the norm of the user and the largest norm of an item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .jit import Array


class Rows(NamedTuple):
    """The items of each row, at ``[indptr[row]:indptr[row + 1]]`` of `items`."""

    indptr: Array
    items: Array


#: The items that each user has seen, ascending.
Seen = Rows


class Lists(NamedTuple):
    """The best items of each row so far, either in the results or for a block of users.

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
        The number of items of a row that may still be among the first k; counting stops for the
        others.
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


class Packed(NamedTuple):
    """The catalogue in strips, in its own order.

    Attributes
    ----------
    strips : ndarray of int32, shape (⌈n / LANES⌉, pairs, LANES)
        See `products`.
    weights : ndarray of float32, shape (⌈n / LANES⌉ · LANES,)
        The weights of `Catalogue`, padded with zeros.
    index_of : ndarray of int32, shape (n_ids,)
        The index in the catalogue of each item, -1 if it is not a candidate.
    """

    strips: Array
    weights: Array
    index_of: Array


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
    """The goal of a search, and sizes that do not change a result.

    Attributes
    ----------
    k : int
        The length of a list.
    batch : int
        The number of items in the first batch of a group or tile.
    tile : int
        The number of users multiplied at once.
    chunk : int
        The number of items multiplied at once.
    """

    k: int
    batch: int
    tile: int
    chunk: int


class SortingRoom(NamedTuple):
    """Work arrays of `exact.write_list` for a long list: an item, score and count per entry."""

    scores: Array
    items: Array
    counts: Array


class Workspace(NamedTuple):
    """Work arrays of `retrieval.scan`: users being processed, and candidates found for them.

    Attributes
    ----------
    at : ndarray of int64, shape (tile,)
        Indices of the users in `Users`.
    slot : ndarray of int64, shape (tile,)
        The rows of their lists.
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
        The unseen selected items of a user, and their exact scores.
    room : SortingRoom
    """

    at: Array
    slot: Array
    rows: Array
    strips: Array
    limits: Array
    marks: Array
    hits: Array
    n_hits: Array
    selected: Array
    exact: Array
    room: SortingRoom


class GroupSpace(NamedTuple):
    """Work arrays of `retrieval.search_groups`, for one group at a time.

    Attributes
    ----------
    done : ndarray of bool, shape (n_users,)
        Users of the group who need nothing more.
    reaches, chosen, cosines : ndarray of int64, int64 and float32, shape (n_users,)
        The number of items that users need by norm; users who are searched by key, and their
        cosines.
    needs, by_need : ndarray of float32 and int64, shape (tile,)
        The negative number of items that users need by key, and the users in this order.
    indices, items, weights, margins : ndarray of int32, int32, float32 and float32
        The first batch: indices in the catalogue, and the rows of factors, weights and margins of
        these items.
    strips, products : ndarray of int32 and float32
        Directions of the batch, and products with it, user by user.
    maxima : ndarray of float32
        The largest products of parts of the batch; there are at least twice as many parts as a list
        has items.
    in_batch, slot, in_slot : ndarray of uint8, int32 and uint32
        Whether an index is in the batch; the place of an item in the batch; bits that show whether
        an item has a place.
    keys, order, starts, tops, counts, bounds : ndarray
        See `retrieval.collect`; `bounds` are the bounds of the chunks of `order`.
    sample_norm, sample_along : ndarray of float32
        Norms and projections of a sample of the catalogue.
    """

    done: Array
    reaches: Array
    chosen: Array
    cosines: Array
    needs: Array
    by_need: Array
    indices: Array
    items: Array
    weights: Array
    margins: Array
    strips: Array
    products: Array
    maxima: Array
    in_batch: Array
    slot: Array
    in_slot: Array
    keys: Array
    order: Array
    starts: Array
    tops: Array
    counts: Array
    bounds: Array
    sample_norm: Array
    sample_along: Array


class OrderSpace(NamedTuple):
    """Work arrays of `ordered.search_in_order`, for one tile of users at a time.

    Attributes
    ----------
    at, slot, rows : ndarray of int64, shape (tile,)
        The users who are not done: indices in `Users`, rows of their lists, rows of directions.
    products : ndarray of float32
        Products with a chunk of items, user by user.
    maxima : ndarray of float32
        As in `GroupSpace`.
    selected, exact : ndarray of int32 and of float64
        Selected items of a user, and their exact scores.
    room : SortingRoom
    """

    at: Array
    slot: Array
    rows: Array
    products: Array
    maxima: Array
    selected: Array
    exact: Array
    room: SortingRoom


class CountingSpace(NamedTuple):
    """Work arrays of `full_ranks.count_above`, for one tile of users at a time.

    Attributes
    ----------
    slot, rows : ndarray of int64, shape (tile,)
        The users whose items are still counted: places in the tile, rows of directions.
    start, stop : ndarray of int64, shape (tile,)
        The bounds of the held-out items that the remaining items can be above or below.
    products : ndarray of int16
        Products with a chunk of items, user by user.
    n_near : ndarray of int64, shape (tile,)
        The number of pairs of an item and a held-out item that products cannot distinguish.
    selected, wanted : ndarray of int32 and of int64, shape (tile, capacity)
        The items of these pairs, first as indices in the catalogue, and entries of `HeldOut`.
    exact : ndarray of float64, shape (capacity + 7,)
        Their exact scores.
    seen_start : ndarray of int64, shape (tile, n_chunks + 2)
        Where the candidates that a user has seen begin in `seen_index`, chunk by chunk. The last
        but one entry is the end of all chunks.
    seen_index : ndarray of int32
        The indices of these candidates in the catalogue, for all users of the tile.
    """

    slot: Array
    rows: Array
    start: Array
    stop: Array
    products: Array
    n_near: Array
    selected: Array
    wanted: Array
    exact: Array
    seen_start: Array
    seen_index: Array
