"""Matrices that know the labels of their rows and columns."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sparse_eval as se
from sparse_eval.inputs.axes import Axis
from sparse_eval.inputs.labelled import LabelledMatrix, labels_of

USERS, ITEMS = Axis.of(["ann", "bob"]), Axis.of([10, 20, 30])


@pytest.fixture
def matrix() -> LabelledMatrix:
    return LabelledMatrix.of(sparse.csr_matrix([[1.0, 0, 2], [0, 3, 0]]), USERS, ITEMS, "train")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.copy(),
        lambda m: m.astype(np.float32),
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),  # noqa: S301
    ],
)
def test_copies_keep_labels(matrix: LabelledMatrix, change: Any) -> None:
    changed = change(matrix)
    assert changed.users.equals(USERS)
    assert changed.items.equals(ITEMS)
    assert changed.part == "train"
    assert changed.toarray().tolist() == matrix.toarray().tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m[1:],
        lambda m: m[:, [2, 0]],
        lambda m: m + m,
    ],
)
def test_what_is_computed_has_no_labels(matrix: LabelledMatrix, change: Any) -> None:
    assert same(labels_of(change(matrix)), (None, None))


def same(labels: tuple[Any, Any], others: tuple[Any, Any]) -> bool:
    return all(one is other for one, other in zip(labels, others, strict=True))


def test_interactions_and_holdouts_label_their_matrices() -> None:
    clicks = se.datasets.synthetic(n_users=30, n_items=20, seed=0)
    assert same(labels_of(clicks.matrix()), (clicks.users, clicks.items))
    for source in (clicks, clicks.matrix()):
        holdout = se.split.random(source, seed=0)
        assert same(labels_of(holdout.train), (clicks.users, clicks.items))
        assert same(labels_of(holdout.validation), (clicks.users, clicks.items))
        assert same((holdout.users, holdout.items), (clicks.users, clicks.items))
        assert (holdout.train.part, holdout.validation.part) == ("train", "validation")
