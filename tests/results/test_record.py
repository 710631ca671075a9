"""What is remembered of an evaluation beside its numbers: curves, examples, inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import sparse_eval as se


def test_curves_examples_and_inputs_are_remembered() -> None:
    clicks = se.datasets.synthetic(n_users=300, n_items=80, seed=1)
    holdout = se.split.random(clicks, seed=1)
    truth = se.Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items)
    model = se.train_als(holdout.train, factors=8)
    asked = ["ndcg@10", "recall@{5,10}", "coverage@10"]
    lists = se.evaluate_model(model, holdout.train, truth, asked)
    found = lists.record
    curve = lists.precision_recall()
    assert found["precision_recall"]["ranks"] == list(range(1, 11))
    assert found["precision_recall"]["precision"] == curve.precision.tolist()
    assert set(found["inputs"]) == {"rankings", "relevance", "train"}
    assert found["inputs"]["train"]["entries"] == holdout.train.nnz
    by = lists.by("activity")
    assert [row["mean"] for row in found["by"]["activity"]] == by["mean"].tolist()
    assert {row["metric"] for row in found["by"]["popularity"]} == {"recall@5", "recall@10"}

    # The Lorenz curve, from the lists.
    ids = lists.rankings
    counts = np.sort(np.bincount(ids.items, minlength=80))
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
    ranks = se.evaluate_model(model, holdout.train, truth, "ndcg@10").record
    assert ranks["concentration"] is None
    for example in ranks["examples"]:
        assert example["whole"] == (len(example["listed"]) == 10)
    assert [e["user"] for e in ranks["examples"]][:8] == [e["user"] for e in found["examples"]][:8]


def test_long_lists_are_cut_and_counted() -> None:
    lists = se.Rankings.from_topk([np.arange(100)] * 2)
    truth = csr_matrix(np.pad(np.ones((2, 40)), ((0, 0), (100, 0))))
    example = se.evaluate(lists, truth, "map").record["examples"][0]
    assert (example["n_listed"], len(example["listed"])) == (100, 20)
    assert (example["n_missed"], len(example["missed"])) == (40, 10)
