"""Examples worked by hand or by another library in the texts that define the metrics."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import sparse_eval as se


def of_gains(gains, metric):
    """Evaluate one list whose ranks have these gains, the user having no other relevant item."""
    lists = se.Rankings.from_topk([list(range(len(gains)))])
    return se.evaluate(lists, csr_matrix([gains]), metric)[metric]


@pytest.mark.parametrize(
    ("gains", "dcg", "idcg", "ndcg"),
    [((3, 2, 3, 0, 1), 6.149, 6.323, 0.972), ((3, 1, 0, 2, 0), 4.492, 4.762, 0.943)],
)
def test_graded_gains(gains, dcg, idcg, ndcg):
    assert of_gains(gains, "dcg@5") == pytest.approx(dcg, abs=1e-3)
    assert of_gains(gains, "idcg@5") == pytest.approx(idcg, abs=1e-3)
    assert of_gains(gains, "ndcg@5") == pytest.approx(ndcg, abs=5e-4)


def test_groceries():
    milk, eggs, bread, cheese = range(4)
    lists = se.Rankings.from_topk([[eggs, cheese, milk, bread]])
    ev = se.evaluate(lists, csr_matrix([[1, 1, 1, 0]]), ["dcg@3", "idcg@3", "ndcg@3"])
    assert ev["dcg@3"] == 1.5
    assert ev["idcg@3"] == pytest.approx(2.131, abs=5e-4)
    assert ev["ndcg@3"] == pytest.approx(0.704, abs=5e-4)


def test_reciprocal_rank_of_four_users():
    # first hits at 3, 1, 3 and none
    relevant = csr_matrix(np.eye(4, 5)[[2, 0, 2, 4 - 1]])
    lists = se.Rankings.from_topk([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]], shape=(4, 5))
    assert se.evaluate(lists, relevant, "mrr@3")["mrr@3"] == pytest.approx(0.417, abs=5e-4)


def test_average_precision():
    assert of_gains((1, 0, 0, 1, 1, 0), "map@6") == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize(("n", "idcg"), [(10, 4.543559), (14, 4.543559), (8, 3.953465)])
def test_ideal_gain_of_binary_relevance(n, idcg):
    assert of_gains([1] * n, "idcg@10") == pytest.approx(idcg, abs=5e-7)


#: Of each library's figures on Gowalla: the convention that gives them, and our name of each.
FIGURES = {
    "pytrec-eval-terrier 0.5.11": (
        "trec_eval",
        {
            **{f"P_{k}": f"precision@{k}" for k in (5, 10, 20)},
            **{f"recall_{k}": f"recall@{k}" for k in (5, 10, 20)},
            **{f"ndcg_cut_{k}": f"ndcg@{k}" for k in (5, 10, 20)},
            **{f"map_cut_{k}": f"map@{k}" for k in (10, 20)},
            **{f"success_{k}": f"hit_rate@{k}" for k in (1, 5, 10)},
            "recip_rank": "mrr",
            "Rprec": "r_precision",
        },
    ),
    "rectools 0.19.0": (
        "rectools",
        {
            "hit@20": "hit_rate@20",
            "precision@20": "precision@20",
            "recall@20": "recall@20",
            "ndcg@20 default (ideal fills all 20 slots)": "ndcg@20",
            "mrr@20": "mrr@20",
            "map@20": "map@20",
            "MeanInvUserFreq@20": "novelty@20",
            "CatalogCoverage@20 normalize": "coverage@20",
            "AvgRecPopularity@20": "popularity@20",
            "Serendipity@20": "serendipity@20",
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
    train, validation = se.datasets.load_parts(gowalla / "train.txt", gowalla / "test.txt")
    return train.matrix(), validation.matrix()


@pytest.mark.parametrize("library", FIGURES)
def test_real_lists_equal_other_libraries(gowalla, sides, library):
    convention, names = FIGURES[library]
    expected = json.loads((gowalla / "expected.json").read_text())[library]
    achievable = expected.pop(ACHIEVABLE, None)
    assert expected.keys() == names.keys()
    train, validation = sides
    with np.load(gowalla / "als64_top20.npz", allow_pickle=False) as lists:
        rankings = se.Rankings.from_topk(
            lists["ids"], user_rows=lists["users"], shape=validation.shape
        )
    data = (rankings, validation)
    ev = se.evaluate(*data, list(names.values()), convention=convention, train=train)
    for theirs, ours in names.items():
        assert ev[ours] == close_to(expected[theirs], library), theirs
    if achievable is not None:
        assert se.evaluate(*data, "ndcg@20")["ndcg@20"] == close_to(achievable, library)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("library", ["rectools 0.19.0", "implicit 0.7.3 ranking_metrics_at_k K=20"])
def test_real_checkpoint_equals_other_libraries(gowalla, sides, library):
    convention, names = FIGURES[library]
    expected = json.loads((gowalla / "expected.json").read_text())[library]
    # a list of 20 is all there is: without a cut-off the model's would be the whole catalogue
    cut_names = [name if "@" in name or name == "mrr" else f"{name}@20" for name in names.values()]
    # Their lists are the model's own, where single precision puts a few items in another order.
    checkpoint = gowalla / "als64.npz"
    ev = se.evaluate_model(se.Recommender(checkpoint), *sides, cut_names, convention=convention)
    exact = se.evaluate_model(checkpoint, *sides, cut_names, convention=convention)
    for name in cut_names:
        assert exact[name] == pytest.approx(ev[name], rel=1e-5)
    for theirs, ours in zip(names, cut_names, strict=True):
        assert ev[ours] == close_to(expected[theirs], library), theirs
