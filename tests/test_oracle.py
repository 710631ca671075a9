"""Every metric and option against the oracle, on lists and relevance of every shape."""

from __future__ import annotations

import math
import sys

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.metrics import parse_metrics

CUTOFFS = [1, 2, 5, 20, None]
ALL = [
    (oracle.spelling(name, options, k), name, options, k)
    for name, options in oracle.METRICS
    for k in CUTOFFS
    if k is not None or name not in oracle.NEEDS_CUTOFF
]
NAMES = [spelling for spelling, *_ in ALL]

gains = st.sampled_from([0.0, 0.25, 1.0, 1.0, 2.0, 3.0, 5.0])


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[oracle.Ranked], list[oracle.Gains], int]:
    n_items = draw(st.integers(1, 12))
    items = st.integers(0, n_items - 1)
    n_users = draw(st.integers(1, 6))
    ranked, relevant = [], []
    for _ in range(n_users):
        listed = draw(st.lists(items, unique=True))
        positions = draw(
            st.lists(st.integers(1, 30), unique=True, min_size=len(listed), max_size=len(listed))
        )
        ranked.append(dict(zip(listed, positions, strict=True)))
        relevant.append(draw(st.dictionaries(items, gains)))
    relevant[0] = {draw(items): 2.0} | relevant[0]  # one user at least can be evaluated
    if not any(gain > 0 for gain in relevant[0].values()):
        relevant[0] = {0: 1.0}
    return ranked, relevant, n_items


def to_csr(rows: list[dict[int, float]], n_items: int, dtype: type) -> csr_matrix:
    indptr = np.cumsum([0] + [len(row) for row in rows])
    indices = [item for row in rows for item in sorted(row)]
    data = [row[item] for row in rows for item in sorted(row)]
    return csr_matrix((np.array(data, dtype), np.array(indices, int), indptr), (len(rows), n_items))


@given(cases())
def test_every_metric_equals_the_oracle(
    case: tuple[list[oracle.Ranked], list[oracle.Gains], int],
) -> None:
    ranked, relevant, n_items = case
    ev = se.evaluate(
        to_csr(ranked, n_items, np.int64), to_csr(relevant, n_items, np.float64), NAMES
    )
    for spelling, name, options, k in ALL:
        expected = [
            oracle.value(name, options, k, lists, truth)
            for lists, truth in zip(ranked, relevant, strict=True)
        ]
        np.testing.assert_allclose(ev.values(spelling), expected, rtol=1e-12, err_msg=spelling)
        evaluated = [x for x in expected if not math.isnan(x)]
        assert ev[spelling] == pytest.approx(math.fsum(evaluated) / len(evaluated), rel=1e-12)


@given(cases())
def test_metrics_stay_in_their_range(
    case: tuple[list[oracle.Ranked], list[oracle.Gains], int],
) -> None:
    ranked, relevant, n_items = case
    ev = se.evaluate(
        to_csr(ranked, n_items, np.int64), to_csr(relevant, n_items, np.float64), NAMES
    )
    for metric in ev.metrics:
        if "none" in metric.arguments.values():  # the one option without a bound
            continue
        values = ev.values(metric)[ev.n_relevant > 0]
        bound = 1.0 if metric.name == "map" else metric.definition.upper
        assert (values >= 0).all(), metric
        assert (values <= bound * (1 + 1e-12)).all(), metric


@given(cases(), st.integers(1, 7), st.integers(1, 9))
def test_threads_and_blocks_change_no_bit(
    case: tuple[list[oracle.Ranked], list[oracle.Gains], int], threads: int, block: int
) -> None:
    ranked, relevant, n_items = case
    rankings = se.Rankings.from_positions(to_csr(ranked, n_items, np.int64))
    relevance = se.Relevance.from_csr(to_csr(relevant, n_items, np.float64))
    compute = sys.modules["sparse_eval.evaluate"]._compute
    metrics = parse_metrics(NAMES)
    expected, _ = compute(rankings, relevance, metrics, 1)
    found, _ = compute(rankings, relevance, metrics, threads, block)
    seen = relevance.n_relevant > 0
    assert found[:, seen].tobytes() == expected[:, seen].tobytes()


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6),
    st.dictionaries(st.integers(0, 5), gains),
    st.sampled_from([1, 2, 3, 6]),
)
def test_tied_scores_average_over_their_orders(
    scores: list[float], relevant: oracle.Gains, k: int
) -> None:
    relevant = {item: gain for item, gain in relevant.items() if item < len(scores)}
    relevant[0] = 1.0
    family = [(name, options) for name, options in oracle.METRICS if name.endswith("cg")]
    names = [oracle.spelling(name, options, k) for name, options in family]
    truth = to_csr([relevant], len(scores), np.float64)
    for depth in (None, k):  # a list cut at k holds the group of ties that crosses k
        lists = se.Rankings.from_scores([scores], k=depth, ties="average")
        ev = se.evaluate(lists, truth, names)
        for spelling, (name, options) in zip(names, family, strict=True):
            expected = oracle.expected_over_ties(name, options, k, scores, relevant)
            assert ev[spelling] == pytest.approx(expected, rel=1e-12, abs=1e-15), spelling


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
    hidden = to_csr([dict.fromkeys(seen, 1.0)] * len(rows), 5, np.float64)
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
