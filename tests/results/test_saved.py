"""Saved evaluations: what comes back, and what is refused."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sparse_eval.results.saved import _signed

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, InvalidMetricError

NAMES = ["ndcg@5", "mean_rank", "coverage@5", "recall(average=micro)@5"]
ODD = [
    "",
    "NA",
    "nan",
    'quo"te',
    "new\nline",
    "carriage\rreturn",
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
    "text": [*ODD, *(f"u{number}" for number in range(20))],
}


@pytest.mark.parametrize("users", ["csv", "parquet"])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_what_is_saved_comes_back(users: Any, labels: Any, tmp_path: Path) -> None:
    ev = make(labels)
    about = {"factors": 64, "note": "<b>"}
    folder = ev.save(tmp_path / "results" / "als", users, about)
    assert folder == tmp_path / "results" / "als"
    assert sorted(file.name for file in folder.iterdir()) == [f"per_user.{users}", "summary.json"]
    saved = se.load_evaluation(folder)
    assert saved.path == folder / "summary.json"
    assert se.load_evaluation(folder / "summary.json").content == saved.content
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
    for options, message in (
        ({"users": "xlsx"}, "expected 'csv' or 'parquet'"),
        ({"about": {"model": object()}}, "what JSON cannot"),
        ({"about": {"loss": math.nan}}, "what JSON cannot"),
        ({"about": 3}, "what JSON cannot"),
    ):
        with pytest.raises(InvalidDataError, match=message):
            ev.save(tmp_path, **options)  # type: ignore[arg-type]
    mixed = make([*range(29), "x"])
    with pytest.raises(InvalidDataError, match="neither all text nor all whole numbers"):
        mixed.save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_saved_leaves_what_was(tmp_path: Path) -> None:
    ev = make(None)
    folder = ev.save(tmp_path / "als")
    large = se.Relevance.from_csr(ev_matrix(), users=np.array([2**63, 2**63 + 1], np.uint64))
    lists = se.Rankings.from_topk([[0], [1]])
    with pytest.raises(InvalidDataError, match="do not fit into 64 bits"):
        se.evaluate(lists, large, "mrr@1").save(folder)
    assert se.load_evaluation(folder).names == NAMES
    # Samples without any list have no gini: null, and NaN again.
    few = se.Rankings.from_topk([[0, 1], [1, 0]], users=[0, 1], shape=(6, 2))
    truth = csr_matrix(np.ones((6, 1)))
    undefined = se.evaluate(few, truth, ["gini@2", "mrr@2"])
    assert np.isnan(undefined.replicates("gini@2")).any()
    found = se.load_evaluation(undefined.save(tmp_path / "few")).replicates("gini@2")
    np.testing.assert_array_equal(found, undefined.replicates("gini@2"))


def ev_matrix() -> Any:
    return csr_matrix([[1.0, 0.0], [0.0, 1.0]])


def test_what_is_not_what_was_saved(tmp_path: Path) -> None:
    path = make(None).save(tmp_path) / "summary.json"
    table = tmp_path / "per_user.csv"
    whole, users = json.loads(path.read_text()), table.read_bytes()

    def refused(message: str, content: Any = whole) -> None:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(InvalidFileError, match=message):
            se.load_evaluation(path)

    with pytest.raises(InvalidFileError, match="cannot be read"):
        se.load_evaluation(tmp_path / "none.json")
    refused("is no JSON", "{")
    refused("is no saved evaluation", [1])
    for schema in ("1", True, None):
        refused("is no saved evaluation", whole | {"schema": schema})
    refused("written by a newer sparse_eval .schema 99", whole | {"schema": 99})
    refused("save with Evaluation.save", {k: v for k, v in whole.items() if k != "digest"})
    # Whatever is changed, deep inside too, and whatever is missing.
    for key in whole:
        if key not in ("schema", "digest"):
            refused("was changed after it was saved", {k: v for k, v in whole.items() if k != key})
    row = {"ndcg@5": whole["metrics"]["ndcg@5"] | {"mean": 0.5}}
    refused("was changed after it was saved", whole | {"metrics": whole["metrics"] | row})
    refused("was changed after it was saved", whole | {"digest": None})
    text = json.dumps(whole)
    refused("was changed after it was saved", re.sub(r'"mean": [\d.]+', '"mean": 1e999', text))
    for name in ("../per_user.csv", "/etc/passwd", "", "a\\b", "a\0b", "\ud800"):
        files = _signed(whole | {"users": whole["users"] | {"file": name}})
        refused("names no file beside it", files)
    refused("other columns or rows", _signed(whole | {"per_user": ["ndcg@5"]}))
    path.write_text(json.dumps(whole, indent=4))  # another layout is no change
    assert se.load_evaluation(path).names == NAMES
    table.write_bytes(users + b"1\n")
    refused("is not the table that summary.json was saved with")
    table.unlink()
    refused("keep both together")


def test_what_is_remembered_beside_the_numbers() -> None:
    clicks = se.datasets.synthetic(n_users=300, n_items=80, seed=1)
    holdout = se.split.random(clicks, seed=1)
    truth = se.Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items)
    model = se.train_als(holdout.train, factors=8)
    asked = ["ndcg@10", "recall@{5,10}", "coverage@10"]
    lists = se.evaluate_model(model, holdout.train, truth, asked)
    found = lists.snapshot({"seed": 1}).content
    curve = lists.precision_recall()
    assert found["precision_recall"]["ranks"] == list(range(1, 11))
    assert found["precision_recall"]["precision"] == curve.precision.tolist()
    assert found["about"] == {"seed": 1}
    assert set(found["versions"]) > {"python", "numpy", "implicit"}
    assert set(found["inputs"]) == {"rankings", "relevance", "train"}
    assert found["inputs"]["train"]["entries"] == holdout.train.nnz
    by = lists.by("activity")
    assert [row["mean"] for row in found["by"]["activity"]] == by["mean"].tolist()
    assert {row["metric"] for row in found["by"]["popularity"]} == {"recall@5", "recall@10"}

    # The Lorenz curve, from the lists.
    ids, k = lists.rankings, found["concentration"]["k"]
    counts = np.sort(np.bincount(ids.items, minlength=80))
    assert k == 10
    assert found["concentration"]["n_recommended"] == (counts > 0).sum()
    shares = dict(
        zip(found["concentration"]["items"], found["concentration"]["recommendations"], strict=True)
    )
    for place in (0, 20, 40, 80):
        assert shares[place / 80] == pytest.approx(counts[:place].sum() / counts.sum())
    assert found["concentration"]["top_percent"] == pytest.approx(counts[-1] / counts.sum())

    for example in found["examples"]:
        explained = lists.explain(example["user"])
        listed = explained[explained["rank"].notna()]
        assert [row["item"] for row in example["listed"]] == listed["item"].tolist()
        assert example["n_missed"] == len(explained) - len(listed)
    best = found["examples"][-1]
    assert best["why"] == "best by ndcg@10"
    values = lists.per_user["ndcg@10"]
    assert values[best["user"]] == values.max()

    # Of ranks alone, it is not known what was recommended; the users shown are the same.
    ranks = se.evaluate_model(model, holdout.train, truth, "ndcg@10").snapshot().content
    assert ranks["concentration"] is None
    for example in ranks["examples"]:
        assert example["whole"] == (len(example["listed"]) == 10)
    assert all(example["whole"] for example in found["examples"])
    assert [e["user"] for e in ranks["examples"]][:8] == [e["user"] for e in found["examples"]][:8]
    assert ranks["inputs"]["relevance"] == found["inputs"]["relevance"]
    assert ranks["inputs"]["rankings"] != found["inputs"]["rankings"]


def test_long_lists_are_cut_and_counted() -> None:
    lists = se.Rankings.from_topk([np.arange(100)] * 2)
    truth = csr_matrix(np.pad(np.ones((2, 40)), ((0, 0), (100, 0))))
    example = se.evaluate(lists, truth, "map").snapshot().content["examples"][0]
    assert (example["n_listed"], len(example["listed"])) == (100, 20)
    assert (example["n_missed"], len(example["missed"])) == (40, 10)
