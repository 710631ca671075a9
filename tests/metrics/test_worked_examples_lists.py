"""More examples worked by hand in the texts that define the metrics: pairs, and micro averages."""

from __future__ import annotations

from itertools import permutations

import pytest
from scipy.sparse import csr_matrix

import sparse_eval as se

# A > B > C ranked B, A, C is 1/3 in the text that this is from, which errs: B is ranked above C, as
# the user prefers it, so two of the three pairs are concordant. Its verdicts (A above C, B above A,
# C above B) go round in a circle, and no ranking has them. 1/3 belongs to B, C, A and to C, A, B.
CONCORDANT_OF_3 = {"ABC": 3, "ACB": 2, "BAC": 2, "BCA": 1, "CAB": 1, "CBA": 0}


@pytest.mark.parametrize("ranking", ["".join(order) for order in permutations("ABC")])
def test_concordant_pairs(ranking: str) -> None:
    gains = [{"A": 3, "B": 2, "C": 1}[item] for item in ranking]
    lists = se.Rankings.from_topk([[0, 1, 2]])
    value = se.evaluate(lists, csr_matrix([gains]), "fcp@3")["fcp@3"]
    assert value == pytest.approx(CONCORDANT_OF_3[ranking] / 3, rel=1e-12)


# The lists that a text on ranking metrics prints: ten films by preference, and as recommended.
PREFERENCES = [
    [1, 4, 6, 9, 8, 2, 0, 3, 7, 5],
    [9, 6, 8, 4, 5, 1, 7, 3, 0, 2],
    [1, 0, 7, 6, 8, 9, 5, 4, 3, 2],
    [9, 4, 6, 2, 0, 3, 7, 1, 5, 8],
    [8, 9, 5, 3, 6, 2, 4, 0, 1, 7],
    [6, 4, 5, 0, 9, 1, 7, 2, 3, 8],
    [3, 9, 7, 6, 1, 5, 0, 8, 4, 2],
    [7, 4, 2, 5, 3, 0, 8, 6, 1, 9],
    [2, 9, 4, 0, 6, 7, 8, 5, 1, 3],
    [1, 5, 8, 3, 4, 0, 9, 2, 7, 6],
]
RECOMMENDED = [
    *PREFERENCES[:4],
    [7, 3, 9, 5, 8, 6, 2, 4, 0, 1],
    *PREFERENCES[5:8],
    [5, 2, 0, 1, 8, 9, 3, 6, 4, 7],
    PREFERENCES[9],
]


def favourites(n: int) -> csr_matrix:
    """Each user's first n preferences, as the relevant items."""
    rows = [user for user in range(10) for _ in range(n)]
    items = [item for films in PREFERENCES for item in films[:n]]
    return csr_matrix(([1] * len(items), (rows, items)), shape=(10, 10))


@pytest.mark.parametrize("metric", ["precision(average=micro)@4", "recall(average=micro)@4"])
def test_micro_averages(metric: str) -> None:
    # without masks the source takes the first k = 4 preferences as relevant
    lists = se.Rankings.from_topk(RECOMMENDED)
    assert se.evaluate(lists, favourites(4), metric)[metric] == pytest.approx(0.925, rel=1e-12)


def test_micro_recall_with_masks() -> None:
    # with masks five films per user are relevant, but only the first k = 4 of them can be hit:
    # the others leave gaps in the positions
    shown = [
        (rank, user, item)
        for user, items in enumerate(RECOMMENDED)
        for rank, item in enumerate(items, 1)
        if item in PREFERENCES[user][:4]
    ]
    ranks, users, items = zip(*shown, strict=True)
    gapped = se.Rankings.from_positions(csr_matrix((ranks, (users, items)), shape=(10, 10)))
    metric = "recall(average=micro)@4"
    assert se.evaluate(gapped, favourites(5), metric)[metric] == pytest.approx(0.74, rel=1e-12)
