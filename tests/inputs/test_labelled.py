"""Matrices that know the labels of their rows and columns."""

import copy
import pickle

import numpy as np
import pytest
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.inputs.axes import Axis
from sparse_eval.inputs.labelled import LabelledMatrix, labels_of

USERS, ITEMS = Axis.of(["ann", "bob"]), Axis.of([10, 20, 30])


@pytest.fixture
def matrix():
    return LabelledMatrix.of(sparse.csr_matrix([[1.0, 0, 2], [0, 3, 0]]), USERS, ITEMS, "train")


@pytest.mark.parametrize(
    "change",
    [
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),  # noqa: S301
    ],
)
def test_copies_keep_labels(matrix, change):
    changed = change(matrix)
    assert changed.users.equals(USERS)
    assert changed.items.equals(ITEMS)
    assert changed.part == "train"
    assert changed.csr.toarray().tolist() == matrix.csr.toarray().tolist()
    assert repr(changed) == (
        "<LabelledMatrix: 2 users × 3 items, 3 pairs; labels of users and items>"
    )


@pytest.mark.parametrize(
    "change",
    [lambda m: m[1:], lambda m: m[:, [2, 0]], lambda m: m + m, lambda m: m.csr @ m, list],
)
def test_there_is_no_way_to_lose_labels(matrix, change):
    with pytest.raises(TypeError):
        change(matrix)


def test_the_plain_matrix_shares_its_arrays():
    given = sparse.csr_matrix([[1.0, 0, 2], [0, 3, 0]])
    for other in (given, sparse.csr_array(given)):
        matrix = LabelledMatrix.of(other, USERS, None)
        assert type(matrix.tocsr()) is sparse.csr_matrix
        assert np.shares_memory(matrix.csr.data, given.data)
    turned = se.Holdout(given.tocsc(), given.tocsc())  # its arrays are those of columns
    assert (turned.train.csr != given).nnz == 0
    with raises(TypeError):
        turned.train[0]


def same(labels, others):
    return all(one is other for one, other in zip(labels, others, strict=True))


def test_interactions_and_holdouts_label_their_matrices():
    clicks = se.datasets.synthetic(n_users=30, n_items=20, seed=0)
    assert same(labels_of(clicks.matrix()), (clicks.users, clicks.items))
    for source in (clicks, clicks.matrix()):
        holdout = se.split.random(source, seed=0)
        assert same(labels_of(holdout.train), (clicks.users, clicks.items))
        assert same(labels_of(holdout.validation), (clicks.users, clicks.items))
        assert same((holdout.users, holdout.items), (clicks.users, clicks.items))
        assert (holdout.train.part, holdout.validation.part) == ("train", "validation")
