"""`evaluate`: rankings and relevance in, one row of numbers for each user out."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .errors import InvalidDataError, InvalidMetricError
from .kernels.statistics import NAMES, sum_ideal, sweep, sweep_tied
from .matrices import Rankings, Relevance
from .metrics import Metric, Statistics, parse_metrics
from .parallel import BLOCK, for_blocks
from .results import Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["evaluate"]

#: Discounts of so many ranks are kept, unless a user has more relevant items.
MAX_TABLE = 1 << 20


def evaluate(
    predictions: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    no_relevant: Literal["exclude", "zero"] = "exclude",
    num_threads: int | None = None,
) -> Evaluation:
    """Evaluate ranked lists against the items that turned out to be relevant.

    Parameters
    ----------
    predictions : Rankings, or scipy sparse matrix or array, shape (n_users, n_items)
        A matrix holds 1-based positions (`Rankings.from_positions`).
    validation : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        A matrix holds gains, at least 0 (`Relevance.from_csr`). Where both sides carry labels
        they are matched by label; otherwise row and column numbers are compared, and the smaller
        matrix is padded: an item outside of the other is not relevant but keeps its position.
    metrics : str, Metric or iterable of them
        For instance ``["ndcg@{5,10}", "map(normalizer=min)@20"]``.
    no_relevant : {"exclude", "zero"}
        A user without relevant items is left out of every mean (NaN for that user), or counts 0.
        A user with relevant items and no list always counts 0.
    num_threads : int, optional
        Threads to use, one for each core by default. The result does not depend on it.

    Returns
    -------
    Evaluation

    Raises
    ------
    InvalidMetricError
        If a metric or option is unknown, none is asked for, or one is not defined for lists with
        ``ties="average"``.
    InvalidDataError
        If a matrix is refused by `Rankings.from_positions` or `Relevance.from_csr`, no user has
        a relevant item, or gains are too large for a sum of them to be finite.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> rankings = se.Rankings.from_topk([[0, 3, 2], [1, 0, 2]])
    >>> relevant = csr_matrix([[1, 0, 1, 0], [0, 0, 0, 0]])
    >>> ev = se.evaluate(rankings, relevant, ["ndcg@3", "recall@1"])
    >>> round(ev["ndcg@3"], 6)
    0.919721
    >>> ev
    <Evaluation: 1 users, 1 left out; ndcg@3 0.9197, recall@1 0.5000>
    """
    asked = parse_metrics(metrics)
    if no_relevant not in ("exclude", "zero"):
        raise InvalidDataError(f"no_relevant is {no_relevant!r}; expected 'exclude' or 'zero'")
    rankings = (
        predictions if isinstance(predictions, Rankings) else Rankings.from_positions(predictions)
    )
    relevance = validation if isinstance(validation, Relevance) else Relevance.from_csr(validation)
    rankings, relevance = _align(rankings, relevance)
    if rankings.last_positions is not None:
        for metric in asked:
            if not metric.definition.averages_ties:
                raise InvalidMetricError(
                    f'{metric} has no expectation over tied items; make the lists with ties="item"'
                )
    columns, n_relevant = _compute(rankings, relevance, asked, num_threads)
    left_out = n_relevant == 0
    if left_out.all():
        raise InvalidDataError(
            f"none of the {len(left_out)} users has a relevant item (a stored value above 0); "
            "there is nothing to evaluate"
        )
    columns[:, left_out] = 0.0 if no_relevant == "zero" else np.nan
    return Evaluation(
        metrics=asked,
        columns=columns,
        rankings=rankings,
        relevance=relevance,
        n_relevant=n_relevant,
        no_relevant=no_relevant,
    )


def _compute(
    rankings: Rankings,
    relevance: Relevance,
    metrics: tuple[Metric, ...],
    num_threads: int | None,
    block: int = BLOCK,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the metrics as (metrics, users), and each user's number of relevant items.

    Formulas are applied block by block, while the block's statistics are still in the cache; the
    statistics of all users never exist at once.
    """
    n_users = len(relevance.indptr) - 1
    cutoffs = np.array(sorted({metric.k for metric in metrics}), np.int64)
    exponential = any(metric.arguments.get("gain") == "exp" for metric in metrics)
    last_positions = rankings.last_positions
    longest = int(rankings.lengths.max(initial=0))
    deepest = max(
        # A position may be as large as a catalogue: the sweep works out what no table holds.
        min(longest, MAX_TABLE) if last_positions is None else longest,
        int(np.diff(relevance.indptr).max(initial=0)),
    )
    tables = _discounts(min(int(cutoffs[-1]), deepest))
    gapped = rankings.gapped_positions is not None
    positions = rankings.positions if gapped else np.empty(0, np.int32)
    columns = np.empty((len(metrics), n_users))
    n_relevant = np.empty(n_users, np.int64)

    # A thread takes a buffer and gives it back: a fresh one for every block would cost more in
    # page faults than the sweep itself.
    buffers: list[NDArray[np.float64]] = []
    n_sums = len(NAMES) * len(cutoffs)
    formulas = [(metric.k, metric.definition.formula, metric.arguments) for metric in metrics]

    def work(first: int, last: int) -> None:
        size = last - first
        try:
            buffer = buffers.pop()
        except IndexError:
            buffer = np.empty(n_sums * min(block, n_users))
        table = buffer[: n_sums * size].reshape(len(NAMES), len(cutoffs), size)
        table.fill(0.0)
        first_hit = np.zeros(size, np.int64)
        mine = slice(first, last)
        bounds = slice(first, last + 1)
        lists = (rankings.indptr[bounds], rankings.items, positions)
        indptr, gains, binary = relevance.indptr[bounds], relevance.gains, relevance.binary
        relevant = (indptr, relevance.items, gains)
        sum_ideal(indptr, gains, binary, cutoffs, *tables, exponential, table, n_relevant[mine])
        if last_positions is None:
            sweep(
                *lists, gapped, *relevant, binary, cutoffs, tables[0], exponential, table, first_hit
            )
        else:
            tied = (*lists, last_positions, rankings.lengths[mine], *relevant)
            sweep_tied(*tied, cutoffs, tables[0], exponential, table)
        _check_finite(table, first)
        at = {
            int(k): Statistics(
                k=int(k),
                n_relevant=n_relevant[mine],
                first_hit=first_hit,
                **dict(zip(NAMES, table[:, cut], strict=True)),
            )
            for cut, k in enumerate(cutoffs)
        }
        with np.errstate(divide="ignore", invalid="ignore"):  # users without relevant items
            for row, (k, formula, arguments) in enumerate(formulas):
                columns[row, mine] = formula(at[k], **arguments)
        buffers.append(buffer)

    for_blocks(work, n_users, num_threads, block)
    return columns, n_relevant


def _check_finite(table: NDArray[np.float64], first_user: int) -> None:
    # At the last cut-off these three bound every other statistic of gains.
    for name in ("gain", "idcg", "idcg_exp"):
        sums = table[NAMES.index(name), -1]
        if not np.isfinite(sums).all():
            user = first_user + int(np.flatnonzero(~np.isfinite(sums))[0])
            gain = "2^g − 1" if name == "idcg_exp" else "g"
            raise InvalidDataError(
                f"row {user} of the validation matrix: the gains are so large that the sum "
                f"of {gain} is not finite; scale them down or use gain=binary"
            )


def _discounts(deepest: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return 1 / log2(r + 1) for every rank r up to `deepest` at least, and their running sums.

    Entry r belongs to rank r, and to the ranks from 1 to r.
    """
    return _discount_tables(max(1024, 1 << deepest.bit_length()))


@lru_cache(maxsize=8)
def _discount_tables(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # math.log2, not np.log2: NumPy picks another routine on processors with wider vectors, whose
    # last bit may differ.
    single = np.array([0.0] + [1.0 / math.log2(rank + 1) for rank in range(1, size)])
    sums = np.cumsum(single)
    single.flags.writeable = sums.flags.writeable = False
    return single, sums


def _align(rankings: Rankings, relevance: Relevance) -> tuple[Rankings, Relevance]:
    """Make both sides speak of the same users and items, cutting nothing off."""
    if rankings.users is not None and relevance.users is not None:
        rankings, relevance = _match_users(rankings, relevance)
    if rankings.items_index is not None and relevance.items_index is not None:
        rankings = _match_items(rankings, relevance.items_index)
    missing = len(relevance.indptr) - len(rankings.indptr)
    if missing > 0:
        rankings = replace(
            rankings,
            indptr=_pad_rows(rankings.indptr, missing),
            lengths=np.concatenate((rankings.lengths, np.zeros(missing, np.int64))),
        )
    elif missing < 0:
        relevance = replace(relevance, indptr=_pad_rows(relevance.indptr, -missing))
    n_users = len(relevance.indptr) - 1
    labels = rankings.users if relevance.users is None else relevance.users
    if labels is not None and len(labels) != n_users:
        raise InvalidDataError(
            f"one side has {n_users} users, the other side labels {len(labels)}; label both sides, "
            "or none"
        )
    return (
        replace(rankings, shape=(n_users, rankings.shape[1]), users=labels),
        replace(relevance, shape=(n_users, relevance.shape[1]), users=labels),
    )


def _check_common(ours: pd.Index[Any], theirs: pd.Index[Any], role: str) -> None:
    """Refuse labels of which none is on both sides: numbers here and text there, most likely."""
    if len(ours) and len(theirs) and not ours.isin(theirs).any():
        raise InvalidDataError(
            f"no {role} of the rankings ({ours[0]!r}, …, {ours.dtype}) is among those of the "
            f"relevance ({theirs[0]!r}, …, {theirs.dtype}); give both the same ids, of one type"
        )


def _pad_rows(indptr: NDArray[np.int64], missing: int) -> NDArray[np.int64]:
    return np.concatenate((indptr, np.full(missing, indptr[-1])))


def _match_users(rankings: Rankings, relevance: Relevance) -> tuple[Rankings, Relevance]:
    """Put the lists in the order of the relevance's users; users it lacks come after them."""
    assert rankings.users is not None and relevance.users is not None  # noqa: S101, PT018
    labels: pd.Index[Any] = relevance.users.append(
        rankings.users[~rankings.users.isin(relevance.users)]
    )
    _check_common(rankings.users, relevance.users, "user")
    source = rankings.users.get_indexer(labels)
    has_list = source >= 0
    counts = np.zeros(len(labels), np.int64)
    counts[has_list] = np.diff(rankings.indptr)[source[has_list]]
    lengths = np.zeros(len(labels), np.int64)
    lengths[has_list] = rankings.lengths[source[has_list]]
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    starts = np.zeros(len(labels), np.int64)
    starts[has_list] = rankings.indptr[source[has_list]]
    taken = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
    last = rankings.last_positions
    matched = Rankings(
        (len(labels), rankings.shape[1]),
        indptr,
        rankings.items[taken],
        rankings.positions[taken],
        lengths,
        None if last is None else last[taken],
        labels,
        rankings.items_index,
    )
    return matched, replace(
        relevance,
        indptr=_pad_rows(relevance.indptr, len(labels) - len(relevance.users)),
        users=labels,
    )


def _match_items(rankings: Rankings, labels: pd.Index[Any]) -> Rankings:
    """Renumber the lists' items as the relevance numbers them; items it lacks come after."""
    assert rankings.items_index is not None  # noqa: S101 - for the type checker
    _check_common(rankings.items_index, labels, "item")
    known = labels.get_indexer(rankings.items_index)
    unknown = known < 0
    known[unknown] = len(labels) + np.arange(unknown.sum())
    union = labels.append(rankings.items_index[unknown])
    return replace(
        rankings,
        shape=(rankings.shape[0], len(union)),
        items=known[rankings.items].astype(np.int32),
        items_index=union,
    )
