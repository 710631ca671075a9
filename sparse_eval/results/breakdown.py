"""Metrics by groups of users, how far these are apart, and metrics by bands of items."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import check_whole
from ..errors import InvalidDataError, InvalidMetricError
from ..metrics.measure import measure
from .segments import by_activity, by_label, by_popularity

if TYPE_CHECKING:
    import pandas as pd

    from ..inputs.training import Training
    from .measured import Measured


def break_down(block: Measured, groups: Any, bands: int = 4) -> pd.DataFrame:
    """Return the table that `Evaluation.by` describes."""
    check_whole("bands", bands, 1, 1000)
    if isinstance(groups, str) and groups == "popularity":
        return _by_popularity(block, bands)
    n_users, counted = len(block.n_relevant), block.counted
    if isinstance(groups, str) and groups == "activity":
        segments = by_activity(_training(block, groups).user_counts[:n_users], counted, bands)
    elif isinstance(groups, str):
        raise InvalidDataError(
            f"groups is {groups!r}; expected 'activity', 'popularity' or a label for each user"
        )
    else:
        segments = by_label(groups, n_users, block.labels, counted)
    users_of = [block.users_of(row) for row in range(len(block.request.plans))]
    rows = {}
    for code, group in enumerate(segments.names):
        members = segments.codes == code
        for row, plan in enumerate(block.request.plans):
            users = users_of[row][members[users_of[row]]]
            if len(users):
                std = math.nan
                if plan.per_user:
                    std = block.numbers.moments(row, users, squares=True).std
                rows[group, str(plan.metric)] = (block.value_over(row, users), std, len(users))
    return _table(rows, ["mean", "std", "n_users"])


def deviation_between(block: Measured, groups: Any, bands: int = 4) -> pd.DataFrame:
    """Return the table that `Evaluation.deviation` describes."""
    import pandas as pd

    if isinstance(groups, str) and groups == "popularity":
        raise InvalidDataError(
            "groups is 'popularity', which divides the relevant items; expected 'activity' or a "
            "label for each user"
        )
    table = break_down(block, groups, bands).dropna(subset="mean")
    rows = []
    for metric in block.request.names:
        of_groups = table[table.index.get_level_values("metric") == metric]
        means, counts = (of_groups[name].to_numpy() for name in ("mean", "n_users"))
        variances = of_groups["std"].to_numpy() ** 2 / counts
        one, other = np.triu_indices(len(means), 1)
        deviation = chance = math.nan
        if len(one):
            deviation = float(np.abs(means[one] - means[other]).mean())
            chance = float(np.sqrt(2 / math.pi * (variances[one] + variances[other])).mean())
        rows.append((deviation, chance, len(means), int(counts.sum())))
    index = pd.Index(block.request.names, name="metric")
    return pd.DataFrame(rows, index, ["deviation", "chance", "n_groups", "n_users"])


def _by_popularity(block: Measured, bands: int) -> pd.DataFrame:
    plans = [plan for plan in block.request.plans if plan.definition.by_item]
    if not plans:
        raise InvalidMetricError(
            "none of the metrics can be divided by items; evaluate recall or hit_rate too"
        )
    segments = by_popularity(_training(block, "popularity").item_counts, bands)
    relevance = block.aligned.relevance
    rows = {}
    for code, group in enumerate(segments.names):
        kept = (segments.codes[relevance.items] == code) & (relevance.gains > 0)
        part = block.aligned.with_relevant(kept)
        columns, _ = measure(part, plans)
        n_items = int(np.count_nonzero(segments.codes == code))
        for row, plan in enumerate(plans):
            n_relevant = part.of_items(plan.items).relevance.n_relevant
            users = np.flatnonzero(block.counts(plan) & (n_relevant > 0))
            if len(users):
                std = columns.moments(row, users, squares=True).std if plan.per_user else math.nan
                counts = (len(users), n_items, int(n_relevant[users].sum()))
                rows[group, str(plan.metric)] = (columns.mean(row, users), std, *counts)
    return _table(rows, ["mean", "std", "n_users", "n_items", "n_relevant"])


def _training(block: Measured, groups: str) -> Training:
    training = block.aligned.side_data.training
    if training is None:
        raise InvalidMetricError(f"by({groups!r}) needs train: give train= to the evaluation")
    return training


def _table(rows: dict[tuple[Any, str], tuple[Any, ...]], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    index = pd.MultiIndex.from_tuples(list(rows), names=["group", "metric"])
    return pd.DataFrame(list(rows.values()), index=index, columns=columns)
