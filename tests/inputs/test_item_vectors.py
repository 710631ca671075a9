"""Vectors of items, in every form."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.inputs.item_data import as_vectors

VECTORS = {2: [0.0, 1.0], 1: [1.0, 0.0], 0: [1.0, 0.0]}
TABLE = pd.DataFrame({"item": [*VECTORS], "v0": [0.0, 1.0, 1.0], "v1": [1.0, 0.0, 0.0]})
LISTED = pd.DataFrame({"item_id": [*VECTORS], "vector": [*VECTORS.values()]})


@pytest.mark.parametrize(
    "vectors",
    [
        VECTORS,
        {item: np.array(vector) for item, vector in VECTORS.items()},
        pd.Series(VECTORS),
        TABLE.set_index("item"),
        TABLE,
        pl.from_pandas(TABLE),
        pa.table(TABLE),
        LISTED,
        pl.from_pandas(LISTED),
        [VECTORS[item] for item in range(3)],
        TABLE.set_index("item").sort_index().to_numpy(),
        pl.from_pandas(TABLE.sort_values("item").drop(columns="item")),
    ],
)
def test_vectors_are_matched_by_item(vectors):
    found, _ = as_vectors(vectors, 3, None)
    assert found.tolist() == [VECTORS[item] for item in range(3)]
    lists = {"u": ["c", "b"]}
    named = TABLE.assign(item=[*"cba"])
    metric = "diversity(similarity=vectors)@2"
    ev = se.evaluate(lists, {"u": [*"ab"]}, metric, item_data=se.ItemData(vectors=named))
    assert ev[metric] == 1


@pytest.mark.parametrize(
    "vectors",
    [
        {0: [1.0], 1: [1.0, 2.0], 2: [1.0]},
        {0: 1.0, 1: 2.0, 2: 3.0},
        {0: ["a"], 1: ["b"], 2: ["c"]},
        TABLE.assign(movie_id=[5, 6, 7]),
        TABLE.assign(item=[0, 0, 1]),
        TABLE.iloc[:2],
        TABLE.assign(name="x"),
    ],
)
def test_other_vectors_are_errors(vectors):
    with raises(InvalidDataError, argument="vectors"):
        as_vectors(vectors, 3, None)
