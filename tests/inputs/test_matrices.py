"""What `Rankings` and `Relevance` accept, refuse, and leave untouched."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval import Rankings, Relevance
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.inputs.npy import release

POSITIONS = np.array([[0, 2, 1, 0], [0, 0, 0, 0], [5, 0, 2, 9]])
GAINS = np.array([[0, 3, 0, 1], [0, 0, 2, 0], [1, 0, 0, 1]])


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("of", [sparse.csr_matrix, sparse.csr_array])
def test_any_numeric_dtype_and_index_width(of, index, dtype):
    sides = [of(dense.astype(dtype)) for dense in (POSITIONS, GAINS)]
    for matrix in sides:
        matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    metrics = ["ndcg@3", "dcg", "map@10", "recall@2", "mrr"]
    expected = se.evaluate(*map(sparse.csr_matrix, (POSITIONS, GAINS)), metrics)
    assert (
        se.evaluate(*sides, metrics)._values.columns.tobytes() == expected._values.columns.tobytes()
    )


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (Rankings.from_positions, [0, -3, 1.5, np.nan, np.inf, 2.0**40]),
        (Relevance.from_csr, [-1, np.nan, np.inf]),
    ],
)
def test_refuses_positions_and_gains(make, values):
    for value in values:
        matrix = sparse.csr_matrix(([1, value], [0, 2], [0, 1, 2]), shape=(2, 3))
        with raises(InvalidDataError, row=1):
            make(matrix)


def test_a_position_is_taken_once():
    for n in (2, 40):  # short rows and long ones are ordered in different ways
        row = np.arange(1, n + 1)
        row[-1] = row[0]
        matrix = sparse.csr_matrix(np.vstack([np.zeros(n), row]))
        with raises(InvalidDataError, row=1):
            Rankings.from_positions(matrix)


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, n - 1), unique=True), min_size=1, max_size=5)
    )
)
def test_positions_survive_the_way_there_and_back(lists):
    k = max(map(len, lists))
    ids = np.array([row + [-1] * (k - len(row)) for row in lists]).reshape(len(lists), k)
    matrix = Rankings.from_topk(ids, shape=(len(lists), 8)).to_positions()
    assert matrix.has_canonical_format
    back = Rankings.from_positions(matrix).to_positions()
    assert (back != matrix).nnz == 0
    for user, row in enumerate(lists):
        assert matrix[user].toarray().ravel()[row].tolist() == list(range(1, len(row) + 1))


LONG = [[*range(64), 150, *range(65, 200)]]  # longer than a machine word has bits


@pytest.mark.parametrize(
    ("ids", "options"),
    [
        ([[0, 1], [2, 2]], {}),
        (LONG, {}),
        ([[0, 7]], {"shape": (1, 5)}),
        ([[0, -2]], {}),
        (np.array([[0.0, 1.0]]), {}),
        ([[0]], {"user_rows": [0, 1]}),
        ([[0], [1]], {"user_rows": [3, 3]}),
        ([[0]], {"user_rows": [-1], "shape": (4, 4)}),
        ([[0]], {"shape": (1, 2.5)}),
        (np.array([[2**40]], np.uint64), {}),
    ],
)
def test_refuses_lists(ids, options):
    with raises(InvalidDataError):
        Rankings.from_topk(ids, **options)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32])
def test_lists_of_users_in_any_order(dtype):
    ids = np.array([[2, 1], [0, 3]], dtype)
    ids.flags.writeable = False
    rankings = Rankings.from_topk(ids, user_rows=[5, 1])
    assert rankings.items.tolist() == [0, 3, 2, 1]
    assert rankings.to_positions().toarray()[[5, 1]].tolist() == [[0, 2, 1, 0], [1, 0, 0, 2]]


LISTS = pd.DataFrame({"user": [*"baa"], "item": [*"xyy"], "rank": [2, 1, 3], "text": [*"pqr"]})
MANY = pd.DataFrame({"user": [0, *range(9)], "item": range(10), "rank": 1})


@pytest.mark.parametrize(
    ("frame", "options", "user"),
    [
        (LISTS.drop(columns="rank"), {}, None),
        (LISTS, {"rank": "ranks"}, None),
        (LISTS, {"rank": "text"}, None),
        ({"user": [1]}, {"rank": "rank"}, None),
        (LISTS.assign(rank=[1, 2, 0]), {}, None),
        (LISTS.assign(rank=[1.5, 1, 2]), {}, None),
        (LISTS.assign(rank=pd.array([1, None, 2], "Float64")), {}, None),
        (LISTS, {}, "a"),  # the same item twice
        (LISTS.assign(item=[*"xyz"], rank=2), {}, "a"),  # the same rank twice
        (MANY, {}, 0),  # of many users
    ],
)
def test_refuses_frames(frame, options, user):
    with raises(InvalidDataError, user=user):
        Rankings.from_frame(frame, **options)


@pytest.mark.parametrize(
    "users", [[*"ab"], [*"aba"], 5, {1: 2}, [["a"], ["b"], ["c"]], ["a", None, "b"]]
)
def test_refuses_labels(users):
    with raises(InvalidDataError):
        Relevance.from_csr(sparse.csr_matrix(GAINS), users=users)


def test_shapes_are_padded_never_cut():
    lists = Rankings.from_topk([[7, 1]])  # item 7 is outside of the validation matrix
    ev = se.evaluate(lists, sparse.csr_matrix(GAINS), ["mrr@2", "recall@2"])
    assert ev.values("mrr@2").tolist() == [0.5, 0.0, 0.0]  # users without lists count 0
    assert ev.to_dict()["n_without_list"] == 2
    more = Rankings.from_topk([[1]] * 5)
    ev = se.evaluate(more, sparse.csr_matrix(GAINS), "mrr@1")
    assert (ev.n_users, ev.to_dict()["n_skipped"]) == (3, 2)


CSR, CSC, COO = sparse.csr_matrix(GAINS), sparse.csc_matrix(np.eye(3)), sparse.coo_matrix(np.eye(3))


@pytest.mark.parametrize(
    ("matrix", "part", "values", "place"),
    [
        (CSR, "indices", [1, 9, 2, 0, 3], {"row": 0, "column": 9}),
        (CSR, "indptr", [0, 3, 2, 5], {"row": 1}),
        (CSR, "indptr", [0, 2, 3, 50], {"row": 2}),
        (CSR, "indptr", [0, 2, 3], {}),
        (CSR, "indptr", [1, 2, 3, 5], {}),
        (CSR, "indices", [1, 2, 0], {}),
        (CSC, "indices", [0, -7, 2], {}),
        (CSC, "indptr", [0, 10**8, 2, 3], {}),
        (COO, "col", [0, 7, 2], {}),
        (COO, "row", [0, -1, 2], {}),
        (sparse.bsr_matrix(np.eye(3), blocksize=(1, 1)), "indices", [99, 1, 2], {}),
    ],
)
def test_damaged_matrices_do_not_reach_compiled_code(matrix, part, values, place):
    bad = matrix.copy()
    setattr(bad, part, np.array(values, np.int32))
    for make in (Rankings.from_positions, Relevance.from_csr):
        with raises(InvalidDataError, **place):
            make(bad)


def test_a_sum_hides_no_negative_gain():
    pairs = sparse.coo_matrix(([-1.0, 3.0], ([0, 0], [1, 1])), shape=(1, 2))
    for matrix in (pairs, sparse.csr_matrix(([-1.0, 3.0], [1, 1], [0, 2]), shape=(1, 2))):
        with raises(InvalidDataError, row=0):
            Relevance.from_csr(matrix)


@pytest.mark.parametrize("position", [2**20, 2**31 - 1])
def test_positions_as_deep_as_a_catalogue(position):
    ev = se.evaluate(sparse.csr_matrix([[position]]), sparse.csr_matrix([[1]]), ["mrr", "dcg"])
    assert ev["mrr"] == 1 / position
    assert ev["dcg"] == pytest.approx(1 / np.log2(position + 1), rel=1e-15)


@pytest.mark.parametrize("gain", [1e-17, 1e-10, 0.25])
def test_small_gains_keep_their_digits(gain):
    sides = sparse.csr_matrix([[1]]), sparse.csr_matrix([[gain]])
    ev = se.evaluate(*sides, "dcg(gain=exp)@1,ndcg(gain=exp)@1")
    assert ev["dcg(gain=exp)@1"] == pytest.approx(np.expm1(gain * np.log(2)), rel=1e-15)
    assert ev["ndcg(gain=exp)@1"] == 1.0


def test_a_threshold_that_no_gain_reaches():
    matrix = sparse.csr_matrix(GAINS)
    assert Relevance.from_csr(matrix, threshold=2).n_relevant.tolist() == [1, 1, 0]
    for bad in (5, 0, np.inf, True):
        with raises(InvalidDataError, argument="threshold"):
            Relevance.from_csr(matrix, threshold=bad)
    clicks = pd.DataFrame({"user": [*"aab"], "item": [*"xxy"], "clicks": [2, 2, 1]})
    assert Relevance.from_frame(clicks, threshold=4, combine="sum").n_relevant.tolist() == [1, 0]
    for least, combine in ((4.5, "sum"), (4, None)):
        with raises(InvalidDataError, argument="threshold"):
            Relevance.from_frame(clicks, threshold=least, combine=combine)
    # Data without any gain have no threshold to reach.
    for nothing in (sparse.csr_matrix((2, 3)), sparse.csr_matrix(([0.0], [1], [0, 1, 1]))):
        assert Relevance.from_csr(nothing, threshold=5).n_relevant.tolist() == [0, 0]
    unseen = Relevance.from_frame(clicks.assign(clicks=0), gain="clicks", threshold=5)
    assert unseen.n_relevant.tolist() == [0, 0]


@pytest.mark.parametrize("options", [{}, {"memory": 1 << 24}, {"keep": "totals"}])
def test_refuses_positions_that_are_stored_twice(options, tmp_path):
    repeated = sparse.coo_matrix(([1, 2], ([1, 1], [2, 2])), shape=(2, 3))
    gains = sparse.csr_matrix([[0, 1, 0], [0, 1, 1]])
    sparse.save_npz(tmp_path / "p.npz", repeated)
    csr = sparse.csr_matrix(([1, 2], [2, 2], [0, 0, 2]), shape=(2, 3))
    for matrix in (repeated, csr):
        with raises(InvalidDataError, user=1):
            se.evaluate(matrix, gains, "mrr@2", **options)
    with raises(InvalidFileError):
        se.evaluate(tmp_path / "p.npz", gains, "mrr@2", **options)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_pages_that_are_released_hold_what_was_written_to_them(mode, tmp_path):
    np.save(tmp_path / "values.npy", np.arange(9000.0))
    values = np.load(tmp_path / "values.npy", mmap_mode=mode)
    if mode != "r":
        values[7] = -1
    before = values.copy()
    release(values, values[5:], sparse.csr_matrix(np.eye(2)), None)
    np.testing.assert_array_equal(values, before)


def relevant_by_hand(rows, threshold, combine, default=sum):
    """Return the gain of each relevant pair: of the rows that reach a threshold, or of all."""
    pairs = {}
    for user, item, gain in rows:
        if combine is not None or gain >= threshold:
            pairs.setdefault((user, item), []).append(gain)
    how = {"sum": sum, "max": max, None: default}[combine]
    return {pair: how(gains) for pair, gains in pairs.items() if how(gains) >= threshold}


def relevant(relevance):
    coo = relevance.to_csr().tocoo()
    labels = relevance.users, relevance.items_index
    users, items = (np.arange(99) if axis is None else axis for axis in labels)
    found = zip(coo.row, coo.col, coo.data, strict=True)
    return {(int(users[u]), int(items[i])): gain for u, i, gain in found if gain > 0}


def unsummed_csr(matrix):
    order = np.argsort(matrix.row, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(matrix.row, minlength=matrix.shape[0])))
    return sparse.csr_matrix((matrix.data[order], matrix.col[order], indptr), matrix.shape)


#: Ways to give the rows of a matrix, none of which sums them, and then of a frame.
OF_MATRICES = {
    "coo": lambda matrix: matrix,
    "csr": unsummed_csr,
    "csc": lambda matrix: unsummed_csr(matrix.T.tocoo()).T,
    "array": sparse.coo_array,
    "int8": lambda matrix: sparse.coo_matrix(
        (matrix.data.astype(np.int8), (matrix.row, matrix.col)), matrix.shape
    ),
}
OF_FRAMES = {
    "pandas": lambda frame: frame,
    "arrow": pa.Table.from_pandas,
    "rows": lambda frame: frame.to_dict("records"),
}


@pytest.mark.parametrize("threshold", [0.5, 2, 4, 5])
@pytest.mark.parametrize("seed", range(8))
def test_rows_reach_a_threshold_before_they_are_combined(seed, threshold):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, [3, 4, 6], (3 + 6 * seed, 3))
    rows = np.concatenate((rows, [[0, 0, 5], [2, 3, 5]]))  # some gain reaches any threshold
    expected = relevant_by_hand(rows.tolist(), threshold, None)
    matrix = sparse.coo_matrix((rows[:, 2], (rows[:, 0], rows[:, 1])), shape=(3, 4))
    for way in OF_MATRICES.values():
        given = way(matrix)
        assert given.nnz == len(rows)
        assert relevant(Relevance.from_csr(given, threshold=threshold)) == expected
        assert given.nnz == len(rows)
    frame = pd.DataFrame(rows, columns=["user", "item", "worth"])
    events = frame.assign(event=frame["worth"].map("e{}".format)).drop(columns="worth")
    gains = {f"e{n}": n for n in range(6)}
    for way in OF_FRAMES.values():
        for combine in (None, "sum", "max"):
            options = {"threshold": threshold, "combine": combine}
            found = Relevance.from_frame(way(frame), gain="worth", **options)
            assert relevant(found) == relevant_by_hand(rows.tolist(), threshold, combine)
            found = Relevance.from_frame(way(events), event="event", gains=gains, **options)
            assert relevant(found) == relevant_by_hand(rows.tolist(), threshold, combine, max)
    kept = se.Interactions.from_frame(frame, value="worth").filter(min_value=threshold)
    assert relevant(Relevance.from_csr(kept.matrix())) == expected
    held = se.split.leave_k_out(kept, n=1)
    parts = [relevant(Relevance.from_csr(part)) for part in (held.train, held.validation)]
    assert parts[0] | parts[1] == expected


def test_a_threshold_hides_no_invalid_gain():
    for bad in (-1.0, np.nan, np.inf):
        for other in (5.0, 1.0):  # of the same pair
            matrix = sparse.coo_matrix(([bad, other, 5.0], ([0, 0, 0], [0, 0, 1])), shape=(1, 2))
            with raises(InvalidDataError):
                Relevance.from_csr(matrix, threshold=4)
            frame = pd.DataFrame({"user": 0, "item": [0, 0, 1], "gain": [bad, other, 5.0]})
            with raises(InvalidDataError):
                Relevance.from_frame(frame, threshold=4)


def test_the_length_of_rankings_is_the_number_of_users():
    assert len(se.Rankings.from_topk([[0, 1], [1, 0], []])) == 3
    assert len(se.Rankings.from_positions(sparse.csr_matrix((0, 2)))) == 0
