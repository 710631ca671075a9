"""Metrics weighted by propensities: against their definitions, and what they refuse."""

import math
from statistics import fmean

import numpy as np
import oracle
import propensity_oracle as plain
import pytest
from cases import N_ITEMS, cases, of_sets
from evaluations import problem, saved
from hypothesis import given, settings
from hypothesis import strategies as st
from list_cases import N_ITEMS as LISTED_ITEMS
from list_cases import list_cases
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")

CUTOFFS = (1, 3, 20)
KINDS = ("ips", "snips")
WEIGHTED = [
    (f"{name}({gain}weights={kind}", name, gain, kind)
    for name, gain in (
        ("precision", ""), ("recall", ""), ("arhr", "gain=binary,"), ("arhr", "gain=linear,"),
        ("dcg", "gain=binary,"), ("dcg", "gain=linear,"), ("ndcg", "gain=binary,"),
        ("ndcg", "gain=linear,"),
    )
    for kind in KINDS
]  # fmt: skip

#: Three users more, so that as many have items as Jain's propensities need.
MORE = [{1, 2}, {2, 3}, {2}]

GIVEN = np.linspace(0.05, 1.0, N_ITEMS)


def evaluate(case, metrics):
    train = of_sets([*case.seen, *MORE])
    items = se.ItemData(propensity=GIVEN)
    return se.evaluate(*case.matrices, metrics, train=train, item_data=items)


def same_values(ev, expected):
    for name, values in expected.items():
        found = ev.values(name)
        np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-15, err_msg=name)


@settings(max_examples=40)
@given(cases())
def test_ratios_of_sums_equal_their_definition(case):
    users, train = list(zip(case.ranked, case.relevant, strict=True)), [*case.seen, *MORE]
    models = {
        "a=0.55": plain.jain(train, N_ITEMS, 0.55, 1.5),
        "a=0.5,b=0.4": plain.jain(train, N_ITEMS, 0.5, 0.4),
        "a=0.6,b=2.6": plain.jain(train, N_ITEMS, 0.6, 2.6),
        "propensity=given": GIVEN,
    }
    micro, macro = {}, {}
    for name in ("psp", "psrecall", "psndcg"):
        for option, p in models.items():
            for k in CUTOFFS:
                pairs = [plain.fraction(name, user, k, p) for user in users]
                above, below = map(math.fsum, zip(*pairs, strict=True))
                micro[f"{name}({option})@{k}"] = above / below
                each = [a / b if b else math.nan for a, b in pairs]
                macro[f"{name}(average=macro,{option})@{k}"] = each
    ev = evaluate(case, [*micro, *macro])
    same_values(ev, macro)
    for name, ratio in micro.items():
        assert ev[name] == pytest.approx(ratio, rel=1e-12), name
        assert 0 <= ev[name] <= 1 + 1e-12


@settings(max_examples=40)
@given(cases())
def test_weighted_metrics_equal_their_definition(case):
    users = list(zip(case.ranked, case.relevant, strict=True))
    models = {"": GIVEN}
    for gamma in (0.5, 1.25):
        models[f",gamma={gamma}"] = plain.power([*case.seen, *MORE], N_ITEMS, gamma)
    expected = {
        f"{name}{option})@{k}": [plain.weighted(*row, user, k, p) for user in users]
        for name, *row in WEIGHTED
        for option, p in models.items()
        for k in CUTOFFS
    }
    same_values(evaluate(case, list(expected)), expected)


@given(list_cases(), st.permutations(np.linspace(0.1, 1, LISTED_ITEMS).tolist()))
def test_weighted_auc_equals_its_definition(case, p):
    everything = set(range(LISTED_ITEMS))
    expected = {
        f"auc(weights={kind}){cut}": [
            plain.auc(kind, items, gains, everything - seen, k, p)
            for items, gains, seen in zip(*case, strict=True)
        ]
        for kind in KINDS
        for cut, k in (("@2", 2), ("", 99))
    }
    ev = case.evaluate(list(expected), item_data=se.ItemData(propensity=p))
    same_values(ev, expected)
    assert (np.nan_to_num(ev.values("auc(weights=snips)")) <= 1 + 1e-12).all()


INPUTS = ("train", "propensity")


def test_refuses_to_compare_numbers_of_other_propensities(tmp_path):
    lists, gains, more = problem(*INPUTS)
    names = ["recall@3", "recall(weights=ips)@3", "psp@3", "recall(weights=ips,gamma=2)@3"]
    same = se.evaluate(lists, gains, names, **more, memory=1 << 24)
    ev = saved(se.evaluate(lists, gains, names, **more), tmp_path)
    assert set(ev._part.key["propensities"]) == set(INPUTS)
    assert (
        ev._part.key["propensities"]
        == same._part.key["propensities"]
        == ev.to_dict()["propensities"]
    )
    assert se.compare({"a": ev, "b": same}).table["difference"].eq(0).all()
    train = more["train"].copy()
    train.data[0] = 0  # one user less
    for changed, wrong in (
        ({"item_data": se.ItemData(propensity=more["item_data"].propensity ** 2)}, names[1:2]),
        ({"train": train}, names[2:]),
    ):
        other = se.evaluate(lists, gains, names, **more | changed)
        for name in wrong:
            with raises(InvalidDataError):
                se.compare({"this": ev, "other": other}, name)
        with raises(InvalidDataError):
            se.write_report({"ev": ev, "other": other}, tmp_path / "report.html")
        right = [name for name in names if name not in wrong]
        assert len(se.compare({"a": ev, "b": other}, right).table) == len(right)


@pytest.mark.parametrize(
    ("metric", "inputs"),
    [
        ("recall(weights=ips)@2", {"item_data": se.ItemData(propensity=[0.5, 0, 0.5])}),
        ("recall(weights=ips)@2", {"item_data": se.ItemData(propensity=[0.5, 0.5, 1.5])}),
        ("recall(weights=ips)@2", {"item_data": se.ItemData(propensity=[0.5, math.nan, 0.5])}),
        ("recall(weights=ips,gamma=1)@2", {"train": csr_matrix((1, 3))}),
        ("psp@2", {"train": csr_matrix([[0, 1, 0]])}),
    ],
)
def test_refuses_what_tells_no_propensities(metric, inputs):
    with raises(InvalidDataError):
        se.evaluate(se.Rankings.from_topk([[0, 1]]), csr_matrix([[1, 0, 1]]), metric, **inputs)


def test_tied_scores_average_over_their_orders():
    scores, gains, p = [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0], [0.1, 1.0, 0.5, 0.25]
    expected = {
        f"{name})@3": fmean(
            plain.weighted(*row, (order, dict(enumerate(gains))), 3, p)
            for order in oracle.orders(scores)
        )
        for name, *row in WEIGHTED
        if "dcg" in name
    }
    lists = se.Rankings.from_scores([scores], ties="average")
    items = se.ItemData(propensity=p)
    ev = se.evaluate(lists, csr_matrix([gains]), list(expected), item_data=items)
    for name, mean in expected.items():
        assert ev[name] == pytest.approx(mean, rel=1e-12), name
