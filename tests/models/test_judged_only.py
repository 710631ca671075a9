"""Models ranked among judged items, and measures of judged items, against lists of all items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command
from raising import warns
from scipy import sparse

import sparse_eval as se

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

METRICS = ["ndcg@3", "recall@2", "bpref@4", "judged@3", "infap@3"]


class Sides:
    """Factors, what is seen, and judgements."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n_users, n_items = 12, 25
        users, items = rng.normal(size=(n_users, 3)), rng.normal(size=(n_items, 3))
        self.model = users.astype(np.float32), items.astype(np.float32)
        seen = rng.random((n_users, n_items)) < 0.2
        stored = (rng.random((n_users, n_items)) < 0.4) & ~seen
        stored[-1] = False  # nothing is judged
        gains = rng.choice([0.0, 0.0, 1.0, 2.0], size=stored.shape)
        gains[-2] = 0  # and nothing is relevant
        self.seen = sparse.csr_matrix(seen.astype(np.float64))
        self.truth = sparse.csr_matrix((gains[stored], np.nonzero(stored)), stored.shape)


@pytest.mark.parametrize("rules", [{}, {"judged_only": True}, {"no_relevant": "zero"}])
def test_models_and_popularity_have_the_numbers_of_their_lists(rules: dict[str, Any]) -> None:
    sides = Sides(0)
    protocol = se.Protocol(METRICS, **rules)
    ev = se.evaluate_model(sides.model, sides.seen, sides.truth, protocol, baselines=True)
    n_items = sides.truth.shape[1]
    lists = se.Rankings.from_topk(se.top_k(sides.model, n_items, seen=sides.seen).ids)
    popular = se.Rankings.from_popularity(sides.seen, k=n_items)
    for found, ranked in ((ev, lists), (ev.baselines["popularity"], popular)):
        expected = se.evaluate(ranked, sides.truth, protocol, train=sides.seen)
        assert found.mean() == expected.mean()
        assert found.summary()["random"].tolist() == pytest.approx(expected.summary()["random"])


def test_warns_if_nothing_was_judged_to_be_not_relevant() -> None:
    sides = Sides(2)
    sides.truth.eliminate_zeros()
    with warns():
        se.evaluate_model(
            sides.model, sides.seen, sides.truth, se.Protocol("ndcg@3", judged_only=True)
        )


def shown_and_clicked() -> se.Holdout:
    """A split whose validation part stores items that were shown and not clicked, as MIND's."""
    clicks = se.datasets.synthetic(n_users=60, n_items=40, n_interactions=900, seed=0)
    holdout = se.split.random(clicks, fraction=0.4, seed=0)
    validation = holdout.validation.csr
    validation.data[::2] = 0.0
    return se.Holdout(holdout.train, validation, holdout.users, holdout.items)


def test_whatever_evaluates_models_takes_it(tmp_path: Path, command: Command) -> None:
    holdout = shown_and_clicked()
    sides = (holdout.train, holdout.validation)
    protocol = se.Protocol("ndcg@5", judged_only=True)
    model = se.train_als(holdout.train, factors=4, iterations=3)
    expected = se.evaluate_model(model, *sides, protocol)["ndcg@5"]
    assert expected != se.evaluate_model(model, *sides, "ndcg@5")["ndcg@5"]

    se.save_model(model, tmp_path / "als.npz", users=holdout.users, items=holdout.items)
    table = se.sweep(tmp_path / "als.npz", *sides, protocol, out=tmp_path / "sweep")
    assert table["ndcg@5 (judged)"].tolist() == [expected]

    callback = se.EvaluationCallback(*sides, protocol)
    se.train_als(holdout.train, factors=4, iterations=3, callback=callback)
    assert callback.history["ndcg@5 (judged)"].iloc[-1] == expected
    models = {"als": {"factors": 4, "iterations": 3}}
    cv = se.cross_validate(None, models, protocol, splits=[holdout], seeds=[0], out=tmp_path / "cv")
    assert "ndcg@5 (judged)" in str(cv)
    assert se.CrossValidation.load(tmp_path / "cv").request.judged_only

    holdout.save(tmp_path / "split")
    words = ["score", tmp_path / "als.npz", "--split", tmp_path / "split", "-m", "ndcg@5"]
    status, printed, _ = command(*words, "--judged-only")
    assert status == 0
    assert "ndcg@5 (judged)" in printed
