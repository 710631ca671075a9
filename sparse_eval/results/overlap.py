"""The similarity of the lists of two models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core import elementary
from ..core.arguments import check_fraction
from ..core.csr import find_entries
from ..errors import InvalidDataError
from ..inputs.alignment import align, match
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from .evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import Floats


def rbo(a: Rankings | Evaluation, b: Rankings | Evaluation, *, p: float = 0.9) -> pd.Series:
    """Compare the lists of two models, user by user, by their rank-biased overlap.

    At each rank, it takes the share of items that two lists have in common. It averages these
    shares with weights that fall by the factor `p`. The lists are extrapolated beyond their end.
    With p = 0.9 the first ten ranks have 86 % of the weight.

    Parameters
    ----------
    a, b : Rankings or Evaluation
        Lists of the same items, of an evaluation those that it was given. Users and items with
        labels on both sides are matched by label, others by number.
    p : float
        Between 0 and 1: the larger, the more the lower ranks count.

    Returns
    -------
    pandas.Series of float64
        For each user a number from 0, nothing in common, to 1, the same order; NaN for a user
        without any list. Its mean is the overlap of the models.

    Raises
    ------
    InvalidDataError
        If `p` is not between 0 and 1, lists have gaps, tied positions or were not kept, or one side
        has ids and the other has not.

    See Also
    --------
    compare : Compare how good models are.

    References
    ----------
    W. Webber, A. Moffat and J. Zobel (2010). A similarity measure for indefinite rankings. ACM
    TOIS 28(4), equation 32. https://doi.org/10.1145/1852102.1852106

    Examples
    --------
    >>> import sparse_eval as se
    >>> als = se.Rankings.from_topk([[0, 1, 2], [3, 4, 5]])
    >>> bpr = se.Rankings.from_topk([[0, 2, 1], [0, 1, 2]], shape=(2, 6))
    >>> se.rbo(als, bpr).round(4).tolist()
    [0.955, 0.0]
    """
    import pandas as pd

    p = check_fraction("p", p)
    lists, others = complete_lists(a, "a"), complete_lists(b, "b")
    positions = Relevance.from_csr(
        others.to_positions(), users=others.users, items=others.items_index
    )
    lists, positions = align(lists, positions, *match(lists, positions))
    values = _extrapolated(lists, positions, p)
    index = pd.RangeIndex(len(values)) if lists.users is None else lists.users
    return pd.Series(values, index=pd.Index(index, name="user"), name="rbo")


def complete_lists(side: Rankings | Evaluation, name: str) -> Rankings:
    """Return the lists of a side, or raise if it has none, or some have gaps."""
    lists = side.rankings if isinstance(side, Evaluation) else side
    if not isinstance(lists, Rankings):
        raise InvalidDataError(f"{name} is {type(side).__name__}; expected Rankings or Evaluation")
    if lists.last_positions is not None:
        raise InvalidDataError(
            f'the lists of {name} have no certain positions, because of ties; use ties="item"'
        )
    gaps = np.diff(lists.indptr) != lists.lengths
    if gaps.any():
        raise InvalidDataError(
            f"the list of user {int(np.flatnonzero(gaps)[0])} of {name} has positions without an "
            "item; pass complete lists, such as from evaluate_model(…, keep='lists')"
        )
    return lists


def _extrapolated(lists: Rankings, others: Relevance, p: float) -> Floats:
    """Return equation 32 for each user; the gains of `others` are positions."""
    n_users = len(lists.indptr) - 1
    n_items = max(lists.shape[1], others.shape[1])
    rows = np.repeat(np.arange(n_users), np.diff(lists.indptr))
    places = find_entries(rows, lists.items, others.indptr, others.items, n_items)
    shared = places >= 0
    rows = rows[shared]
    # An item is in both lists from the deeper of its two ranks on.
    depths = np.maximum(lists.positions[shared], others.gains[places[shared]].astype(np.int64))
    lengths = np.stack((lists.lengths, np.diff(others.indptr)))
    short, long = lengths.min(axis=0), lengths.max(axis=0)
    ranks = np.arange(1, int(long.max(initial=0)) + 1)
    with np.errstate(under="ignore"):  # a rank that far down counts nothing
        powers = np.concatenate(([0.0], np.cumsum(elementary.power(p, ranks))))
        weights = np.concatenate(([0.0], np.cumsum(elementary.power(p, ranks) / ranks)))
    common = np.bincount(rows, minlength=n_users)  # down to the end of the longer list
    is_early = depths <= short[rows]
    early = np.bincount(rows[is_early], minlength=n_users)
    seen = np.bincount(rows, weights[long[rows]] - weights[depths - 1], n_users)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        share = np.where(short > 0, early / short, 0.0)
        beyond = share * (powers[long] - powers[short] - short * (weights[long] - weights[short]))
        ends = ((common - early) / long + share) * elementary.power(p, long)
        values: Floats = (1 - p) / p * (seen + beyond) + ends
    values[long == 0] = np.nan
    return np.minimum(values, 1.0)  # of equal lists, the last bit may be above
