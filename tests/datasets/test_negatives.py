"""Sampled negatives: what is drawn, how often, and whatever the order of rows; published files."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from evaluations import random_of
from exact import exact_model
from hypothesis import given
from hypothesis import strategies as st
from raising import raises, warns
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError


def rows_of(candidates):
    bounds = candidates.indptr.tolist()
    return [set(candidates.items[a:b].tolist()) for a, b in pairwise(bounds)]


def named(candidates):
    assert candidates.users is not None
    assert candidates.items_index is not None
    ids = candidates.items_index
    rows = zip(candidates.users, rows_of(candidates), strict=True)
    return {user: {ids[item] for item in row} for user, row in rows}


def test_negatives_of_new_users_are_not_what_is_folded_in():
    clicks = se.datasets.synthetic(n_users=100, n_items=300, n_interactions=1_500, seed=0)
    holdout = se.split.users(clicks, fraction=0.3, seed=0)
    assert holdout.fold_in is not None
    found = se.sample_negatives(holdout, n=9)
    assert found.to_csr().multiply(holdout.fold_in.csr > 0).nnz == 0
    parts = (holdout.seen, holdout.validation)
    assert np.array_equal(found.items, se.sample_negatives(*parts, n=9).items)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["uniform", "popularity"]))
def test_negatives_are_neither_seen_nor_held_out(seed, by):
    rng = np.random.default_rng(seed)
    seen = rng.random((7, 30)) < rng.choice([0.2, 0.6])
    seen[:, 0] = True
    held = ~seen & (rng.random((7, 30)) < 0.1)
    held[0, ~seen[0]] = [True] + [False] * (np.count_nonzero(~seen[0]) - 1)
    train = sparse.csr_matrix(seen.astype(float))
    left = ~seen & ~held & (seen.any(axis=0) if by == "popularity" else True)
    n = max(int(left[held.any(axis=1)].sum(axis=1).min()), 0)
    if n == 0:
        return
    found = se.sample_negatives(train, sparse.csr_matrix(held), n, by=by, seed=seed)
    for user, row in enumerate(rows_of(found)):
        relevant = set(np.flatnonzero(held[user]).tolist())
        if not relevant:
            assert row == set()
            continue
        assert relevant <= row
        assert len(row - relevant) == n
        assert all(left[user, item] for item in row - relevant)
    with warns():
        every = se.sample_negatives(train, sparse.csr_matrix(held), 30, by=by)
    for user, row in enumerate(rows_of(every)):
        relevant = set(np.flatnonzero(held[user]).tolist())
        assert row == (relevant | set(np.flatnonzero(left[user]).tolist()) if relevant else set())


FEW = pytest.mark.filterwarnings("ignore:.* users have fewer than")


@FEW
@pytest.mark.parametrize("by", ["uniform", "popularity"])
def test_only_ids_decide_what_is_drawn(by):
    clicks = se.datasets.synthetic(n_users=80, n_items=200, seed=1)
    holdout = se.split.leave_k_out(clicks, seed=0)
    found = named(se.sample_negatives(holdout, n=20, by=by, seed=3))
    assert found == named(se.sample_negatives(holdout, n=20, by=by, seed=3))
    assert found != named(se.sample_negatives(holdout, n=20, by=by, seed=4))
    rng = np.random.default_rng(0)

    def table(matrix):
        rows, columns = matrix.csr.nonzero()
        frame = pd.DataFrame({"user": holdout.users[rows], "item": holdout.items[columns]})
        return frame.iloc[rng.permutation(len(frame))]

    train, validation = table(holdout.train), table(holdout.validation)
    items = set(holdout.items) - set(train["item"]) - set(validation["item"])
    assert not items  # or the frames would have another catalogue
    again = named(se.sample_negatives(train, validation, 20, by=by, seed=3))
    assert again == found
    some = validation[validation["user"].isin(holdout.users[:9])]
    few = named(se.sample_negatives(train, some, 20, by=by, seed=3))
    assert {user: row for user, row in few.items() if row} == {
        user: found[user] for user in holdout.users[:9]
    }


def test_every_item_is_drawn_alike():
    n_users, n_items = 4000, 20
    train = sparse.csr_matrix((np.ones(n_users), (np.arange(n_users), np.arange(n_users) % 5)))
    train.resize(n_users, n_items)
    held = sparse.csr_matrix((np.ones(n_users), (np.arange(n_users), np.full(n_users, 19))))
    found = se.sample_negatives(train, held, 6)
    counts = np.bincount(found.items, minlength=n_items)[:19]
    expected = np.where(np.arange(19) < 5, 0.8, 1.0) * n_users * 6 / 18
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.long
@pytest.mark.parametrize("rounds", [1, 32])
def test_popular_items_are_drawn_one_after_the_other(rounds, monkeypatch):
    """Of weights 5, 3, 2 (and 10, which was seen) two items are drawn: chances by hand."""
    monkeypatch.setattr("sparse_eval.datasets.negatives._ROUNDS", rounds)
    weights = np.array([5, 3, 2, 10])
    n_users = 6000
    # The popularity of items comes from users of whom nothing is held out.
    others = np.repeat(np.arange(4), weights * n_users)
    rows = np.concatenate((np.arange(n_users), n_users + np.arange(len(others))))
    columns = np.concatenate((np.full(n_users, 3), others))
    train = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(rows.max() + 1, 6))
    held = sparse.csr_matrix((np.ones(n_users), (np.arange(n_users), np.full(n_users, 4))))
    found = se.sample_negatives(train, held, 2, by="popularity")
    assert found.kind == "1+2 by popularity"
    counts = np.bincount(found.items, minlength=6)
    p = weights[:3] / 10
    in_two = [p[i] + sum(p[j] * p[i] / (1 - p[j]) for j in range(3) if j != i) for i in range(3)]
    assert counts[3] == counts[5] == 0
    for count, chance in zip(counts, in_two, strict=False):
        assert abs(count - chance * n_users) < 5 * np.sqrt(chance * (1 - chance) * n_users)


def test_an_item_that_training_has_as_zeros_alone_is_not_popular():
    rows, columns = [0, 1, 1, 2, 2], [0, 1, 2, 1, 2]
    train = sparse.csr_matrix(([1.0, 1.0, 0.0, 1.0, 0.0], (rows, columns)), shape=(3, 4))
    held = sparse.csr_matrix(([1.0], ([0], [3])), shape=(3, 4))
    with warns():
        found = se.sample_negatives(train, held, 2, by="popularity")
    assert rows_of(found)[0] == {1, 3}


@FEW
def test_says_what_they_are_wherever_they_are_shown():
    clicks = se.datasets.synthetic(n_users=200, n_items=300, seed=0)
    holdout = se.split.leave_k_out(clicks, seed=0)
    model = exact_model(holdout.train)
    candidates = se.sample_negatives(holdout, n=99)
    with warns() as said:
        ev = se.evaluate_model(model, holdout, "hit_rate@10", candidates=candidates)
    assert len(said) == 1  # that of few negatives was said before
    assert "hit_rate@10 (1+99)" in str(ev)
    assert "hit_rate@10 (1+99)" in repr(ev)
    assert ev["hit_rate@10 (1+99)"] == ev["hit_rate@10"]
    assert ev.summary()["candidates"].tolist() == ["1+99"]
    assert random_of(ev, "hit_rate@10").mean == pytest.approx(0.1, rel=0.1)
    several = se.split.random(clicks, seed=0)
    assert se.sample_negatives(several, n=5).kind == "n+5"


def test_refuses_what_cannot_be_drawn():
    holdout = se.split.leave_k_out(se.datasets.synthetic(n_users=20, n_items=30, seed=0))
    for parts, options in (
        ([holdout], {"by": "views"}),
        ([holdout], {"seed": 2**32}),
        ([holdout.train], {}),
        ([holdout, holdout.validation], {}),
    ):
        with raises(InvalidDataError):
            se.sample_negatives(*parts, **options)


def write(folder, text):
    path = folder / "test.negative"
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


def test_reads_what_is_published(tmp_path):
    path = write(tmp_path, "(1,2)\t0\t4\n(0,1)\t3\t1\r\n")
    train = sparse.csr_matrix(np.eye(3, 5))
    validation, candidates = se.read_negatives(path, train)
    assert rows_of(candidates) == [{1, 3}, {0, 2, 4}, set()]
    assert validation.items.tolist() == [1, 2]
    assert candidates.kind == "1+2"
    assert candidates.users is None
    frame = pd.DataFrame({"user": [1, 0, 5], "item": [4, 1, 0]})
    for ids in (int, str):
        clicks = se.Interactions.from_frame(frame.astype(ids), user="user", item="item")
        validation, candidates = se.read_negatives(path, clicks)
        rows = {int(user): set(map(int, row)) for user, row in named(candidates).items()}
        assert rows == {1: {0, 2, 4}, 0: {1, 3}, 5: set()}
        assert validation.items_index is not None
        assert candidates.items_index is not None
        assert validation.items_index.equals(candidates.items_index)


def test_reads_several_lines_of_a_user(tmp_path):
    path = write(tmp_path, "( 0 , 1 )\t3\t4\n(0,1)\t3\t2\n(0,2)\t3\t4\t0\n(1,0)\t3\t4\n")
    validation, candidates = se.read_negatives(path, sparse.csr_matrix(np.eye(2, 5)))
    assert rows_of(candidates) == [{0, 1, 2, 3, 4}, {0, 3, 4}]
    assert (validation.items.tolist(), validation.gains.tolist()) == ([1, 2, 0], [1, 1, 1])
    assert candidates.kind == "n+2"  # as most lines have
    path = write(tmp_path, "( ann , x )\ta\n(new,a)\tb\tc\n(ann,c)\tx\n")
    _, candidates = se.read_negatives(path, pd.DataFrame({"user": ["ann"], "item": ["x"]}))
    assert named(candidates) == {"ann": {"x", "a", "c"}, "new": {"a", "b", "c"}}


@pytest.mark.parametrize(
    "text", ["", "0,1\t2\n", "(0,1)\t\t2\n", "(0,a)\t2\n", "(0,1)\t-2\n", "\udcff"]
)
def test_refuses_other_files(tmp_path, text):
    with raises(InvalidFileError):
        se.read_negatives(write(tmp_path, text), sparse.csr_matrix(np.eye(3, 5)))
