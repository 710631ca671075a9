"""Saved evaluations: what comes back, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, InvalidMetricError

NAMES = ["ndcg@5", "mean_rank", "coverage@5", "recall(average=micro)@5"]
ODD = [
    "",
    "NA",
    "nan",
    'quo"te',
    "new\nline",
    "a,b",
    "<script>alert(1)</script>",
    "שלום",
    "x" * 9999,
]


def make(labels: list[Any] | None, seed: int = 0) -> se.Evaluation:
    rng = np.random.default_rng(seed)
    held_out = np.random.default_rng(1).random((len(labels or range(30)), 40)) < 0.1
    held_out[0] = False  # one is left out
    lists = se.Rankings.from_topk(rng.permuted(np.tile(np.arange(40), (len(held_out), 1)), axis=1))
    relevance = se.Relevance.from_csr(csr_matrix(held_out.astype(float)), users=labels)
    return se.evaluate(lists, relevance, NAMES)


LABELS = {
    "row numbers": None,
    "numbers": list(range(100, 130)),
    "text": [*ODD, *(f"u{number}" for number in range(21))],
}


@pytest.mark.parametrize("users", ["csv", "parquet"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_what_is_saved_comes_back(users: Any, labels: Any, tmp_path: Path) -> None:
    ev = make(labels)
    about = {"factors": 64, "note": "<b>"}
    path = ev.save(tmp_path / "als.json", users, about)
    assert path == tmp_path / "als.json"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["als.json", f"als.users.{users}"]
    saved = se.load_evaluation(path)
    assert saved.names == ev.names
    assert saved.mean() == ev.mean()
    assert saved.about == about
    assert (saved.users is None) == (labels is None)
    pd.testing.assert_frame_equal(saved.per_user, ev.per_user, check_index_type=False)
    pd.testing.assert_frame_equal(saved.summary(), ev.summary(), check_dtype=False)
    for name in ("counted", "n_relevant", "fingerprints"):
        assert getattr(saved, name).tolist() == getattr(ev, name).tolist()
    other = make(labels, seed=2)
    expected = se.compare({"a": ev, "b": other}).table
    pd.testing.assert_frame_equal(se.compare({"a": saved, "b": other}).table, expected)
    assert saved.compare(ev).table["difference"].tolist() == [0.0] * len(NAMES)
    with pytest.raises(InvalidMetricError, match="there are ndcg@5"):
        saved["ndcg@10"]
    with pytest.raises(InvalidMetricError, match="one number"):
        saved.values("coverage@5")


def test_nothing_to_save(tmp_path: Path) -> None:
    ev = make(None)
    for path, options, message in (
        ("als.csv", {}, "end it in .json"),
        ("als.json", {"users": "xlsx"}, "expected 'csv' or 'parquet'"),
        ("als.json", {"about": {"model": object()}}, "what JSON cannot"),
        ("als.json", {"about": {"loss": math.nan}}, "what JSON cannot"),
    ):
        with pytest.raises(InvalidDataError, match=message):
            ev.save(tmp_path / path, **options)  # type: ignore[arg-type]
    mixed = make([*range(29), "x"])
    with pytest.raises(InvalidDataError, match="neither all text nor all whole numbers"):
        mixed.save(tmp_path / "als.json")
    assert not list(tmp_path.glob("*.json"))


def test_what_is_not_what_was_saved(tmp_path: Path) -> None:
    path = make(None).save(tmp_path / "als.json")
    table = tmp_path / "als.users.csv"
    whole, users = json.loads(path.read_text()), table.read_bytes()

    def refused(message: str, content: Any = whole) -> None:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(InvalidFileError, match=message):
            se.load_evaluation(path)

    with pytest.raises(InvalidFileError, match="cannot be read"):
        se.load_evaluation(tmp_path / "none.json")
    refused("is no JSON", "{")
    refused("is no saved evaluation", [1])
    refused("is no saved evaluation", {"schema": "1"})
    refused("written by a newer sparse_eval .schema 99", whole | {"schema": 99})
    refused("'about' is missing", {key: value for key, value in whole.items() if key != "about"})
    for name in ("../als.users.csv", "/etc/passwd", None, "a\\b"):
        refused("names no file beside it", whole | {"users": whole["users"] | {"file": name}})
    refused("does not say what", whole | {"users": whole["users"] | {"labels": "float"}})
    refused("other columns or rows", whole | {"per_user": ["ndcg@5"]})
    table.write_bytes(users + b"1\n")
    refused("is not the table that als.json was saved with")
    table.unlink()
    refused("keep both together")
