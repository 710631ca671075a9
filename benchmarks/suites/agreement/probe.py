"""Print the differences between our numbers and a library's, metric by metric, as JSON.

python -P probe.py CASES VALUES
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import sparse_eval as se

#: A part of our error if a library counts explicit zeros as relevant.
ZEROS = "stores a zero"

#: The end of the names of metrics of only judged items.
JUDGED = " (judged)"


def main(cases: Path, values: Path) -> None:
    library = json.loads(values.read_text(encoding="utf-8"))
    metrics: dict[str, dict[str, Any]] = {}
    n_cases = n_refused = 0
    read = json.loads(cases.read_text(encoding="utf-8"))
    values_with_zeros = library.pop("zeros", [{}] * len(read))
    rules = (library["convention"], library["ties"])
    values = zip(read, library.pop("cases"), values_with_zeros, strict=True)
    for number, (case, theirs, with_zeros) in enumerate(values):
        if not theirs:
            continue
        n_cases += 1
        try:
            ours, given = evaluate_both(case, list(theirs), *rules), [theirs, with_zeros]
        except se.errors.InvalidDataError as error:
            if ZEROS not in str(error):
                raise
            n_refused += 1
            ours, given = evaluate_both(without_zeros(case), list(theirs), *rules), [theirs]
        for metric, entry in ((metric, start(metrics, metric)) for metric in theirs):
            entry["cases"] += 1
            evaluation, name = ours[metric.endswith(JUDGED)], name_in(case, metric)
            apart = max(difference(evaluation, name, one[metric]) for one in given if one)
            if apart > entry["max_difference"]:
                entry |= {"max_difference": apart, "furthest_case": number}
    counts = {"n_cases": n_cases, "n_refused": n_refused}
    print(json.dumps(library | counts | {"metrics": metrics}))


def start(metrics: dict[str, dict[str, Any]], metric: str) -> dict[str, Any]:
    """Return the results of a metric so far."""
    return metrics.setdefault(metric, {"cases": 0, "max_difference": 0.0})


def without_zeros(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case without its explicit zeros, as our error suggests."""
    stored = [[(item, gain) for item, gain in row if gain] for row in case["validation"]]
    return case | {"validation": stored}


def evaluate_both(
    case: dict[str, Any], metrics: list[str], *rules: str | None
) -> dict[bool, se.Evaluation]:
    """Evaluate whole lists, and lists of only judged items for metrics that need them."""
    chosen = {only: [m for m in metrics if m.endswith(JUDGED) == only] for only in (False, True)}
    return {only: evaluate(case, names, *rules, only) for only, names in chosen.items() if names}


def evaluate(
    case: dict[str, Any],
    metrics: list[str],
    convention: str | None,
    ties: str | None,
    judged_only: bool,
) -> se.Evaluation:
    shape = (len(case["lists"]), case["n_items"])
    names = [name_in(case, metric) for metric in metrics]
    grouped = any(re.match("alpha_ndcg|.*_ia|categorical|.*=groups", name) for name in names)
    return se.evaluate(
        rankings(case, shape, ties),
        matrix(case["validation"], shape),
        se.Protocol(names, convention=convention, judged_only=judged_only),
        train=matrix([[(item, 1) for item in row] for row in case["train"]], shape),
        items=se.ItemData(groups=np.arange(case["n_items"]) % 4 if grouped else None),
    )


def name_in(case: dict[str, Any], metric: str) -> str:
    return metric.removesuffix(JUDGED).replace("@k", f"@{case['k']}")


def rankings(case: dict[str, Any], shape: tuple[int, int], ties: str | None) -> se.Rankings:
    lists, scores = case["lists"], case["scores"]
    if ties and scores and any(len(set(row)) < len(row) for row in scores):
        return se.Rankings.from_scores(scores, ties=ties)
    ids = np.full((len(lists), max(map(len, lists))), -1)
    for row, items in zip(ids, lists, strict=True):
        row[: len(items)] = items
    return se.Rankings.from_topk(ids, shape=shape)


def matrix(rows: list[list[Any]], shape: tuple[int, int]) -> csr_matrix:
    found = [(user, item, value) for user, row in enumerate(rows) for item, value in row]
    users, items, values = zip(*found, strict=True) if found else ((), (), ())
    return csr_matrix((np.array(values, float), (users, items)), shape)


def difference(ours: se.Evaluation, metric: str, theirs: Any) -> float:
    """Return the largest difference of values or means; NaN and None equal only NaN."""
    if not isinstance(theirs, list):
        return apart(np.array([ours[metric]]), np.array([theirs], float))
    found = np.array(theirs, float)  # None becomes NaN
    present = found[~np.isnan(found)]
    mean = present.mean() if len(present) else np.nan
    return max(apart(ours.values(metric), found), apart(np.array([ours[metric]]), np.array([mean])))


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    if (np.isnan(ours) != np.isnan(theirs)).any():
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs), initial=0.0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
