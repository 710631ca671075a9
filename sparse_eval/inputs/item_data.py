"""`ItemData`: groups, vectors and propensities of items."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ..core.mistaken import describe
from ..errors import InvalidDataError


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
