"""What each user gets, as a table."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from implicit.nearest_neighbours import CosineRecommender
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

CLICKS = se.datasets.synthetic(n_users=60, n_items=40, seed=3)


@pytest.fixture(scope="module")
def holdout() -> se.Holdout:
    return se.split.random(CLICKS, seed=0)


@pytest.fixture(scope="module")
def model(holdout: se.Holdout) -> Any:
    return se.train_als(holdout.train, factors=6, iterations=3)


def test_recommends_the_best_unseen_items(model: Any, holdout: se.Holdout, tmp_path: Path) -> None:
    recs = se.recommend(model, holdout, 5)
    assert recs.columns.tolist() == ["user", "item", "rank", "score"]
    scores = model.user_factors.astype(float) @ model.item_factors.astype(float).T
    scores[holdout.train.csr.toarray() != 0] = -np.inf
    best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    assert recs["item"].tolist() == holdout.items[best.ravel()].tolist()
    assert recs["user"].tolist() == np.repeat(holdout.users, 5).tolist()
    assert recs["rank"].tolist() == [1, 2, 3, 4, 5] * len(holdout.users)
    np.testing.assert_allclose(recs["score"], np.take_along_axis(scores, best, 1).ravel())
    path = se.save_model(model, tmp_path / "als.npz")
    pd.testing.assert_frame_equal(se.recommend(path, holdout.train, 5), recs)
    truth = CLICKS.without(holdout.train).to_frame()
    assert (
        se.evaluate(recs.drop(columns="score"), truth, "ndcg@5")["ndcg@5"]
        == se.evaluate_model(model, holdout, "ndcg@5")["ndcg@5"]
    )


def test_numbers_where_there_are_no_ids(holdout: se.Holdout) -> None:
    train = holdout.train.csr
    model = se.train_als(train, factors=4, iterations=2)
    recs = se.recommend(model, train, 2, users=[5])
    assert recs["user"].tolist() == [5, 5]
    assert recs["item"].dtype == np.int64
    with raises(InvalidDataError):
        se.recommend(model, train, 2, users=["U5"])


def test_neighbours(holdout: se.Holdout) -> None:
    model = CosineRecommender(K=5)
    train = holdout.train.csr.astype(np.float64)
    with pytest.warns(match="Method expects CSR input"):
        model.fit(train, show_progress=False)
    recs = se.recommend(model, holdout, 4, users=["U3"])
    row = holdout.users.get_loc("U3")
    ids, scores = model.recommend(row, sparse.csr_matrix(train)[row], N=4)
    assert recs["item"].tolist() == holdout.items[ids].tolist()
    np.testing.assert_allclose(recs["score"], scores)


def test_a_short_list_where_almost_all_was_seen() -> None:
    seen = sparse.csr_matrix([[1, 1, 0], [1, 0, 0], [0, 0, 0]])
    model = se.train_als(seen, factors=2, iterations=1)
    recs = se.recommend(model, seen, 10)
    assert recs.groupby("user").size().tolist() == [1, 2, 3]
    assert recs["rank"].tolist() == [1, 1, 2, 1, 2, 3]


@pytest.mark.parametrize(
    "options", [{"users": ["U3", "nobody"]}, {"users": "U3"}, {"users": [1]}, {"k": 0}]
)
def test_refuses(model: Any, holdout: se.Holdout, options: dict[str, Any]) -> None:
    with raises(InvalidDataError):
        se.recommend(model, holdout, **options)
