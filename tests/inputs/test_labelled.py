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
PLAIN = sparse.csr_matrix([[1.0, 0, 2], [0, 3, 0]])
MATRIX = LabelledMatrix.of(PLAIN, USERS, ITEMS, "train")


@pytest.mark.parametrize("change", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])  # noqa: S301
def test_copies_keep_labels(change):
    changed = change(MATRIX)
    assert changed.users.equals(USERS)
    assert changed.items.equals(ITEMS)
    assert changed.part == "train"
    assert changed.csr.toarray().tolist() == PLAIN.toarray().tolist()


def test_there_is_no_way_to_lose_labels():
    with raises(TypeError):
        MATRIX[0]
    for change in (lambda m: m + m, lambda m: m.csr @ m, list):
        with pytest.raises(TypeError):
            change(MATRIX)


def test_the_plain_matrix_shares_its_arrays():
    for other in (PLAIN, sparse.csr_array(PLAIN)):
        matrix = LabelledMatrix.of(other, USERS, None)
        assert type(matrix.tocsr()) is sparse.csr_matrix
        assert np.shares_memory(matrix.csr.data, PLAIN.data)
    turned = se.Holdout(PLAIN.tocsc(), PLAIN.tocsc())  # its arrays are those of columns
    assert (turned.train.csr != PLAIN).nnz == 0


def test_interactions_and_holdouts_label_their_matrices():
    clicks = se.datasets.synthetic(n_users=30, n_items=20, seed=0)
    for source in (clicks, clicks.matrix()):
        holdout = se.split.random(source, seed=0)
        assert (holdout.train.part, holdout.validation.part) == ("train", "validation")
        for one in (clicks.matrix(), holdout.train, holdout.validation):
            users, items = labels_of(one)
            assert users is clicks.users
            assert items is clicks.items
