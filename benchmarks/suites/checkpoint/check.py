"""Compare the contestants' answers for a case with the exact ranking.

Each answer is an .npz file, ours the first, and contains one of

    ids                                the items recommended to each of `users`, best first
    ndcg                               the mean of ndcg@k over the users
    hit_users, hit_items, hit_ranks    the held-out items among the first k, and their ranks
    nothing                            if there is nothing to compare

Ours has ids.

Scores are the products of the factors in double precision. In single precision, a library's score
differs from this by at most `bound`, for any order of its sums. So a list is right if and only if
its order is possible for scores that are this close to the exact ones:

    no item x comes before an item y with score(x) + bound(x) < score(y) - bound(y)

Here, every unseen item that is not listed comes after all listed items. Equal scores may be in any
order. Our own list must be right in double precision. A mean ndcg is right if it is between the
values for the worst and the best possible ranks of the held-out items. Hits are right if they equal
the hits of our list.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .case import Checkpoint, read

Array = npt.NDArray[Any]

BLOCK = 128
SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # unit roundoff
SMALLEST = 2.0**-149  # the loss of a product that is too small for single precision
# For a mean over all users, which all contestants compute in double precision.
TOLERANCE = 1e-9


class Block(NamedTuple):
    """The exact scores of some users, -inf for seen items, and the parts of a bound."""

    rows: slice
    users: Array
    scores: Array
    norms: Array
    item_norms: Array

    def bound(self, unit: float, ids: Any = slice(None)) -> Array:
        """Return the largest error of a computed score, for some items of each user, or for all."""
        return self.norms[:, None] * self.item_norms[ids] * unit + SMALLEST


def check(path: str, *answers: str) -> list[dict[str, Any]]:
    """Return what is found about each answer; a wrong one has `wrong`."""
    case = read(Path(path))
    found = [load(answer) for answer in answers]
    for answer in found:
        if "ids" in answer and answer["ids"].shape != (len(case.users), case.k):
            raise ValueError(f"lists of shape {answer['ids'].shape}")
    ours = found[0]["ids"]
    reports: list[dict[str, Any]] = [{} for _ in found]
    # The exact scores here are rounded too, in double precision.
    exact = 2 * roundoff(case, DOUBLE)
    single = roundoff(case, SINGLE) + roundoff(case, DOUBLE)
    units = [exact] + [single] * len(answers[1:])
    lowest, highest = 0.0, 0.0
    for block in blocks(case):
        for answer, report, unit in zip(found, reports, units, strict=True):
            if "ids" in answer:
                lists = answer["ids"][block.rows]
                if "wrong" not in report and check_lists(block, lists, unit, report):
                    differ = (lists != ours[block.rows]).any(axis=1)
                    for name, count in (("lists", len(lists)), ("lists_that_differ", differ.sum())):
                        report[name] = report.get(name, 0) + int(count)
        worst, best = ndcg_range(case, block, ours[block.rows], single)
        lowest += worst.sum()
        highest += best.sum()
    mine = hits_of(case, ours)
    mean = ndcg_of(case, mine)
    allowed = [lowest / len(case.users) - TOLERANCE, highest / len(case.users) + TOLERANCE]
    for answer, report in zip(found, reports, strict=True):
        if "hit_items" in answer:
            check_hits(mine, answer, report)
        if "ndcg" in answer:
            value = float(answer["ndcg"])
            report |= {"ndcg": value, "difference": abs(value - mean), "allowed": allowed}
            if not allowed[0] <= value <= allowed[1]:
                report["wrong"] = f"ndcg {value} is outside {allowed}"
    reports[0]["ndcg"] = mean
    return reports


def load(path: str) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as saved:
        return dict(saved)


def roundoff(case: Checkpoint, unit: float) -> float:
    """Return γ: |computed - exact| <= γ Σ|u_f v_f| <= γ ‖u‖ ‖v‖ for any order of the sum.

    (Higham, Accuracy and Stability of Numerical Algorithms, 3.1.) A margin of one part in a
    thousand covers the rounding of the norms.
    """
    n = case.item_factors.shape[1]
    return 1.001 * n * unit / (1 - n * unit)


def blocks(case: Checkpoint) -> Iterator[Block]:
    items = case.item_factors.astype(np.float64)
    item_norms = np.linalg.norm(items, axis=1)
    for start in range(0, len(case.users), BLOCK):
        rows = slice(start, min(start + BLOCK, len(case.users)))
        users = case.users[rows]
        factors = case.user_factors[users].astype(np.float64)
        scores = factors @ items.T
        seen = case.train[users].tocoo()
        scores[seen.row, seen.col] = -np.inf
        yield Block(rows, users, scores, np.linalg.norm(factors, axis=1), item_norms)


def check_lists(block: Block, ids: Array, unit: float, report: dict[str, Any]) -> bool:
    """Return whether all lists are right; record the first wrong list in a report."""
    right = right_lists(block, ids, unit)
    for row in np.flatnonzero(~right)[:1]:
        report["wrong"] = f"the list of user {block.users[row]}, {ids[row].tolist()}"
    return bool(right.all())


def right_lists(block: Block, ids: Array, unit: float) -> Array:
    """Return which lists have an order that is possible for scores within the bound."""
    n_items = block.scores.shape[1]
    ordered = np.sort(ids, axis=1)
    right = (ordered[:, 0] >= 0) & (ordered[:, -1] < n_items)
    right &= (ordered[:, 1:] > ordered[:, :-1]).all(axis=1)
    ids = np.where(right[:, None], ids, 0)  # any valid index
    scores = np.take_along_axis(block.scores, ids, axis=1)
    right &= np.isfinite(scores).all(axis=1)  # -inf: seen
    bound = block.bound(unit, ids)
    highest, lowest = scores + bound, scores - bound
    right &= (np.minimum.accumulate(highest, axis=1) >= lowest).all(axis=1)
    others = block.scores - block.bound(unit)
    np.put_along_axis(others, ids, -np.inf, axis=1)
    return right & (highest.min(axis=1) >= others.max(axis=1))


def ndcg_range(case: Checkpoint, block: Block, ours: Array, unit: float) -> tuple[Array, Array]:
    """Return the smallest and the largest possible ndcg@k of each user within the bound."""
    bound = block.bound(unit)
    highest, lowest = block.scores + bound, block.scores - bound
    threshold = np.take_along_axis(lowest, ours, axis=1).min(axis=1)
    discounts = discounts_of(case)
    worst, best = np.zeros(len(ours)), np.zeros(len(ours))
    for row, user in enumerate(block.users):
        held_out = held_out_by(case, user)
        for item in held_out[highest[row, held_out] >= threshold[row]]:
            least = int((lowest[row] > highest[row, item]).sum())  # items certainly before it
            most = int((highest[row] >= lowest[row, item]).sum()) - 1  # and possibly
            best[row] += discounts[min(least, case.k)]
            worst[row] += discounts[min(most, case.k)]
        ideal = discounts[: min(len(held_out), case.k)].sum()
        best[row] = min(best[row] / ideal, 1.0)
        worst[row] /= ideal
    return worst, best


def held_out_by(case: Checkpoint, user: int) -> Array:
    bounds = case.validation.indptr
    return case.validation.indices[bounds[user] : bounds[user + 1]]


def discounts_of(case: Checkpoint) -> Array:
    """Return 1 / log2(rank + 1) for the first k ranks, and 0 for later ranks."""
    return np.append(1.0 / np.log2(np.arange(2, case.k + 2)), 0.0)


def hits_of(case: Checkpoint, ids: Array) -> dict[str, Array]:
    """Return the held-out items in lists, ordered by user and rank."""
    n_items = len(case.item_factors)
    held_out = case.validation.tocoo()
    keys = case.users[:, None] * n_items + ids
    rows, ranks = np.nonzero(np.isin(keys, held_out.row.astype(np.int64) * n_items + held_out.col))
    users, items = case.users[rows], ids[rows, ranks]
    return {"hit_users": users, "hit_items": items, "hit_ranks": ranks + 1}


def ndcg_of(case: Checkpoint, hits: dict[str, Array]) -> float:
    discounts = discounts_of(case)
    gains = discounts[hits["hit_ranks"] - 1]
    dcg = np.bincount(hits["hit_users"], gains, minlength=len(case.user_factors))[case.users]
    n_relevant = np.diff(case.validation.indptr)[case.users]
    ideal = np.cumsum(discounts)[np.minimum(n_relevant, case.k) - 1]
    return float((dcg / ideal).mean())


def check_hits(mine: dict[str, Array], answer: dict[str, Array], report: dict[str, Any]) -> None:
    """Check that the hits equal those in the list, in any order for each user."""
    order = np.lexsort((answer["hit_ranks"], answer["hit_users"]))
    report["hits"] = len(order)
    for name, expected in mine.items():
        if not np.array_equal(answer[name][order], expected):
            report["wrong"] = f"{name} are not those of the list"
            return
