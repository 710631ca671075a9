"""`ItemData`: groups, vectors and propensities of items, in the order of the items or by id."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import as_array, is_array
from ..core.mistaken import describe
from ..errors import InvalidDataError
from .axes import Axis
from .columns import role_of
from .frames import to_pandas
from .tables import exports_rows

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import AnyArray, Floats


@dataclass(frozen=True, eq=False)
class ItemData:
    """Groups, vectors and propensities of items, for metrics that need them.

    Parameters
    ----------
    groups : sequence, mapping, Series, table, or matrix of shape (n_items, n_groups), optional
        The group of each item, or its weights in several. Of several groups in a list by item, or
        in the rows of a table with the columns item and group, each has the same weight.
    vectors : array_like of shape (n_items, width), or DataFrame by item, optional
        A vector for each item.
    propensity : sequence, mapping or Series by item, optional
        The chance that a relevant item was observed, above 0 and at most 1. Metrics such as
        ``recall(weights=snips)@10`` weight hits by it. Tables that are read in blocks take only
        propensities, by item id, and no groups or vectors.

    Notes
    -----
    A mapping, a Series or a DataFrame is matched by item id. Anything else is in the order of the
    columns of the validation data, or of the items of the model in `evaluate_model`.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> rankings = se.Rankings.from_topk([[0, 1, 2]])
    >>> items = se.ItemData(groups=["rock", "rock", "jazz"])
    >>> se.evaluate(rankings, csr_matrix([[0, 1, 1]]), "categorical_diversity@3", items=items)
    <Evaluation: 1 users, 0 left out; categorical_diversity@3 0.6667>
    """

    _: KW_ONLY
    groups: Any = None
    vectors: Any = None
    propensity: Any = None


def item_inputs(items: ItemData | None) -> dict[str, Any]:
    """Return the given data of items, by the names that metrics use.

    Raises
    ------
    InvalidDataError
        If `items` is not an `ItemData`, such as the ids of items.
    """
    if items is None:
        return {}
    if not isinstance(items, ItemData):
        raise InvalidDataError(
            f"items is {describe(items)}; expected se.ItemData(groups=…, vectors=…, propensity=…)",
            argument="items",
        )
    named = {
        "item_groups": items.groups,
        "item_vectors": items.vectors,
        "propensity": items.propensity,
    }
    return {name: value for name, value in named.items() if value is not None}


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


def as_numbers(values: AnyArray, name: str, ndim: int, expected: str) -> Floats:
    """Return what `by_item` returned as numbers of so many dimensions, or raise an error."""
    if values.dtype == object:
        with suppress(TypeError, ValueError):  # raised below
            values = values.astype(np.float64)
    if values.ndim != ndim or values.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"{written(name)} is {describe(values)}; expected {expected}", argument=name
        )
    return np.ascontiguousarray(values, np.float64)


def weights_of_groups(groups: Any) -> Any:
    """Return groups of items in a table, or several groups for an item, as weights by item.

    Anything else is kept as it is.
    """
    import pandas as pd

    lists = (list, tuple, set, frozenset, np.ndarray)
    if isinstance(groups, Mapping) and any(isinstance(row, lists) for row in groups.values()):
        groups = as_series(groups)
    if exports_rows(groups) and not isinstance(groups, pd.Series):
        frame = to_pandas(groups)
        items = [name for name in frame if role_of(name) == "item"]
        is_pairs = len(items) == 1 and len(frame.columns) == 2
        if not is_pairs or not isinstance(frame.index, pd.RangeIndex):  # weights, by item
            return groups
        pairs = frame.set_index(items[0]).iloc[:, 0]
    elif isinstance(groups, pd.Series) and any(isinstance(row, lists) for row in groups):
        pairs = groups.map(list).explode()
    else:
        return groups
    if pairs.index.is_unique:
        return pairs
    table = pd.crosstab(pairs.index, pairs).clip(upper=1)
    return table.reindex(pairs.index.unique(), fill_value=0)


def as_series(values: Mapping[Any, Any]) -> pd.Series:
    """Return what a mapping has, indexed by its keys."""
    import pandas as pd

    return pd.Series(list(values.values()), index=pd.Index(list(values)), dtype=object)


def check_keyed(values: Any, name: str) -> None:
    """Raise if entries are in the order of the items, rather than keyed by item."""
    if not (isinstance(values, Mapping) or hasattr(values, "reindex")):
        raise InvalidDataError(
            f"{written(name)} has an entry for each item number, and the items of the lists have "
            "ids; key it by item: a mapping, or a Series or DataFrame indexed by item",
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
    """Return how users give data about items, such as "groups"; the command line replaces it."""
    return f"items=se.ItemData({name}=…)"


def item_name(item: int, labels: Axis | None) -> Any:
    """Return what messages call an item."""
    return repr(labels[item]) if labels is not None and item < len(labels) else item
