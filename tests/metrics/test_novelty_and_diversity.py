"""Forms of novelty, diversity and serendipity: against their definitions, in every way."""

from __future__ import annotations

import math

import novelty_oracle as plain
import numpy as np
import pytest
from cases import to_csr
from hypothesis import given, settings
from list_cases import N_ITEMS, VECTORS, Case, list_cases
from scipy.sparse import csr_matrix

import sparse_eval as se

WEIGHTS = np.random.default_rng(1).integers(0, 3, (N_ITEMS, 3)) + np.eye(N_ITEMS, 3)
WEIGHTS[:, 0] += WEIGHTS.sum(axis=1) == 0
CUTOFFS = [2, 3, 20]


def expected(name: str, case: Case, user: int, k: int) -> float:
    lists, gains, train = case
    items, history = lists[user][:k], train[user]
    relevant = {item for item, gain in gains[user].items() if gain > 0}
    groups = [dict(enumerate(row)) for row in WEIGHTS.tolist()]
    likenesses = {
        "cosine": lambda i, j: plain.cosine_of_users(i, j, train),
        "jaccard": lambda i, j: plain.jaccard_of_users(i, j, train),
        "groups": lambda i, j: plain.cosine(WEIGHTS[i], WEIGHTS[j]),
        "vectors": lambda i, j: plain.cosine(VECTORS[i], VECTORS[j]),
    }
    if not relevant:
        return math.nan
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
        **{
            f"serendipity(form={form})": lambda f=likenesses[form]: plain.serendipity(
                items, relevant, history, f
            )
            for form in ("cosine", "vectors")
        },
    }[name]()


NAMES = [
    "popularity", "cold_share", "novelty", "novelty(unknown=skip)", "novelty(form=relative)",
    "calibration", "novelty(form=relative,unknown=skip)", "novelty(form=unseen)", "epc", "efd",
    "novelty(denominator=k)", "novelty(denominator=k,form=relative)",
    "diversity", "diversity(similarity=jaccard)", "diversity(similarity=groups)",
    "diversity(similarity=vectors)", "categorical_diversity",
    "serendipity", "serendipity(form=cosine)", "serendipity(form=vectors)",
]  # fmt: skip


DATA = se.ItemData(groups=WEIGHTS, vectors=VECTORS)


@settings(max_examples=60)
@given(list_cases())
def test_every_form_equals_its_definition(case: Case) -> None:
    ev = case.evaluate([f"{name}@{k}" for name in NAMES for k in CUTOFFS], items=DATA)
    for plan in ev.request.plans:
        values = ev.values(plan.metric)
        name, _, k = str(plan.metric).partition("@")
        truth = [expected(name, case, user, int(k)) for user in range(len(case.lists))]
        message = str(plan.metric)
        np.testing.assert_allclose(values, truth, rtol=1e-9, atol=1e-12, err_msg=message)
        defined = values[~np.isnan(values)]
        assert (defined >= plan.definition.range[0] - 1e-12).all(), message
        assert (defined <= plan.upper + 1e-12).all(), message


def test_epc_and_efd_are_elliots() -> None:
    """What Elliot 0.3.1's own EPC and EFD give for these lists, run on them."""
    train = to_csr([dict.fromkeys(row, 1) for row in ({0, 1, 2}, {0, 1}, {0, 3}, {0})], np.int64, 6)
    lists = se.Rankings.from_topk([[4, 3, 1], [2, 3, 0], [1, 2, 4], [1, 5, 2]], shape=(4, 6))
    truth = to_csr([{3: 1.0}, {2: 1.0, 3: 1.0}, {0: 1.0}, {1: 1.0, 5: 2.0}], np.float64, 6)
    ev = se.evaluate(lists, truth, ["epc@3", "efd@3"], train=train)
    np.testing.assert_allclose(ev.values("epc@3"), ELLIOT_EPC, rtol=1e-12)
    np.testing.assert_allclose(ev.values("efd@3"), ELLIOT_EFD, rtol=1e-12)


ELLIOT_EPC = [0.22206143322439892, 0.5740204777414663, 0.0, 0.5307212739772434]
ELLIOT_EFD = [0.8882457328975957, 2.296081910965865, 0.0, 1.8268031849431088]


def test_items_seen_before_are_not_new() -> None:
    lists = se.Rankings.from_topk([[0, 1, 2]], shape=(1, 4))
    train = csr_matrix([[1, 0, 1, 0]])
    truth = csr_matrix([[1, 1, 0, 0]])
    ev = se.evaluate(
        lists, truth, se.Protocol("novelty(form=unseen)@3", filter_seen=False), train=train
    )
    assert ev["novelty(form=unseen)@3"] == pytest.approx(1 / 3)
    assert ev.summary()["random"].tolist() == [0.5]
