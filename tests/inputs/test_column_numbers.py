"""Whole numbers for items: columns, ids, or an error if they may be either."""

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

N_USERS, N_ITEMS = 6, 5
SCORES = np.random.default_rng(0).permuted(np.tile(np.arange(5.0), (N_USERS, 1)), axis=1)
ORDER = np.argsort(-SCORES, axis=1)
HELD = np.eye(N_USERS, N_ITEMS, dtype=bool) | np.eye(N_USERS, N_ITEMS, 2, dtype=bool)
HELD[-1] = [1, 0, 0, 0, 1]

#: Ids of the columns: text, whole numbers within and beyond the columns, and the columns.
IDS = {
    "text": list("abcde"),
    "one more": [1, 2, 3, 4, 5],
    "swapped": [1, 0, 2, 3, 4],
    "far": [100, 7, 230, 12, 9],
    "columns": [0, 1, 2, 3, 4],
}


def precision(lists, k=2):
    """Return the mean precision of lists of columns, by its definition."""
    return np.mean([np.mean([HELD[user, i] for i in row[:k]]) for user, row in enumerate(lists)])


def without(left_out):
    return [[i for i in row if i not in left_out] for row in ORDER.tolist()]


@pytest.fixture(params=IDS)
def ids(request):
    return IDS[request.param]


@pytest.fixture
def truth(ids):
    return se.Relevance.from_csr(csr_matrix(HELD * 1.0), items=ids)


def could_be_ids(ids):
    return ids not in (IDS["text"], IDS["columns"])


def check(given, expected, evaluate):
    """Check the precision of numbers that are columns, or the error."""
    if could_be_ids(given):
        with raises(InvalidDataError):
            evaluate()
    else:
        assert evaluate() == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, N_ITEMS])
def test_lists(ids, truth, k):
    table = ORDER[:, :k]

    def value(lists):
        return se.evaluate(lists, truth, "precision@2")["precision@2"]

    expected = precision(ORDER)
    for plain in (table, table.tolist()):
        check(ids, expected, lambda plain=plain: value(se.Rankings.from_topk(plain)))
    check(ids, expected, lambda: value(table.tolist()))
    columns = [
        se.Rankings.from_topk(table, items=ids),
        se.Rankings.from_topk(table, shape=HELD.shape),
        se.Rankings.from_topk(table, shape=HELD.shape).to_positions(),
        se.Rankings.from_scores(SCORES),
    ]
    named = np.array(ids, object)[table].tolist()
    by_id = [dict(enumerate(named)), se.Rankings.from_topk(dict(enumerate(named)))]
    truth_by_id = se.Relevance.from_csr(csr_matrix(HELD * 1.0), users=range(N_USERS), items=ids)
    assert [value(lists) for lists in columns] == pytest.approx([expected] * len(columns))
    for lists in by_id:
        assert se.evaluate(lists, truth_by_id, "precision@2").mean() == {
            "precision@2": pytest.approx(expected)
        }


def test_numbers_beyond_the_columns(ids, truth):
    for lists in (
        se.Rankings.from_topk([[N_ITEMS]] * N_USERS),
        se.Rankings.from_topk([[0]] * N_USERS, shape=(N_USERS, N_ITEMS + 1)),
    ):
        with raises(InvalidDataError):
            se.evaluate(lists, truth, "precision@2")
    model = se.Scorer(SCORES, items=ids)
    with raises(InvalidDataError):
        se.top_k(model, 2, candidates=[0, N_ITEMS])
    with raises(InvalidDataError):
        se.top_k(se.Scorer(SCORES), 2, exclude=[N_ITEMS])


@pytest.mark.parametrize("left_out", [[1], [3, 0], []])
def test_candidates_and_left_out_items_of_a_model(ids, truth, left_out):
    model = se.Scorer(SCORES, items=ids)
    kept = [i for i in range(N_ITEMS) if i not in left_out]
    expected = precision(without(left_out))

    def value(lists):
        return precision(lists.ids.tolist())

    def names(columns):
        return pd.Index([ids[i] for i in columns])

    if left_out and ids is IDS["text"]:
        with raises(InvalidDataError):
            se.top_k(model, 2, exclude=left_out)
    else:  # numbers are ids, because the model has ids
        named = [i for i in range(N_ITEMS) if ids[i] in left_out]
        found = value(se.top_k(model, 2, exclude=left_out))
        assert found == pytest.approx(precision(without(named)))
    check(ids, expected, lambda: value(se.top_k(model, 2, candidates=kept)))
    ranked = se.ranks(model, truth, exclude=names(left_out))
    unlisted = HELD[:, left_out].sum()
    assert len(ranked.items) == HELD.sum() - unlisted
    for given in (names, lambda columns: truth.items_index[np.array(columns, int)]):
        assert value(se.top_k(model, 2, exclude=given(left_out))) == pytest.approx(expected)
        assert value(se.top_k(model, 2, candidates=given(kept))) == pytest.approx(expected)
    plain = se.Scorer(SCORES)
    assert value(se.top_k(plain, 2, exclude=left_out)) == pytest.approx(expected)
    assert value(se.top_k(plain, 2, candidates=kept)) == pytest.approx(expected)


def test_left_out_ids(ids):
    model = se.Scorer(SCORES, items=ids)
    unknown = pd.Index([ids[0], "zz" if isinstance(ids[0], str) else 99])
    assert se.top_k(model, 2, exclude=unknown).ids.tolist() == [row[:2] for row in without([0])]
    with raises(InvalidDataError):
        se.top_k(se.Scorer(SCORES), 2, exclude=unknown)
