"""Lists and ranks from blocks of scores, against sorting everything in plain Python."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

from sparse_eval.errors import InvalidDataError
from sparse_eval.retrieval import score_search as module
from sparse_eval.retrieval.ranker import Options
from sparse_eval.retrieval.score_search import (
    FunctionScores,
    ItemScores,
    ScoreSearch,
    check_weights,
    users_per_call,
)

KINDS = ["dense", "single", "sparse", "sparse single", "function", "single function"]


@dataclass(frozen=True)
class Case:
    kind: str
    train: sparse.csr_matrix
    weights: np.ndarray
    k: int
    exclude: list[int] | None

    @property
    def shape(self):
        return self.train.shape

    def scores(self):
        weights = self.weights.astype(np.float32 if "single" in self.kind else np.float64)
        if "function" not in self.kind:
            given = sparse.csc_matrix(weights) if "sparse" in self.kind else weights
            return ItemScores(self.train, check_weights(given))
        table = self.table().astype(weights.dtype)
        return FunctionScores(lambda users: table[users], np.arange(self.shape[0]), self.shape[1])

    def table(self):
        """Every score, added up in the order of the user's items."""
        table = np.zeros(self.shape)
        for user, item, value in zip(*self.train.tocoo().coords, self.train.data, strict=True):
            table[user] += value * self.weights[item]
        return table

    def orders(self):
        """Each user's candidates with minus their scores, the best first."""
        seen = np.split(self.train.indices, self.train.indptr[1:-1])
        for row, own in zip(self.table().tolist(), seen, strict=True):
            items = set(range(self.shape[1])) - {*own.tolist(), *(self.exclude or ())}
            yield sorted((-row[item], item) for item in items)


@st.composite
def cases(draw):
    kind = draw(st.sampled_from(KINDS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 6)), draw(st.one_of(st.integers(1, 12), st.integers(30, 120)))
    n_items = shape[1]
    ties = draw(st.booleans())
    weights = rng.integers(-2, 3, (n_items, n_items)) / (2 if ties else 1)
    if not ties and "function" not in kind:
        weights = rng.standard_normal((n_items, n_items)).astype(np.float32).astype(np.float64)
    seen = rng.random(shape) < draw(st.sampled_from([0.0, 0.2, 0.9, 1.0]))
    train = to_csr(seen, rng.integers(-1, 4, shape))  # with explicit zeros
    exclude = None
    if n_items > 3 and draw(st.booleans()):
        exclude = rng.integers(n_items, size=n_items // 4).tolist()
    k = draw(st.one_of(st.integers(1, 5), st.integers(1, n_items + 3)))
    return Case(kind, train, weights, k, exclude)


def to_csr(mask, values):
    rows, columns = np.nonzero(mask)
    return sparse.csr_matrix((values[rows, columns].astype(float), (rows, columns)), mask.shape)


def all_lists(scores, k, *options):
    """Return the list of every user."""
    return ScoreSearch(scores, Options(*options)).lists(k, np.arange(scores.shape[0]))[0]


threads = st.sampled_from([None, 1, 2, 7])
cells = st.sampled_from([1, 100, 1 << 20])


@given(cases(), threads, cells)
def test_lists_are_those_of_sorting_everything(case, n, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CELLS_OF_THREAD", size)
        patch.setattr(module, "CELLS_OF_CALL", size)
        ranker = ScoreSearch(case.scores(), Options(case.train, None, case.exclude, n))
        lists, left_out = ranker.lists(case.k, np.arange(case.shape[0]))
    assert (lists.ids.dtype, lists.scores.dtype) == (np.int32, np.float64)
    for user, order in enumerate(case.orders()):
        best = order[: case.k]
        length = len(best)
        assert lists.ids[user].tolist()[:length] == [item for _, item in best]
        assert (lists.ids[user, length:] == -1).all()
        assert lists.scores[user].tolist()[:length] == [-score for score, _ in best]
        assert not np.signbit(lists.scores[user][lists.scores[user] == 0]).any()
        rest = order[length:]
        assert left_out[user] == (-rest[0][0] if rest else -np.inf)
    assert (ranker.cold_users, ranker.cold_items) == (None, None)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_names_a_score_that_is_not_finite(value):
    table = np.arange(12.0).reshape(3, 4)
    table[2, 1] = value
    seen = sparse.csr_matrix(([1.0], ([0], [0])), (3, 4))
    scores = FunctionScores(lambda users: table[users - 10], np.arange(10, 13), 4)
    with raises(InvalidDataError):
        all_lists(scores, 2, seen)
    # Nobody asks for the score of what is seen, or no candidate.
    other = sparse.csr_matrix(([1.0], ([2], [1])), (3, 4))
    assert all_lists(scores, 1, other).ids.ravel().tolist() == [3, 3, 3]
    assert all_lists(scores, 1, seen, None, [1]).ids.ravel().tolist() == [3, 3, 3]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64])
def test_whole_numbers_are_scores(dtype):
    table = np.array([[3, 0, 7, 1], [5, 100, 2, 4]], dtype)
    lists = all_lists(FunctionScores(lambda users: table[users], np.arange(2), 4), 2)
    assert lists.ids.tolist() == [[2, 0], [1, 0]]
    assert lists.scores.tolist() == [[7.0, 3.0], [100.0, 5.0]]


@pytest.mark.parametrize(
    "returned",
    [np.zeros((2, 3)), np.zeros((2, 4), bool), None, np.full((2, 4), 2**53 + 1)],
)
def test_refuses_what_is_no_block_of_scores(returned):
    scores = FunctionScores(lambda users: returned, np.arange(2), 4)
    with raises(InvalidDataError):
        all_lists(scores, 2)


def test_a_function_is_asked_for_the_same_users_wherever_blocks_begin():
    n_items = 1 << 14
    step = users_per_call(n_items)
    assert step * n_items <= module.CELLS_OF_CALL < 2 * step * n_items
    asked, table = [], np.zeros((step, n_items))
    table.flags.writeable = False

    def score(users):
        asked.append(users.tolist())
        users[:] = -1  # it may do with them what it likes
        return table[: len(users)]

    rows = np.arange(0, 3 * step, 3)
    seen = sparse.eye(3 * step, n_items, format="csr")
    scores = FunctionScores(score, np.arange(3 * step), n_items)
    ScoreSearch(scores, Options(seen)).lists(1, rows)
    assert [user for users in asked for user in users] == rows.tolist()
    assert [users[0] // step for users in asked] == [0, 1, 2]


def mapped_bytes(path):
    """Return how much of a mapped file is resident in this process."""
    total, counts = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if "-" in line.partition(" ")[0]:
            counts = line.endswith(str(path))
        elif counts and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="this system has no /proc")
def test_a_mapped_matrix_does_not_stay_resident(tmp_path, monkeypatch):
    """Nor does it change a bit when its pages are released every now and then."""
    rng = np.random.default_rng(0)
    n_users, n_items = 60, 1500
    weights = rng.standard_normal((n_items, n_items)).astype(np.float32)
    np.save(tmp_path / "weights.npy", weights)
    mapped = check_weights(np.load(tmp_path / "weights.npy", mmap_mode="r"))
    train = sparse.random(n_users, n_items, 0.1, "csr", rng=rng)
    monkeypatch.setattr(module, "CELLS_OF_THREAD", 2 * n_items)
    resident = []

    def lists(matrix):
        scores = ItemScores(train, matrix)
        ids, values = all_lists(scores, 5, train, None, None, 1)
        resident.append(mapped_bytes(tmp_path / "weights.npy"))
        return ids, values

    expected = lists(weights)
    assert all(map(np.array_equal, lists(mapped), expected))
    assert resident[-1] > weights.nbytes // 2
    monkeypatch.setattr(module, "MAPPED_BYTES", 1)
    assert all(map(np.array_equal, lists(mapped), expected))
    assert resident[-1] == 0
