"""Compare our numbers with a library's, metric by metric."""

import json
import re
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from harness.values import Furthest, difference_of_metric

import sparse_eval as se

from .worker import Case, make_case

#: A part of our error if a library counts explicit zeros as relevant.
ZEROS = "stores a zero"

#: The convention of a library, and its order of equal scores.
Rules: TypeAlias = tuple[str | None, str | None]

#: The end of the names of metrics of only judged items.
JUDGED = " (judged)"


def compare(cases: str, values: str) -> dict[str, Any]:
    library = json.loads(Path(values).read_text(encoding="utf-8"))
    metrics = Furthest("case")
    n_cases = n_refused = 0
    read = json.loads(Path(cases).read_text(encoding="utf-8"))
    values_with_zeros = library.pop("zeros", [{}] * len(read))
    rules = (library["convention"], library["ties"])
    answers = zip(read, library.pop("cases"), values_with_zeros, strict=True)
    for number, (raw, theirs, with_zeros) in enumerate(answers):
        if not theirs:
            continue
        n_cases += 1
        case = make_case(**raw)
        given = [theirs, with_zeros]
        try:
            ours = evaluate_both(case, case.stored, list(theirs), rules)
        except se.errors.InvalidDataError as error:
            if ZEROS not in str(error):
                raise
            n_refused += 1  # without explicit zeros, as our error suggests
            ours, given = evaluate_both(case, case.relevant, list(theirs), rules), [theirs]
        for metric in theirs:
            evaluation, name = ours[metric.endswith(JUDGED)], name_in(case, metric)
            apart = (difference_of_metric(evaluation, name, one[metric]) for one in given if one)
            metrics.add(metric, number, max(apart))
    return library | {"n_cases": n_cases, "n_refused": n_refused, "metrics": metrics.found}


def evaluate_both(
    case: Case, gains: Any, metrics: list[str], rules: Rules
) -> dict[bool, se.Evaluation]:
    """Evaluate whole lists, and lists of only judged items for metrics that need them."""
    chosen = {only: [m for m in metrics if m.endswith(JUDGED) == only] for only in (False, True)}
    return {
        only: evaluate(case, gains, names, rules, only) for only, names in chosen.items() if names
    }


def evaluate(
    case: Case, gains: Any, metrics: list[str], rules: Rules, judged_only: bool
) -> se.Evaluation:
    convention, ties = rules
    names = [name_in(case, metric) for metric in metrics]
    grouped = any(re.match("alpha_ndcg|.*_ia|categorical|.*=groups", name) for name in names)
    return se.evaluate(
        rankings(case, ties),
        case.matrix(gains),
        se.Protocol(names, convention=convention, judged_only=judged_only),
        train=case.matrix(case.train),
        item_data=se.ItemData(groups=np.array(case.groups) if grouped else None),
    )


def name_in(case: Case, metric: str) -> str:
    return metric.removesuffix(JUDGED).replace("@k", f"@{case.k}")


def rankings(case: Case, ties: str | None) -> se.Rankings:
    if ties and not case.untied:
        return se.Rankings.from_scores(case.scores, ties=ties)
    ids = np.full((len(case.lists), max(map(len, case.lists))), -1)
    for row, items in zip(ids, case.lists, strict=True):
        row[: len(items)] = items
    return se.Rankings.from_topk(ids, shape=case.shape)
