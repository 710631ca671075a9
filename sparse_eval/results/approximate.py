"""Compare the lists of an approximate index with the exact lists of the same model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import check_fraction, check_whole
from ..core.exact_sums import Moments
from ..datasets.split.holdout import Holdout
from ..errors import InvalidDataError
from ..inputs.data import Data
from ..inputs.labelled import check_part
from ..inputs.paths import read_truth
from ..inputs.relevance import Relevance
from ..metrics.aligned import Aligned
from ..metrics.request import Protocol, Request
from .distribution import activity_of, paired
from .evaluation import Evaluation
from .intervals import LEVEL, interval_around, interval_of_mean, interval_of_moments
from .matching import shared_metrics
from .measured_block import Measured
from .overlap import complete_lists, rbo
from .segments import break_down

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from ..core.types import PathLike, SparseInput
    from ..inputs.rankings import Rankings

#: The cut-offs at which recall is computed by default, as far as the lists reach.
_CUTOFFS = (1, 10, 100)


def compare_lists(
    approximate: Rankings | Evaluation,
    exact: Rankings | Evaluation,
    k: int | Iterable[int] | None = None,
    *,
    train: Relevance | Holdout | SparseInput | PathLike | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Compare the lists of an approximate index with the exact lists of the same model.

    Parameters
    ----------
    approximate, exact : Rankings or Evaluation
        Complete lists, of an evaluation those that it was given (``keep="lists"``). Users and items
        with labels on both sides are matched by label, others by number.
    k : int or iterable of int, optional
        Where to compute the recall of the index; by default at 1, 10 and 100, as far as the lists
        reach.
    train : sparse matrix, Interactions, Holdout, frame, Relevance or path, optional
        The training data, which divide users by activity and items by popularity.
    level : float
        Of the intervals, between 0 and 1.

    Returns
    -------
    pandas.DataFrame
        One row for each number (index ``by``, ``group``, ``metric``): ``mean``, its confidence
        interval over users like these, ``ci_low`` and ``ci_high``, and ``n_users`` with a value.

        - ``recall@k``: the share of the first k items of the exact list that the first k items of
          the approximate list hold; 0 for a user without an approximate list;
        - ``rbo``: the rank-biased overlap of both lists, see `rbo`;
        - ``loss of ndcg@10``, and so on: how much worse the approximate lists are in each metric
          that both have, if `approximate` and `exact` are evaluations, with the interval of
          `compare`.

        With `train`, the same for bands of users by "activity", as in `Evaluation.by`, and recall
        for the exact items of each band of "popularity".

    Raises
    ------
    InvalidDataError
        If lists have gaps, tied positions or were not kept, or are shorter than `k`. Also if one
        side has ids and the other has not, or as from `compare`.

    See Also
    --------
    rbo : The overlap of each user's lists.
    compare : All numbers about the difference of two evaluations.

    Notes
    -----
    Recall is that of ann-benchmarks [1]_, with all ties in the order of the lists.

    References
    ----------
    .. [1] M. Aumüller, E. Bernhardsson and A. Faithfull, "ANN-Benchmarks: A Benchmarking Tool for
       Approximate Nearest Neighbor Algorithms", Information Systems 87, 2020.
       doi:10.1016/j.is.2019.02.006

    Examples
    --------
    >>> import sparse_eval as se
    >>> exact = se.Rankings.from_topk([[0, 1, 2], [3, 4, 5]])
    >>> index = se.Rankings.from_topk([[0, 2, 1], [3, 4, 0]], shape=(2, 6))
    >>> se.compare_lists(index, exact, k=[1, 2, 3])["mean"].round(2)
    by   group  metric
    all  all    recall@1    1.00
                recall@2    0.75
                recall@3    0.83
                rbo         0.84
    Name: mean, dtype: float64
    """
    import pandas as pd

    level = check_fraction("level", level)
    lists, truth = complete_lists(approximate, "approximate"), complete_lists(exact, "exact")
    longest = min(int(side.lengths.max(initial=0)) for side in (lists, truth))
    if k is None:
        cutoffs = [cutoff for cutoff in _CUTOFFS if cutoff <= longest]
    else:
        cutoffs = [
            check_whole("k", each, 1) for each in ([k] if isinstance(k, int | np.integer) else k)
        ]
    if not cutoffs or max(cutoffs) > longest:
        raise InvalidDataError(
            f"the lists of both sides have up to {longest} items, which is not enough for k = "
            f"{max(cutoffs, default=1)}; make longer lists, as ndcg@{max(cutoffs, default=1)} does",
            argument="k",
        )
    inputs: dict[str, Any] = {}
    if train is not None:
        inputs["train"] = read_truth(train.seen if isinstance(train, Holdout) else train)
        check_part(inputs["train"])
    filters_seen = not (isinstance(exact, Evaluation) and exact.request.seen == "allow")
    parts = [_recall(lists, truth.head(cutoff), cutoff, inputs, filters_seen) for cutoff in cutoffs]
    users = parts[0].per_user.users.index
    values = {
        name: pd.Series(part.values_of(name), users)
        for part in parts
        for name in part.request.names
    }
    values["rbo"] = rbo(approximate, exact)
    if isinstance(approximate, Evaluation) and isinstance(exact, Evaluation):
        both = {"exact": exact.request, "approximate": approximate.request}
        for name in shared_metrics(both, None)[0]:
            traits = exact._part.traits_of(name)
            if traits.per_user:
                losses, _, shared = paired(exact._part, approximate._part, name)
                sign = 1 if traits.higher_is_better else -1
                values[f"loss of {name}"] = pd.Series(sign * losses, shared.index)
    everybody = parts[0].per_user.evaluated_users.index
    table = pd.DataFrame({name: column.reindex(everybody) for name, column in values.items()})
    groups = [("all", "all", table)]
    if train is not None:
        bands = activity_of(parts[0], np.flatnonzero(parts[0].per_user.counted))
        for code, band in enumerate(bands.names):
            groups.append(("activity", band, table[bands.codes == code]))
    rows: dict[tuple[str, str, str], tuple[Any, ...]] = {}
    for by, group, members in groups:
        for title, column in members.items():
            defined = column.dropna().to_numpy()
            moments = Moments.of(defined)
            is_loss = str(title).startswith("loss")
            interval = (
                interval_of_moments(moments, level) if is_loss else interval_of_mean(defined, level)
            )
            if not is_loss:
                interval = interval.within(moments.mean, (0.0, 1.0))  # of recall and rbo
            if moments.n:
                rows[by, group, str(title)] = (moments.mean, *interval[:2], moments.n)
    for part in parts if train is not None else ():
        for row in break_down(part, "popularity").reset_index().to_dict("records"):
            mean, n = row["mean"], row["n_users"]
            interval = interval_around(mean, row["std"] / math.sqrt(n), n - 1, level, "t")
            interval = interval.within(mean, (0.0, 1.0))
            rows["popularity", row["group"], row["metric"]] = (mean, *interval[:2], n)
    index = pd.MultiIndex.from_tuples(list(rows), names=["by", "group", "metric"])
    return pd.DataFrame(list(rows.values()), index, ["mean", "ci_low", "ci_high", "n_users"])


def _recall(
    lists: Rankings, top: Rankings, cutoff: int, inputs: dict[str, Any], filters_seen: bool
) -> Measured:
    """Return the recall of the first items of exact lists, with the lists behind it."""
    protocol = Protocol([f"recall@{cutoff}"], filter_seen=filters_seen)
    request = Request.parse(protocol, inputs)
    held = Relevance.from_csr(top.to_positions(), users=top.users, items=top.items_index)
    data = Data.of_lists(lists, held, inputs, whole=True)
    side_data: Any = data.side_data
    if not filters_seen:
        side_data = side_data.allowing_seen()
    aligned = Aligned.in_label_order(data.rankings, data.relevance, side_data, request.convention)
    return Measured.compute(request, aligned)
