"""Splits keep every pair on exactly one side, and refuse unusable input."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

from sparse_eval import split
from sparse_eval.datasets import Interactions, synthetic
from sparse_eval.errors import InvalidDataError, InvalidFileError, OutputError

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 6),
        st.sampled_from([0.0, 0.1, 0.7, 1.0, 3.0]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=50,
)
SPLITS = {
    "random": split.random,
    "random half": lambda data: split.random(data, fraction=0.5, seed=3, min_interactions=3),
    "random nearly all": lambda data: split.random(data, fraction=0.999),
    "leave_k_out": lambda data: split.leave_k_out(data, k=2),
    "last_n": lambda data: split.last_n(data, n=2),
    "temporal": lambda data: split.temporal(data, fraction=0.3),
    "rolling": lambda data: list(split.rolling(data, window=2, fraction=0.5)),
    "k_fold": lambda data: list(split.k_fold(data, k=3)),
    "users": lambda data: split.users(data, fraction=0.3),
}
BY_TIME = ("last_n", "temporal")


def interactions_of(events):
    frame = pd.DataFrame(events, columns=["user", "item", "value", "timestamp"])
    return Interactions.from_frame(frame, value="value", timestamp="timestamp")


def pairs(matrix):
    coo = matrix.tocoo()
    return set(zip(coo.row.tolist(), coo.col.tolist(), strict=True))


def holdouts_of(name, data):
    """Return the holdouts; none if there is rightly no cut."""
    try:
        result = SPLITS[name](data)
    except InvalidDataError:
        assert name in ("temporal", "rolling", "users")
        return []
    return result if isinstance(result, list) else [result]


def assert_same(one, other):
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert one.shape == other.shape


@pytest.mark.parametrize("name", SPLITS)
@settings(max_examples=30)
@given(events=EVENTS, rng=st.randoms(use_true_random=False))
def test_parts_add_up_to_the_whole_in_any_order_of_the_rows(name, events, rng):
    data = interactions_of(events)
    whole = data.matrix()
    shuffled = list(events)
    rng.shuffle(shuffled)
    others = holdouts_of(name, interactions_of(shuffled))
    for holdout, other in zip(holdouts_of(name, data), others, strict=True):
        train, validation = holdout.train.csr, holdout.validation.csr
        assert_same(train, other.train)
        assert_same(validation, other.validation)
        if name == "users":
            assert_same(holdout.fold_in, other.fold_in)
            train = holdout.seen.csr
        if name == "rolling":
            continue
        for part in (train, validation):
            assert type(part) is sparse.csr_matrix
            assert part.dtype == np.float64
            assert part.shape == whole.shape
            assert part.has_canonical_format
        assert not pairs(train) & pairs(validation)
        assert pairs(train) | pairs(validation) == pairs(whole)  # explicit zeros included
        if name not in BY_TIME:  # which leave later events of known pairs out
            assert (train + validation != whole.csr).nnz == 0
            assert holdout.left_out == (0, 0, 0)
        if name != "temporal":
            assert (np.diff(train.indptr) >= 1).all()
        assert holdout.users is data.users
        assert holdout.items is data.items


@given(EVENTS)
def test_holds_out_the_requested_number_of_pairs(events):
    data = interactions_of(events)
    sizes = np.diff(data.matrix().indptr)

    def counts(holdout):
        return np.diff(holdout.validation.indptr).tolist()

    expected = [min(round(0.4 * size), size - 1) for size in sizes.tolist()]
    assert counts(split.random(data, fraction=0.4)) == expected
    expected = [min(round(0.4 * n), n - 1) if n >= 4 else 0 for n in sizes.tolist()]
    assert counts(split.random(data, fraction=0.4, min_interactions=4)) == expected
    expected = [2 if size > 2 else 0 for size in sizes]
    assert counts(split.leave_k_out(data, k=2)) == expected
    assert counts(split.last_n(data, n=2)) == expected


@given(EVENTS, st.integers(2, 9))
def test_every_pair_is_held_out_in_one_fold(events, k):
    data = interactions_of(events)
    folds = list(split.k_fold(data, k=k))
    assert len(folds) == k
    whole = data.matrix()
    sizes = np.diff(whole.indptr)
    counts = np.array([np.diff(fold.validation.indptr) for fold in folds])
    assert (counts.sum(axis=0) == np.where(sizes > 1, sizes, 0)).all()
    assert (counts.max(axis=0) - counts.min(axis=0) <= 1).all()
    together = [pair for fold in folds for pair in pairs(fold.validation)]
    assert len(together) == len(set(together))


def test_folds_are_balanced_over_users():
    matrix = sparse.csr_matrix(np.ones((1000, 3)))
    sizes = [fold.validation.nnz for fold in split.k_fold(matrix, k=5)]
    assert sum(sizes) == 3000
    assert max(sizes) - min(sizes) < 150


def test_another_seed_gives_another_split():
    data = synthetic(200, 300, n_interactions=4000)
    for function in (split.random, split.leave_k_out, lambda *a, **k: next(split.k_fold(*a, **k))):
        one, other = (function(data, seed=seed).validation.csr for seed in (5, 2**200))
        assert (one != other).nnz > 0
    held_out = [np.diff(split.users(data, seed=seed).validation.indptr) > 0 for seed in (5, 6)]
    assert (held_out[0] != held_out[1]).any()


def test_split_of_a_user_does_not_depend_on_other_users():
    matrix = synthetic(200, 300, n_interactions=4000).matrix().csr
    others = matrix.copy()
    others.data[others.indptr[100] :: 2] = 0
    others.eliminate_zeros()
    for function in (split.random, split.leave_k_out):
        one, other = function(matrix).validation.csr, function(others).validation.csr
        assert_same(one[:100], other[:100])
        assert not np.array_equal(one.indices, other.indices)


def test_every_item_is_equally_likely():
    validation = split.leave_k_out(sparse.csr_matrix(np.ones((20_000, 5)))).validation
    counts = np.bincount(validation.indices, minlength=5)
    assert (abs(counts - 4000) < 5 * np.sqrt(4000 * 0.8)).all()


def test_sums_duplicates_of_any_object_with_a_matrix():
    class Log:
        def matrix(self):
            return sparse.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 0], [1, 1, 0])), shape=(1, 2))

    holdout = split.leave_k_out(Log())
    assert holdout.train.nnz == holdout.validation.nnz == 1
    assert (holdout.train.csr + holdout.validation.csr).toarray().tolist() == [[0, 3]]


REFUSED = [
    (split.random, {"fraction": 0}),
    (split.random, {"fraction": 1}),
    (split.random, {"fraction": np.nan}),
    (split.random, {"fraction": "0.2"}),
    (split.random, {"seed": -1}),
    (split.random, {"min_interactions": 0}),
    (split.leave_k_out, {"k": 0}),
    (split.leave_k_out, {"k": 1.0}),
    (split.leave_k_out, {"seed": -1}),
    (split.k_fold, {"k": 1}),
    (split.k_fold, {"seed": -1}),
    (split.users, {"fraction": 1.0}),
    (split.users, {"fold_in": 0}),
    (split.users, {"order": "late"}),
    (split.last_n, {"n": 0}),
    (split.temporal, {"fraction": 1}),
    (split.temporal, {"at": 5, "fraction": 0.2}),
    (split.temporal, {"at": 5, "test": 5}),
    (split.temporal, {"at": 5, "test": 0.5}),
    (split.temporal, {"test": 1.5}),
    (split.temporal, {"test": "2019-11-14"}),
    (split.temporal, {"fraction": 0.6, "test": 0.4}),
    (split.temporal, {"at": 5, "gap": -1}),
    (split.temporal, {"at": 5, "repeats": "no"}),
    (split.temporal, {"at": "2019-11-14"}),
    (split.temporal, {"at": 5, "gap": "1D"}),
    (split.temporal, {"at": 5, "gap": 5}),
    (split.temporal, {"at": 9}),
    (split.temporal, {"at": 5, "test": 20}),
    (split.rolling, {"window": 0}),
    (split.rolling, {"window": None}),
    (split.rolling, {"window": 1, "step": 0}),
    (split.rolling, {"window": 1, "train_window": 0}),
    (split.rolling, {"window": 1, "at": 5, "fraction": 0.2}),
    (split.rolling, {"window": 1, "repeats": None}),
]


@pytest.mark.parametrize(("function", "options"), REFUSED)
def test_refuses_options_at_the_call(function, options):
    data = interactions_of([(0, 0, 1.0, 0), (0, 1, 2.0, 5), (0, 0, 4.0, 9)])
    with raises(InvalidDataError):
        function(data, **options)


def test_refuses_unusable_input():
    matrix = sparse.csr_matrix([[1, 1]])
    undated = Interactions.from_frame(pd.DataFrame({"user": [1], "item": [1]}))
    by_time = partial(split.users, order="time")
    for function in (split.last_n, split.temporal, partial(split.rolling, window=1), by_time):
        for data in (matrix, undated):
            with raises(InvalidDataError):
                function(data)
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "at": [1, 2]})
    for data in (np.ones((2, 2)), None, [[1]], frame):
        with raises(InvalidDataError):
            split.random(data)
    with raises(InvalidDataError):
        split.temporal(frame)
    with raises(InvalidDataError, row=0, column=1):
        split.random(sparse.csr_matrix([[1, -1]]))
    outside = sparse.csr_matrix([[1, 1]])
    outside.indices[1] = 7
    with raises(InvalidDataError, argument="matrix"):
        split.random(outside)


# ------------------------------------------------------------------------------ Holdout


def labelled(users, items):
    matrix = sparse.csr_matrix(([1.0, 0.0, 0.1], ([0, 0, 1], [0, 2, 1])), shape=(2, 3))
    parts = split.leave_k_out(matrix)
    return split.Holdout(parts.train, parts.validation, users, items)


CLICKS = synthetic(50, 60, n_interactions=900)
SAVED = {
    "text and numbers": labelled(pd.Index(["a", "é"]), pd.Index([7, 2**40, -1])),
    "a range and odd text": labelled(pd.RangeIndex(2), pd.Index(["", "x y", "z" * 50])),
    "items only": labelled(None, pd.Index(["1", "2", "3"])),
    "no labels": labelled(None, None),
    "new users": split.users(CLICKS, fold_in=0.5, test=0.1),
    "dates": split.temporal(CLICKS, at="2019-11-20", test="2019-12-01", gap="1D").known(),
    "times": split.temporal(
        interactions_of([(0, 0, 1.0, 5), (0, 1, 1.0, 9), (0, 0, 1.0, 9)]), at=7
    ),
}


@pytest.mark.parametrize("name", SAVED)
def test_saves_and_loads(tmp_path, name):
    holdout, folder = SAVED[name], tmp_path / "new" / "folder"
    SAVED["new users"].save(folder)  # and over what is there
    holdout.save(folder)
    loaded = split.Holdout.load(str(folder))
    assert repr(loaded) == repr(holdout)
    files = {"labels.npz"}
    for part in ("train", "fold_in", "validation", "test"):
        one, other = getattr(loaded, part), getattr(holdout, part)
        assert (one is None) == (other is None)
        if one is not None:
            files.add(f"{part}.npz")
            assert_same(one, other)
            assert one.part == part
    assert {file.name for file in folder.iterdir()} == files
    for one, other in ((loaded.users, holdout.users), (loaded.items, holdout.items)):
        assert (one is None) == (other is None)
        assert one is None or one.equals(other)
    assert (loaded.left_out, loaded.cut) == (holdout.left_out, holdout.cut)
    assert type(loaded.cut) is type(holdout.cut)


def test_refuses_a_folder_without_its_test_part(tmp_path):
    three = SAVED["dates"]
    three.save(tmp_path)
    (tmp_path / "test.npz").unlink()
    with raises(InvalidFileError):
        split.Holdout.load(tmp_path)
    sparse.save_npz(tmp_path / "test.npz", three.train.csr)
    with raises(InvalidFileError):
        split.Holdout.load(tmp_path)
    with raises(InvalidDataError):
        SAVED["times"].for_test()


@pytest.mark.parametrize(
    "labels",
    [
        pd.Index([1.5, 2.5]),
        pd.Index(["a\0", "b"]),
        pd.to_datetime(["2020-01-01", "2020-01-02"]),
    ],
)
def test_refuses_to_save_labels_that_need_pickle(tmp_path, labels):
    matrix = sparse.csr_matrix([[1, 1], [1, 1]])
    holdout = split.Holdout(matrix, matrix, users=labels)
    with raises(InvalidDataError):
        holdout.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_refuses_different_shapes():
    matrix = sparse.csr_matrix([[1.0, 1.0]])
    with raises(InvalidDataError):
        split.Holdout(matrix, matrix, test=matrix.T.tocsr())
    with raises(InvalidDataError):
        split.Holdout(matrix, matrix, items=pd.Index([1]))


def test_refuses_unusable_folders(tmp_path):
    holdout = split.leave_k_out(sparse.csr_matrix([[1, 1]]))
    (tmp_path / "file").touch()
    with raises(OutputError):
        holdout.save(tmp_path / "file" / "folder")
    (tmp_path / "taken" / "train.npz").mkdir(parents=True)
    with raises(OutputError):
        holdout.save(tmp_path / "taken")
    assert [file.name for file in (tmp_path / "taken").iterdir()] == ["train.npz"]
    with raises(InvalidFileError):
        split.Holdout.load(tmp_path / "nothing")


MATRIX = sparse.csr_matrix([[1.0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    "train",
    [
        sparse.csr_matrix([[1.0, 0, 1], [0, 1, 0]]),
        MATRIX * 2,
        sparse.csr_matrix((MATRIX.data, MATRIX.indices, [0, 1, 3]), shape=MATRIX.shape),
        MATRIX.T.tocsr(),
        -MATRIX,
    ],
    ids=["other pairs", "other values", "other users", "other shape", "negative"],
)
def test_refuses_files_of_two_splits(tmp_path, train):
    split.Holdout(MATRIX, MATRIX).save(tmp_path)
    sparse.save_npz(tmp_path / "train.npz", train)
    with raises(InvalidFileError):
        split.Holdout.load(tmp_path)


@pytest.mark.parametrize(
    "changed",
    [{"left_out": np.array(["1", "x"])}, {"users": np.array([{}], dtype=object)}, None],
)
def test_refuses_damaged_labels(tmp_path, changed):
    split.Holdout(MATRIX, MATRIX).save(tmp_path)
    path = tmp_path / "labels.npz"
    with np.load(path) as file:
        arrays = dict(file)
    path.write_bytes(b"no")
    if changed is not None:
        np.savez(path, **arrays | changed)
    with raises(InvalidFileError, path=path):
        split.Holdout.load(tmp_path)
