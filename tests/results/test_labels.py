"""Users known by labels that are neither all text nor all whole numbers."""

import numpy as np
import pandas as pd
import pytest
from evaluations import N_USERS, in_memory, some
from raising import raises

from sparse_eval.errors import InvalidDataError

LABELS = {
    "of several types": [
        *range(100),
        *(f"u{n}" for n in range(100)),
        *((n, "x") for n in range(100)),
    ],
    "large": [2**63 + n for n in range(N_USERS)],
}


@pytest.mark.long
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_numbers_are_those_of_row_numbers(labels):
    named, expected = in_memory(labels), in_memory()
    # Which users are in a group of the jackknife, and what is drawn for them, depends on labels.
    columns = ["mean", "std", "interval", "n_users", "n_skipped"]
    one, other = named.summary(), expected.summary()
    pd.testing.assert_frame_equal(one[columns], other[columns], check_exact=True)
    assert (one["random"].notna() == other["random"].notna()).all()
    assert named.users.tolist() == named.per_user.index.tolist() == labels
    assert named.explain(labels[7])["rank"].notna().any()
    table = named.compare(in_memory(labels), ["ndcg@3", "coverage@3"]).table
    assert table["interval"].tolist() == ["t", "jackknife"]


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_they_are_neither_merged_nor_saved(labels, tmp_path):
    ev = some(N_USERS, labels=labels)
    for call in (
        lambda: ev.merge(some(first=1000)),
        lambda: some(first=1000).merge(ev),
        ev.merge,
        lambda: ev.save(tmp_path / "a"),
    ):
        with raises(InvalidDataError):
            call()
    assert not list(tmp_path.iterdir())
    if labels[0] == 0:
        with raises(InvalidDataError):
            ev.to_parquet(tmp_path / "a.parquet")
    ev.to_csv(tmp_path / "a.csv")
    assert len(pd.read_csv(tmp_path / "a.csv")) == N_USERS


@pytest.mark.parametrize("kind", [np.int64, object, "Int64"])
def test_whole_numbers_of_any_type_are_merged(kind):
    ends = [-(2**63), 2**63 - 1, 0, -5]
    other = some(3, labels=np.array([1, 2, 3], np.uint8))
    found = some(4, labels=pd.Index(ends, dtype=kind)).merge(other)
    assert found.per_user.index.tolist() == sorted([*ends, 1, 2, 3])
