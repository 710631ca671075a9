"""The parts of a split: what training does not know, the last step, saving and loading."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval import Holdout
from sparse_eval.errors import InvalidDataError, InvalidFileError, OutputError

CLICKS = se.datasets.synthetic(100, 200, n_interactions=1500)


PAIRS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=9)


def matrix_of(pairs):
    matrix = np.zeros((5, 6))
    for pair in pairs:
        matrix[pair] = 1
    return sparse.csr_matrix(matrix)


def parts_of(holdout):
    parts = [holdout.train, holdout.validation] + ([] if holdout.test is None else [holdout.test])
    return [
        set(zip(*(axis.tolist() for axis in part.csr.nonzero()), strict=True)) for part in parts
    ]


def n_users(matrix):
    return np.count_nonzero(np.diff(matrix.indptr))


@given(PAIRS, PAIRS, PAIRS)
def test_known_leaves_out_what_training_does_not_know(train, validation, test):
    holdout = Holdout(*map(matrix_of, (train, validation)), test=matrix_of(test))

    def new_to(known, held_out):
        users, items = ({pair[axis] for pair in known} for axis in (0, 1))
        return {(user, item) for user, item in held_out if user not in users or item not in items}

    new = new_to(train, validation)
    users, items = (
        {pair[axis] for pair in validation} - {pair[axis] for pair in train} for axis in (0, 1)
    )
    assert holdout.unknown == (len(users), len(items), len(new))
    known = holdout.known()
    kept = validation - new
    gone = new_to(train | kept, test)
    assert parts_of(known) == [train, kept, test - gone]
    assert known.unknown == known.for_test().unknown == (0, 0, 0)
    assert known.left_out == (0, 0, len(new) + len(gone))
    assert known.train.shape == holdout.train.shape
    assert parts_of(known.for_test()) == [train | kept, test - gone]
    assert parts_of(known.known()) == parts_of(known)


def test_a_value_of_zero_teaches_nothing():
    train = sparse.csr_matrix(([1.0, 0.0], ([0, 1], [0, 1])), shape=(2, 2))
    holdout = Holdout(train, sparse.csr_matrix([[0.0, 1.0], [1.0, 0.0]]))
    assert holdout.unknown == (1, 1, 2)
    assert "validation not in train: 1 users, 1 items, 2 pairs" in repr(holdout)
    assert holdout.known().validation.nnz == 0
    both = Holdout(train, train, test=train).for_test()
    assert both.train.nnz == 2  # the explicit zero is kept
    assert both.train.csr.sum() == 2


def test_a_user_that_is_folded_in_is_known_and_its_unknown_items_are_not():
    train = sparse.csr_matrix([[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    fold_in = sparse.csr_matrix([[0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])
    validation = sparse.csr_matrix([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0]])
    holdout = Holdout(train, validation, fold_in=fold_in)
    assert holdout.unknown == (1, 1, 2)
    known = holdout.known()
    assert known.validation.csr.toarray().tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert (known.fold_in.csr != fold_in).nnz == 0


def test_users_of_the_test_are_folded_in_after_validation():
    holdout = se.split.users(CLICKS, fraction=0.2, test=0.1)
    last = holdout.for_test()
    assert n_users(holdout.test) == n_users(last.fold_in) == 10
    assert last.train.nnz + last.fold_in.nnz == holdout.seen.nnz + holdout.validation.nnz
    assert (last.validation.csr != holdout.test.csr).nnz == 0
    assert (last.seen.csr < holdout.seen.csr).nnz == 0


@pytest.mark.parametrize(
    ("parts", "options"),
    [
        ([[1], [1]], {"test": sparse.csr_matrix([[1, 1]])}),
        ([[1], [1]], {"items": ["x", "y"]}),
        ([[1], [1]], {"users": ["anna"], "fold_in": sparse.csr_matrix([[1]])}),
    ],
)
def test_refuses_parts_that_do_not_fit(parts, options):
    with raises(InvalidDataError):
        Holdout(*map(sparse.csr_matrix, parts), **options)


def labelled(users, items):
    matrix = sparse.csr_matrix(([1.0, 0.0, 0.1], ([0, 0, 1], [0, 2, 1])), shape=(2, 3))
    parts = se.split.leave_k_out(matrix)
    return Holdout(parts.train, parts.validation, users, items)


NUMBERED = pd.DataFrame({"user": 0, "item": [0, 1, 0], "timestamp": [5, 9, 9]})
SAVED = {
    "text and numbers": labelled(pd.Index(["a", "é"]), pd.Index([7, 2**40, -1])),
    "a range and odd text": labelled(pd.RangeIndex(2), pd.Index(["", "x y", "z" * 50])),
    "no labels": labelled(None, None),
    "new users": se.split.users(CLICKS, fold_in=0.5, test=0.1),
    "dates": se.split.temporal(CLICKS, at="2019-11-20", test="2019-12-01", gap="1D").known(),
    "times": se.split.temporal(se.Interactions.from_frame(NUMBERED), at=7),
}


@pytest.mark.parametrize("name", SAVED)
def test_saves_and_loads(tmp_path, name):
    holdout, folder = SAVED[name], tmp_path / "new" / "folder"
    SAVED["new users"].save(folder)  # and over what is there
    holdout.save(folder)
    loaded = Holdout.load(str(folder))
    assert repr(loaded) == repr(holdout)
    files = {"labels.npz"}
    for part in ("train", "fold_in", "validation", "test"):
        one, other = getattr(loaded, part), getattr(holdout, part)
        assert (one is None) == (other is None)
        if one is not None:
            files.add(f"{part}.npz")
            for array in ("data", "indices", "indptr"):
                np.testing.assert_array_equal(getattr(one, array), getattr(other, array))
            assert one.part == part
    assert {file.name for file in folder.iterdir()} == files
    for one, other in ((loaded.users, holdout.users), (loaded.items, holdout.items)):
        assert (one is None) == (other is None)
        assert one is None or one.equals(other)
    assert (loaded.left_out, loaded.cut) == (holdout.left_out, holdout.cut)
    assert type(loaded.cut) is type(holdout.cut)


@pytest.mark.parametrize("labels", [[1.5, 2.5], ["a\0", "b"]])
def test_refuses_to_save_labels_that_need_pickle(tmp_path, labels):
    with raises(InvalidDataError):
        labelled(labels, None).save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_refuses_folders_that_cannot_be_used(tmp_path):
    holdout = SAVED["times"]
    with raises(InvalidDataError):
        holdout.for_test()
    (tmp_path / "file").touch()
    with raises(OutputError):
        holdout.save(tmp_path / "file" / "folder")
    (tmp_path / "taken" / "train.npz").mkdir(parents=True)
    with raises(OutputError):
        holdout.save(tmp_path / "taken")
    assert [file.name for file in (tmp_path / "taken").iterdir()] == ["train.npz"]
    with raises(InvalidFileError):
        Holdout.load(tmp_path / "nothing")


MATRIX = sparse.csr_matrix([[1.0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train", sparse.csr_matrix([[1.0, 0, 1], [0, 1, 0]])),  # other pairs
        ("train", MATRIX * 2),
        ("train", sparse.csr_matrix((MATRIX.data, MATRIX.indices, [0, 1, 3]))),  # other users
        ("train", MATRIX.T.tocsr()),
        ("train", -MATRIX),
        ("test", MATRIX * 2),
        ("test", None),
        ("labels", {"left_out": np.array(["1", "x"])}),
        ("labels", {"users": np.array([{}], dtype=object)}),
        ("labels", b"no"),
    ],
)
def test_refuses_files_of_two_splits_and_damaged_ones(tmp_path, name, content):
    Holdout(MATRIX, MATRIX, test=MATRIX).save(tmp_path)
    path = tmp_path / f"{name}.npz"
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        with np.load(path) as file:
            np.savez(tmp_path / "changed.npz", **dict(file) | content)
        (tmp_path / "changed.npz").replace(path)
    else:
        sparse.save_npz(path, content)
    with raises(InvalidFileError):
        Holdout.load(tmp_path)
