"""Hashes and random numbers: known values, and what they depend on."""

import numpy as np

from sparse_eval.core.hashing import (
    digest_arrays,
    digest_csr,
    digest_labels,
    fingerprints,
    hash_labels,
    splitmix64,
    uniforms,
)
from sparse_eval.inputs.axes import Axis


def test_splitmix64_gives_the_published_numbers():
    states = np.array([0, 1234567], np.uint64)
    assert splitmix64(states).tolist() == [0xE220A8397B1DCDAF, 6457827717110365317]
    assert states.tolist() == [0, 1234567]


def test_hashes_of_labels_depend_on_nothing_but_the_label():
    wide = hash_labels(np.array([3, -1, 2**40]))
    assert wide.tolist() == splitmix64(np.array([3, -1 % 2**64, 2**40], np.uint64)).tolist()
    np.testing.assert_array_equal(hash_labels(np.array([3, -1], np.int32)), wide[:2])
    texts = hash_labels(np.array(["a", "b", "a"]))
    assert texts[0] == texts[2] != texts[1]
    np.testing.assert_array_equal(hash_labels(np.array(["a", "b", "a"], object)), texts)


def test_digests_of_labels_tell_types_and_order_apart():
    labels = ([1, 2], [2, 1], ["1", "2"], [1.0, 2.0])
    digests = [digest_labels(np.array(some, object)) for some in labels]
    assert len({*digests, digest_labels(np.array([1, 2]))}) == 5
    assert digest_labels(np.array([1, 2], np.int16)) == digest_labels(np.array([1, 2]))


def test_digests_of_matrices_do_not_depend_on_dtypes():
    digest = digest_csr((2, 3), np.array([0, 1, 2]), np.array([2, 0]), np.array([1.0, 2.0]))
    narrow = (np.array([0, 1, 2], np.int32), np.array([2, 0], np.int16), np.array([1, 2], np.int8))
    assert digest_csr((2, 3), *narrow) == digest
    assert len(digest) == 64
    assert len({digest, digest_csr((3, 3), *narrow), digest_csr((2, 3), *narrow[:2])}) == 3


def test_fingerprints_depend_on_items_and_gains_but_not_on_order():
    indptr = np.array([0, 2, 4, 4, 6])
    items = np.array([1, 2, 2, 1, 1, 2])
    gains = np.array([1.0, 0.0, -0.0, 1.0, 1.0, 2.0])
    hashes = fingerprints(indptr, items, gains, None)
    assert hashes[0] == hashes[1] != hashes[3]
    assert hashes[2] == 0
    names = fingerprints(indptr, items, gains, Axis.of(["x", "y", "z"]).item_keys)
    assert names[0] == names[1] != hashes[0]
    moved = fingerprints(indptr, items - 1, gains, Axis.of(["y", "z"]).item_keys)
    np.testing.assert_array_equal(moved, names)


KEYS = np.random.default_rng(0).integers(0, 2**64, 3000, np.uint64)


def test_numbers_are_uniform_and_independent():
    drawn = np.stack([uniforms(KEYS, np.full(3000, 4), seed) for seed in range(3)])
    assert ((drawn >= 0) & (drawn < 1)).all()
    assert len(np.unique(drawn)) == drawn.size
    columns = drawn.reshape(3, 3000, 4).transpose(1, 0, 2).reshape(3000, 12)
    # of 3000 numbers: standard errors 0.0053 of a mean, 0.0183 of a correlation
    assert np.abs(columns.mean(axis=0) - 0.5).max() < 4.5 * 0.0053
    assert np.abs(np.corrcoef(columns.T) - np.eye(12)).max() < 4.5 * 0.0183
    in_tenths = np.histogram(drawn, 10, (0, 1))[0]
    assert np.abs(in_tenths / drawn.size - 0.1).max() < 4.5 * 0.3 / drawn.size**0.5


def test_digests_of_arrays_depend_on_values_order_and_shape():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    others = [array + 1, -array, array[::-1], array.T, array.reshape(-1), array.astype(float)]
    digests = {digest_arrays(some) for some in (array, *others)}
    assert len(digests) == 7
    assert digest_arrays(np.asfortranarray(array)) == digest_arrays(array.astype(">f4")) in digests
    assert digest_arrays(array, others[0]) != digest_arrays(others[0], array)
