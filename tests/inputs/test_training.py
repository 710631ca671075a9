"""Training data, whole and of a block of users."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparse_eval.inputs.data import as_training


@pytest.fixture
def training():
    stored = ([3.0, 0.0, 1.0, 2.0, 0.0, 5.0], [0, 2, 1, 2, 0, 2], [0, 2, 4, 5, 6])
    return as_training(csr_matrix(stored, shape=(4, 3)), 5, 3)


def test_keeps_explicit_zeros_as_seen_but_not_in_the_history(training):
    users = np.array([0, 2, 1])
    assert [part.tolist() for part in training.seen(users)] == [[0, 2, 3, 5], [0, 2, 0, 1, 2]]
    assert [part.tolist() for part in training.history(users)] == [[0, 1, 1, 3], [0, 1, 2]]


@pytest.mark.parametrize(("first", "last"), [(0, 5), (1, 3), (3, 5), (4, 5), (5, 7)])
def test_block_has_its_own_users_and_the_item_statistics_of_all(training, first, last):
    block = training.part(first, last)
    users = np.arange(last - first)
    in_training = users[users + first < 5]
    expected = np.zeros(last - first, np.int64)
    expected[in_training] = training.user_counts[in_training + first]
    assert block.user_counts.tolist() == expected.tolist()
    for name in ("item_counts", "item_novelty", "by_popularity", "popularity_levels"):
        np.testing.assert_array_equal(getattr(block, name), getattr(training, name))
    for rows in ("seen", "history"):
        ours = getattr(block, rows)(in_training)
        whole = getattr(training, rows)(in_training + first)
        for part, other in zip(ours, whole, strict=True):
            np.testing.assert_array_equal(part, other)
