"""Forms of novelty, diversity and serendipity, and their exact expectations at random."""

import math
from itertools import permutations

import novelty_oracle as plain
import numpy as np
import pytest
from cases import of_sets
from evaluations import problem, random_of
from hypothesis import given, settings
from hypothesis import strategies as st
from list_cases import GROUPS, N_ITEMS, VECTORS, Case, list_cases
from oracle import mean_of_defined
from scipy.sparse import csr_matrix

import sparse_eval as se

WEIGHTS = np.random.default_rng(1).integers(0, 3, (N_ITEMS, 3)) + np.eye(N_ITEMS, 3)
WEIGHTS[:, 0] += WEIGHTS.sum(axis=1) == 0
DATA = se.ItemData(groups=WEIGHTS, vectors=VECTORS)


def value(name, items, case, user, k):
    relevant = {item for item, gain in case.relevant[user].items() if gain > 0}
    known = plain.Known(relevant, case.train[user], case.train, WEIGHTS, VECTORS, k)
    return plain.FORMS[name](items[:k], known) if relevant else math.nan


@settings(max_examples=60)
@given(list_cases())
def test_every_form_equals_its_definition(case):
    ev = case.evaluate([f"{name}@{k}" for name in plain.FORMS for k in (2, 3, 20)], item_data=DATA)
    for plan in ev.request.plans:
        metric, values = str(plan.metric), ev.values(plan.metric)
        name, _, k = metric.partition("@")
        truth = [value(name, items, case, user, int(k)) for user, items in enumerate(case.lists)]
        np.testing.assert_allclose(values, truth, rtol=1e-9, atol=1e-12, err_msg=metric)
        defined = values[~np.isnan(values)]
        assert (defined >= plan.definition.range[0] - 1e-12).all(), metric
        assert (defined <= plan.upper + 1e-12).all(), metric


def test_items_seen_before_are_not_new():
    lists = se.Rankings.from_topk([[0, 1, 2]], shape=(1, 4))
    protocol = se.Protocol("novelty(form=unseen)@3", filter_seen=False)
    ev = se.evaluate(lists, csr_matrix([[1, 1, 0, 0]]), protocol, train=csr_matrix([[1, 0, 1, 0]]))
    assert ev["novelty(form=unseen)@3"] == pytest.approx(1 / 3)
    assert ev.summary()["random"].tolist() == [0.5]


#: Forms whose expectation is the exact mean over all lists.
EXACT = ["serendipity(form=rank)", "serendipity(form=cosine)", "serendipity(form=vectors)"]
EXACT += ["categorical_diversity"]


@st.composite
def small_cases(draw):
    """Draw one or two users, who have seen most of the few items: all their lists are few."""
    items = st.integers(0, N_ITEMS - 1)
    n_users = draw(st.integers(1, 2))
    train = [draw(st.sets(items, min_size=N_ITEMS - 5)) for _ in range(n_users)]
    relevant = [{draw(items): 1.0} | {draw(items): 2.0} for _ in train]
    return Case([[0, 1, 2]] * n_users, relevant, train)


@settings(max_examples=15)
@given(small_cases(), st.booleans())
def test_expectations_are_means_over_all_lists(case, filter_seen):
    protocol = se.Protocol([f"{name}@3" for name in EXACT], filter_seen=filter_seen)
    ev = case.evaluate(protocol, item_data=DATA)
    for name in EXACT:
        of_users = []
        for user, seen in enumerate(case.train):
            items = set(range(N_ITEMS)) - (seen if filter_seen else set())
            lists = map(list, permutations(sorted(items), min(3, len(items))))
            of_users.append(np.mean([value(name, one, case, user, 3) for one in lists]))
        found, error = random_of(ev, f"{name}@3")
        assert error == 0
        expected = mean_of_defined(of_users)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True), name


def test_novelty_that_leaves_nothing_out_is_exact():
    case = Case([[5]], [{5: 1.0}], [set(range(5))])
    everyone = of_sets([range(5), range(N_ITEMS)], N_ITEMS)
    summary = case.evaluate(["novelty(unknown=skip)@3"], train=everyone).summary()
    assert summary[["random", "random_se"]].to_numpy().tolist() == [[1.0, 0.0]]
    drawn = case.evaluate(
        ["novelty(unknown=skip)@3"], item_data=se.ItemData(groups=GROUPS)
    ).summary()
    assert drawn["random_se"].isna().all()  # nobody has what is listed: no list has a value


@pytest.mark.parametrize(("limit", "value"), [("_LOOKUPS_AT_ONCE", 7), ("_ITEMS_AT_ONCE", 3)])
def test_parts_of_a_history_give_the_same_bits(limit, value, monkeypatch):
    lists, gains, more = problem("train")

    def evaluate():
        ev = se.evaluate(lists, gains, "serendipity(form=cosine)@6", train=more["train"])
        return ev._values.columns.tobytes(), ev.summary()

    values, summary = evaluate()
    monkeypatch.setattr(f"sparse_eval.inputs.training.{limit}", value)
    again = evaluate()
    assert again[0] == values
    assert again[1].equals(summary)
