"""Forms of novelty, diversity and serendipity, and their exact expectations at random."""

import math
from itertools import permutations

import novelty_oracle as plain
import numpy as np
import pytest
from cases import to_csr
from evaluations import problem
from hypothesis import given, settings
from hypothesis import strategies as st
from list_cases import GROUPS, N_ITEMS, VECTORS, Case, list_cases
from scipy.sparse import csr_matrix

import sparse_eval as se

WEIGHTS = np.random.default_rng(1).integers(0, 3, (N_ITEMS, 3)) + np.eye(N_ITEMS, 3)
WEIGHTS[:, 0] += WEIGHTS.sum(axis=1) == 0
CUTOFFS = [2, 3, 20]


def definitions(items, case, user, k):
    """Return the definition of each form, for a list of a user."""
    history, train = case.train[user], case.train
    relevant = {item for item, gain in case.relevant[user].items() if gain > 0}
    groups = [dict(enumerate(row)) for row in WEIGHTS.tolist()]
    likenesses = {
        "cosine": lambda i, j: plain.cosine_of_users(i, j, train),
        "jaccard": lambda i, j: plain.jaccard_of_users(i, j, train),
        "groups": lambda i, j: plain.cosine(WEIGHTS[i], WEIGHTS[j]),
        "vectors": lambda i, j: plain.cosine(VECTORS[i], VECTORS[j]),
    }
    return {
        "popularity": lambda: plain.mean([len(plain.users_of(i, train)) for i in items]),
        "cold_share": lambda: plain.mean([not plain.users_of(i, train) for i in items]),
        "novelty": lambda: plain.novelty(items, train),
        "novelty(unknown=skip)": lambda: plain.novelty(items, train, skip=True),
        "novelty(form=relative)": lambda: plain.relative_novelty(items, train),
        "novelty(form=relative,unknown=skip)": lambda: plain.relative_novelty(
            items, train, skip=True
        ),
        "novelty(denominator=k)": lambda: plain.novelty(items, train) * len(items) / k,
        "novelty(denominator=k,form=relative)": lambda: plain.surprisal(items, train, k),
        "novelty(form=unseen)": lambda: plain.unseen(items, history),
        "epc": lambda: plain.epc(items, relevant, train),
        "efd": lambda: plain.efd(items, relevant, train),
        "diversity": lambda: plain.diversity(items, likenesses["cosine"]),
        **{
            f"diversity(similarity={form})": lambda f=likenesses[form]: plain.diversity(items, f)
            for form in ("jaccard", "groups", "vectors")
        },
        "categorical_diversity": lambda: plain.categorical_diversity(items, groups, k),
        "calibration": lambda: plain.calibration(items, history, groups),
        "serendipity": lambda: plain.unexpected_hits(items, relevant, history, train, N_ITEMS, k),
        "serendipity(form=rank)": lambda: plain.rank_serendipity(items, relevant, train, N_ITEMS),
        **{
            f"serendipity(form={form})": lambda f=likenesses[form]: plain.serendipity(
                items, relevant, history, f
            )
            for form in ("cosine", "vectors")
        },
    }


def value(name, items, case, user, k):
    if not any(gain > 0 for gain in case.relevant[user].values()):
        return math.nan
    return definitions(items[:k], case, user, k)[name]()


NAMES = list(definitions([], Case([[]], [{}], [set()]), 0, 1))


DATA = se.ItemData(groups=WEIGHTS, vectors=VECTORS)


@settings(max_examples=60)
@given(list_cases())
def test_every_form_equals_its_definition(case):
    ev = case.evaluate([f"{name}@{k}" for name in NAMES for k in CUTOFFS], items=DATA)
    for plan in ev.request.plans:
        values = ev.values(plan.metric)
        name, _, k = str(plan.metric).partition("@")
        lists = enumerate(case.lists)
        truth = [value(name, items, case, user, int(k)) for user, items in lists]
        message = str(plan.metric)
        np.testing.assert_allclose(values, truth, rtol=1e-9, atol=1e-12, err_msg=message)
        defined = values[~np.isnan(values)]
        assert (defined >= plan.definition.range[0] - 1e-12).all(), message
        assert (defined <= plan.upper + 1e-12).all(), message


def test_items_seen_before_are_not_new():
    lists = se.Rankings.from_topk([[0, 1, 2]], shape=(1, 4))
    train = csr_matrix([[1, 0, 1, 0]])
    truth = csr_matrix([[1, 1, 0, 0]])
    ev = se.evaluate(
        lists, truth, se.Protocol("novelty(form=unseen)@3", filter_seen=False), train=train
    )
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
    names = [f"{name}@3" for name in EXACT]
    summary = case.evaluate(se.Protocol(names, filter_seen=filter_seen), items=DATA).summary()
    assert (summary["random_se"] == 0).all()
    for name in EXACT:
        of_users = []
        for user, seen in enumerate(case.train):
            items = set(range(N_ITEMS)) - (seen if filter_seen else set())
            lists = map(list, permutations(sorted(items), min(3, len(items))))
            of_users.append(np.mean([value(name, one, case, user, 3) for one in lists]))
        defined = [x for x in of_users if not math.isnan(x)]
        expected = math.fsum(defined) / len(defined) if defined else math.nan
        found = summary.loc[f"{name}@3", "random"]
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True), name


def test_novelty_that_leaves_nothing_out_is_exact():
    case = Case([[5]], [{5: 1.0}], [set(range(5))])
    everyone = to_csr([dict.fromkeys(range(5), 1), dict.fromkeys(range(N_ITEMS), 1)], int, N_ITEMS)
    summary = case.evaluate(["novelty(unknown=skip)@3"], train=everyone).summary()
    assert summary["random"].tolist() == [1.0]
    assert summary["random_se"].tolist() == [0.0]
    drawn = case.evaluate(["novelty(unknown=skip)@3"], items=se.ItemData(groups=GROUPS)).summary()
    assert drawn["random_se"].isna().all()  # nobody has what is listed: no list has a value


@pytest.mark.parametrize(("limit", "value"), [("_LOOKUPS_AT_ONCE", 7), ("_ITEMS_AT_ONCE", 3)])
def test_parts_of_a_history_give_the_same_bits(limit, value, monkeypatch):
    lists, gains, more = problem("train")
    names = ["serendipity(form=cosine)@6"]
    whole = se.evaluate(lists, gains, names, train=more["train"])
    expected = whole.summary()
    monkeypatch.setattr(f"sparse_eval.inputs.training.{limit}", value)
    again = se.evaluate(lists, gains, names, train=more["train"])
    np.testing.assert_array_equal(again.values(names[0]), whole.values(names[0]))
    assert again.summary().equals(expected)
