"""Metrics from data about items: one number by every way, regardless of other inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from typing import Any
from unittest import mock

import numpy as np
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.evaluation import evaluate as evaluation
from sparse_eval.evaluation.budget import MINIMUM
from sparse_eval.metrics import REGISTRY, STANDARD, Choice, Definition, parse
from sparse_eval.metrics.plan import Plan
from sparse_eval.metrics.propensity import check_weights
from sparse_eval.models import source

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.slow]

N_USERS, N_ITEMS = 40, 25
RNG = np.random.default_rng(0)
TABLE = RNG.random((N_USERS, N_ITEMS))
TRAIN = csr_matrix((TABLE < 0.15).astype(np.float64))
HELD = csr_matrix(np.where(TABLE > 0.85, RNG.integers(1, 4, TABLE.shape), 0).astype(np.float64))
SCORES = RNG.normal(size=TABLE.shape)
SIDE_DATA: dict[str, Any] = {
    "item_groups": RNG.integers(0, 3, N_ITEMS),
    "item_vectors": RNG.normal(size=(N_ITEMS, 3)),
    "propensity": RNG.uniform(0.1, 1, N_ITEMS),
}
CANDIDATES = csr_matrix((RNG.random(TABLE.shape) < 0.7) | (HELD.toarray() > 0), dtype=np.float64)


def scores_of(users: Any) -> Any:
    return SCORES[users]


MODELS: dict[str, Any] = {
    "factors": (RNG.normal(size=(N_USERS, 4)), RNG.normal(size=(N_ITEMS, 4))),
    "function": scores_of,
    "item-item": csr_matrix(RNG.random((N_ITEMS, N_ITEMS)) - 0.4).maximum(0),
}


def spellings(metric: Definition) -> Iterator[str]:
    """Yield a metric with its default options, each other option, and each pair of options."""
    words = [
        (option.name, word)
        for option in metric.options
        if isinstance(option, Choice)
        for word in option.values[1:]
    ]
    for chosen in [(), *((one,) for one in words), *combinations(words, 2)]:
        if len(dict(chosen)) == len(chosen):
            yield metric.name + f"({','.join(map('='.join, chosen))})" * bool(chosen)


def requests() -> dict[tuple[str, ...], list[list[str]]]:
    """Return all metrics by their inputs; each list holds metrics that one way computes."""
    found: dict[tuple[str, ...], dict[tuple[bool, bool], list[str]]] = defaultdict(dict)
    for definition in REGISTRY.values():
        for name in spellings(definition):
            for cut in ("", "@3"):
                if definition.cutoff == ("required", "none")[bool(cut)]:
                    continue
                (metric,) = parse(name + cut)
                plan = Plan(metric, definition, STANDARD.arguments(metric))
                try:
                    check_weights(metric, plan.arguments)
                except InvalidMetricError:  # two options that exclude each other
                    continue
                alike = found[tuple(sorted(plan.inputs))]
                alike.setdefault((bool(cut), plan.is_swept), []).append(str(metric))
    return {inputs: [*alike.values()] for inputs, alike in found.items()}


REQUESTS = requests()


def check(whole: se.Evaluation, others: Iterable[se.Evaluation]) -> None:
    """Check that all evaluations are the same to the last bit, and can be merged."""
    whole = whole.merge()
    for other in others:
        other = other.merge()
        assert other._merged.equals(whole._merged)
        assert other.mean() == pytest.approx(whole.mean(), rel=0, abs=0, nan_ok=True)
        assert other.propensities == whole.propensities


def test_the_requests_cover_all_inputs() -> None:
    inputs = set().union(*REQUESTS)
    assert inputs == {"train", "item_groups", "item_vectors", "propensity"}
    assert sum(len(names) for alike in REQUESTS.values() for names in alike) > 200


@pytest.mark.parametrize(
    "users",
    [
        pytest.param(None, id="everyone"),
        pytest.param(range(3, 30), id="some", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("inputs", REQUESTS, ids=" ".join)
def test_every_way_from_a_model(inputs: tuple[str, ...], model: str, users: Any) -> None:
    for names in REQUESTS[inputs]:
        if not (names[0].endswith("@3") or REGISTRY[parse(names[0])[0].name].over == "statistics"):
            continue  # lists have a length
        for options in given(inputs):
            options |= {"users": users}
            arguments = (MODELS[model], TRAIN, HELD, names)
            check(se.evaluate_model(*arguments, **options), by_model(arguments, options))


@pytest.mark.parametrize("inputs", REQUESTS, ids=" ".join)
def test_values_of_some_users_are_those_of_all(inputs: tuple[str, ...]) -> None:
    rows = [user for user in range(N_USERS) if user % 3 == 0 and HELD[user].nnz]
    for names in REQUESTS[inputs]:
        if not (names[0].endswith("@3") or REGISTRY[parse(names[0])[0].name].over == "statistics"):
            continue
        for options in given(inputs):
            arguments = (MODELS["factors"], TRAIN, HELD, names)
            whole = se.evaluate_model(*arguments, baselines=True, **options)
            options |= {"users": rows, "baselines": True}
            for some in (
                se.evaluate_model(*arguments, **options),
                *by_model(arguments, options),
            ):
                for one, all_users in (
                    (some, whole),
                    (some.baselines["popularity"], whole.baselines["popularity"]),
                ):
                    expected = all_users.per_user.loc[rows].to_numpy()
                    assert np.array_equal(one.per_user.to_numpy(), expected, equal_nan=True)


def given(inputs: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield only the inputs, then the inputs together with others."""
    yield {"items": items_of({*inputs})}
    yield {"candidates": CANDIDATES, "items": items_of({*inputs, "item_groups"})}


def items_of(inputs: set[str]) -> se.ItemData:
    return se.ItemData(
        **{name.removeprefix("item_"): SIDE_DATA[name] for name in inputs - {"train"}}
    )


def by_model(arguments: tuple[Any, ...], options: dict[str, Any]) -> Iterator[se.Evaluation]:
    with mock.patch.object(source, "users_within", return_value=7):
        yield se.evaluate_model(*arguments, memory=1 << 28, **options)
    with ThreadPoolExecutor(2) as pool:
        yield se.evaluate_model(*arguments, client=pool, **options)


def test_every_way_of_processes() -> None:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for inputs, requested in REQUESTS.items():
            options = next(given(inputs))
            names = [name for names in requested for name in names if name.endswith("@3")]
            for model in (MODELS["factors"], MODELS["item-item"]):
                arguments = (model, TRAIN, HELD, names)
                found = se.evaluate_model(*arguments, client=pool, **options)
                check(se.evaluate_model(*arguments, **options), [found])


LISTS = se.Rankings.from_scores(SCORES, k=6, seen=TRAIN)


@pytest.mark.parametrize("inputs", REQUESTS, ids=" ".join)
def test_every_way_from_lists(inputs: tuple[str, ...]) -> None:
    for names in REQUESTS[inputs]:
        for options in given(inputs):
            if "train" in inputs or "candidates" in options:
                options["train"] = TRAIN
            check(se.evaluate(LISTS, HELD, names, **options), by_lists(names, options))


def by_lists(names: list[str], options: dict[str, Any]) -> Iterator[se.Evaluation]:
    with mock.patch.object(evaluation, "users_within", return_value=7):
        yield se.evaluate(LISTS, HELD, names, memory=MINIMUM, **options)
    with ThreadPoolExecutor(2) as pool:
        yield se.evaluate(LISTS, HELD, names, client=pool, **options)


@pytest.mark.parametrize("name", ["propensity", "item_groups", "item_vectors"])
def test_different_side_data_are_not_merged(name: str) -> None:
    metric = next(names[0] for names in REQUESTS[name,] if names[0].endswith("@3"))
    halves = [
        se.evaluate_model(MODELS["factors"], TRAIN, HELD, metric, users=rows, items=items)
        for items, rows in (
            (items_of({name}), range(20)),
            (se.ItemData(**{name.removeprefix("item_"): SIDE_DATA[name][::-1]}), range(20, 40)),
            (items_of({name}), range(20, 40)),
        )
    ]
    with raises(InvalidDataError):
        halves[0].merge(halves[1])
    assert halves[0].merge(halves[2]).n_users == halves[0].n_users + halves[2].n_users


def test_metrics_must_declare_that_they_need_the_training_data() -> None:
    def popularity(lists: Any) -> Any:
        return lists.mean_of(lists.train.item_counts.astype(np.float64))

    options: dict[str, Any] = {"over": "lists", "range": (0.0, np.inf)}
    se.register_metric("asks", "popularity", needs=["train"], **options)(popularity)
    se.register_metric("asks_not", "popularity", **options)(popularity)
    arguments = (MODELS["factors"], TRAIN, HELD)
    whole = se.evaluate_model(*arguments, ["asks@3", "asks_not@3", "popularity@3"])
    assert len(set(whole.mean().values())) == 1
    for way in by_model((*arguments, ["asks@3", "popularity@3"]), {}):
        assert way.mean() == {name: whole[name] for name in way.names}
    with raises(InvalidMetricError):
        next(by_model((*arguments, "asks_not@3"), {}))
