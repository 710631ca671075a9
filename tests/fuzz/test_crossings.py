"""Random crossings of options: all ways to an evaluation agree to the last bit, or all raise."""

import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from ways import LEAST, small_blocks

import sparse_eval as se
from sparse_eval.metrics import CONVENTIONS, REGISTRY

N_TRIES = 5

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CUTOFFS = ("@1", "@2", "@4", "@200", "")

#: What there is for each rule of a protocol, and for each option of an evaluation.
RULES = {
    "convention": tuple(CONVENTIONS),
    "no_relevant": ("zero", "judged"),
    "without_list": ("exclude",),
    "filter_seen": (False,),
    "judged_only": (True,),
}
OPTIONS = ("candidates", "negatives", "item_data", "users")

#: What is not known of lists that are drawn.
DRAWN = ("random", "random_se", "lift")


#: Factors with ties, what users have seen, what is held out, and options of an evaluation.
Problem = namedtuple("Problem", "factors train held_out protocol options")


def drawn(random):
    """Draw a problem with rules and options; None where they contradict one another."""
    rng = np.random.default_rng(random.getrandbits(63))
    n_users, n_items = random.choice([(1, 4), (6, 9), (40, 25)])
    factors = tuple(rng.integers(-2, 3, (n, 2)).astype(np.float32) for n in (n_users, n_items))
    part = rng.choice(3, (n_users, n_items), p=random.choice([(0.5, 0.3, 0.2), (0.9, 0, 0.1)]))
    part[0, 0] = 2
    gains = rng.choice(random.choice([[0.0, 1.0, 2.0], [1.0]]), part.shape)
    gains[0, 0] = 1.0
    gains[-1] *= random.choice([1.0, 3.0])
    held_out = csr_matrix((gains[part == 2], np.nonzero(part == 2)), part.shape)
    known = (part == 2) & (rng.random(part.shape) < random.choice([0.0, 0.0, 0.8]))
    train = csr_matrix(((part == 1) | known) * 1.0)
    entries = random.choices(list(REGISTRY.values()), k=random.randint(1, 3))
    metrics = [spelled(entry, random) for entry in entries]
    rules = {name: random.choice(of) for name, of in RULES.items() if random.random() < 0.3}
    chosen = random.sample(OPTIONS, random.randint(0, 2))
    options = {}
    if "candidates" in chosen:
        options["candidates"] = csr_matrix(rng.random(part.shape) < 0.6)
    needed = {need.removeprefix("item_") for entry in entries for need in entry.needs} - {"train"}
    needed |= {"propensity"} if any("ips" in name or "given" in name for name in metrics) else set()
    if "item_data" in chosen or needed:
        given = {
            "groups": rng.integers(0, 3, n_items),
            "vectors": rng.integers(-2, 3, (n_items, 2)) / 2,
            "propensity": rng.integers(1, 9, n_items) / 8,
        }
        names = needed or random.sample(["groups", "vectors"], random.randint(1, 2))
        options["item_data"] = se.ItemData(**{name: given[name] for name in names})
    if "users" in chosen:
        options["users"] = np.flatnonzero(rng.random(n_users) < 0.5)
    if random.random() < 0.5:
        options["baselines"] = True
    try:
        if "negatives" in chosen:
            options["candidates"] = se.sample_negatives(train, held_out, 3, seed=1)
        return Problem(factors, train, held_out, se.Protocol(metrics, **rules), options)
    except se.SparseEvalError:
        return None


def spelled(entry, random):
    """Draw the value of one option of a metric, or none, and a cut-off."""
    choices = [(o.name, value) for o in entry.options for value in getattr(o, "values", ())]
    forms = [entry.name] + [f"{entry.name}({name}={value})" for name, value in choices]
    return random.choice(forms) + random.choice(CUTOFFS)


def outcome(call):
    """Return all numbers of an evaluation and of its baselines by place, or that it raises."""
    try:
        ev = call()
        return {
            (name, *place): repr(cell)
            for name, one in [("", ev), *ev.baselines.items()]
            for place, cell in one.summary().stack(future_stack=True).items()  # noqa: PD013
            if name or place[1] != "popularity"
        }
    except se.SparseEvalError as error:
        return f"an error: {error}"


def alike(found, expected):
    """Return whether two outcomes are the same numbers, or both are errors.

    A baseline whose lists are drawn is known only where all users are evaluated at once.
    """
    if isinstance(found, str) or isinstance(expected, str):
        return isinstance(found, str) and isinstance(expected, str)
    return found.keys() == expected.keys() and all(
        cell == expected[place] or (place[-1] in DRAWN and cell == "nan")
        for place, cell in found.items()
    )


def of_model(problem, model=None, without="", **more):
    """Evaluate a model, by default the factors, with all options but one."""
    model = problem.factors if model is None else model
    options = {name: value for name, value in problem.options.items() if name != without}
    data = (problem.train, problem.held_out, problem.protocol)
    return se.evaluate_model(model, *data, **options, **more)


def ways_of_a_model(problem):
    """Yield the ways from a model: the first is that by default."""
    users, items = problem.factors
    scores = users @ items.T
    evaluate = partial(partial, of_model, problem)
    yield "default", evaluate()
    yield "totals", evaluate(keep="totals")
    yield "one thread", evaluate(num_threads=1)
    yield "memory", evaluate(memory=1 << 29)
    yield "memory, totals", evaluate(memory=1 << 29, keep="totals")
    with ThreadPoolExecutor(2) as pool:
        yield "client", evaluate(client=pool)
    yield "factor model", evaluate(se.factor_model(users, items))
    yield "scores", evaluate(se.Scorer(scores))
    yield "function", evaluate(lambda rows: scores[rows])
    if all(metric.cutoff for metric in problem.protocol.metrics):  # whole rankings are no lists
        yield "lists", evaluate(keep="lists")


def ways_of_lists(problem):
    """Yield the ways from lists: the first is that of the model."""
    factors, train, held_out, protocol, options = problem
    seen = train if protocol.filter_seen else None
    among = options.get("candidates")
    found = se.top_k(factors, held_out.shape[1], train=seen, candidates=among)
    lists = se.Rankings.from_topk(found.ids, shape=held_out.shape)
    options = {
        name: value for name, value in options.items() if name in ("candidates", "item_data")
    }

    def evaluate(lists=lists, **more):
        return partial(se.evaluate, lists, held_out, protocol, train=train, **options, **more)

    yield "default", evaluate()
    yield "positions", evaluate(lists.to_positions())
    yield "totals", evaluate(keep="totals")
    yield "memory", evaluate(memory=LEAST)
    with ThreadPoolExecutor(2) as pool:
        yield "client", evaluate(client=pool)


def by_sweep(problem):
    """Return the means in the table of a sweep of one checkpoint, or that it has none."""
    with tempfile.TemporaryDirectory() as folder:
        path = se.save_model(se.factor_model(*problem.factors), Path(folder) / "model.npz")
        data = (problem.train, problem.held_out, problem.protocol)
        try:
            table = se.sweep(path, *data, candidates=problem.options.get("candidates"))
        except se.SparseEvalError as error:
            return f"an error: {error}"
    if table["status"][0] != "ok":
        return f"an error: {table['error'][0]}"
    names = [str(metric) for metric in problem.protocol.metrics]
    return [repr(float(table[name][0])) for name in table if name.split(" ")[0] in names]


def check(random, said):
    """Check all ways to one problem; `said` tells how to repeat it."""
    problem = drawn(random)
    if problem is None:
        return
    options, protocol = problem.options, problem.protocol
    said = f"{said}: {protocol}, {sorted(options)}"
    by_model, alone = check_alike(ways_of_a_model(problem), said)
    by_lists, alone_of_lists = check_alike(ways_of_lists(problem), said)
    is_error = isinstance(by_model, str)
    if not options.keys() & {"users", "item_data"}:
        found = by_sweep(problem)
        means = by_model if is_error else [cell for at, cell in alone.items() if at[2] == "mean"]
        assert found == means or type(found) is type(means) is str, f"{said}, sweep: {found}"
    if "baselines" in options and not is_error:
        beside = {("", *at): cell for (name, *at), cell in by_model.items() if name}
        popularity = se.baselines.popularity(problem.train)
        found = outcome(partial(of_model, problem, popularity, without="baselines"))
        assert alike(found, beside), f"{said}, popularity: {found}\nexpected {beside}"
    if "users" in options:
        check_chosen(problem, said)
    elif not (is_error and isinstance(by_lists, str)):
        # A model lacks some metrics without a cut-off, and raises if all relevant items were seen.
        uncut = any(metric.cutoff is None for metric in protocol.metrics)
        unseen = (problem.held_out > 0) > (problem.train > 0)
        may_raise = is_error and (uncut or not unseen.nnz)
        assert may_raise or alike(alone, alone_of_lists), f"{said}, by lists: {by_lists}"
    for metric in protocol.metrics:
        rules = {name: getattr(protocol, name) for name in RULES}
        one = problem._replace(protocol=se.Protocol(metric, **rules))
        found = outcome(dict(ways_of_lists(one))["default"])
        # A metric alone may take none of the data of items, and is refused with them.
        if not isinstance(found, str) and not isinstance(by_lists, str):
            together = {place: by_lists[place] for place in found}
            assert alike(found, together), f"{said}, {metric} alone: {found}\n{together}"


def check_alike(ways, said):
    """Check that all ways agree; return the outcome of the first, and it without baselines."""
    (_, first), *others = ((name, outcome(call)) for name, call in ways)
    for name, found in others:
        assert alike(found, first), f"{said}, {name}: {found}\nexpected {first}"
    if isinstance(first, str):
        return first, first
    return first, {at: cell for at, cell in first.items() if not at[0]}


def check_chosen(problem, said):
    """Check that chosen users have the values that they have among all."""
    try:
        chosen, whole = of_model(problem).per_user, of_model(problem, without="users").per_user
    except se.SparseEvalError:  # the rows of other users may be refused
        return
    pd.testing.assert_frame_equal(chosen, whole.loc[chosen.index], obj=said)


@pytest.fixture(autouse=True)
def blocks():
    with (
        small_blocks(),
        mock.patch("sparse_eval.evaluation.array_source.users_per_block", return_value=2),
    ):
        yield


def test_ways_agree(tries):
    for random in tries:
        check(random, f"try {tries.number}")


@pytest.mark.parametrize("rule", ["exclude", "zero"])
@pytest.mark.parametrize("name", [name for name, one in REGISTRY.items() if not one.per_user])
def test_ways_agree_where_nobody_has_a_list(rule, name):
    asked = se.Protocol(f"{name}@2", convention="rectools", without_list=rule)
    data = (csr_matrix((3, 4), dtype=int), csr_matrix(np.eye(3, 4)), asked)
    ways = ({}, {"keep": "totals"}, {"memory": LEAST})
    found = [outcome(lambda way=way: se.evaluate(*data, **way)) for way in ways]
    assert all(alike(one, found[0]) for one in found), found


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_ways_agree_on_two_thousand_problems(part):
    for number in range(500 * part, 500 * (part + 1)):
        check(Random(f"two thousand/{number}"), f"problem {number}")  # noqa: S311 - no secret
