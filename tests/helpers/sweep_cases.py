"""Checkpoints to sweep over, and what the tests do to them."""

import csv
import os
from contextlib import contextmanager

import numpy as np
import pandas as pd

N_USERS, N_ITEMS = 250, 60
METRICS = ["ndcg@10", "recall@{5,20}", "novelty@5"]
NAMES = ["ndcg@10", "recall@5", "recall@20", "novelty@5"]


def save(path, factors=4, seed=0, **arrays):
    """Save what a model of implicit would."""
    rng = np.random.default_rng([seed, factors])
    parts = {
        "user_factors": rng.standard_normal((N_USERS, factors)).astype(np.float32),
        "item_factors": rng.standard_normal((N_ITEMS, factors)).astype(np.float32),
        "factors": factors,
        "alpha": 40.0,
        "use_cg": True,
        "dtype": "float32",
    }
    np.savez(path, **(parts | arrays))
    return path


def rows_of(table):
    with table.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def same_table(first, second):
    """Return True if two tables are equal, apart from the durations; raise otherwise."""
    pd.testing.assert_frame_equal(
        first.drop(columns="seconds"), second.drop(columns="seconds"), check_exact=True
    )
    return True


def overwrite(path, content):
    """Overwrite a file in place, with a time of last change that is a second later."""
    last = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(last, last + 10**9))


def swap(path, content):
    """Replace a file by another of the same size and time."""
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    replacement = path.with_suffix(".other")
    replacement.write_bytes(content)
    os.utime(replacement, ns=times)
    replacement.replace(path)


@contextmanager
def changing(monkeypatch, owner, name, path, changes):
    """Apply the next change to a file each time that a function has read it."""
    read = getattr(owner, name)

    def reads(given, *more):
        try:
            return read(given, *more)
        finally:
            if str(getattr(given, "name", given)) in (str(path), path.name) and changes:
                changes.pop(0)()

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, reads)
        yield
    assert changes == []
