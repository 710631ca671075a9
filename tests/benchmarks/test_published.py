"""Printed tables: data in their authors' formats, models by their definitions, what is refused."""

import importlib
import shutil
import tomllib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from benchmark_calls import BENCHMARKS, call

pytestmark = pytest.mark.long

PRINTED = BENCHMARKS / "suites" / "published" / "printed.toml"
SHARED = Path(__file__).parents[3] / "shared" / "published"


def evaluate(table, folder, model, metrics, **options):
    asked = {"model": model, "options": options, "metrics": metrics}
    return call("suites.published.probe:row", table, folder, asked)


@pytest.fixture(scope="module")
def data():
    """Return the module that reads the data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("suites.published.data")


@pytest.fixture(scope="module")
def toys(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("toys")
    data.write_toys(str(folder))
    return folder


def test_reads_ratings_and_arrays_alike(data, toys, tmp_path):
    found = data.ncf(toys / "ncf_ml1m")
    users, items = found.train.nonzero()
    np.savez(tmp_path / "train.npz", user=users.astype(np.int16), item=items.astype(np.int16))
    shutil.copy(toys / "ncf_ml1m" / "ml-1m.test.negative", tmp_path)
    again = data.ncf(tmp_path)
    for one, other in zip(found, again, strict=True):
        assert (one != other).nnz == 0
    assert set(found.train.data) == set(found.held_out.data) == {1.0}
    assert np.diff(found.held_out.indptr).max() == 1
    # The positive is among its own negatives in some lines, and is one candidate all the same.
    assert set(np.diff(found.candidates.indptr)) == {20, 21}


def by_popularity(train):
    """Return the items, the most popular first, equal ones by number."""
    return np.lexsort((np.arange(train.shape[1]), -np.asarray(train.sum(axis=0)).ravel()))


def test_popularity_is_that_of_a_plain_count(data, toys):
    train, held_out, candidates = data.ncf(toys / "ncf_ml1m")
    order = by_popularity(train)
    hits = []
    for user in range(train.shape[0]):
        best = order[np.isin(order, candidates[user].indices)][:5]
        hits += np.isin(held_out[user].indices, best).tolist()
    found = evaluate("ncf_ml1m", toys / "ncf_ml1m", "popularity", ["hit_rate@5"])
    assert found["values"]["hit_rate@5"] == pytest.approx(np.mean(hits), abs=1e-12)
    assert found["n_users"] == len(hits)


def test_beyond_accuracy_is_that_of_plain_counts(data, toys):
    # As in Ferrari Dacrema et al. (2021), online appendix, section C.2, and in their code.
    folder = toys / "spectralcf_ml1m"
    train, held_out, _ = data.READERS["spectralcf_ml1m"](folder)
    order = by_popularity(train)
    users = np.flatnonzero(np.diff(held_out.indptr))
    lists = [order[~np.isin(order, train[user].indices)][:50].tolist() for user in users]
    counts = np.sort(np.bincount(np.concatenate(lists), minlength=train.shape[1]))
    shares, n = counts / counts.sum(), len(counts)
    pairs = [1 - len({*a} & {*b}) / 50 for a, b in combinations(lists, 2)]
    expected = {
        "personalization@50": np.mean(pairs),
        "coverage@50": np.mean(counts > 0),
        "gini@50": 2 * np.sum((n + 1 - np.arange(1, n + 1)) / (n + 1) * shares),
        "entropy@50": -np.sum(shares[shares > 0] * np.log2(shares[shares > 0])),
    }
    found = evaluate("spectralcf_ml1m", folder, "popularity", list(expected))["values"]
    for metric, value in expected.items():
        assert found[metric] == pytest.approx(value, rel=1e-12), metric


def test_printed_rows_are_whole():
    tables = tomllib.loads(PRINTED.read_text(encoding="utf-8"))
    for table in tables.values():
        assert len(table["metrics"]) == len(table["heads"])
        for row in table["rows"]:
            assert len(row["printed"]) == len(table["metrics"])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the published files are not beside the project")
@pytest.mark.parametrize("table", ["ncf_ml1m", "spectralcf_ml1m"])
def test_ease_is_as_printed(table, data):
    tolerance = importlib.import_module("suites.published.suite").TOLERANCE
    printed = tomllib.loads(PRINTED.read_text(encoding="utf-8"))[table]
    row = next(row for row in printed["rows"] if row.get("model") == "ease")
    found = evaluate(table, SHARED / table, "ease", printed["metrics"], **row["options"])
    for (metric, value), figure in zip(found["values"].items(), row["printed"], strict=True):
        assert value == pytest.approx(float(figure), rel=tolerance, abs=tolerance), metric
