"""Public functions given values of a wrong type: they take them, or raise a SparseEvalError."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy import sparse
from tensors import CUDA, Tensor

import sparse_eval as se
from sparse_eval import Rankings, Relevance

LISTS = Rankings.from_topk([[0, 1], [1, 2], [2, 3]], shape=(3, 4))
MATRIX = sparse.csr_matrix(np.eye(3, 4))
FACTORS = (np.ones((3, 2)), np.ones((4, 2)))
FRAME = pd.DataFrame({"user": [0, 1], "item": [0, 1], "score": [0.5, 0.2], "rank": [1, 1]})
OF_ITEMS = ["calibration@2", "diversity(similarity=vectors)@2", "recall(weights=ips)@2"]
CLICKS = se.datasets.synthetic(n_users=30, n_items=20, seed=0)
EVALUATIONS = {
    name: se.evaluate(Rankings.from_topk(ids, shape=(3, 4)), MATRIX, "ndcg@2")
    for name, ids in (("a", [[0, 1], [1, 2], [2, 3]]), ("b", [[1, 0], [2, 1], [3, 2]]))
}


def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def matrix_class():
    with pytest.warns(PendingDeprecationWarning):
        return np.matrix(np.ones((3, 4)))


WRONG = {
    "None": lambda: None,
    "dict": lambda: {"a": 1},
    "ranx": lambda: {"a": {"x": 1.0}},
    "dict of lists": lambda: {"a": ["x", "y"]},
    "empty dict": dict,
    "list": lambda: [1, 2, 3],
    "empty list": list,
    "ragged": lambda: [[1, 2], [1]],
    "words": lambda: ["a", "b"],
    "str": lambda: "abc",
    "empty str": str,
    "bytes": lambda: b"abc",
    "generator": lambda: (number for number in range(2)),
    "DataFrame": lambda: FRAME,
    "empty DataFrame": pd.DataFrame,
    "Series": lambda: pd.Series([1, 2]),
    "tensor": lambda: Tensor(np.ones((3, 4), np.float32)),
    "tensor with gradients": lambda: Tensor(np.ones((3, 4)), requires_grad=True),
    "tensor on a GPU": lambda: Tensor(np.ones((3, 4)), device=CUDA),
    "masked": lambda: np.ma.masked_equal(np.eye(3, 4), 1),
    "object": lambda: np.array([[1, None], [2, "a"]], object),
    "csr": lambda: MATRIX,
    "dia": lambda: sparse.dia_array(MATRIX),
    "flat sparse": lambda: sparse.coo_array(np.array([1, 2])),
    "complex sparse": lambda: MATRIX * 1j,
    "complex": lambda: np.ones((3, 4)) * 1j,
    "bool": lambda: True,
    "int": lambda: -1,
    "float": lambda: 2.5,
    "nan": lambda: float("nan"),
    "flat": lambda: np.arange(4),
    "dense": lambda: np.ones((3, 4)),
    "cube": lambda: np.ones((2, 3, 4)),
    "text": lambda: np.array(["a", "b"]),
    "dates": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "scalar": lambda: np.array(3),
    "object()": object,
    "Rankings": lambda: LISTS,
    "Relevance": lambda: Relevance.from_csr(MATRIX),
    "Interactions": lambda: CLICKS,
    "Path": lambda: Path("nowhere"),
    "matrix": matrix_class,
}

#: Functions, the arguments that are right, and those that are replaced by wrong ones.
CALLS = {
    "from_topk": (Rankings.from_topk, {"ids": [[0, 1], [1, 2]], "user_rows": None, "shape": None}),
    "from_positions": (Rankings.from_positions, {"positions": MATRIX}),
    "from_scores": (
        Rankings.from_scores,
        {"scores": np.ones((3, 4)), "k": None, "train": None, "ties": "item"},
    ),
    "Rankings.from_frame": (
        Rankings.from_frame,
        {"df": FRAME, "user": "user", "item": "item", "score": "score", "ties": None},
    ),
    "from_popularity": (
        Rankings.from_popularity, {"train": MATRIX, "k": 2, "filter_seen": False}
    ),
    "from_csr": (
        Relevance.from_csr,
        {"matrix": MATRIX, "threshold": None, "users": None, "items": None},
    ),
    "Relevance.from_frame": (
        Relevance.from_frame,
        {"df": FRAME, "user": "user", "gain": None, "gains": None, "event": None, "combine": None},
    ),
    "evaluate": (
        se.evaluate,
        {"predictions": LISTS, "validation": MATRIX, "metrics": "ndcg@2", "train": None,
         "candidates": None, "item_data": None, "convention": None, "keep": "values",
         "memory": None, "num_threads": None},
    ),
    "Protocol": (
        lambda metrics, **rules: se.evaluate(LISTS, MATRIX, se.Protocol(metrics, **rules)),
        {"metrics": "ndcg@2", "convention": None, "no_relevant": None, "without_list": None,
         "filter_seen": True, "judged_only": False},
    ),
    "ItemData": (
        lambda **items: se.evaluate(
            LISTS, MATRIX, OF_ITEMS, train=MATRIX, item_data=se.ItemData(**items)
        ),
        {"groups": [0, 1, 2, 3], "vectors": np.eye(4), "propensity": [0.5, 0.25, 1.0, 0.5]},
    ),
    "top_k": (
        lambda left, right, **more: se.top_k((left, right), **more),
        {"left": FACTORS[0], "right": FACTORS[1], "k": 2, "train": None, "users": None,
         "candidates": None, "exclude": None, "num_threads": None},
    ),
    "ranks": (partial(se.ranks, FACTORS), {"held_out": MATRIX, "k": None, "overlap": "error"}),
    "fold_in": (
        se.fold_in,
        {"model": FACTORS, "seen": MATRIX, "regularization": 0.1, "alpha": None,
         "num_threads": None},
    ),
    "evaluate_model": (
        partial(se.evaluate_model, metrics="ndcg@2"),
        {"model": FACTORS, "train": sparse.csr_matrix((3, 4)), "validation": MATRIX, "users": None,
         "item_data": None, "keep": "values"},
    ),
    "train_als": (
        partial(se.train_als, iterations=1),
        {"train": MATRIX, "factors": 2, "alpha": 1.0, "seed": 0, "callback": None},
    ),
    "split.random": (se.split.random, {"interactions": CLICKS, "fraction": 0.2, "seed": 0}),
    "compare": (
        se.compare,
        {"evaluations": EVALUATIONS, "metrics": None, "test": "t", "level": 0.95},
    ),
    "merge": (lambda other: EVALUATIONS["a"].merge(other), {"other": EVALUATIONS["b"]}),
    "distribution": (
        lambda ax, **more: se.plots.distribution(ax=axes() if ax is None else ax, **more),
        {"evaluations": EVALUATIONS, "metric": "ndcg@2", "ax": None},
    ),
    "write_run": (partial(se.trec.write_run, path="a.run"), {"rankings": LISTS}),
    "write_qrels": (
        partial(se.trec.write_qrels, path="a.qrels"), {"relevance": Relevance.from_csr(MATRIX)}
    ),
    "read_run": (se.trec.read_run, {"path": "nowhere"}),
    "load": (se.datasets.load, {"source": "nowhere"}),
    "Evaluation.load": (se.Evaluation.load, {"path": "nowhere"}),
    "register_metric": (se.register_metric, {"name": "another", "description": "of no use"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:.* held-out items were seen")
@pytest.mark.filterwarnings("ignore:judged_only=True, but every item")
@pytest.mark.filterwarnings("ignore:.* (relevant|listed) items are not candidates")
def test_a_wrong_type_is_taken_or_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, right = CALLS[name]
    for argument in right:
        for what, make in WRONG.items():
            try:
                function(**(right | {argument: make()}))
            except se.SparseEvalError as error:
                assert str(error)  # noqa: PT017
            except Exception as error:  # noqa: BLE001
                pytest.fail(f"{argument}, {what}: {type(error).__name__}: {error}")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Rankings.from_topk(FRAME),
        lambda: Rankings.from_topk(np.eye(2)),
        lambda: Rankings.from_topk(MATRIX),
        lambda: Rankings.from_positions(np.ones((3, 4)) / 2),
        lambda: Relevance.from_csr(FRAME),
        lambda: se.evaluate_model(FACTORS, FRAME, MATRIX, "ndcg@2"),
        lambda: se.top_k((FRAME, FACTORS[1]), 2),
        lambda: se.evaluate(Relevance.from_csr(MATRIX), LISTS, "mrr"),
    ],
)
def test_names_the_call_that_is_right(call):
    with raises(se.SparseEvalError):
        call()
