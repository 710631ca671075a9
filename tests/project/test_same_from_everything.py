"""The same evaluation from whatever holds the data: the same bits."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparse_eval as se

METRICS = ["ndcg@5", "recall@10", "map(normalizer=min)@5", "mrr", "coverage@5"]


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return recommendations and relevant items with ids as text, in no order."""
    clicks = se.datasets.synthetic(n_users=80, n_items=60, seed=2)
    holdout = se.split.random(clicks, seed=0)
    recs = se.recommend(se.train_als(holdout.train, factors=4, iterations=2), holdout, 10)
    coo = holdout.validation.tocoo()
    truth = pd.DataFrame(
        {"user": holdout.users[coo.row], "item": holdout.items[coo.col], "gain": coo.data}
    )
    shuffled = [frame.sample(frac=1, random_state=1) for frame in (recs, truth)]
    return shuffled[0].drop(columns="score"), shuffled[1]


@pytest.fixture(scope="module")
def expected(tables: tuple[pd.DataFrame, pd.DataFrame]) -> se.Evaluation:
    return se.evaluate(*tables, METRICS)


def in_form(name: str, frame: pd.DataFrame, folder: Path, role: str) -> Any:
    """Return a frame in another form."""
    frame = frame.reset_index(drop=True)
    if name == "polars":
        return pytest.importorskip("polars").from_pandas(frame)
    if name == "lazy polars":
        return pytest.importorskip("polars").from_pandas(frame).lazy()
    if name == "pyarrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(frame)
    if name == "duckdb":
        return pytest.importorskip("duckdb").from_df(frame)
    if name == "csv":
        frame.to_csv(folder / f"{role}.csv", index=False)
        return folder / f"{role}.csv"
    if name == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(folder / f"{role}.parquet", index=False)
        return folder / f"{role}.parquet"
    if name == "interactions" and role == "truth":
        return se.Interactions.from_frame(frame, value="gain")
    if name == "matrices":
        users, items = pd.factorize(frame["user"])[1], pd.factorize(frame["item"])[1]
        codes = users.get_indexer(frame["user"]), items.get_indexer(frame["item"])
        from scipy.sparse import csr_matrix

        values = frame["rank" if role == "recs" else "gain"]
        matrix = csr_matrix((values, codes), shape=(len(users), len(items)))
        make = se.Rankings.from_positions if role == "recs" else se.Relevance.from_csr
        return make(matrix, users=users, items=items)
    return frame


@pytest.mark.parametrize(
    "form",
    ["polars", "lazy polars", "pyarrow", "duckdb", "csv", "parquet", "interactions", "matrices"],
)
def test_same_bits(
    form: str,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    expected: se.Evaluation,
    tmp_path: Path,
) -> None:
    recs, truth = (
        in_form(form, frame, tmp_path, role)
        for frame, role in zip(tables, ("recs", "truth"), strict=True)
    )
    found = se.evaluate(recs, truth, METRICS)
    assert found.mean() == expected.mean()
    one, other = (ev.per_user.sort_index() for ev in (found, expected))
    assert one.index.tolist() == other.index.tolist()
    np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())
