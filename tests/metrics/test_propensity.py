"""Metrics weighted by propensities: against their definitions, and what they refuse."""

import math
from itertools import permutations

import numpy as np
import propensity_oracle as plain
import pytest
from cases import N_ITEMS, cases, to_csr
from evaluations import problem, saved
from hypothesis import given, settings
from hypothesis import strategies as st
from list_cases import N_ITEMS as LISTED_ITEMS
from list_cases import list_cases
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")

FAMILY = ["psp", "psrecall", "psndcg"]
JAIN = [("", 0.55, 1.5), ("a=0.5,b=0.4", 0.5, 0.4), ("a=0.6,b=2.6", 0.6, 2.6)]
CUTOFFS = [1, 3, 20]
KINDS = ("ips", "snips")
WEIGHTED = [
    (name, gain, kind)
    for name, gain in (
        ("precision", ""), ("recall", ""), ("arhr", "binary"), ("arhr", "linear"),
        ("dcg", "binary"), ("dcg", "linear"), ("ndcg", "binary"), ("ndcg", "linear"),
    )
    for kind in KINDS
]  # fmt: skip

#: Three users more, so that as many have items as Jain's propensities need.
MORE = [{1, 2}, {2, 3}, {2}]

GIVEN = np.linspace(0.05, 1.0, N_ITEMS)


def spell(name, *options, k):
    inside = ",".join(option for option in options if option)
    return f"{name}({inside})@{k}" if inside else f"{name}@{k}"


def evaluate(case, metrics, **options):
    train = to_csr([dict.fromkeys(row, 1) for row in [*case.seen, *MORE]], np.int64)
    return se.evaluate(
        *case.matrices, metrics, train=train, items=se.ItemData(propensity=GIVEN), **options
    )


@settings(max_examples=40)
@given(cases())
def test_ratios_of_sums_equal_their_definition(case):
    users = list(zip(case.ranked, case.relevant, strict=True))
    rows = [
        (name, option, k, plain.jain([*case.seen, *MORE], N_ITEMS, a, b))
        for name in FAMILY
        for option, a, b in JAIN
        for k in CUTOFFS
    ]
    rows += [(name, "propensity=given", k, GIVEN.tolist()) for name in FAMILY for k in CUTOFFS]
    names = [spell(name, option, k=k) for name, option, k, _ in rows]
    means = [spell(name, "average=macro", option, k=k) for name, option, k, _ in rows]
    ev = evaluate(case, names + means)
    for (name, _, k, p), micro, macro in zip(rows, names, means, strict=True):
        above, below = zip(*(plain.fraction(name, user, k, p) for user in users), strict=True)
        assert ev[micro] == pytest.approx(math.fsum(above) / math.fsum(below), rel=1e-12), micro
        each = [a / b if b else math.nan for a, b in zip(above, below, strict=True)]
        np.testing.assert_allclose(ev.values(macro), each, rtol=1e-12, atol=1e-15, err_msg=macro)
        assert 0 <= ev[micro] <= 1 + 1e-12


@settings(max_examples=40)
@given(cases())
def test_weighted_metrics_equal_their_definition(case):
    users = list(zip(case.ranked, case.relevant, strict=True))
    models = {"": GIVEN.tolist()}
    for gamma in (0.5, 1.25):
        models[f"gamma={gamma}"] = plain.power([*case.seen, *MORE], N_ITEMS, gamma)
    rows = [
        (spell(name, f"gain={gain}" if gain else "", f"weights={kind}", option, k=k),
         [plain.weighted(name, gain, kind, user, k, p) for user in users])
        for name, gain, kind in WEIGHTED
        for option, p in models.items()
        for k in CUTOFFS
    ]  # fmt: skip
    ev = evaluate(case, [name for name, _ in rows])
    for name, expected in rows:
        np.testing.assert_allclose(ev.values(name), expected, rtol=1e-12, atol=1e-15, err_msg=name)


@given(list_cases(), st.permutations(np.linspace(0.1, 1, LISTED_ITEMS).tolist()))
def test_weighted_auc_equals_its_definition(case, p):
    names = [f"auc(weights={kind}){cut}" for kind in KINDS for cut in ("@2", "")]
    ev = case.evaluate(names, items=se.ItemData(propensity=p))
    for name in names:
        expected = []
        for items, gains, seen in zip(*case, strict=True):
            ranked = {item: rank for rank, item in enumerate(items, 1)}
            among = set(range(LISTED_ITEMS)) - seen | set(items)
            k = 2 if name.endswith("@2") else 99
            kind = "snips" if "snips" in name else "ips"
            expected.append(plain.auc(kind, (ranked, gains), among, len(items), k, p))
        np.testing.assert_allclose(ev.values(name), expected, rtol=1e-12, atol=1e-15, err_msg=name)
        if "snips" in name:
            assert (np.nan_to_num(ev.values(name)) <= 1 + 1e-12).all()


INPUTS = ("train", "propensity")


def test_refuses_to_compare_numbers_of_other_propensities(tmp_path):
    lists, gains, more = problem(*INPUTS)
    names = ["recall@3", "recall(weights=ips)@3", "psp@3", "recall(weights=ips,gamma=2)@3"]
    same = se.evaluate(lists, gains, names, **more, memory=1 << 24)
    ev = saved(se.evaluate(lists, gains, names, **more), tmp_path)
    assert set(ev.propensities) == set(INPUTS)
    assert ev.propensities == same.propensities == ev.to_dict()["propensities"]
    assert ev.compare(same).table["difference"].eq(0).all()
    train = more["train"].copy()
    train.data[0] = 0  # one user less
    for changed, wrong in (
        ({"items": se.ItemData(propensity=more["items"].propensity ** 2)}, names[1:2]),
        ({"train": train}, names[2:]),
    ):
        other = se.evaluate(lists, gains, names, **more | changed)
        for name in wrong:
            with raises(InvalidDataError):
                ev.compare(other, name)
        with raises(InvalidDataError):
            se.write_report({"ev": ev, "other": other}, tmp_path / "report.html")
        right = [name for name in names if name not in wrong]
        assert len(ev.compare(other, right).table) == len(right)


@pytest.mark.parametrize(
    "propensity",
    [
        [0.5, 0.0, 0.5],
        [0.5, 0.5, 1.5],
        [0.5, math.nan, 0.5],
        [0.5, 0.5],
        {0: 0.5, 1: 0.5},
    ],
)
def test_refuses_what_are_no_propensities(propensity):
    lists = se.Rankings.from_topk([[0, 1]], shape=(1, 3))
    with raises(InvalidDataError):
        se.evaluate(
            lists,
            csr_matrix([[1, 0, 1]]),
            "recall(weights=ips)@2",
            items=se.ItemData(propensity=propensity),
        )


def test_refuses_train_that_tells_no_propensities():
    lists = se.Rankings.from_topk([[0, 1]], shape=(1, 3))
    truth = csr_matrix([[1, 0, 1]])
    with raises(InvalidDataError, argument="train"):
        se.evaluate(lists, truth, "recall(weights=ips,gamma=1)@2", train=csr_matrix((1, 3)))
    with raises(InvalidDataError, argument="train"):
        se.evaluate(lists, truth, "psp@2", train=csr_matrix([[0, 1, 0]]))


def test_refuses_corrections_of_weighted_metrics():
    lists, truth = se.Rankings.from_topk([[0, 1, 2]]), csr_matrix([[1, 0, 0]])
    among = se.sample_negatives(csr_matrix((1, 3)), truth, n=1).corrected("unbiased")
    items = se.ItemData(propensity=[0.1, 0.5, 1])
    for metric in ("recall(weights=snips)@2", "psp(propensity=given,average=macro)@2"):
        with raises(InvalidMetricError):
            se.evaluate(lists, truth, metric, candidates=among, items=items)


def test_tied_scores_average_over_their_orders():
    scores, gains, p = [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0], [0.1, 1.0, 0.5, 0.25]
    lists = se.Rankings.from_scores([scores], ties="average")
    rows = [(name, gain, kind) for name, gain, kind in WEIGHTED if name.endswith("dcg")]
    names = [spell(name, f"gain={gain}", f"weights={kind}", k=3) for name, gain, kind in rows]
    ev = se.evaluate(lists, csr_matrix([gains]), names, items=se.ItemData(propensity=p))
    orders = [[1, *others] for others in permutations([0, 2, 3])]
    for name, row in zip(names, rows, strict=True):
        expected = math.fsum(
            plain.weighted(
                *row,
                ({item: rank for rank, item in enumerate(order, 1)}, dict(enumerate(gains))),
                3,
                p,
            )
            for order in orders
        ) / len(orders)
        assert ev[name] == pytest.approx(expected, rel=1e-12), name
