"""Evaluations of every kind, and the check that one is another to the last bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from merge_cases import N_ITEMS, every_metric
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

MIXED = ["ndcg@3", "recall@2", "recall(average=micro)@3", "coverage@2"]

#: Users that `problem` draws: so many that each group of the jackknife has some.
N_USERS = 300

#: Items that `problem` draws from: so many that lists do not cover all of them.
PROBLEM_ITEMS = 100

#: One number about all users each.
ONE_NUMBER = ["coverage@3", "gini@3", "entropy@3", "personalization@3", "recall(average=micro)@3"]


def some(n_users=10, seed=0, *, first=0, labels="numbers", **options):
    """Evaluate some users of their own, labelled with their numbers from the first on."""
    rng = np.random.default_rng([seed, first])
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (n_users, 1)), axis=1)[:, :4]
    gains = csr_matrix((rng.random((n_users, N_ITEMS)) < 0.4) * 1.0)
    numbers = range(first, first + n_users)
    users = {"numbers": list(numbers), "text": [f"ü{n:03}" for n in numbers], None: None}.get(
        labels if labels is None or isinstance(labels, str) else "", labels
    )
    lists = se.Rankings.from_topk(ids, shape=gains.shape)
    metrics = options.pop("metrics", MIXED)
    return se.evaluate(lists, se.Relevance.from_csr(gains, users=users), metrics, **options)


def without_lists(ev, *, per_user=True):
    """Return the same evaluation as it comes from a worker."""
    assert ev._measured is not None
    return se.Evaluation(ev.request, parts=[ev._measured.part(per_user=per_user)])


def problem(*names):
    """Draw lists of popular items, gains, and what is known beside them: all, or what is named."""
    rng = np.random.default_rng(0)
    shape = (N_USERS, PROBLEM_ITEMS)
    scores = rng.gumbel(size=shape) - 2.2 * np.log(np.arange(1, PROBLEM_ITEMS + 1))
    ids = np.argsort(-scores, axis=1)[:, :6]
    ids[np.arange(6) >= rng.integers(0, 7, N_USERS)[:, None]] = -1
    gains = rng.integers(0, 4, shape) * (rng.random(shape) < 0.1)
    gains[rng.random(N_USERS) < 0.2] = 0
    inputs = {
        "train": csr_matrix(rng.random(shape) < 0.2).astype(np.float64),
        "groups": rng.integers(0, 3, PROBLEM_ITEMS),
        "vectors": rng.normal(size=(PROBLEM_ITEMS, 3)),
        "propensity": np.linspace(0.1, 1, PROBLEM_ITEMS),
    }
    inputs = {name: inputs[name] for name in names or inputs}
    lists = se.Rankings.from_topk(ids, shape=gains.shape)
    given = {"train": inputs.pop("train", None), "items": se.ItemData(**inputs)}
    return lists, csr_matrix(gains.astype(np.float64)), given


def in_memory(users=None, no_relevant=None, **options):
    """Evaluate in memory what `problem` draws, by every metric."""
    lists, gains, inputs = problem()
    if users is not None:
        gains = se.Relevance.from_csr(gains, users=users)
        inputs["train"] = se.Relevance.from_csr(inputs["train"], users=users)
    protocol = se.Protocol(every_metric(**inputs), no_relevant=no_relevant)
    return se.evaluate(lists, gains, protocol, **inputs, **options)


def in_blocks(**options):
    """Evaluate what `problem` draws in blocks, by every metric."""
    with ThreadPoolExecutor(2) as pool:
        return in_memory(client=pool, **options)


def of_model(**options):
    clicks = se.datasets.synthetic(n_users=60, n_items=40, seed=1)
    holdout = se.split.random(clicks, seed=1)
    model = se.train_als(holdout.train, factors=4, iterations=2)
    metrics = ["ndcg@5", "coverage@5", "recall(average=micro)@5"]
    return se.evaluate_model(model, holdout, metrics, baselines=True, **options)


def shuffled():
    """Return labels in no order, of which one is the smallest that there is."""
    labels = np.random.default_rng(5).permutation(N_USERS) * 7 + 3
    return [-(2**63), *labels[1:].tolist()]


TEXT = [*(f"ü{number % 7}{number}" for number in range(N_USERS - 1)), "NA"]

#: Evaluations that can be saved, by name.
KINDS = {
    "in memory, numbers in no order": lambda: in_memory(shuffled()),
    "in memory, text in no order": lambda: in_memory(TEXT[::-1]),
    "another convention": lambda: some(
        convention="lenskit", metrics=["ndcg@3", "mrr@2", "coverage@2"]
    ),
    "blocks without the values of the users": lambda: in_blocks(keep="totals"),
    "within a budget": lambda: in_memory(memory=1 << 24),
    "merged text": lambda: some(first=10, labels="text").merge(
        some(labels="text"), some(first=20, labels="text")
    ),
    "model with baselines": of_model,
    "model without the values of the users": lambda: of_model(keep="totals"),
}


def same_everything(one, other):
    """Check that every number of two evaluations is the same, to the last bit."""
    assert one.names == other.names
    for name in ("convention", "no_relevant", "retrieval", "n_users", "n_skipped"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.n_without_list == other.n_without_list
    assert one.n_users_of == other.n_users_of
    np.testing.assert_array_equal(list(one.mean().values()), list(other.mean().values()))
    for level in (0.5, 0.95):
        pd.testing.assert_frame_equal(
            one.summary(level), other.summary(level), check_exact=True, check_dtype=False
        )
    for name in one.names:
        assert one.is_per_user(name) == other.is_per_user(name)
        assert one.higher_is_better(name) == other.higher_is_better(name)
        if not one.is_per_user(name):
            np.testing.assert_array_equal(one.replicates(name), other.replicates(name))
    assert list(one.baselines) == list(other.baselines)
    for name, baseline in one.baselines.items():
        # The values of its users are not saved.
        expected, found = baseline.summary(), other.baselines[name].summary()
        pd.testing.assert_frame_equal(expected, found, check_exact=True, check_dtype=False)
        for metric in baseline.names:
            if not baseline.is_per_user(metric):
                np.testing.assert_array_equal(
                    baseline.replicates(metric), other.baselines[name].replicates(metric)
                )
    try:
        expected = one.per_user
    except InvalidDataError:
        return
    found = other.per_user
    pd.testing.assert_frame_equal(found, expected, check_exact=True, check_index_type=False)
    assert found.index.tolist() == expected.index.tolist()
    assert (one.users is None) == (other.users is None)
    for name in ("counted", "n_relevant", "fingerprints"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def saved(ev, folder, users="csv"):
    """Save and load an evaluation."""
    return se.Evaluation.load(ev.save(folder, table=users))
