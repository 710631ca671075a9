"""Evaluations of every kind, and the check that one is another to the last bit."""

import numpy as np
import pandas as pd
from exact import exact_model
from merge_cases import N_ITEMS, every_metric, same_bits
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.results.summary import expectation

MIXED = ["ndcg@3", "recall@2", "recall(average=micro)@3", "coverage@2"]

#: Users that `problem` draws: so many that each group of the jackknife has some.
N_USERS = 300

#: Items that `problem` draws from: so many that lists do not cover all of them.
PROBLEM_ITEMS = 100

#: Return a user's label for a number.
as_text = "ü{:03}".format


def random_of(ev, name):
    """Return the random baseline of a metric and its standard error, None if it is not known."""
    return expectation(ev._part, ev._random, ev._part.row_of(name))


def some(n_users=10, seed=0, *, first=0, labels=int, **options):
    """Evaluate some users of their own, labelled by a function of their numbers, or as given."""
    rng = np.random.default_rng([seed, first])
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (n_users, 1)), axis=1)[:, :4]
    gains = csr_matrix((rng.random((n_users, N_ITEMS)) < 0.4) * 1.0)
    users = list(map(labels, range(first, first + n_users))) if callable(labels) else labels
    lists = se.Rankings.from_topk(ids, shape=gains.shape)
    metrics = options.pop("metrics", MIXED)
    return se.evaluate(lists, se.Relevance.from_csr(gains, users=users), metrics, **options)


def part_of(ev, *, per_user=True):
    """Return the results of an evaluation as they come from a worker."""
    return ev._part.computed(per_user=per_user)


def without_values(ev):
    """Return the same evaluation as it is merged from parts without the values of users."""
    return se.Evaluation(part_of(ev, per_user=False))


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
    given = {"train": inputs.pop("train", None), "item_data": se.ItemData(**inputs)}
    return lists, csr_matrix(gains.astype(np.float64)), given


def in_memory(users=None, no_relevant=None, **options):
    """Evaluate in memory what `problem` draws, by every metric."""
    lists, gains, inputs = problem()
    if users is not None:
        gains = se.Relevance.from_csr(gains, users=users)
        inputs["train"] = se.Relevance.from_csr(inputs["train"], users=users)
    protocol = se.Protocol(every_metric(**inputs), no_relevant=no_relevant)
    return se.evaluate(lists, gains, protocol, **inputs, **options)


def of_model(**options):
    clicks = se.datasets.synthetic(n_users=60, n_items=40, seed=1)
    holdout = se.split.random(clicks, seed=1)
    model = exact_model(holdout.train)
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
    "without the values of the users": lambda: in_memory(keep="totals"),
    "within a budget": lambda: in_memory(memory=1 << 24),
    "merged text": lambda: some(first=10, labels=as_text).merge(
        some(labels=as_text), some(first=20, labels=as_text)
    ),
    "model with baselines": of_model,
    "model without the values of the users": lambda: of_model(keep="totals"),
}


def same_totals(one, other):
    """Check that every number about all users is the same, to the last bit."""
    for name in ("n_users", "retrieval"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.keys() == other.keys()
    assert one._part.n_users == other._part.n_users
    for name in ("convention", "no_relevant"):
        assert getattr(one.request, name) == getattr(other.request, name), name
    assert one._part.n_without_list == other._part.n_without_list
    for level in (0.5, 0.95):
        pd.testing.assert_frame_equal(
            one.summary(level), other.summary(level), check_exact=True, check_dtype=False
        )
    for name in one:
        assert one._part.traits_of(name).per_user == other._part.traits_of(name).per_user
        assert (
            one._part.traits_of(name).higher_is_better
            == other._part.traits_of(name).higher_is_better
        )
        if not one._part.traits_of(name).per_user:
            np.testing.assert_array_equal(
                one._part.replicates(one._part.row_of(name)),
                other._part.replicates(other._part.row_of(name)),
            )


def same_everything(one, other):
    """Check that every number of two evaluations is the same, to the last bit."""
    same_totals(one, other)
    assert list(one.baselines) == list(other.baselines)
    for name, baseline in one.baselines.items():  # the values of its users are not saved
        same_totals(baseline, other.baselines[name])
    assert (one._part.values is None) == (other._part.values is None)
    if one._part.values is not None:
        same_bits(other, one)
        assert other.per_user.index.tolist() == one.per_user.index.tolist()
        assert (one._values.labels is None) == (other._values.labels is None)
        assert np.array_equal(one._values.n_relevant, other._values.n_relevant)


def saved(ev, folder):
    """Save and load an evaluation."""
    return se.Evaluation.load(ev.save(folder))
