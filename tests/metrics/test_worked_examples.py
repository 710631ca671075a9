"""Examples worked by hand or by another library in the texts that define the metrics."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import sparse_eval as se


@pytest.mark.parametrize(
    ("gains", "metric", "value", "error"),
    [
        ((3, 2, 3, 0, 1), "dcg@5", 6.149, 5e-4),
        ((3, 2, 3, 0, 1), "idcg@5", 6.323, 5e-4),
        ((3, 2, 3, 0, 1), "ndcg@5", 0.972, 5e-4),
        ((3, 1, 0, 2, 0), "dcg@5", 4.492, 5e-4),
        ((3, 1, 0, 2, 0), "idcg@5", 4.762, 5e-4),
        ((3, 1, 0, 2, 0), "ndcg@5", 0.943, 5e-4),
        ((1, 0, 1, 1), "dcg@3", 1.5, 0),
        ((1, 0, 1, 1), "idcg@3", 2.131, 5e-4),
        ((1, 0, 1, 1), "ndcg@3", 0.704, 5e-4),
        ((1, 0, 0, 1, 1, 0), "map@6", 0.7, 1e-12),
        # Of three pairs those in the order of the gains; pairs of equal gains count nowhere.
        ((3, 2, 1), "fcp@3", 1, 0),
        ((2, 3, 1), "fcp@3", 2 / 3, 1e-12),
        ((2, 1, 3), "fcp@3", 1 / 3, 1e-12),
        ((1, 2, 3), "fcp@3", 0, 0),
        ((2, 2, 1), "fcp@3", 1, 0),
        ([1] * 10, "idcg@10", 4.543559, 5e-7),
        ([1] * 14, "idcg@10", 4.543559, 5e-7),
        ([1] * 8, "idcg@10", 3.953465, 5e-7),
    ],
)
def test_one_list_whose_ranks_have_gains(gains, metric, value, error):
    lists = se.Rankings.from_topk([list(range(len(gains)))])
    found = se.evaluate(lists, csr_matrix([gains]), metric)[metric]
    assert found == pytest.approx(value, abs=error)


def test_reciprocal_rank_of_four_users():
    # first hits at 3, 1, 3 and none
    relevant = csr_matrix(np.eye(4, 5)[[2, 0, 2, 4 - 1]])
    lists = se.Rankings.from_topk([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]], shape=(4, 5))
    assert se.evaluate(lists, relevant, "mrr@3")["mrr@3"] == pytest.approx(0.417, abs=5e-4)


#: Of each library's figures on Gowalla: the convention that gives them, and our name of each that
#: has another.
FIGURES = {
    "pytrec-eval-terrier 0.5.11": ("trec_eval", {}),
    "rectools 0.19.0": (
        "rectools",
        {
            "ndcg@20 default (ideal fills all 20 slots)": "ndcg@20",
            "MeanInvUserFreq@20": "novelty@20",
            "CatalogCoverage@20 normalize": "coverage@20",
            "AvgRecPopularity@20": "popularity@20",
        },
    ),
    "implicit 0.7.3 ranking_metrics_at_k K=20": (
        "implicit",
        {
            "precision (sum hits / sum min(K,|R|))": "precision@20",
            "map (divided by min(K,|R|))": "map@20",
            "ndcg": "ndcg@20",
            "auc": "auc@20",
        },
    ),
    "irspack 0.5.2 Evaluator cutoff=20": (
        "irspack",
        {"ndcg": "ndcg@20", "recall": "recall@20", "map (divided by |R|)": "map@20"},
    ),
}
#: A setting of RecTools that is the standard convention.
ACHIEVABLE = "ndcg@20 divide_by_achievable=True"


def close_to(value, library):
    rounded = library.startswith("irspack")  # its figures were kept with five decimals
    return pytest.approx(value, abs=5e-6 if rounded else 1e-12)


@pytest.fixture(scope="module")
def sides(gowalla):
    """Return the training data and the relevant items of the real split."""
    files = (gowalla / "train.txt", gowalla / "test.txt")
    holdout = se.Holdout.from_frames(*map(se.datasets.load_adjacency, files))
    return holdout.train, holdout.validation


def figures(gowalla, library):
    """Return the convention, a library's figures by our names, and that of the setting."""
    convention, names = FIGURES[library]
    expected = json.loads((gowalla / "expected.json").read_text())[library]
    achievable = expected.pop(ACHIEVABLE, None)
    named = {names.get(theirs, theirs): value for theirs, value in expected.items()}
    return convention, named, achievable


@pytest.mark.parametrize("library", FIGURES)
def test_real_lists_equal_other_libraries(gowalla, sides, library):
    convention, expected, achievable = figures(gowalla, library)
    train, validation = sides
    with np.load(gowalla / "als64_top20.npz", allow_pickle=False) as lists:
        rankings = se.Rankings.from_topk(
            lists["ids"], user_rows=lists["users"], shape=validation.shape
        )
    ev = se.evaluate(rankings, validation, list(expected), convention=convention, train=train)
    for name, value in expected.items():
        assert ev[name] == close_to(value, library), name
    if achievable is not None:
        plain = se.evaluate(rankings, validation, "ndcg@20")
        assert plain["ndcg@20"] == close_to(achievable, library)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("library", ["rectools 0.19.0", "implicit 0.7.3 ranking_metrics_at_k K=20"])
def test_real_checkpoint_equals_other_libraries(gowalla, sides, library):
    convention, expected, _ = figures(gowalla, library)
    # Their lists are the model's own, where single precision puts a few items in another order.
    checkpoint, names = gowalla / "als64.npz", list(expected)
    ev = se.evaluate_model(se.Recommender(checkpoint), *sides, names, convention=convention)
    exact = se.evaluate_model(checkpoint, *sides, names, convention=convention)
    for name, value in expected.items():
        assert exact[name] == pytest.approx(ev[name], rel=1e-5)
        assert ev[name] == close_to(value, library), name
