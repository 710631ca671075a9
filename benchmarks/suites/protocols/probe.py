"""Compare our numbers with a library's for each problem.

`PROTOCOLS` has the calls of the public interface. Each returns one or several `Evaluation` objects:
the same numbers, computed in several ways, must all equal the library's numbers.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from harness.values import Furthest, difference, difference_of_metric
from scipy.sparse import csr_matrix

import sparse_eval as se

from .worker import Problem, make_problem

#: Numbers by name: an evaluation, or the parts of a split.
Found: TypeAlias = se.Evaluation | dict[str, Any]


def compare(problems: str, values: str) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # about sampled candidates and items without training
    text = Path(values).read_text(encoding="utf-8")
    library = json.loads(text, object_hook=with_matrix)
    ask = PROTOCOLS[library["protocol"]]
    numbers = Furthest("problem")
    n_problems = 0
    raws = json.loads(Path(problems).read_text(encoding="utf-8"))
    for number, (raw, answer) in enumerate(zip(raws, library.pop("answers"), strict=True)):
        if answer is None:
            continue
        n_problems += 1
        problem = make_problem(**raw)
        names = {name: name.replace("@k", f"@{problem.k}") for name in answer["values"]}
        options = {"metrics": list(names.values()), "convention": library["convention"]}
        for found in ask(problem, answer.get("given", {}), options):
            compared = difference if isinstance(found, dict) else difference_of_metric
            for name, theirs in answer["values"].items():
                ours = (found[name],) if isinstance(found, dict) else (found, names[name])
                numbers.add(name, number, compared(*ours, theirs))
    return library | {"n_problems": n_problems, "numbers": numbers.found}


def with_matrix(found: dict[str, Any]) -> Any:
    """Return a value from a library's script, converted to a sparse matrix if it is one."""
    if "matrix" not in found:
        return found
    rows, columns, entries = found["matrix"]
    return csr_matrix((np.array(entries, float), (rows, columns)), found["shape"])


def biases(problem: Problem, given: dict[str, Any], options: dict[str, Any]) -> Iterator[Found]:
    """Evaluate factors with biases: as a model, and from the exact ranks of relevant items."""
    added = {"item_biases": problem.item_biases, "user_biases": problem.user_biases}
    parts = (problem.train, problem.validation)
    model = se.factor_model(problem.user_factors, problem.item_factors, **added)
    yield se.evaluate_model(model, *parts, **options)
    ranks = se.ranks(model, problem.validation, train=problem.train)
    yield se.evaluate(ranks, problem.validation, train=problem.train, **options)


def candidates(problem: Problem, given: dict[str, Any], options: dict[str, Any]) -> Iterator[Found]:
    """Evaluate a model among candidates, and then its lists of these candidates."""
    biases = {"item_biases": problem.item_biases} if given.get("biased") else {}
    model = se.factor_model(problem.user_factors, problem.item_factors, **biases)
    train, validation = given.get("train", problem.train), given.get("validation", problem.relevant)
    allowed = given.get("candidates", problem.candidates)
    yield se.evaluate_model(model, train, validation, candidates=allowed, **options)
    lists = se.top_k(model, k=problem.shape[1], train=train, candidates=allowed)
    ranked = se.Rankings.from_topk(lists.ids, shape=problem.shape)
    yield se.evaluate(ranked, validation, train=train, candidates=allowed, **options)


def new_users(problem: Problem, given: dict[str, Any], options: dict[str, Any]) -> Iterator[Found]:
    """Evaluate the library's and our item-item matrix on users that it was not trained on."""
    holdout = se.split.Holdout(given["train"], given["validation"], fold_in=given["fold_in"])
    yield se.evaluate_model(given["weights"], holdout, **options)
    ours = se.baselines.ease(holdout, regularization=given["regularization"])
    yield se.evaluate_model(ours, holdout, **options)


def periods(problem: Problem, given: dict[str, Any], options: dict[str, Any]) -> Iterator[Found]:
    """Split events by time, and count the events of each pair in each part."""
    frame = pd.DataFrame(problem.events, columns=["user", "item", "timestamp"])
    frame["timestamp"] = pd.Timestamp(given["midnight"]) + pd.to_timedelta(frame["timestamp"], "h")
    n_users, n_items = problem.shape
    events = se.Interactions.from_frame(frame, users=range(n_users), items=range(n_items))
    at, repeats = given["at"], given["repeats"]
    found = [list(se.split.rolling(events, at=at, window=given["window"], repeats=repeats))]
    if len(found[0]) == 1:
        found.append([se.split.temporal(events, at=at, repeats=repeats)])
    for folds in found:
        if given["known"]:
            folds = [fold.known() for fold in folds]
        yield {
            "train": [fold.train.csr.toarray().tolist() for fold in folds],
            "validation": [fold.validation.csr.toarray().tolist() for fold in folds],
        }


#: The calls of the public interface. Their arguments are a problem, the library's own data for it,
#: and the metrics under the library's convention.
PROTOCOLS: dict[str, Callable[[Problem, dict[str, Any], dict[str, Any]], Iterator[Found]]] = {
    "biases": biases,
    "candidates": candidates,
    "new_users": new_users,
    "periods": periods,
}
