"""`ItemData`: groups, vectors and propensities of items, in the order of the items or by id."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.arrays import as_array, describe, is_array
from ..core.csr import canonical_csr, check_entries, plain_matrix
from ..errors import InvalidDataError
from .axes import Axis, label_of
from .columns import role_of
from .tables import exports_rows, to_pandas
from .training import digest_by_item

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from ..core.types import AnyArray, Booleans, Floats


@dataclass(frozen=True, eq=False)
class ItemData:
    """Groups, vectors and propensities of items, for metrics that need them.

    Parameters
    ----------
    groups : sequence, mapping, Series, table, or matrix of shape (n_items, n_groups), optional
        The group of each item, or its weights in several. An item can have several groups of equal
        weight. Give a list for each item, or a table with the columns item and group.
    vectors : array_like of shape (n_items, width), mapping, Series or table, optional
        A vector for each item. A table is indexed by item, or has an item column. Its other columns
        are numbers, or one column of vectors.
    propensity : sequence, mapping, Series or table, optional
        The chance that a relevant item was observed, above 0 and at most 1. Metrics such as
        ``recall(weights=snips)@10`` weight hits by it. Tables that are read in blocks take only
        propensities, by item id, and no groups or vectors.

    Notes
    -----
    A mapping, a Series, a DataFrame or a table with an item column is matched by item id. Anything
    else is in the order of the columns of the validation data, or of the items of the model in
    `evaluate_model`.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> rankings = se.Rankings.from_topk([[0, 1, 2]])
    >>> items = se.ItemData(groups=["rock", "rock", "jazz"])
    >>> se.evaluate(rankings, csr_matrix([[0, 1, 1]]), "categorical_diversity@3", item_data=items)
    <Evaluation: 1 users, 0 left out; categorical_diversity@3 0.6667>
    """

    _: KW_ONLY
    groups: Any = None
    vectors: Any = None
    propensity: Any = None


def item_inputs(items: ItemData) -> dict[str, Any]:
    """Return the given data of items, by the names that metrics use.

    Raises `InvalidDataError` if `items` is not an `ItemData`, such as the ids of items.
    """
    if not isinstance(items, ItemData):
        raise InvalidDataError(
            f"items is {describe(items)}; expected se.ItemData(groups=…, vectors=…, propensity=…)",
            argument="items",
        )
    given = {
        "item_groups": items.groups, "item_vectors": items.vectors, "propensity": items.propensity
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def by_item(
    values: Any, name: str, n_items: int, labels: Axis | None
) -> tuple[AnyArray, Axis | None]:
    """Return the entries in the order of the items, and the labels of all items."""
    import pandas as pd

    if isinstance(values, Mapping):
        values = as_series(values)
    if isinstance(values, pd.Series | pd.DataFrame):
        keyed, labels = _in_order(values, name, n_items, labels)
        return keyed.to_numpy(), labels
    _check_numbered(name, labels)
    if is_array(values):
        values = as_array(values, name, "one entry for each item")
        if values.dtype != object and values.ndim:
            return values, labels
        values = values.tolist()  # of no dimension, that is no list
    if isinstance(values, str | bytes) or not isinstance(values, Collection):
        raise InvalidDataError(
            f"{written(name)} is a {type(values).__name__}; expected one entry for each item, in "
            "order or keyed by item",
            argument=name,
        )
    column = pd.Series(list(values), dtype=object).to_numpy()  # keeps 1 and "1" apart
    with suppress(TypeError, ValueError):
        table = np.array(column.tolist(), np.float64)
        if table.ndim == 2:
            return table, labels
    return column, labels


def _as_floats(values: AnyArray, name: str, ndim: int, expected: str) -> Floats:
    """Return the result of `by_item` as numbers with `ndim` dimensions, or raise an error."""
    if values.dtype == object:
        with suppress(TypeError, ValueError):  # raised below
            values = values.astype(np.float64)
    if values.ndim != ndim or values.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"{written(name)} is {describe(values)}; expected {expected}", argument=name
        )
    return np.ascontiguousarray(values, np.float64)


def as_propensity(propensity: Any, n_items: int, labels: Axis | None) -> tuple[Floats, Axis | None]:
    """Return propensities in the order of the items, and the labels of all items.

    Raises `InvalidDataError` if an item has none, or one that is no number above 0 and at most 1.
    """
    chances, labels = by_item(_by_id(propensity, "propensity"), "propensity", n_items, labels)
    chances = _as_floats(chances, "propensity", 1, "a number for each item")
    wrong = ~((chances > 0) & (chances <= 1))
    if wrong.any():
        item = int(np.flatnonzero(wrong)[0])
        raise InvalidDataError(
            f"propensity of item {label_of(labels, item)!r} is {chances[item]}; expected numbers "
            "above 0 and at most 1"
        )
    return chances, labels


def as_groups(groups: Any, n_items: int, labels: Axis | None) -> tuple[Any, Axis | None]:
    """Return each item's shares of the groups, from a label for each item or from weights."""
    import pandas as pd

    groups = _weights_of_groups(_by_id(groups, "groups"))
    if sparse.issparse(plain_matrix(groups)):
        _check_numbered("groups", labels)
        weights = canonical_csr(groups, "groups", sum_duplicates=True).astype(np.float64)
    else:
        values, labels = by_item(groups, "groups", n_items, labels)
        if values.ndim == 1:
            try:
                codes, _ = pd.factorize(values)
            except TypeError:
                raise InvalidDataError(
                    f"{written('groups')} holds groups that cannot be hashed; pass one text or "
                    "number for each item, or items × groups of weights",
                    argument="groups",
                ) from None
            owned = np.flatnonzero(codes >= 0)  # an item of no group raises an error below
            entries = np.ones(len(owned)), (owned, codes[owned])
            weights = sparse.csr_matrix(entries, (len(codes), codes.max(initial=-1) + 1))
        else:
            expected = "one group for each item, or items × groups of weights"
            weights = sparse.csr_matrix(_as_floats(values, "groups", 2, expected))
    valid = np.isfinite(weights.data) & (weights.data >= 0)
    check_entries(weights, valid, "the weight of groups", "a finite weight of at least 0")
    owners = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    largest = np.zeros(weights.shape[0])
    np.maximum.at(largest, owners, weights.data)
    if (largest == 0).any():
        item = label_of(labels, int(np.argmin(largest)))
        raise InvalidDataError(
            f"{written('groups')} has no group for item {item!r}; give every item one, such as "
            "'unknown'",
            argument="groups",
        )
    # Scaled first, so that the sums are finite.
    scaled = weights.data / largest[owners]
    totals = np.bincount(owners, scaled, weights.shape[0])
    parts = (scaled / totals[owners], weights.indices, weights.indptr)
    return sparse.csr_matrix(parts, shape=weights.shape), labels


def as_vectors(vectors: Any, n_items: int, labels: Axis | None) -> tuple[Floats, Axis | None]:
    """Return a vector of length 1 for each item, or zeros, and the labels of all items."""
    table, labels = by_item(_by_id(vectors, "vectors"), "vectors", n_items, labels)
    if table.dtype == object and table.ndim == 1:  # of a mapping or Series
        with suppress(TypeError, ValueError):  # raised below
            table = np.array(table.tolist(), np.float64)
    table = _as_floats(table, "vectors", 2, "numbers, items × width")
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        item = int(np.flatnonzero(~finite)[0])
        raise InvalidDataError(
            f"{written('vectors')} has a vector for item {label_of(labels, item)!r} that is not "
            "finite; expected numbers",
            argument="vectors",
        )
    # Scaled first, so that squares neither overflow nor vanish.
    scale = np.abs(table).max(axis=1, initial=0.0, keepdims=True)
    scaled = np.divide(table, scale, out=np.zeros_like(table), where=scale > 0)
    lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    directions: Floats = np.zeros_like(table)
    np.divide(scaled, lengths, out=directions, where=lengths > 0)
    return directions, labels


def _by_id(values: Any, name: str) -> Any:
    """Return a table with an item column as a frame or Series by item, anything else unchanged.

    A named index has the items already, next to weights of groups such as "movie" and "book".
    """
    import pandas as pd

    if not exports_rows(values) or isinstance(values, pd.Series):
        return values
    frame = to_pandas(values)
    items = [column for column in frame if role_of(column) == "item"]
    if items and frame.index.names == [None]:
        if len(items) > 1:
            raise InvalidDataError(
                f"{written(name)} has several columns of items, {items}; drop all but one",
                argument=name,
            )
        frame = frame.set_index(items[0])
    elif not isinstance(values, pd.DataFrame):
        return frame.to_numpy()
    is_one = len(frame.columns) == 1 and (name != "vectors" or frame.dtypes.iloc[0].kind == "O")
    return frame.iloc[:, 0] if is_one else frame


def _weights_of_groups(groups: Any) -> Any:
    """Return several groups for an item as weights by item, and anything else unchanged."""
    import pandas as pd

    lists = (list, tuple, set, frozenset, np.ndarray)
    if isinstance(groups, Mapping) and any(isinstance(row, lists) for row in groups.values()):
        groups = as_series(groups)
    if not isinstance(groups, pd.Series):
        return groups
    if any(isinstance(row, lists) for row in groups):
        groups = groups.map(lambda row: list(row) if isinstance(row, lists) else row).explode()
    if groups.index.is_unique:
        return groups
    table = pd.crosstab(groups.index, groups).clip(upper=1)
    return table.reindex(groups.index.unique(), fill_value=0)


def as_series(values: Mapping[Any, Any]) -> pd.Series:
    """Return the values of a mapping, indexed by its keys."""
    import pandas as pd

    return pd.Series(list(values.values()), index=pd.Index(list(values)), dtype=object)


def _check_numbered(name: str, labels: Axis | None) -> None:
    """Raise if the items have ids, and entries that are in order cannot be matched with them."""
    if labels is not None and labels.by_id:
        raise InvalidDataError(
            f"{written(name)} has an entry for each item number, but the items of the lists have "
            "ids. Key it by item, as a mapping, or a Series or DataFrame indexed by item",
            argument=name,
        )


def _in_order(values: Any, name: str, n_items: int, labels: Axis | None) -> tuple[Any, Axis | None]:
    """Return the rows of a Series or frame that is indexed by item in the order of the items."""
    if values.index.has_duplicates:
        twice = values.index[values.index.duplicated()].tolist()[0]
        raise InvalidDataError(
            f"{written(name)} names item {twice!r} twice; give each item one entry", argument=name
        )
    given = Axis.unchecked(values.index)
    if labels is None:
        order = Axis.numbers(max(n_items, len(values)))
    else:  # items that nobody was shown belong to the catalogue too
        _, order = labels.union(given)
    places = given.locate(order)
    missing = places < 0
    if missing.any():
        raise InvalidDataError(
            f"{written(name)} has no entry for item {order[int(missing.argmax())]!r} "
            f"({int(missing.sum())} of {len(order)} items lack one); give every item of the "
            "catalogue one",
            argument=name,
        )
    return values.iloc[places], None if labels is None else order


def written(name: str) -> str:
    """Return the text of the argument for item data."""
    return f"item_data=se.ItemData({name}=…)"


@dataclass(frozen=True, eq=False)
class KeyedPropensity:
    """Propensities by id, for blocks of tables that number items in their own ways.

    Attributes
    ----------
    labels : Axis
    values : ndarray of float64
    digest : str
        As from `digest_by_item`.
    """

    labels: Axis
    values: Floats
    digest: str

    @classmethod
    def of(cls, propensity: Any) -> Self:
        """Check propensities by item.

        Raises `InvalidDataError` as from `as_propensity`, or if they are not keyed by item.
        """
        by_id = Axis(np.empty(0, np.int64), by_id=True)
        values, labels = as_propensity(propensity, 0, by_id)
        assert labels is not None  # noqa: S101 - they are keyed
        return cls(labels, values, digest_by_item(values, labels))

    def of_items(self, items: Axis, used: Booleans) -> Floats:
        """Return the propensities of some items, 1 for an item that is not used.

        Raises `InvalidDataError` if an item that is used has none.
        """
        places = self.labels.locate(items)
        missing = np.flatnonzero(used & (places < 0))
        if len(missing):
            raise InvalidDataError(
                f"propensity has no entry for item {items[missing[0]]!r}; give every item of "
                "the tables one",
                argument="propensity",
            )
        chances: Floats = np.where(places < 0, 1.0, self.values[places])
        return chances
