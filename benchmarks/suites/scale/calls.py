"""The package's calls that need a cluster, with the names in this checkout and in older ones."""

from typing import Any

import sparse_eval as se

try:
    from sparse_eval import scale
except ImportError:
    scale = None  # clients are options of the public functions


def evaluate_model(
    model: Any, train: Any, validation: Any, metrics: Any, *, client: Any, **options: Any
) -> se.Evaluation:
    """Return `se.evaluate_model` with the workers of a client of Dask."""
    call = se.evaluate_model if scale is None else scale.dask.evaluate_model
    return call(model, train, validation, metrics, client=client, **options)


def evaluate_tables(
    recs: Any, truth: Any, metrics: Any, *, client: Any, **options: Any
) -> se.Evaluation:
    """Return `se.evaluate` of paths or DataFrames, with a session of Spark."""
    if scale is None:
        return se.evaluate(recs, truth, metrics, client=client, **options)
    return scale.spark.evaluate_table(recs, truth, metrics, session=client, **options)
