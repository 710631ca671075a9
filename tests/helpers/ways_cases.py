"""Small users of every kind, and their metrics by each convention in plain Python.

For tests that all ways to an evaluation give one number. Conventions are read, formulas are not:
what the package computes with them is written out here, or in the oracle.
"""

import math
from typing import NamedTuple

import numpy as np
import oracle
import pandas as pd
from cases import to_csr
from merge_cases import same_numbers, same_random

from sparse_eval.metrics.conventions import CONVENTIONS

K = 3
PER_USER = ("ndcg", "dcg", "recall", "precision", "map", "hit_rate")


class Case(NamedTuple):
    """Lists and gains of users: each user and each item has at least one row.

    Attributes
    ----------
    ranked, gains : list of dict
        Positions and gains by item, of each user; gains with explicit zeros.
    scores : list of dict or None
        The scores that the lists are ordered by, with ties, where there are no gaps.
    """

    ranked: list
    gains: list
    scores: list[dict[int, float]] | None
    n_items: int

    @property
    def positions(self):
        return to_csr(self.ranked, np.int64, self.n_items)

    @property
    def validation(self):
        return to_csr(self.gains, np.float64, self.n_items)

    @property
    def tables(self):
        """The rows of both sides, in the order of the users."""
        lists = rows_of(self.scores or self.ranked, "score" if self.scores else "rank")
        return lists, rows_of(self.gains, "gain")

    @property
    def has_gaps(self):
        return any(sorted(row.values()) != list(range(1, len(row) + 1)) for row in self.ranked)

    def accepted(self, convention):
        """Return the case with gains that a convention accepts, and its order of equal scores."""
        rules = CONVENTIONS[convention]
        least = 1.0 if rules.zeros == "error" else 0.0
        gains = [
            {i: float(math.ceil(gain)) if rules.cuts_gains else gain or least for i, gain in row}
            for row in map(dict.items, self.gains)
        ]
        return self._replace(gains=gains, scores=self.scores if rules.ties == "item" else None)

    def metrics(self, convention, *, lists=True):
        """Return the metrics that the convention and the lists allow."""
        rules = CONVENTIONS[convention]
        names = [*PER_USER, "mrr"] + (["coverage"] if lists and not self.has_gaps else [])
        return [
            name if name in rules.uncut else f"{name}@{K}"
            for name in names
            if name not in rules.unlike
        ]


def rows_of(rows, value):
    triples = [(u, item, x) for u, row in enumerate(rows) for item, x in sorted(row.items())]
    frame = pd.DataFrame(triples, columns=["user", "item", value])
    return frame.astype({"user": np.int64, "item": np.int64, value: np.float64})


def make_case(seed, *, kind="ranks", graded=True, n_users=0):
    rng = np.random.default_rng(seed)
    n_users, n_items = n_users or int(rng.integers(1, 9)), int(rng.integers(2, 9))
    ranked = []
    scores = []
    gains = []
    for user in range(n_users):
        length = 0 if user and rng.random() < 0.25 else int(rng.integers(1, n_items + 1))
        items = rng.permutation(n_items)[:length].tolist()
        score = {item: float(rng.integers(0, 3)) / 2 for item in items}
        if kind == "ties":  # the lower item first
            items.sort(key=lambda item: (-score[item], item))
        ranks = np.arange(1, length + 1)
        if kind == "gaps":
            ranks = np.sort(rng.permutation(np.arange(1, 10))[:length])
        ranked.append(dict(zip(items, ranks.tolist(), strict=True)))
        scores.append(score)
        values = [0.0, 1.0, 1.0, 0.5, 3.0] if graded else [0.0, 1.0]
        chosen = rng.permutation(n_items)[: rng.integers(0, n_items + 1)].tolist()
        nothing = user and rng.random() < 0.25
        row = {item: 0.0 if nothing else float(rng.choice(values)) for item in chosen}
        gains.append(row)
    # One user counts by every convention; every user and every item is in a table.
    gains[0][next(iter(ranked[0]))] = 1.0
    for user in range(n_users):
        if not ranked[user] and not gains[user]:
            gains[user][0] = 0.0
    known = {item for row in (*ranked, *gains) for item in row}
    for item in sorted(set(range(n_items)) - known):
        gains[int(rng.integers(n_users))][item] = 0.0
    return Case(ranked, gains, scores if kind == "ties" else None, n_items)


def same(found, expected):
    """Check that means, deviations, intervals, random baselines and users' values have one bits."""
    same_numbers(found, expected)
    same_random(found, expected)
    if found._part.values is not None:
        assert np.array_equal(
            found.per_user.sort_index().to_numpy(),
            expected.per_user.sort_index().to_numpy(),
            equal_nan=True,
        )


def check_against_plain(ev, case, k=K):
    """Check means and values of users against plain Python."""
    for metric in ev.request.metrics:
        mean, values = plain(case, CONVENTIONS[ev.request.convention.name], metric.name, k)
        np.testing.assert_allclose(ev[metric], mean, rtol=1e-12, err_msg=str(metric))
        if values is not None:
            np.testing.assert_allclose(
                ev.values(metric), values, rtol=1e-12, atol=1e-15, err_msg=str(metric)
            )


def plain(case, convention, name, k=K):
    """Return a metric of all users, and of each, None where it has no values of users."""
    listed = [bool(row) for row in case.ranked]
    relevant = [any(gain > 0 for gain in row.values()) for row in case.gains]
    judged = [bool(row) for row in case.gains]
    counted = {"exclude": relevant, "judged": judged, "zero": [True] * len(listed)}[
        convention.no_relevant
    ]
    if convention.without_list == "exclude" and name not in convention.exceptions.without_list_zero:
        counted = [a and b for a, b in zip(counted, listed, strict=True)]
    if name == "coverage":
        shown = listed if convention.exceptions.lists_of_all else counted
        rows = [row for row, is_shown in zip(case.ranked, shown, strict=True) if is_shown]
        items = {item for row in rows for item, rank in row.items() if rank <= k}
        return len(items) / case.n_items, None
    options = dict(convention.options.get(name, {}))
    if options.pop("average", "macro") == "micro":
        users = zip(case.ranked, case.gains, counted, strict=True)
        cases = [(ranked, gains, None) for ranked, gains, counts in users if counts]
        return oracle.micro(name, options, k, cases), None
    values = [
        _of_user(convention, name, options, k, ranked, gains) if has_relevant else 0.0
        for ranked, gains, has_relevant in zip(case.ranked, case.gains, relevant, strict=True)
    ]
    values = [value if counts else math.nan for value, counts in zip(values, counted, strict=True)]
    return oracle.mean_of_defined(values), values


def _of_user(convention, name, options, k, ranked, gains):
    depth = math.inf if name in convention.uncut else k
    relevant = {item: gain for item, gain in gains.items() if gain > 0}
    if convention.zeros == "hit":  # but not relevant
        gains = {item: gain or 1.0 for item, gain in gains.items()}
    if name not in ("dcg", "ndcg"):
        value = oracle.value(name, options, None if depth == math.inf else k, ranked, gains)
        n_hits = sum(gain > 0 for gain in gains.values())
        return value * n_hits / len(relevant) if name in ("recall", "map") else value
    worth = {"binary": np.sign, "exp": lambda gain: 2**gain - 1}.get(options.get("gain"), float)

    def dcg(pairs):
        return sum(worth(gain) / math.log2(max(rank + convention.shift, 2)) for rank, gain in pairs)

    found = dcg((rank, gains.get(item, 0.0)) for item, rank in ranked.items() if rank <= depth)
    best = sorted(relevant.values(), reverse=True)
    ideal = {
        "relevant": best[:k],
        "slots": [1.0] * k,
        "length": best[: min(k, max(ranked.values(), default=0))],
        "all": best,
    }[convention.ideal]
    below = dcg(enumerate(ideal, 1)) if name == "ndcg" else 1.0
    return found / below if below else 0.0
