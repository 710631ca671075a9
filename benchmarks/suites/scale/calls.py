"""The calls of the package that need a cluster, and what its modules are called for now."""

from typing import Any

import sparse_eval as se


def evaluate_model(
    model: Any, train: Any, validation: Any, metrics: Any, *, client: Any, **options: Any
) -> se.Evaluation:
    """Return `se.evaluate_model` with the workers of a client of Dask."""
    try:
        from sparse_eval.evaluation import dask
    except ImportError:  # a checkout where it is somewhere else
        from sparse_eval.scale import dask
    return dask.evaluate_model(model, train, validation, metrics, client=client, **options)


def evaluate_tables(
    recs: Any, truth: Any, metrics: Any, *, client: Any, **options: Any
) -> se.Evaluation:
    """Return `se.evaluate` of paths or DataFrames, with a session of Spark."""
    try:
        from sparse_eval.evaluation import spark
    except ImportError:  # a checkout where it is somewhere else
        from sparse_eval.scale import spark
    return spark.evaluate_table(recs, truth, metrics, session=client, **options)
