"""Where one user's dcg comes from: a table of the user's list and missed items."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidDataError
from ..metrics.measure import discount_tables
from .segments import item_table

if TYPE_CHECKING:
    import pandas as pd

    from ..inputs.axes import Axis
    from ..metrics.aligned import Aligned
    from .segments import ItemNames


def explain(aligned: Aligned, row: int) -> pd.DataFrame:
    """Return the table of `Evaluation.explain` for the user in a row."""
    import pandas as pd

    rankings, relevance = aligned.rankings, aligned.relevance
    listed = slice(rankings.indptr[row], rankings.indptr[row + 1])
    items = rankings.items[listed].tolist()
    first = rankings.positions[listed]
    last = first if rankings.last_positions is None else rankings.last_positions[listed]
    judged = slice(relevance.indptr[row], relevance.indptr[row + 1])
    judged_gains = aligned.hit_gains[0][judged].tolist()
    gain_of = dict(zip(relevance.items[judged].tolist(), judged_gains, strict=True))
    gains = [gain_of.get(item, 0.0) for item in items]
    length = int(rankings.lengths[row])
    discount, _ = discount_tables(aligned.convention, length)
    discounts = [
        math.fsum(discount[a : min(b, length) + 1]) / (b - a + 1)
        for a, b in zip(first.tolist(), last.tolist(), strict=True)
    ]
    recommended = set(items)
    missed = sorted(
        (item for item, gain in gain_of.items() if gain > 0 and item not in recommended),
        key=lambda item: -gain_of[item],
    )
    contributions = np.array(gains) * np.array(discounts)
    absent = np.full(len(missed), np.nan)
    nothing = np.zeros(len(missed))
    total = contributions.sum() if len(contributions) else 0.0
    return pd.DataFrame(
        {
            "rank": pd.array([*first.tolist(), *[pd.NA] * len(missed)], dtype="Int64"),
            "item": [_label(aligned, item) for item in [*items, *missed]],
            "gain": [*gains, *(gain_of[item] for item in missed)],
            "discount": np.concatenate((discounts, absent)),
            "contribution": np.concatenate((contributions, nothing)),
            "cumulative": np.concatenate((np.cumsum(contributions), nothing + total)),
        }
    )


def _label(aligned: Aligned, item: int) -> Any:
    # Only the side with more columns has labels of all items.
    for side in (aligned.relevance, aligned.rankings):
        if side.items_index is not None and item < len(side.items_index):
            return side.items_index[item]
    return item


def row_of_user(user: Hashable, labels: Axis | None, n_users: int) -> int:
    """Return the row of a user, by label or row number."""
    if labels is not None:
        row = int(labels.locate([user])[0]) if isinstance(user, Hashable) else -1
        if row < 0:
            raise InvalidDataError(f"there is no user {user!r} among the {n_users} labels")
        return row
    if not isinstance(user, int | np.integer) or not 0 <= user < n_users:
        raise InvalidDataError(
            f"there is no user {user!r}; expected a row number from 0 to {n_users - 1}", user=user
        )
    return int(user)


def with_names(explained: pd.DataFrame, item_names: ItemNames) -> pd.DataFrame:
    """Return the table of `Evaluation.explain` with the names behind each item.

    Raises `InvalidDataError` as from `item_table`. Also if a column has a name that the table has
    already, or no item of the table has a name.
    """
    import pandas as pd

    names = item_table(item_names)
    taken = [name for name in names if name in explained]
    if taken:
        raise InvalidDataError(
            f"item_names has a column {taken[0]!r}, which the result of explain also has; rename it"
        )
    labels = explained["item"].tolist()
    _check_known(labels, names)
    found = names.reindex(pd.Index(labels, tupleize_cols=False)).reset_index(drop=True)
    place = list(explained).index("item") + 1
    parts = [explained.iloc[:, :place], found, explained.iloc[:, place:]]
    return pd.concat(parts, axis=1)


def _check_known(labels: list[Any], names: pd.DataFrame) -> None:
    """Raise if none of the items has a name, as if one side has numbers and the other text."""
    if labels and not names.index.isin(labels).any():
        known = f"{names.index.tolist()[0]!r}, …" if len(names) else "nothing"
        raise InvalidDataError(
            f"item_names has none of these items ({labels[0]!r}, …), but {known}. Pass names by "
            "the items' labels, of the same type"
        )
