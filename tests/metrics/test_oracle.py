"""Every metric and option against the oracle, on lists and relevance of every shape."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from cases import Case, cases, spelled, to_csr
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics import accuracy
from sparse_eval.metrics.measure import measure

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")

ALL = spelled(oracle.METRICS)
MICRO = spelled(oracle.MICRO)
NAMES = [spelling for spelling, *_ in ALL]


def test_the_oracle_has_every_accuracy_metric() -> None:
    named = {metric.name for metric in accuracy.METRICS}
    assert {name for name, _ in oracle.METRICS} | set(oracle.RATIOS) == named


@given(cases())
def test_every_metric_equals_the_oracle(case: Case) -> None:
    ev = se.evaluate(*case.matrices, NAMES, train=case.train)
    users = list(zip(case.ranked, case.relevant, case.contexts, strict=True))
    for spelling, name, options, k in ALL:
        expected = [oracle.value(name, options, k, *user) for user in users]
        np.testing.assert_allclose(
            ev.values(spelling), expected, rtol=1e-12, atol=1e-15, err_msg=spelling
        )
        evaluated = [x for x in expected if not math.isnan(x)]
        mean = math.fsum(evaluated) / len(evaluated) if evaluated else math.nan
        assert ev[spelling] == pytest.approx(mean, rel=1e-12, nan_ok=True)
    for plan in ev.request.plans:
        values = ev.values(plan.metric)
        defined = values[~np.isnan(values)]
        assert (defined >= plan.definition.lower - 1e-12).all(), plan.metric
        assert (defined <= plan.upper * (1 + 1e-12)).all(), plan.metric


@given(cases())
def test_every_micro_average_equals_the_oracle(case: Case) -> None:
    ev = se.evaluate(*case.matrices, [name for name, *_ in MICRO], train=case.train)
    users = list(zip(case.ranked, case.relevant, case.contexts, strict=True))
    for spelling, name, options, k in MICRO:
        assert ev[spelling] == pytest.approx(oracle.micro(name, options, k, users), rel=1e-12)
    assert ev.per_user.shape == (len(users), 0)


@given(cases())
def test_gauc_equals_the_oracle(case: Case) -> None:
    names = ["gauc", "gauc@3", "gauc(weight=relevant)", "gauc(weight=relevant)@3"]
    ev = se.evaluate(*case.matrices, names, train=case.train)
    users = list(zip(case.ranked, case.relevant, case.contexts, strict=True))
    for name in names:
        weight = "relevant" if "relevant" in name else "impressions"
        expected = oracle.gauc(weight, 3 if "@" in name else None, users)
        assert ev[name] == pytest.approx(expected, rel=1e-12), name


@given(cases(), st.integers(1, 7), st.integers(1, 9))
def test_threads_and_blocks_change_no_bit(case: Case, threads: int, block: int) -> None:
    ev = se.evaluate(*case.matrices, NAMES, train=case.train, num_threads=1)
    assert ev._block is not None
    columns, _ = measure(ev._block.aligned, ev.request.plans, threads, block)
    seen = ev.n_relevant > 0
    assert columns.values[:, seen].tobytes() == ev.columns[:, seen].tobytes()


@given(
    st.lists(
        st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=5, max_size=5),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 7),
    st.sets(st.integers(0, 4)),
)
def test_scores_rank_by_score_then_id(rows: list[list[float]], k: int, seen: set[int]) -> None:
    hidden = to_csr([dict.fromkeys(seen, 1.0)] * len(rows), np.float64, 5)
    dense = se.Rankings.from_scores(rows, k=k, seen=hidden)
    stored = csr_matrix(
        (np.ravel(rows), np.tile(np.arange(5), len(rows)), np.arange(0, 5 * len(rows) + 1, 5)),
        shape=(len(rows), 5),
    )
    sparse = se.Rankings.from_scores(stored, k=k, seen=hidden)
    for user, row in enumerate(rows):
        order = sorted((i for i in range(5) if i not in seen), key=lambda i: (-row[i], i))
        for lists in (dense, sparse):
            mine = slice(lists.indptr[user], lists.indptr[user + 1])
            assert lists.items[mine].tolist() == order[:k]
            assert lists.positions[mine].tolist() == list(range(1, len(order[:k]) + 1))


def test_gains_whose_sum_is_not_finite() -> None:
    truth = csr_matrix([[1.0, 0, 1.0], [1.7e308, 0, 1.7e308]])
    lists = se.Rankings.from_topk([[0, 1], [1, 0]], shape=(2, 3))
    with raises(InvalidDataError, row=1):
        se.evaluate(lists, truth, "ndcg@2")
